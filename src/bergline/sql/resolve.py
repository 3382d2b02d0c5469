"""From names in SQL to tables of a lake, and to the state of a table that a name or clause means."""

import re
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.lake import Lake
from bergline.sql.moments import timestamp_ms
from bergline.sql.statements import AsOf, Name
from bergline.sql.tokens import TokenKind, tokenize
from bergline.table.inspection.metadata_tables import METADATA_TABLES
from bergline.table.table import Table

_SELECTOR = re.compile(r"(?P<kind>branch|tag|snapshot_id|at_timestamp)_(?P<value>.+)", re.DOTALL)
_START, _END = "start-snapshot-id", "end-snapshot-id"
READ_OPTIONS = ("branch", "tag", "snapshot-id", "as-of-timestamp", "versionAsOf", "timestampAsOf", _START, _END)


class Selector(msgspec.Struct, frozen=True):
    """Which state, or which metadata table; nothing set means what the session says, else `main`."""

    branch: str | None = None
    ref: str | None = None
    snapshot_id: int | None = None
    as_of_ms: int | None = None
    metadata_table: str | None = None
    after: int | None = None
    """Only what appends brought after this snapshot, up to `snapshot_id`."""

    @property
    def names_a_version(self) -> bool:
        """Whether it fixes a state of the rows."""
        return any(x is not None for x in (self.branch, self.ref, self.snapshot_id, self.as_of_ms, self.after))


class Target(msgspec.Struct, frozen=True):
    """A table of a lake and the state that the name means."""

    table: Table
    selector: Selector


class Current(msgspec.Struct):
    """What USE said last: a lake, None for the default one, and a namespace in it."""

    lake: str | None = None
    namespace: Name = ()


class Surroundings(Protocol):
    """What an engine has beside the lakes."""

    @property
    def user(self) -> str | None:
        """Who runs statements: the owner of what they make."""
        ...

    def has_temporary_view(self, name: str) -> bool:
        """Whether there is such a view, which comes before every table of its name."""
        ...

    def has_catalog(self, name: str) -> bool:
        """Whether names that begin so are the engine's."""
        ...

    def namespaces(self) -> list[str]:
        """The namespaces of the engine's current catalog."""
        ...


class Alone(Surroundings):
    """No engine: nothing but the lakes."""

    @property
    def user(self) -> str | None:
        """Nobody."""
        return None

    def has_temporary_view(self, name: str) -> bool:
        """No."""
        return False

    def has_catalog(self, name: str) -> bool:
        """No."""
        return False

    def namespaces(self) -> list[str]:
        """None."""
        return []


class Lakes:
    """The lakes of a session by name; one of them is the default, until USE says otherwise."""

    def __init__(
        self,
        lakes: Mapping[str, Lake],
        default: str,
        current: Current | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        self._lakes = lakes
        self.current = current or Current()
        self.surroundings: Surroundings = surroundings or Alone()
        self.default_name = default if self.current.lake is None else self.current.lake
        self.default = lakes[self.default_name]

    def has(self, name: str) -> bool:
        """Whether a lake has this name."""
        return name in self._lakes

    def by_name(self, name: str) -> Lake:
        """The lake of this name."""
        return self._lakes[name]

    def name_of(self, lake: Lake) -> str:
        """The name that a lake is attached under."""
        return next(name for name, known in self._lakes.items() if known is lake)

    def use(self, lake: Lake | None, namespace: Name) -> None:
        """Make a lake and a namespace the current ones; None goes back to the default lake."""
        self.current.lake = None if lake is None else self.name_of(lake)
        self.current.namespace = namespace

    def place(self, name: Name) -> tuple[Lake, Name] | None:
        """The lake that a table name belongs to and the name in it; None if it is not ours.

        A name is ours if it begins with a lake's name, or if its namespace exists in the default lake; one without a
        namespace, if a namespace is in use and no temporary view has the name.
        """
        used = self.current.namespace
        if len(name) == 1:
            is_ours = used and not self.surroundings.has_temporary_view(name[0])
            return (self.default, (*used, *name)) if is_ours else None
        if len(name) > 2 and name[0] in self._lakes:  # noqa: PLR2004
            return self._lakes[name[0]], name[1:]
        if len(name) > 2 and self.surroundings.has_catalog(name[0]):  # noqa: PLR2004
            return None
        for cut in (1, 2):
            if len(name) > cut and self.default.namespace_exists(name[:-cut]):
                return self.default, name
        if used and len(name) == 2 and self.default.table_exists(TableName(used, name[0])):  # noqa: PLR2004
            return self.default, (*used, *name)
        return None

    def place_namespace(self, namespace: Name) -> tuple[Lake, Name] | None:
        """The lake that a namespace is in and its name there, () for a lake itself; None if it is not ours."""
        if namespace[0] in self._lakes:
            if len(namespace) > 1:
                return self._lakes[namespace[0]], namespace[1:]
            if not self.default.namespace_exists(namespace):
                return self._lakes[namespace[0]], ()
        if self.surroundings.has_catalog(namespace[0]) or not self.default.namespace_exists(namespace):
            return None
        return self.default, namespace

    def place_new_namespace(self, namespace: Name) -> tuple[Lake, Name] | None:
        """The lake that a namespace would be created in; None in a catalog of the engine."""
        if len(namespace) > 1 and namespace[0] in self._lakes:
            return self._lakes[namespace[0]], namespace[1:]
        return None if self.surroundings.has_catalog(namespace[0]) else (self.default, namespace)

    def owns(self, name: Name) -> bool:
        """Whether a name, of a table or of a namespace, belongs to a lake."""
        return self.place(name) is not None or self.place_namespace(name) is not None

    def resolve(self, name: Name) -> Target | None:
        """The table that a name means; None if it is not ours, NotFoundError if it is and does not exist."""
        placed = self.place(name)
        if placed is None:
            return None
        lake, rest = placed
        if lake.namespace_exists(rest[:-1]):
            try:
                return Target(lake.load_table(TableName(rest[:-1], rest[-1])), Selector())
            except NotFoundError as error:
                if error.kind != "table" or len(rest) < 3 or not lake.namespace_exists(rest[:-2]):  # noqa: PLR2004
                    raise
        if len(rest) < 3:  # noqa: PLR2004
            return Target(lake.load_table(TableName(rest[:-1], rest[-1])), Selector())
        table = lake.load_table(TableName(rest[:-2], rest[-2]))
        return Target(table, parse_selector(rest[-1], table))

    def resolve_table(self, name: Name) -> Table | None:
        """The table that a name means, which must name no version or metadata table of it."""
        target = self.resolve(name)
        if target is None:
            return None
        if target.selector != Selector():
            raise InvalidInputError(f"expected a table, found `{'.'.join(name)}`")
        return target.table

    def resolve_text(self, text: str) -> Target:
        """The table that a procedure's argument names."""
        parts = tuple(t.value for t in tokenize(text) if t.kind in {TokenKind.WORD, TokenKind.QUOTED})
        target = self.resolve(parts) if parts else None
        if target is None:
            known = self.default.list_namespaces()
            raise NotFoundError(
                f"no table `{text}`",
                kind="table",
                name=text,
                hints=[f"the lake has the namespaces {', '.join(known) or '(none)'}; write `namespace.table`"],
            )
        if target.selector != Selector():
            raise InvalidInputError(f"expected a table, found `{text}`")
        return target


def parse_selector(part: str, table: Table) -> Selector:
    """The last part of `db.orders.branch_x`, `db.orders.tag_y`, `db.orders.refs` and the like."""
    if part.lower() in METADATA_TABLES:
        return Selector(metadata_table=part.lower())
    match = _SELECTOR.fullmatch(part)
    if match is None:
        raise NotFoundError(
            f"no metadata table `{part}` of `{table.name}`",
            kind="metadata table",
            name=part,
            known=METADATA_TABLES,
            hints=[f"there are {', '.join(METADATA_TABLES)}, branch_x, tag_x, snapshot_id_N and at_timestamp_MS"],
        )
    kind, value = match["kind"], match["value"]
    if kind == "branch":
        return Selector(branch=value)
    if kind == "tag":
        return Selector(ref=value)
    if not value.isdecimal():
        raise InvalidInputError(f"expected a number after `{kind}_`, found `{value}`")
    return Selector(snapshot_id=int(value)) if kind == "snapshot_id" else Selector(as_of_ms=int(value))


def with_as_of(selector: Selector, as_of: AsOf | None, time_zone: str) -> Selector:
    """The selector with a time travel clause; both at once is an error."""
    if as_of is None:
        return selector
    if selector.names_a_version:
        raise InvalidInputError("expected one version, found a selector in the name and a time travel clause")
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


def with_options(selector: Selector, options: Mapping[str, Any], time_zone: str) -> Selector:
    """The selector with a reader's options; what is not understood is refused rather than ignored."""
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
                chosen |= msgspec.structs.asdict(with_as_of(Selector(), AsOf("version", str(value)), time_zone))
            case "timestampasof":
                chosen |= msgspec.structs.asdict(with_as_of(Selector(), AsOf("timestamp", str(value)), time_zone))
            case _:
                raise UnsupportedError(f"expected one of the options {', '.join(READ_OPTIONS)}, found `{key}`")
    several = len(options) > 1 and set(options) != {_START, _END}
    if several or (options and selector.names_a_version):
        raise InvalidInputError(f"expected one version, found {', '.join(f'`{key}`' for key in options)}")
    return msgspec.structs.replace(selector, **{k: v for k, v in chosen.items() if v is not None})


def _whole_number(key: str, value: Any) -> int:
    if not str(value).isdecimal():
        raise InvalidInputError(f"expected a whole number for option `{key}`, found `{value}`")
    return int(value)
