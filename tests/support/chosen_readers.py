"""Which executor would read which files of a scan."""

from bergline.spark.reads.evidence import FileEvidence
from bergline.spark.reads.groups import ReadGroup, read_groups
from bergline.table.scans.scan import TableScan


def groups_of(scan: TableScan) -> list[ReadGroup]:
    """The groups, with everything found out that can be."""
    return read_groups(scan.plan(), FileEvidence(scan.io).look_up)


def native_refusal(scan: TableScan) -> str | None:
    """Why some file does not go to Spark's own reader; None if all do."""
    return next((group.reason for group in groups_of(scan) if group.executor == "arrow"), None)
