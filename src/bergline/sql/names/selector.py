"""The version of a table that a name, a clause or an option selects."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.sql.queries.query import AsOf
from bergline.sql.text.timestamps import timestamp_ms
from bergline.sql.text.tokens import SqlText
from bergline.table.inspection.metadata_tables import METADATA_TABLES
from bergline.table.scans.changelog_scan import ChangelogRange
from bergline.table.table import Table

_SELECTOR = re.compile(r"(?P<kind>branch|tag|snapshot_id|at_timestamp)_(?P<value>.+)", re.DOTALL | re.IGNORECASE)
_START, _END = "start-snapshot-id", "end-snapshot-id"
CHANGES = "changes"
"""The metadata table of changed rows."""
CHANGES_OPTIONS = (_START, _END, "start-timestamp", "end-timestamp", "start-tag", "end-tag", "branch")
READ_OPTIONS = ("branch", "tag", "snapshot-id", "as-of-timestamp", "versionAsOf", "timestampAsOf", _START, _END)


class VersionSelector(msgspec.Struct, frozen=True):
    """A version of a table, or a metadata table; nothing set means the session's branch, or else `main`."""

    branch: str | None = None
    ref: str | None = None
    snapshot_id: int | None = None
    as_of_ms: int | None = None
    metadata_table: str | None = None
    after: int | None = None
    """Only rows that were appended after this snapshot, up to `snapshot_id`."""
    changes: ChangelogRange | None = None
    """Which changes the metadata table `changes` has."""

    @property
    def names_a_version(self) -> bool:
        """Whether it selects a version of the rows."""
        return any(x is not None for x in (self.branch, self.ref, self.snapshot_id, self.as_of_ms, self.after))


def parse_selector(part: str, table: Table) -> VersionSelector:
    """The last part of `db.orders.branch_x`, `db.orders.tag_y`, `db.orders.refs` and the like."""
    if part.lower() == CHANGES:
        return VersionSelector(metadata_table=CHANGES, changes=ChangelogRange())
    if part.lower() in METADATA_TABLES:
        return VersionSelector(metadata_table=part.lower())
    match = _SELECTOR.fullmatch(part)
    if match is None:
        known = (*METADATA_TABLES, CHANGES)
        raise NotFoundError(
            f"no metadata table `{part}` of `{table.name}`",
            kind="metadata table",
            name=part,
            known=known,
            hints=[f"there are {', '.join(known)}, branch_x, tag_x, snapshot_id_N and at_timestamp_MS"],
        )
    kind, value = match["kind"].lower(), match["value"]
    if kind == "branch":
        return VersionSelector(branch=value)
    if kind == "tag":
        return VersionSelector(ref=value)
    if not value.isdecimal():
        raise InvalidInputError(f"expected a number after `{kind}_`, found `{value}`")
    return VersionSelector(snapshot_id=int(value)) if kind == "snapshot_id" else VersionSelector(as_of_ms=int(value))


def spelled_refs(selector: VersionSelector, refs: Sequence[str]) -> VersionSelector:
    """The selector with its branch or tag as a table spells it: exactly so, or else the only one but for case."""

    def spelled(name: str | None) -> str | None:
        if name is None or name in refs:
            return name
        found = [ref for ref in refs if ref.casefold() == name.casefold()]
        return found[0] if len(found) == 1 else name

    return msgspec.structs.replace(selector, branch=spelled(selector.branch), ref=spelled(selector.ref))


def with_as_of(
    selector: VersionSelector, as_of: AsOf | None, time_zone: str, evaluate: Callable[[SqlText], int] | None = None
) -> VersionSelector:
    """The selector with a time travel clause; both at once is an error.

    `evaluate` is an engine's: the milliseconds that an expression means.
    """
    if as_of is None:
        return selector
    if selector.names_a_version:
        raise InvalidInputError("expected one version, found a selector in the name and a time travel clause")
    if selector.changes is not None:
        raise InvalidInputError(f"expected no version for `{CHANGES}`, which is about several snapshots, found one")
    if as_of.expression is not None and evaluate is not None:
        return msgspec.structs.replace(selector, as_of_ms=evaluate(as_of.expression))
    if as_of.value is None:
        raise UnsupportedError(
            "expected a literal after AS OF, found an expression",
            hints=["put the name of a branch or tag, or a time, in single quotes"],
        )
    if as_of.kind == "timestamp":
        return msgspec.structs.replace(selector, as_of_ms=timestamp_ms(as_of.value, time_zone))
    if isinstance(as_of.value, int) or as_of.value.isdecimal():
        return msgspec.structs.replace(selector, snapshot_id=int(as_of.value))
    return msgspec.structs.replace(selector, ref=as_of.value)


def with_options(selector: VersionSelector, options: Mapping[str, Any], time_zone: str) -> VersionSelector:
    """The selector with a reader's options; what is not understood is refused rather than ignored."""
    if selector.changes is not None:
        return msgspec.structs.replace(selector, changes=changelog_range(options))
    chosen: dict[str, Any] = {}
    if _END in options and _START not in options:
        raise InvalidInputError(f"expected `{_START}` beside `{_END}`, found none")
    for key, value in options.items():
        match key.lower():
            case "branch" | "tag":
                chosen["ref"] = str(value)
            case "snapshot-id":
                chosen["snapshot_id"] = _whole_number(key, value)
            case "as-of-timestamp":
                chosen["as_of_ms"] = _whole_number(key, value)
            case "start-snapshot-id":
                chosen["after"] = _whole_number(key, value)
            case "end-snapshot-id":
                chosen["snapshot_id"] = _whole_number(key, value)
            case "versionasof":
                chosen |= msgspec.structs.asdict(with_as_of(VersionSelector(), AsOf("version", str(value)), time_zone))
            case "timestampasof":
                chosen |= msgspec.structs.asdict(
                    with_as_of(VersionSelector(), AsOf("timestamp", str(value)), time_zone)
                )
            case _:
                raise UnsupportedError(f"expected one of the options {', '.join(READ_OPTIONS)}, found `{key}`")
    several = len(options) > 1 and set(options) != {_START, _END}
    if several or (options and selector.names_a_version):
        raise InvalidInputError(f"expected one version, found {', '.join(f'`{key}`' for key in options)}")
    return msgspec.structs.replace(selector, **{k: v for k, v in chosen.items() if v is not None})


def changelog_range(options: Mapping[str, Any]) -> ChangelogRange:
    """The snapshots that the options of a changelog choose; what is not understood is refused."""
    chosen: dict[str, Any] = {}
    for key, value in options.items():
        known = key.lower()
        if known not in CHANGES_OPTIONS:
            raise UnsupportedError(f"expected one of the options {', '.join(CHANGES_OPTIONS)}, found `{key}`")
        is_number = known.endswith(("-id", "-timestamp"))
        chosen[known.replace("-", "_")] = _whole_number(key, value) if is_number else str(value)
    return ChangelogRange(**chosen)


def _whole_number(key: str, value: Any) -> int:
    if not str(value).isdecimal():
        raise InvalidInputError(f"expected a whole number for option `{key}`, found `{value}`")
    return int(value)
