"""A parser for Parquet footers; pyarrow's aborts the process on some damaged ones.

The schema comes first in a footer, and the files of a table mostly start alike: known prefixes are not parsed again.
"""

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from typing import Any, BinaryIO

import msgspec

from bergline.datafiles.file.thrift import read_fields, read_struct
from bergline.errors import BerglineError, FormatError
from bergline.format.schema.physical_schema import NO_ID, OTHER
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DEFAULT_CRS,
    DOUBLE,
    EDGE_ALGORITHMS,
    FLOAT,
    INT,
    LONG,
    MAX_DECIMAL_PRECISION,
    MAX_NESTING,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from bergline.io.fileio import FileIO
from bergline.io.locations import scheme_of

_TAIL = 8
_MAGIC = b"PAR1"
_MOST_FOOTER_BYTES = 64 * 1024 * 1024
# how Spark marks files with rebased dates: a key, or a key with a value, in Thrift's compact encoding
_OLD_CALENDAR = re.compile(rb"org\.apache\.spark\.(?:legacy(?:DateTime|INT96)|version\x18.[012]\.)", re.DOTALL)
_SCHEMA = 2
_THREADS = 32
# fields of a SchemaElement
_TYPE, _LENGTH, _REPETITION, _NAME, _CHILDREN, _CONVERTED, _SCALE, _PRECISION, _ID, _LOGICAL = range(1, 11)
_REQUIRED, _REPEATED = 0, 2
_Annotation = tuple[Any, ...]
_NO_ANNOTATION: _Annotation = ()
_LIST, _MAP, _KEY_VALUE, _VARIANT = ("list",), ("map",), ("entries",), ("variant",)
_PAIR = 2
_CONVERTED_NAMES: dict[int, _Annotation] = {
    0: ("string",),
    1: _MAP,
    2: _KEY_VALUE,
    3: _LIST,
    6: ("date",),
    10: ("timestamp", True),
    15: ("int", 8),
    16: ("int", 16),
    17: ("int", 32),
    18: ("int", 64),
}
_DECIMAL_CONVERTED = 5
_LOGICAL_NAMES: dict[int, _Annotation] = {
    1: ("string",),
    2: _MAP,
    3: _LIST,
    6: ("date",),
    14: ("uuid",),
    16: _VARIANT,
}
_DECIMAL, _TIMESTAMP, _INTEGER, _MICROS = 5, 8, 10, 2
_GEOMETRY, _GEOGRAPHY = 17, 18
_BOOLEAN, _INT32, _INT64, _FLOAT, _DOUBLE, _BYTES, _FIXED = 0, 1, 2, 4, 5, 6, 7
_PLAIN: dict[tuple[int, _Annotation], IcebergType] = {
    (_BOOLEAN, _NO_ANNOTATION): BOOLEAN,
    (_INT32, _NO_ANNOTATION): INT,
    (_INT32, ("int", 8)): INT,
    (_INT32, ("int", 16)): INT,
    (_INT32, ("int", 32)): INT,
    (_INT32, ("date",)): DATE,
    (_INT64, _NO_ANNOTATION): LONG,
    (_INT64, ("int", 64)): LONG,
    (_INT64, ("timestamp", False)): TIMESTAMP,
    (_INT64, ("timestamp", True)): TIMESTAMPTZ,
    (_FLOAT, _NO_ANNOTATION): FLOAT,
    (_DOUBLE, _NO_ANNOTATION): DOUBLE,
    (_BYTES, _NO_ANNOTATION): BINARY,
    (_BYTES, ("string",)): STRING,
}
_MOST_DIGITS = {_INT32: 9, _INT64: 18, _BYTES: MAX_DECIMAL_PRECISION, _FIXED: MAX_DECIMAL_PRECISION}
_UUID_LENGTH = 16
_LONG_BYTES = 8


def read_footer(stream: BinaryIO) -> dict[int, Any]:
    """A footer by Thrift field id."""
    start, length = _place(stream)
    stream.seek(start)
    return read_struct(stream.read(length))


def read_physical_schema(io: FileIO, path: str) -> StructType:
    """The physical schema of a file; FormatError if it is not a Parquet file."""
    with io.open_input(path) as stream:
        start, length = _place(stream)
        stream.seek(start)
        footer = stream.read(min(length, _MOST_FOOTER_BYTES))
    schema = _KNOWN.find(footer) or _KNOWN.keep(*parse_footer_schema(footer))
    return _without_days(schema) if length > len(footer) or _OLD_CALENDAR.search(footer) else schema


def read_physical_schemas(io: FileIO, paths: Sequence[str]) -> dict[StructType, list[int]]:
    """The distinct physical schemas of files with the indexes of the files; unreadable files are left out."""

    def read(path: str) -> StructType | None:
        try:
            return read_physical_schema(io, path)
        except BerglineError:  # reading the rows will raise the proper error
            return None

    # reading a local footer is faster than starting a thread for it
    local = scheme_of(paths[0]) == "file"
    schemas = list(map(read, paths) if local else _threads(os.getpid()).map(read, paths))
    places: dict[int, list[int]] = {}
    for place, schema in enumerate(schemas):
        places.setdefault(id(schema), []).append(place)
    found: dict[StructType, list[int]] = {}
    for some in places.values():
        schema = schemas[some[0]]
        if schema is not None:
            found.setdefault(schema, []).extend(some)
    return found


def parse_footer_schema(footer: bytes) -> tuple[bytes, StructType]:
    """Parse the schema at the start of a footer; also returns the bytes that encode it."""
    fields, size = read_fields(footer, _SCHEMA)
    try:
        elements = iter(fields[_SCHEMA])
        columns = _columns(_node(elements).children)
        if next(elements, None) is not None:
            raise FormatError("expected a tree of columns in a Parquet footer, found more of them")
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
        raise FormatError(f"expected a schema in a Parquet footer, found another ({error!r})") from error
    return footer[:size], columns


@cache
def _threads(process: int) -> ThreadPoolExecutor:  # noqa: ARG001  (a forked process has none of its parent's threads)
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="bergline-footers")


class _KnownSchemas:
    """An LRU cache of parsed schemas by the start of their footers."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._schemas: OrderedDict[bytes, StructType] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, footer: bytes) -> StructType | None:
        # Thrift is sequential: the same leading bytes mean the same leading fields
        for beginning, schema in list(self._schemas.items()):
            if footer.startswith(beginning):
                return schema
        return None

    def keep(self, beginning: bytes, schema: StructType) -> StructType:
        with self._lock:
            self._schemas[beginning] = schema
            if len(self._schemas) > self._limit:
                self._schemas.popitem(last=False)
        return schema


_KNOWN = _KnownSchemas(32)


def _place(stream: BinaryIO) -> tuple[int, int]:
    """The offset and length of the footer."""
    size = stream.seek(0, 2)
    stream.seek(max(0, size - _TAIL))
    tail = stream.read(_TAIL)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC:
        raise FormatError("expected a Parquet file, found one without its footer")
    if length + _TAIL > size:
        raise FormatError(f"expected a Parquet footer, found one of {length:,} bytes in a file of {size:,}")
    return size - _TAIL - length, length


class _Node(msgspec.Struct, frozen=True):
    """A schema element with its children."""

    element: dict[int, Any]
    children: "tuple[_Node, ...]"

    @property
    def name(self) -> str:
        return str(self.element[_NAME].decode())

    @property
    def field_id(self) -> int:
        return max(NO_ID, int(self.element.get(_ID, NO_ID)))

    @property
    def is_repeated(self) -> bool:
        return bool(self.element.get(_REPETITION) == _REPEATED)

    @property
    def type(self) -> IcebergType:
        # a repeated column is a legacy list, unless the group around it is annotated as a list
        if self.is_repeated:
            return OTHER
        return _group_type(self) if self.children else _primitive_type(self.element)


def _node(elements: Iterator[Any], levels: int = MAX_NESTING) -> _Node:
    """The next element with its children, which follow it."""
    if not levels:
        raise FormatError(f"expected at most {MAX_NESTING} levels in a Parquet footer, found more")
    element = next(elements)
    return _Node(element, tuple([_node(elements, levels - 1) for _ in range(element.get(_CHILDREN) or 0)]))


def _columns(nodes: Iterable[_Node]) -> StructType:
    return StructType(tuple(NestedField(n.field_id, n.name, False, n.type) for n in nodes))


def _group_type(node: _Node) -> IcebergType:
    annotation = _annotation(node.element)
    if annotation == _NO_ANNOTATION:
        return _columns(node.children)
    if annotation == _VARIANT:
        return VARIANT if _is_unshredded(node) else OTHER
    entries = node.children[0]
    if len(node.children) > 1 or not entries.is_repeated:
        return OTHER
    inside, of_entries = entries.children, _annotation(entries.element)
    if annotation == _LIST and len(inside) == 1 and of_entries == _NO_ANNOTATION:
        if entries.name in {"array", f"{node.name}_tuple"}:  # then the entries are the elements
            return OTHER
        return ListType(inside[0].field_id, inside[0].type, False)
    if annotation == _MAP and len(inside) == _PAIR and of_entries in (_NO_ANNOTATION, _KEY_VALUE):
        key, value = inside
        return MapType(key.field_id, key.type, value.field_id, value.type, False)
    return OTHER


def _is_unshredded(variant: _Node) -> bool:
    """Whether a variant has its metadata and value and nothing else."""
    parts = {part.name: part for part in variant.children}
    binary = all(p.type == BINARY and p.element.get(_REPETITION) == _REQUIRED for p in variant.children)
    return binary and parts.keys() == {"metadata", "value"}


@lru_cache(maxsize=256)
def _without_days(type_: IcebergType) -> Any:
    """Replace dates and timestamps, whose calendar is unknown."""
    match type_:
        case StructType(fields):
            inside = ((f, _without_days(f.type)) for f in fields)
            return StructType(tuple(NestedField(f.id, f.name, False, inner) for f, inner in inside))
        case ListType(element_id, element, _):
            return ListType(element_id, _without_days(element), False)
        case MapType(key_id, key, value_id, value, _):
            return MapType(key_id, _without_days(key), value_id, _without_days(value), False)
    return OTHER if type_ in (DATE, TIMESTAMP, TIMESTAMPTZ) else type_


def _primitive_type(element: Mapping[int, Any]) -> IcebergType:
    kind, annotation = element.get(_TYPE), _annotation(element)
    if kind is None:
        return OTHER
    if annotation[:1] == ("decimal",):
        _, precision, scale = annotation
        is_right = 0 <= scale <= precision <= _MOST_DIGITS.get(kind, 0)
        if precision <= _MOST_DIGITS[_INT64]:  # Spark reads decimals of few digits correctly only from few bytes
            is_right = is_right and kind != _BYTES and element.get(_LENGTH, 0) <= _LONG_BYTES
        return DecimalType(precision, scale) if is_right else OTHER
    if kind == _FIXED:
        length = element.get(_LENGTH, 0)
        if annotation == ("uuid",):
            return UUID if length == _UUID_LENGTH else OTHER
        return FixedType(length) if annotation == _NO_ANNOTATION else OTHER
    if annotation[0:1] == ("shapes",):
        return annotation[1] if kind == _BYTES else OTHER
    return _PLAIN.get((kind, annotation), OTHER)


def _shapes(kind: int, value: Mapping[int, Any]) -> _Annotation:
    """The annotation of geometries and geographies: their Iceberg type."""
    crs, algorithm = value.get(1, DEFAULT_CRS.encode()).decode(), value.get(2, 0)
    if not 0 <= algorithm < len(EDGE_ALGORITHMS):
        return ("other",)
    type_ = GeometryType(crs) if kind == _GEOMETRY else GeographyType(crs, EDGE_ALGORITHMS[algorithm])
    return "shapes", type_


def _annotation(element: Mapping[int, Any]) -> _Annotation:
    """The annotation of a column: its logical type, or the older converted type."""
    logical: Mapping[int, Any] | None = element.get(_LOGICAL)
    if logical:
        ((kind, value),) = logical.items()
        if kind == _DECIMAL:
            return "decimal", value[2], value[1]
        if kind == _TIMESTAMP:
            return ("timestamp", value[1]) if _MICROS in value[2] else ("other",)
        if kind == _INTEGER:
            return ("int", value[1]) if value[2] else ("other",)
        if kind in {_GEOMETRY, _GEOGRAPHY}:
            return _shapes(kind, value)
        return _LOGICAL_NAMES.get(kind, ("other",))
    converted = element.get(_CONVERTED)
    if converted is None:
        return _NO_ANNOTATION
    if converted == _DECIMAL_CONVERTED:
        return "decimal", element[_PRECISION], element.get(_SCALE, 0)
    return _CONVERTED_NAMES.get(converted, ("other",))
