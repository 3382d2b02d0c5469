"""Conversion of callers' rows (Arrow, pandas, polars, dictionaries) to an Arrow table.

Imports none of these libraries: the caller has imported what it passes, and executors have only pyarrow.
"""

import sys
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from bergline.arguments import check_text
from bergline.datafiles.file.arrow_schema import arrow_field, arrow_schema
from bergline.errors import InvalidInputError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    FLOAT,
    INT,
    LONG,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    child_fields,
)

ArrowRows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | Any
"""Arrow data, or anything that `as_arrow` converts."""

_HINTS = {
    "pandas.Series": "a Series is one column: pass a DataFrame",
    "polars.LazyFrame": "collect() it first",
    "polars.Series": "a Series is one column: pass a DataFrame",
    "pyspark.DataFrame": "write it with df.writeTo(…), or pass df.toArrow()",
}


def as_arrow(rows: ArrowRows, schema: Schema) -> pa.Table:
    """Convert rows, keeping the caller's types; the schema decides where Python values are ambiguous."""
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    if _is_frame(rows, "pandas"):
        return _from_pandas(rows, schema)
    if _is_frame(rows, "polars"):
        return _from_polars(rows)
    if isinstance(rows, Sequence) and not isinstance(rows, str | bytes) and all(isinstance(r, Mapping) for r in rows):
        return _from_dictionaries(rows, schema)
    kind = f"{type(rows).__module__.partition('.')[0]}.{type(rows).__name__}"
    if hasattr(rows, "__arrow_c_stream__") and kind not in _HINTS:
        return _from_stream(rows, kind)
    raise InvalidInputError(
        "expected rows as Arrow data (pyarrow.Table), as a pandas or polars DataFrame or as a list of dictionaries, "
        f"found {kind.removeprefix('builtins.')}",
        hints=[_HINTS[kind]] if kind in _HINTS else [],
    )


def bytes_inside(type_: pa.DataType, fixed: pa.DataType | None = None) -> pa.DataType:
    """The type with bytes for nested UUIDs, which Arrow does not convert from Python; `fixed` for all fixed bytes."""

    def inside(field: pa.Field) -> pa.Field:
        kind = pa.binary(16) if isinstance(field.type, pa.UuidType) else field.type
        is_fixed = pa.types.is_fixed_size_binary(kind)
        return field.with_type(fixed if fixed is not None and is_fixed else bytes_inside(kind, fixed))

    if pa.types.is_struct(type_):
        return pa.struct([inside(f) for f in type_])
    if pa.types.is_list(type_):
        return pa.list_(inside(type_.value_field))
    if pa.types.is_map(type_):
        return pa.map_(inside(type_.key_field), inside(type_.item_field))
    return type_


def _is_frame(rows: Any, library: str) -> bool:
    loaded = sys.modules.get(library)
    return loaded is not None and isinstance(rows, loaded.DataFrame)


def _from_pandas(frame: Any, schema: Schema) -> pa.Table:
    """The columns of a pandas frame; the index only if it has a name."""
    names = [name for name in frame.index.names if name is not None]
    if names:
        found = ", ".join(f"`{name}`" for name in names)
        raise InvalidInputError(
            f"expected all values in columns, found {found} in the index of the DataFrame",
            hints=["reset_index() makes it a column, reset_index(drop=True) drops it"],
        )
    return _table([(name, column) for name, column in frame.items()], schema)


def _from_polars(frame: Any) -> pa.Table:
    for name, kind in frame.schema.items():
        if str(kind) == "Object":  # polars would pass pointers to Python objects
            raise InvalidInputError(f"expected a column of values, found Python objects in column `{name}`")
    return frame.to_arrow()


def _from_stream(rows: Any, kind: str) -> pa.Table:
    try:
        return pa.RecordBatchReader.from_stream(rows).read_all()
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidInputError(f"expected a stream of Arrow rows, found another in {kind}: {error}") from error


def _from_dictionaries(rows: Sequence[Mapping[str, Any]], schema: Schema) -> pa.Table:
    """The columns of dictionaries, which all must have the keys of the first one."""
    if not rows:
        return arrow_schema(schema).empty_table()
    for position, row in enumerate(rows):
        if row.keys() != rows[0].keys():
            name = next(iter(row.keys() ^ rows[0].keys()))
            raise InvalidInputError(
                f"expected the same columns in every row, found `{name}` in only one of rows 0 and {position}",
                hints=["give null columns as None"],
            )
    return _table([(name, [row[name] for row in rows]) for name in rows[0]], schema)


def _table(columns: list[tuple[Any, Any]], schema: Schema) -> pa.Table:
    names = [check_text(name, "text for a column's name") for name, _ in columns]
    fields = {field.name: field for field in schema.fields}
    arrays = [_array(name, values, fields.get(name)) for name, values in columns]
    return pa.Table.from_arrays(arrays, names=names)


def _array(name: str, values: Any, field: NestedField | None) -> pa.Array:
    """The values in their inferred type, or in the column's type where that is ambiguous."""
    try:
        gaps = not isinstance(values, list)  # in pandas, NaN is a missing value
        if field is None or not _says_too_little(values, field.type):
            return pa.array(values, type=_leaf_type(values, gaps=gaps) if _is_python(values) else None)
        if field.type in {INT, LONG}:
            return pa.array(values, type=arrow_field(field).type, from_pandas=gaps)
        if field.type == FLOAT:
            return _floats(values)
        values = [_without_uuids(value) for value in values]
        return pa.array(values, type=_seen_type(values, field, gaps=gaps), from_pandas=gaps)
    except (pa.ArrowException, AttributeError, OverflowError, TypeError, ValueError) as error:
        kind = f"values of `{field.type}`" if field else "values of one type"
        raise InvalidInputError(f"expected {kind}, found others in column `{name}`: {error}") from error


def _says_too_little(values: Any, target: IcebergType) -> bool:
    """Whether inference is ambiguous: floats may be 32-bit, or integers with nulls, and maps look like structs."""
    if target in {INT, LONG}:
        return getattr(getattr(values, "dtype", None), "kind", "") == "f"
    if target == FLOAT:
        return isinstance(values, list)
    return _is_python(values) and _any_inside(target)


def _any_inside(target: IcebergType) -> bool:
    """Whether Arrow cannot infer the type of nested values."""
    return isinstance(target, MapType) or any(
        isinstance(child.type, FixedType)
        or child.type in {UUID, TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS}
        or _any_inside(child.type)
        for child in child_fields(target)
    )


def _is_python(values: Any) -> bool:
    """Whether the values are Python objects rather than a numeric array."""
    return isinstance(values, list) or getattr(values, "dtype", None) == "object"


def _floats(values: list[Any]) -> pa.Array:
    """Convert to 32-bit floats; values that do not fit stay 64-bit, to be refused later."""
    wide, narrow = pa.array(values), pa.array(values, type=pa.float32())
    return narrow if pa.types.is_null(wide.type) or pc.is_inf(wide).equals(pc.is_inf(narrow)) else wide


def _seen_type(values: Iterable[Any], field: NestedField, *, gaps: bool) -> pa.DataType:
    """The column's nesting with the inferred types of the values inside: a given type would truncate them."""
    seen = partial(_seen_type, gaps=gaps)
    children = child_fields(field.type)
    present = [v for v in values if not children or (isinstance(v, Collection) and not isinstance(v, str | bytes))]
    match field.type:
        case StructType():
            known = {child.name: child for child in children}
            names = dict.fromkeys(name for v in present for name in v)
            parts = {name: [v.get(name) for v in present] for name in names}
            unknown = {n: _leaf_type(p, gaps=gaps) or pa.null() for n, p in parts.items() if n not in known}
            return pa.struct([(n, unknown[n] if n in unknown else seen(p, known[n])) for n, p in parts.items()])
        case ListType():
            return pa.list_(seen(chain.from_iterable(present), children[0]))
        case MapType():
            pairs = [pair for v in present for pair in (v.items() if isinstance(v, Mapping) else v)]
            return pa.map_(*(seen([pair[i] for pair in pairs], child) for i, child in enumerate(children)))
        case _:
            found = _leaf_type(present, gaps=gaps)
            is_fixed = isinstance(field.type, FixedType) or field.type == UUID
            if found is None or (is_fixed and pa.types.is_binary(found)):
                return bytes_inside(pa.list_(arrow_field(field).type)).value_type
            return found


def _leaf_type(values: Iterable[Any], *, gaps: bool) -> pa.DataType | None:
    """The inferred type of Python values, with full precision for pandas timestamps; None for nulls."""
    values = list(values)
    found = pa.array(values, from_pandas=gaps).type
    if pa.types.is_timestamp(found) and any(getattr(value, "nanosecond", 0) for value in values):
        return pa.timestamp("ns", tz=found.tz)
    return None if pa.types.is_null(found) else found


def _without_uuids(value: Any) -> Any:
    """Replace nested UUIDs by their bytes, because Arrow does not convert them."""
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, Mapping):
        return {_without_uuids(k): _without_uuids(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_without_uuids, value))
    return value
