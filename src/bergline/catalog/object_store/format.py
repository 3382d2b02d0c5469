"""The JSON objects of an object store catalog: pointers, commits of several pointers, and namespaces.

Every write has a new stamp: no content ever recurs, and so neither do the store's tags. In a catalog of version 2 the
objects of names have a size that says what they hold, so that a listing needs no read of each.
"""

import uuid
from collections.abc import Callable
from enum import Enum
from typing import Annotated, TypeVar

import msgspec

from bergline.errors import FormatError, UnsupportedError

FORMAT_VERSION = 1
"""Of the objects."""
CATALOG_VERSION = 2
"""Of new catalogs, by their mark."""
SIZED_VERSION = 2
"""Of the catalogs in which sizes say what objects hold."""
_BLOCK = 512
_UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_Object = TypeVar("_Object", bound="CatalogObject")


class CatalogObject(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The common fields of all objects."""

    format_version: int = FORMAT_VERSION
    stamp: str


class ObjectKind(Enum):
    """Whether a name is a table or a view."""

    TABLE = "table"
    VIEW = "view"


class Entry(msgspec.Struct, frozen=True, rename="kebab"):
    """The table or view under a name, and its metadata location."""

    type: ObjectKind
    metadata_location: Annotated[str, msgspec.Meta(min_length=1)]


class Intent(msgspec.Struct, frozen=True):
    """The new entry of a name if the commit succeeds."""

    commit: Annotated[str, msgspec.Meta(pattern=_UUID)]
    becomes: Entry | None


class PointerObject(CatalogObject, frozen=True, kw_only=True):
    """A name and its current entry; none if it was dropped."""

    name: list[str]
    current: Entry | None
    intent: Intent | None = None


class State(Enum):
    """The state of a commit: pending changes once to one of the others; only the writer commits, anyone may abort."""

    PENDING = "pending"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Member(msgspec.Struct, frozen=True):
    """A pointer of a commit, and the stamp of its object before; none if there was no object.

    The intent is written only over this object: one with another stamp and without the intent never gets it.
    """

    name: Annotated[list[str], msgspec.Meta(min_length=2)]
    stamp: str | None


class CommitObject(CatalogObject, frozen=True, kw_only=True):
    """The record that decides a commit of several pointers."""

    state: State
    members: list[Member]


class NamespaceObject(CatalogObject, frozen=True, kw_only=True):
    """A namespace; without properties if it was dropped."""

    name: list[str]
    properties: dict[str, str] | None


class CatalogMark(CatalogObject, frozen=True, kw_only=True):
    """Marks a catalog and its format version."""

    format_version: int = CATALOG_VERSION
    catalog: str = "bergline"


class Held(Enum):
    """What the object of a name holds by its size: the remainder, in bytes."""

    TABLE = 0
    VIEW = 1
    NOTHING = 2
    """Its name was dropped."""
    NAMESPACE = 3
    UNDECIDED = 4
    """A commit decides, or any other size: the object must be read."""


class _Version(msgspec.Struct, rename="kebab"):
    format_version: Annotated[int, msgspec.Meta(ge=1)]


def new_stamp() -> str:
    """A new unique stamp."""
    return str(uuid.uuid4())


def render(value: CatalogObject) -> bytes:
    """Serialize an object."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def render_sized(value: PointerObject | NamespaceObject) -> bytes:
    """Serialize the object of a name, with blank lines up to a size that says what it holds."""
    data, held = render(value), _held(value)
    blocks = max(1, -(-(len(data) - held.value) // _BLOCK))
    return data.ljust(_BLOCK * blocks + held.value, b"\n")


def held_by(size: int) -> Held:
    """What an object of this size holds, in a catalog with sizes."""
    rest = size % _BLOCK
    return Held(rest) if size >= _BLOCK and rest < Held.UNDECIDED.value else Held.UNDECIDED


def _held(value: PointerObject | NamespaceObject) -> Held:
    if isinstance(value, NamespaceObject):
        return Held.NOTHING if value.properties is None else Held.NAMESPACE
    if value.intent is not None:
        return Held.UNDECIDED
    if value.current is None:
        return Held.NOTHING
    return Held.TABLE if value.current.type is ObjectKind.TABLE else Held.VIEW


def parser(kind: type[_Object], what: str, newest: int = FORMAT_VERSION) -> Callable[[bytes, str], _Object]:
    """A parser for one kind of object: FormatError names the location, UnsupportedError a newer format version."""
    version_of, value_of = msgspec.json.Decoder(_Version), msgspec.json.Decoder(kind)

    def parse(data: bytes, location: str) -> _Object:
        try:
            version = version_of.decode(data).format_version
            if version > newest:
                raise UnsupportedError(
                    f"expected format version {newest} of the catalog, found {version} in {location}",
                    hints=["a newer bergline wrote it: use that one"],
                )
            return value_of.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise FormatError(f"expected {what}, found another text in {location}: {error}") from None

    return parse


parse_pointer = parser(PointerObject, "the pointer of a table")
parse_commit = parser(CommitObject, "a commit of several tables")
parse_namespace = parser(NamespaceObject, "a namespace")
parse_mark = parser(CatalogMark, "the mark of a catalog", CATALOG_VERSION)
