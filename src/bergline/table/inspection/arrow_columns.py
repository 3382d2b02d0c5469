"""Columns of manifests as Arrow arrays with the types of metadata tables."""

from collections.abc import Sequence
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from bergline.datafiles.file.arrow_schema import arrow_type
from bergline.datafiles.file.constants import plain_to_arrow
from bergline.errors import FormatError
from bergline.format.types.types import DATE, IcebergType

LONGS: Final = pa.list_(pa.field("element", pa.int64(), nullable=False))
INTS: Final = pa.list_(pa.field("element", pa.int32(), nullable=False))
COUNTS: Final = pa.map_(pa.int32(), pa.field("value", pa.int64(), nullable=False))
BOUNDS: Final = pa.map_(pa.int32(), pa.field("value", pa.binary(), nullable=False))


def column_array(series: pl.Series, type_: pa.DataType) -> pa.Array:
    """A column as an Arrow type; FormatError if a value does not fit."""
    try:
        if pa.types.is_map(type_):
            return _map_array(series, type_)
        return _arrow(series).cast(type_)
    except pa.ArrowException as error:
        raise FormatError(f"expected `{type_}` in `{series.name}`, found {error}") from error


def value_array(series: pl.Series, type_: IcebergType) -> pa.Array:
    """Decoded values as the Arrow type of a table's column; FormatError if a value does not fit."""
    wanted = arrow_type(type_)
    try:
        if series.dtype == pl.Object:
            return plain_to_arrow(type_, series.to_list())
        if series.null_count() == len(series):
            return pa.nulls(len(series), wanted)
        plain = _arrow(series)
        if pa.types.is_fixed_size_binary(wanted):
            plain = plain.cast(pa.binary())
        return plain.cast(pa.int32()).cast(wanted) if type_ == DATE else plain.cast(wanted)
    except pa.ArrowException as error:
        raise FormatError(f"expected `{type_}`, found {error}") from error


def struct_array(arrays: Sequence[pa.Array], type_: pa.StructType, rows: int) -> pa.Array:
    """Structs, none of them null, of arrays in the order of the type's fields."""
    if not arrays:
        return pa.array([{}] * rows, type_)
    return pa.StructArray.from_arrays(arrays, fields=list(type_))


def _arrow(series: pl.Series) -> pa.Array:
    array = series.to_arrow(compat_level=pl.CompatLevel.oldest())
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _map_array(series: pl.Series, type_: pa.MapType) -> pa.Array:
    """Lists of key-value pairs as maps."""
    lists = _arrow(series)
    offsets = lists.offsets.cast(pa.int32())
    if lists.null_count:
        absent = pa.concat_arrays([lists.is_null(), pa.array([False])])
        offsets = pc.if_else(absent, pa.scalar(None, pa.int32()), offsets)
    keys, values = lists.values.field("key"), lists.values.field("value")
    return pa.MapArray.from_arrays(offsets, keys.cast(pa.int32()), values.cast(type_.item_type), type=type_)
