"""Metrics of one column over many files, from the key-value lists of their manifest entries."""

import polars as pl

from bergline.errors import FormatError
from bergline.expressions.columns import ColumnMetrics
from bergline.expressions.decode import decode_bounds
from bergline.format.types import IcebergType


def column_metrics(files: pl.DataFrame, field_id: int, type_: IcebergType) -> ColumnMetrics:
    """What the entries say of a column; null where they say nothing."""
    return ColumnMetrics(
        lower=_bounds(files, "lower_bounds", field_id, type_),
        upper=_bounds(files, "upper_bounds", field_id, type_),
        null_count=values_of(files["null_value_counts"], field_id),
        value_count=values_of(files["value_counts"], field_id),
        nan_count=values_of(files["nan_value_counts"], field_id),
    )


def values_of(maps: pl.Series, key: int) -> pl.Series:
    """The value of one key in each list of key-value pairs; the first counts where a key stands twice."""
    place = _place(maps, key)
    if place is not None:
        # files of one writer have their columns in one order: looking at one place of each list is enough
        pairs = maps.list.get(place, null_on_oob=True).struct
        found = (pairs.field("key") == key).fill_null(False)
        if (found | (maps.list.len() == 0).fill_null(True)).all():
            return pairs.field("value")
    rows = pl.DataFrame({"row": pl.int_range(0, len(maps), dtype=pl.UInt32, eager=True), "pair": maps})
    pairs_of_key = rows.explode("pair").unnest("pair").filter(pl.col("key") == key).unique("row", keep="first")
    return rows.select("row").join(pairs_of_key, on="row", how="left", maintain_order="left")["value"]


def _place(maps: pl.Series, key: int) -> int | None:
    present = maps.drop_nulls()
    present = present.filter(present.list.len() > 0)
    if present.is_empty():
        return 0
    keys = [pair["key"] for pair in present[0]]
    return keys.index(key) if key in keys else None


def _bounds(files: pl.DataFrame, name: str, field_id: int, type_: IcebergType) -> pl.Series:
    encoded = values_of(files[name], field_id)
    try:
        return decode_bounds(type_, encoded)
    except FormatError:
        for path, bound in zip(files["file_path"], encoded, strict=True):
            try:
                decode_bounds(type_, pl.Series([bound], dtype=pl.Binary))
            except FormatError as error:
                raise FormatError(f"{error} in `{name}` of column {field_id} for {path}") from error
        raise
