"""Invariants among all files of a snapshot: checked for those that a ref names."""

import polars as pl

from bergline.format.manifest.manifest import FileContent
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION, TableMetadata
from bergline.reports.check.findings import RESTORE, Findings
from bergline.reports.check.manifests import ListedManifests, head_entries, is_vector


def check_heads(metadata: TableMetadata, listed: ListedManifests, entries: pl.DataFrame, findings: Findings) -> None:
    """Add files that are listed twice, duplicate row ids, and conflicting deletion vectors."""
    for snapshot_id, files in head_entries(metadata, listed, entries):
        data = files.filter(pl.col("content") == int(FileContent.DATA))
        _check_listed_once(snapshot_id, data, findings)
        if metadata.format_version >= ROW_LINEAGE_VERSION:
            _check_row_ids(snapshot_id, data, metadata.next_row_id, findings)
        _check_vectors(snapshot_id, data, files.filter(is_vector()), findings)


def _check_listed_once(snapshot_id: int, data: pl.DataFrame, findings: Findings) -> None:
    twice = data.group_by("file_path", maintain_order=True).len().filter(pl.col("len") > 1)
    for path, count in twice.iter_rows():
        message = f"the file is {count} times in snapshot {snapshot_id}: its rows are read that many times"
        mend = "delete its rows, and append them once"
        findings.error("file-listed-twice", path, message, mend, snapshots=[snapshot_id])


def _check_row_ids(snapshot_id: int, data: pl.DataFrame, next_row_id: int, findings: Findings) -> None:
    mend = f"{RESTORE}: row lineage cannot tell these rows apart, reads without it are correct"
    given = data.filter(pl.col("first_row_id").is_not_null()).unique("file_path").sort("first_row_id")
    ends = given.with_columns((pl.col("first_row_id") + pl.col("record_count")).alias("end"))
    beyond = ends.filter(pl.col("end") > next_row_id)
    for path, end in beyond.select("file_path", "end").iter_rows():
        message = f"expected row ids below next-row-id {next_row_id}, found some up to {end}"
        findings.error("row-ids-beyond-next", path, message, mend, snapshots=[snapshot_id])
    before = pl.col("end").shift(1)
    both = ends.with_columns(pl.col("file_path").shift(1).alias("other")).filter(pl.col("first_row_id") < before)
    for path, other in both.select("file_path", "other").iter_rows():
        message = f"rows have the same ids as rows of {other} in snapshot {snapshot_id}"
        findings.error("row-ids-overlap", path, message, mend, snapshots=[snapshot_id])


def _check_vectors(snapshot_id: int, data: pl.DataFrame, vectors: pl.DataFrame, findings: Findings) -> None:
    twice = vectors.group_by("referenced_data_file", maintain_order=True).len().filter(pl.col("len") > 1)
    for path, count in twice.iter_rows():
        message = f"the data file has {count} deletion vectors in snapshot {snapshot_id}, expected at most one"
        mend = "compact the file with the correct deletes"
        findings.error("deletion-vectors", str(path), message, mend, snapshots=[snapshot_id])
    files = data.select("file_path", "record_count", pl.col("sequence_number").alias("of_data")).unique("file_path")
    applied = vectors.join(files, left_on="referenced_data_file", right_on="file_path", suffix="_of_data")
    for path, number, of_data in (
        applied.filter(pl.col("sequence_number") < pl.col("of_data"))
        .select("referenced_data_file", "sequence_number", "of_data")
        .iter_rows()
    ):
        message = f"its deletion vector has sequence number {number}, below {of_data} of the data: it is not applied"
        mend = "delete these rows again"
        findings.error("deletion-vectors", path, message, mend, snapshots=[snapshot_id])
    for path, deleted, rows in (
        applied.filter(pl.col("record_count") > pl.col("record_count_of_data"))
        .select("referenced_data_file", "record_count", "record_count_of_data")
        .iter_rows()
    ):
        message = f"its deletion vector has {deleted:,} positions, the file has {rows:,} rows"
        findings.error("deletion-vectors", path, message, RESTORE, snapshots=[snapshot_id])
