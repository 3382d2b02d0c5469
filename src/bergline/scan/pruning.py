"""Pruning of manifests and files by a filter: by partition first, then by metrics."""

from functools import cache
from typing import Any

import polars as pl

from bergline.errors import FormatError
from bergline.expressions.decode_bounds import decode_bounds
from bergline.expressions.evaluate_columns import ColumnMetrics, matches_columns, may_match_columns
from bergline.expressions.predicate import ALWAYS_TRUE, Predicate
from bergline.expressions.project import partition_schema, project_inclusive
from bergline.expressions.summaries import may_match_manifest
from bergline.format.manifest.manifest import ManifestFile
from bergline.format.partition.columns import partition_column, partition_values
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.schema import Schema
from bergline.format.types.types import UUID, DecimalType, IcebergType


class Pruning:
    """A bound filter on the columns of a schema."""

    def __init__(self, row_filter: Predicate, schema: Schema) -> None:
        self._filter = row_filter
        self._schema = schema
        self._projected = cache(lambda spec: project_inclusive(row_filter, spec, schema))
        self._manifests: dict[str, bool] = {}

    def may_match_manifest(self, manifest: ManifestFile, spec: PartitionSpec) -> bool:
        """False only if no file of the manifest can hold matching rows."""
        if self._filter == ALWAYS_TRUE or manifest.partitions is None:
            return True
        known = self._manifests.get(manifest.manifest_path)
        if known is None:
            try:
                known = may_match_manifest(self._projected(spec), manifest.partitions, spec, self._schema)
            except FormatError as error:
                raise FormatError(f"{error} for {manifest.manifest_path}") from error
            self._manifests[manifest.manifest_path] = known
        return known

    def matching(self, files: pl.DataFrame, spec: PartitionSpec) -> pl.DataFrame:
        """The files that may hold matching rows."""
        if self._filter == ALWAYS_TRUE:
            return files
        return self._by_metrics(self._by_partition(files, spec))

    def _by_partition(self, files: pl.DataFrame, spec: PartitionSpec) -> pl.DataFrame:
        projected = self._projected(spec)
        if projected == ALWAYS_TRUE or not files.height:
            return files
        fields = partition_schema(spec, self._schema)

        def values(field_id: int) -> pl.Series:
            return _partition_column(files, field_id, fields.ids[field_id].type)

        return files.filter(matches_columns(projected, values, files.height, fields))

    def _by_metrics(self, files: pl.DataFrame) -> pl.DataFrame:
        if not files.height:
            return files

        def metrics(field_id: int) -> ColumnMetrics:
            return column_metrics(files, field_id, self._schema.ids[field_id].type)

        return files.filter(may_match_columns(self._filter, metrics, files["record_count"], self._schema))


def _partition_column(files: pl.DataFrame, field_id: int, type_: IcebergType) -> pl.Series:
    if type_ == UUID or isinstance(type_, DecimalType):  # polars has no such type: compare one by one
        values: list[Any] = partition_values(files, field_id, type_)
        return pl.Series(values, dtype=pl.Object)
    name = str(field_id)
    return (
        partition_column(files, field_id, type_) if name in files.columns else pl.repeat(None, files.height, eager=True)
    )


def column_metrics(files: pl.DataFrame, field_id: int, type_: IcebergType) -> ColumnMetrics:
    """The metrics of a column in the entries; null where missing."""
    return ColumnMetrics(
        lower=_bounds(files, "lower_bounds", field_id, type_),
        upper=_bounds(files, "upper_bounds", field_id, type_),
        null_count=values_of(files["null_value_counts"], field_id),
        value_count=values_of(files["value_counts"], field_id),
        nan_count=values_of(files["nan_value_counts"], field_id),
    )


def values_of(maps: pl.Series, key: int) -> pl.Series:
    """The value of a key in each list of key-value pairs; the first one if a key is duplicate."""
    place = _place(maps, key)
    if place is not None:
        # files of one writer have their columns in the same order: checking one position of each list is enough
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
