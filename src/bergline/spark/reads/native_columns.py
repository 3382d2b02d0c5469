"""The columns of a table in files of one physical schema, for Spark's own reader, which finds them by name.

It is given names and types as the files have them, and nothing that they lack; what the table calls a column, and the
type that it has now, come by expressions. What is in doubt is a reason against that reader.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec
import pyspark
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)
from pyspark.sql import types as T  # noqa: N812

from bergline.errors import UnsupportedError
from bergline.format.schema.name_mapping import NameMapping
from bergline.format.schema.physical_schema import NO_ID, OTHER, with_mapped_ids
from bergline.format.types.defaults import initial_value
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
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
    child_fields,
    walk_fields,
)
from bergline.quoting import back_quoted
from bergline.spark.pushdown.filter import spark_literal
from bergline.spark.runtime.backend import ROW_INDEX
from bergline.spark.runtime.types import spark_type

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HIDING = {"_metadata", ROW_INDEX}
# what Spark reads as Iceberg means it
_READABLE = frozenset({BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIMESTAMP, TIMESTAMPTZ, STRING, BINARY, VARIANT})
# Parquet's library in older versions of Spark does not know the annotations of variants and shapes
KNOWS_NEW_ANNOTATIONS = tuple(map(int, re.findall(r"\d+", pyspark.__version__)[:2])) >= (4, 1)
_IN_CALENDARS = frozenset({DATE, TIMESTAMP, TIMESTAMPTZ})
_WIDENED = {(INT, LONG), (FLOAT, DOUBLE)}


class NativeColumn(msgspec.Struct, frozen=True):
    """A column of the table, and what files have of it under their own names; None if they do not have it."""

    field: NestedField
    stored: NestedField | None

    @property
    def is_as_stored(self) -> bool:
        """Whether name and type are the same."""
        return self.stored is None or (self.stored.name == self.field.name and _is_same(self.stored, self.field))

    @property
    def value(self) -> str | Column:
        """The table's column, of what Spark reads as the file's: SQL text if there is one that says it."""
        if self.stored is None:
            type_ = _type_text(self.field)
            is_null = type_ is not None and initial_value(self.field) is None
            return f"CAST(NULL AS {type_})" if is_null else _absent(self.field)
        text = _shielded(self.stored)
        if _is_same(self.stored, self.field):
            return text
        type_ = _type_text(self.field)
        return _converted(F.expr(text), self.stored, self.field) if type_ is None else f"CAST({text} AS {type_})"


class NativeColumns(msgspec.Struct, frozen=True):
    """How Spark's reader reads files: the columns, and which physical schemas the files have."""

    columns: tuple[NativeColumn, ...]
    schemas: tuple[StructType, ...]

    def with_also(self, other: "NativeColumns") -> "NativeColumns | None":
        """For files of both kinds; None if one of them would be read wrong."""
        columns = []
        for own, others in zip(self.columns, other.columns, strict=True):
            if own.stored == others.stored:
                columns.append(own)
            elif own.stored is None and _may_be_asked(others, self.schemas):
                columns.append(others)
            elif others.stored is None and _may_be_asked(own, other.schemas):
                columns.append(own)
            else:
                return None
        return NativeColumns(tuple(columns), (*self.schemas, *other.schemas))


class NotNativeError(Exception):
    """Why Spark's own reader does not read files of a schema."""


def native_columns(
    wanted: Sequence[NestedField],
    schema: StructType,
    mapping: NameMapping | None,
    partition_columns: Collection[int],
) -> NativeColumns:
    """How files of a schema are read; NotNativeError if Spark's reader might give other rows than the Arrow reader.

    Columns by which files are partitioned may be in no file, and have the partition's value then.
    """
    refusal = annotation_refusal(schema)
    if refusal is not None:
        raise NotNativeError(refusal)
    identified = with_mapped_ids(schema, mapping)
    if identified is None:
        raise NotNativeError("files have neither field ids nor a name mapping")
    matching = _ColumnMatcher(frozenset(partition_columns), has_own_ids=identified is schema)
    found = matching.fields(wanted, identified.fields, "")
    for name in (f.name for f in found if f is not None and f.name.casefold() in _HIDING):
        raise NotNativeError(f"column `{name}` hides what Spark says of files")
    columns = tuple(NativeColumn(field, stored) for field, stored in zip(wanted, found, strict=True))
    return NativeColumns(columns, (schema,))


def annotation_refusal(schema: StructType) -> str | None:
    """Why Spark's reader cannot open files of a schema, whatever columns are read; None if it can."""
    if KNOWS_NEW_ANNOTATIONS:
        return None
    for name, field in walk_fields(schema.fields):
        if field.type in (VARIANT, OTHER) or isinstance(field.type, GeometryType | GeographyType):
            return f"Spark {pyspark.__version__} may not open files with a column such as `{name}`"
    return None


class _ColumnMatcher:
    def __init__(self, partition_columns: frozenset[int], *, has_own_ids: bool) -> None:
        self._partition_columns = partition_columns
        self._has_own_ids = has_own_ids

    def fields(
        self, wanted: Sequence[NestedField], stored: Sequence[NestedField], prefix: str
    ) -> list[NestedField | None]:
        """What each column is in a file, with nothing inside that is not wanted."""
        by_id, folded = _by_id(stored), Counter(f.name.casefold() for f in stored)
        found: list[NestedField | None] = []
        for field in wanted:
            name = f"{prefix}{field.name}"
            if field.id not in by_id:
                self._check_absent(field, name)
                found.append(None)
                continue
            own = by_id[field.id]
            # Spark takes names in any case for the same, or not, as a setting says when a frame runs
            if folded[own.name.casefold()] > 1:
                raise NotNativeError(f"column `{name}` is `{own.name}` in files that have another one of that name")
            if not _PLAIN_NAME.fullmatch(own.name):
                raise NotNativeError(f"column `{name}` is `{own.name}` in files, which Spark may read as another name")
            found.append(NestedField(own.id, own.name, False, self._type(field.type, own.type, name)))
        return found

    def _type(self, wanted: IcebergType, stored: IcebergType, name: str) -> IcebergType:
        """What of a type in a file is wanted."""
        match wanted, stored:
            case StructType(fields), StructType(inside):
                found = tuple(f for f in self.fields(fields, inside, f"{name}.") if f is not None)
                if not found:  # then nothing tells whether the struct itself is null
                    raise NotNativeError(f"files have nothing of what is in column `{name}` now")
                return StructType(found)
            case ListType(_, element, _), ListType(element_id, inside, _):
                return ListType(element_id, self._type(element, inside, f"{name}.element"), False)
            case MapType(), MapType():
                key = self._type(wanted.key, stored.key, f"{name}.key")
                if not _is_same_type(key, wanted.key):
                    raise NotNativeError(f"keys of column `{name}` are `{stored.key}` in files")
                value = self._type(wanted.value, stored.value, f"{name}.value")
                return MapType(stored.key_id, key, stored.value_id, value, False)
        if not _fits(stored, wanted):
            raise NotNativeError(f"Spark's reader may read column `{name}` otherwise, whose type is `{wanted}`")
        if stored in _IN_CALENDARS and not self._has_own_ids:
            raise NotNativeError(f"column `{name}` may be of Spark 2, whose oldest days Spark's reader changes")
        return stored

    def _check_absent(self, field: NestedField, name: str) -> None:
        inside = {field.id, *(f.id for _, f in walk_fields(child_fields(field.type)))}
        if inside & self._partition_columns:
            raise NotNativeError(f"files do not store the partition column `{name}`")
        value = initial_value(field)
        if field.required and value is None:
            raise NotNativeError(f"files lack the required column `{name}`")
        if value is not None and not _is_readable(field.type):
            raise NotNativeError(f"column `{name}` has a default of type `{field.type}`")
        try:
            spark_type(field.type, name)
        except UnsupportedError as error:
            raise NotNativeError(f"Spark's reader knows no `{field.type}`, as column `{name}` has") from error


def _by_id(stored: Sequence[NestedField]) -> Mapping[int, NestedField]:
    found: dict[int, NestedField] = {}
    for field in stored:
        if field.id != NO_ID and found.setdefault(field.id, field) is not field:
            raise NotNativeError(f"files have field id {field.id} twice")
    return found


def _may_be_asked(column: NativeColumn, schemas: Sequence[StructType]) -> bool:
    """Whether files of schemas that lack a column may be asked for it by its name in others: it is null then."""
    if column.stored is None or initial_value(column.field) is not None:
        return False
    name = column.stored.name.casefold()
    return not any(f.name.casefold() == name for schema in schemas for f in schema.fields)


def _fits(stored: IcebergType, wanted: IcebergType) -> bool:
    match stored, wanted:
        case DecimalType(narrow, scale), DecimalType(wide, same):
            return scale == same and narrow <= wide
        case (FixedType(), FixedType()) | (GeometryType(), GeometryType()) | (GeographyType(), GeographyType()):
            return stored == wanted
    return (stored == wanted and stored in _READABLE) or (stored, wanted) in _WIDENED


def _is_readable(type_: IcebergType) -> bool:
    return type_ in _READABLE or isinstance(type_, DecimalType | FixedType)


def _is_same(stored: NestedField, field: NestedField) -> bool:
    return _is_same_type(stored.type, field.type)


def _is_same_type(stored: IcebergType, wanted: IcebergType) -> bool:
    """Whether Spark has the same type for both."""
    own, others = child_fields(stored), child_fields(wanted)
    if not others:
        return stored == wanted
    names = [f.name for f in own] == [f.name for f in others]
    return names and all(_is_same(mine, other) for mine, other in zip(own, others, strict=True))


def _shielded(field: NestedField) -> str:
    """A column whose filters Spark does not push into files if it holds floats, by an expression that changes nothing.

    Statistics in files leave out NaN, and dictionaries take -0.0 and 0.0 for different: rows would be lost.
    """
    column = back_quoted(field.name)
    if field.type in (FLOAT, DOUBLE):
        return f"nanvl({column}, {column})"
    if isinstance(field.type, StructType) and any(f.type in (FLOAT, DOUBLE) for _, f in walk_fields(field.type.fields)):
        return f"CASE WHEN {column} IS NOT NULL THEN {column} END"
    return column


def _type_text(field: NestedField) -> str | None:
    """The type of a column in SQL that means the same under all settings; None if it is nested or unknown."""
    type_ = spark_type(field.type, field.name)
    if child_fields(field.type) or isinstance(type_, T.NullType):
        return None
    return "timestamp_ltz" if isinstance(type_, T.TimestampType) else type_.simpleString()


def _converted(column: Column, stored: NestedField, field: NestedField) -> Column:
    if _is_same(stored, field):
        return column
    match stored.type, field.type:
        case StructType(inside), StructType(fields):
            by_id = {f.id: f for f in inside}
            parts = [
                _converted(column.getField(by_id[f.id].name), by_id[f.id], f) if f.id in by_id else _absent(f)
                for f in fields
            ]
            named = [part.alias(f.name) for part, f in zip(parts, fields, strict=True)]
            return F.when(column.isNotNull(), F.struct(*named))
        case ListType(), ListType():
            (element,), (wanted,) = child_fields(stored.type), child_fields(field.type)
            return F.transform(column, lambda item: _converted(item, element, wanted))
        case MapType(), MapType():
            (_, value), (_, other) = child_fields(stored.type), child_fields(field.type)
            return F.transform_values(column, lambda _, item: _converted(item, value, other))
    return column.cast(spark_type(field.type, field.name))


def _absent(field: NestedField) -> Column:
    """The value of a column that files do not have."""
    value = initial_value(field)
    literal = F.lit(None) if value is None else spark_literal(value, field.type)
    return literal.cast(spark_type(field.type, field.name))
