"""Applying updates to view metadata: `apply_view_updates` returns a new value or raises."""

from collections.abc import Iterable
from typing import assert_never

import msgspec

from bergline.errors import ConflictError, InvalidInputError, RefusedError, UnsupportedError
from bergline.format.encoding.integers import next_int
from bergline.format.metadata.apply_layout import LAST_ADDED, chosen_id, schema_content, with_added
from bergline.format.metadata.properties import whole_number
from bergline.format.metadata.updates import (
    AddSchema,
    AssignUuid,
    RemoveProperties,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
)
from bergline.format.schema.schema import Schema
from bergline.format.view.updates import AddViewVersion, SetCurrentViewVersion, ViewUpdate
from bergline.format.view.view_metadata import (
    VIEW_FORMAT_VERSION,
    SqlRepresentation,
    ViewLogEntry,
    ViewMetadata,
    ViewVersion,
    check_view_invariants,
)

HISTORY_SIZE = "version.history.num-entries"
DROP_DIALECT_ALLOWED = "replace.drop-dialect.allowed"
_DEFAULT_HISTORY_SIZE = 10


def apply_view_updates(base: ViewMetadata | None, updates: Iterable[ViewUpdate], *, now_ms: int) -> ViewMetadata:
    """Apply updates; without a base they must describe a complete new view."""
    work = _ViewBuilder(base, now_ms)
    for update in updates:
        work.apply(update)
    return work.finish(base)


class _ViewBuilder:
    """A view while updates are applied; tracks what was added last, which -1 refers to."""

    def __init__(self, base: ViewMetadata | None, now_ms: int) -> None:
        self._now_ms = now_ms
        self._uuid = base.view_uuid if base else None
        self._location = base.location if base else None
        self._properties = dict(base.properties) if base else {}
        self._schemas: tuple[Schema, ...] = base.schemas if base else ()
        self._versions = list(base.versions) if base else []
        self._log = base.version_log if base else ()
        self._current = base.current_version_id if base else None
        self._log_entry: ViewLogEntry | None = None
        self._added: set[int] = set()
        self._last_added: dict[str, int] = {}

    def apply(self, update: ViewUpdate) -> None:
        """Apply one update."""
        match update:
            case AssignUuid(uuid):
                if self._uuid is not None and uuid.lower() != self._uuid.lower():
                    raise ConflictError(f"expected uuid {self._uuid}, found {uuid}: it never changes")
                self._uuid = self._uuid or uuid
            case UpgradeFormatVersion(version):
                if version != VIEW_FORMAT_VERSION:
                    raise UnsupportedError(f"expected view format version {VIEW_FORMAT_VERSION}, found {version}")
            case SetLocation(location):
                self._location = location
            case SetProperties(changes):
                self._properties |= changes
            case RemoveProperties(removals):
                for key in removals:
                    self._properties.pop(key, None)
            case AddSchema(schema):
                self._schemas, self._last_added["schema"] = with_added(
                    self._schemas, schema, "schema_id", schema_content
                )
            case AddViewVersion(version):
                self._add_version(version)
            case SetCurrentViewVersion(version_id):
                self._set_current(version_id)
            case _:
                assert_never(update)

    def finish(self, base: ViewMetadata | None) -> ViewMetadata:
        """The view, with its history trimmed as its properties say."""
        if self._uuid is None or self._location is None or self._current is None:
            raise InvalidInputError(
                "expected a uuid, a location and a current version for a new view, "
                f"found {self._uuid}, {self._location} and {self._current}"
            )
        view = ViewMetadata(
            view_uuid=self._uuid,
            format_version=VIEW_FORMAT_VERSION,
            location=self._location,
            properties=self._properties,
            schemas=self._schemas,
            current_version_id=self._current,
            versions=tuple(self._versions),
            version_log=self._log if self._log_entry is None else (*self._log, self._log_entry),
        )
        if base is not None:
            _check_dialects(base.current_version, view)
        return check_view_invariants(_trimmed(view, self._added))

    def _add_version(self, version: ViewVersion) -> None:
        ids = [s.schema_id for s in self._schemas]
        version = msgspec.structs.replace(
            version, schema_id=chosen_id("schema", version.schema_id, ids, self._last_added)
        )
        for known in self._versions:
            if _content(known) == _content(version):
                self._last_added["version"] = known.version_id
                return
        _check_one_query_per_dialect(version)
        version_id = max((version.version_id, *(next_int("version id", v.version_id) for v in self._versions)))
        self._versions.append(msgspec.structs.replace(version, version_id=version_id))
        self._added.add(version_id)
        self._last_added["version"] = version_id

    def _set_current(self, version_id: int) -> None:
        known = {v.version_id: v for v in self._versions}
        chosen = chosen_id("version", version_id, list(known), self._last_added)
        if chosen == self._current:
            return
        self._current = chosen
        # a version made current again is logged with the current time; only the last choice of a change is logged
        time_ms = known[chosen].timestamp_ms if chosen in self._added else self._now_ms
        self._log_entry = ViewLogEntry(time_ms, chosen)


def _content(version: ViewVersion) -> ViewVersion:
    """What two equal versions have in common, whatever their ids and timestamps."""
    return msgspec.structs.replace(version, version_id=LAST_ADDED, timestamp_ms=0)


def _check_one_query_per_dialect(version: ViewVersion) -> None:
    queries = [r for r in version.representations if isinstance(r, SqlRepresentation)]
    if len(queries) != len(version.dialects):
        raise InvalidInputError(f"expected one query per dialect, found {sorted(q.dialect.lower() for q in queries)}")


def _check_dialects(before: ViewVersion, view: ViewMetadata) -> None:
    lost = before.dialects - view.current_version.dialects
    if lost and view.properties.get(DROP_DIALECT_ALLOWED, "false").lower() != "true":
        raise RefusedError(
            f"cannot replace the view without its queries for {', '.join(sorted(lost))}: their readers would lose it",
            hints=[f"give a query for each dialect, or set the property `{DROP_DIALECT_ALLOWED}` to true"],
        )


def _trimmed(view: ViewMetadata, added: set[int]) -> ViewMetadata:
    """The view without its oldest versions; new versions and the current one stay."""
    size = whole_number(view.properties, HISTORY_SIZE, _DEFAULT_HISTORY_SIZE)
    if size == 0:
        raise InvalidInputError(f"expected a number above 0 for property `{HISTORY_SIZE}`, found 0")
    keep = max(size, len(added | {view.current_version_id}))
    if len(view.versions) <= keep:
        return view
    others = sorted((v for v in view.versions if v.version_id != view.current_version_id), key=_id, reverse=True)
    kept = (view.current_version, *others[: keep - 1])
    ids = {v.version_id for v in kept}
    log: list[ViewLogEntry] = []
    for entry in view.version_log:
        if entry.version_id in ids:
            log.append(entry)
        else:
            log.clear()  # across a gap, the log would name a version that was not current at that time
    return msgspec.structs.replace(view, versions=kept, version_log=tuple(log))


def _id(version: ViewVersion) -> int:
    return version.version_id
