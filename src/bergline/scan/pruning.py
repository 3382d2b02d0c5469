"""Which manifests and files a filter leaves over."""

import polars as pl

from bergline.expressions.metrics import may_match
from bergline.expressions.predicate import ALWAYS_TRUE, Predicate
from bergline.format.manifest import ManifestFile
from bergline.format.manifest_avro import partition_types
from bergline.format.manifest_columns import files_of
from bergline.format.metadata import TableMetadata
from bergline.format.partition import PartitionSpec
from bergline.format.schema import Schema


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
        types = partition_types(spec, self._metadata.schema_for(spec))
        keep = [may_match(self._filter, f, self._schema) for f in files_of(files, types, spec.spec_id)]
        return files.filter(pl.Series(keep, dtype=pl.Boolean))
