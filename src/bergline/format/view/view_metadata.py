"""View metadata: the versions of a view's query, and the current one."""

from functools import cached_property
from typing import Any, Final

import msgspec

from bergline.errors import FormatError, InvalidInputError, NotFoundError
from bergline.format.encoding.integers import Int, Milliseconds
from bergline.format.encoding.value_class import ValueClass
from bergline.format.schema.schema import Schema

VIEW_FORMAT_VERSION: Final = 1
SQL: Final = "sql"


class ViewRepresentation(ValueClass):
    """SqlRepresentation or UnknownRepresentation."""

    __slots__ = ()

    @classmethod
    def from_json(cls, value: Any) -> "ViewRepresentation":
        """Parse any representation from decoded JSON."""
        return parse_representation(value)

    def to_json(self) -> dict[str, Any]:
        """A JSON object with the type and its fields."""
        return render_representation(self)


class SqlRepresentation(ViewRepresentation):
    """The query as text, in one engine's SQL."""

    __slots__ = ("dialect", "sql")
    __match_args__ = ("sql", "dialect")
    sql: str
    dialect: str


class UnknownRepresentation(ViewRepresentation):
    """A representation of a later specification, kept as it is."""

    __slots__ = ("content",)
    __match_args__ = ("content",)
    content: dict[str, Any]

    def __hash__(self) -> int:
        return hash(self.content["type"])


class ViewVersion(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """One definition of a view; fields are in the order of Java's JSON."""

    version_id: Int
    timestamp_ms: Milliseconds
    schema_id: Int
    summary: dict[str, str]
    default_catalog: str | None = None
    default_namespace: tuple[str, ...]
    representations: tuple[ViewRepresentation, ...]

    @property
    def dialects(self) -> frozenset[str]:
        """The dialects of its queries, in lower case."""
        return frozenset(r.dialect.lower() for r in self.representations if isinstance(r, SqlRepresentation))


class ViewLogEntry(msgspec.Struct, frozen=True, rename="kebab"):
    """When a version became current."""

    timestamp_ms: Milliseconds
    version_id: Int


class ViewMetadata(msgspec.Struct, frozen=True, kw_only=True, dict=True, rename="kebab"):
    """The state of a view; a commit creates a new one (see `updates`)."""

    view_uuid: str
    format_version: Int
    location: str
    properties: dict[str, str] = {}
    schemas: tuple[Schema, ...]
    current_version_id: Int
    versions: tuple[ViewVersion, ...]
    version_log: tuple[ViewLogEntry, ...]

    @cached_property
    def versions_by_id(self) -> dict[int, ViewVersion]:
        """Versions by id."""
        return {v.version_id: v for v in self.versions}

    @property
    def current_version(self) -> ViewVersion:
        """The definition that readers use."""
        return self.version(self.current_version_id)

    @property
    def schema(self) -> Schema:
        """The columns of the current version."""
        return next(s for s in self.schemas if s.schema_id == self.current_version.schema_id)

    def version(self, version_id: int) -> ViewVersion:
        """The version of this id."""
        try:
            return self.versions_by_id[version_id]
        except KeyError:
            raise NotFoundError(f"no version with id {version_id}", kind="version", name=str(version_id)) from None


def check_view_invariants(view: ViewMetadata) -> ViewMetadata:
    """Refuse view metadata that contradicts itself."""
    if view.format_version != VIEW_FORMAT_VERSION:
        raise FormatError(f"expected view format version {VIEW_FORMAT_VERSION}, found {view.format_version}")
    if len(view.versions_by_id) != len(view.versions):
        raise FormatError(f"expected each version-id once, found {[v.version_id for v in view.versions]}")
    schema_ids = [s.schema_id for s in view.schemas]
    if len(set(schema_ids)) != len(schema_ids):
        raise FormatError(f"expected each schema-id once, found {schema_ids}")
    if view.current_version_id not in view.versions_by_id:
        raise FormatError(
            f"expected current-version-id to be one of {list(view.versions_by_id)}, found {view.current_version_id}"
        )
    if view.current_version.schema_id not in schema_ids:
        raise FormatError(
            f"expected a schema of {schema_ids} for the current version, found {view.current_version.schema_id}"
        )
    return view


def parse_representation(wire: Any) -> ViewRepresentation:
    """Parse a representation; its type is case-insensitive, as in Java."""
    if not isinstance(wire, dict):
        raise InvalidInputError(f"expected `object`, found `{type(wire).__name__}`")
    kind = _text(wire, "type").lower()
    return SqlRepresentation(_text(wire, SQL), _text(wire, "dialect")) if kind == SQL else UnknownRepresentation(wire)


def render_representation(representation: ViewRepresentation) -> dict[str, Any]:
    """A representation in JSON's types."""
    match representation:
        case SqlRepresentation(sql, dialect):
            return {"type": SQL, "sql": sql, "dialect": dialect}
        case UnknownRepresentation(content):
            return content
    raise NotImplementedError(type(representation))


def _text(wire: dict[str, Any], key: str) -> str:
    if not isinstance(value := wire.get(key), str):
        raise InvalidInputError(f"expected text for `{key}`, found {value!r:.80}")
    return value
