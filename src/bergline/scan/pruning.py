"""Which manifests and files a filter leaves over."""

import polars as pl

from bergline.expressions.columns import ColumnMetrics, may_match_columns
from bergline.expressions.predicate import ALWAYS_TRUE, Predicate
from bergline.format.manifest import ManifestFile
from bergline.format.metadata import TableMetadata
from bergline.format.partition import PartitionSpec
from bergline.format.schema import Schema
from bergline.scan.file_metrics import column_metrics


class Pruning:
    """A bound filter on one state of a table."""

    def __init__(self, row_filter: Predicate, schema: Schema, metadata: TableMetadata) -> None:
        self._filter = row_filter
        self._schema = schema
        self._metadata = metadata

    def may_match_manifest(self, manifest: ManifestFile, spec: PartitionSpec) -> bool:
        """False only if no file of the manifest can hold matching rows."""
        return True

    def matching(self, files: pl.DataFrame, spec: PartitionSpec) -> pl.DataFrame:
        """The files that may hold matching rows."""
        if self._filter == ALWAYS_TRUE or not files.height:
            return files

        def metrics(field_id: int) -> ColumnMetrics:
            return column_metrics(files, field_id, self._schema.ids[field_id].type)

        return files.filter(may_match_columns(self._filter, metrics, files["record_count"], self._schema))
