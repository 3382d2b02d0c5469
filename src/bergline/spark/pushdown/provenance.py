"""Which branches a frame reads, and at which snapshots: every read leaves a mark in its plan.

The mark is the name of a subquery, which Spark keeps in the analyzed plan whatever is made of the frame: joins, unions,
subqueries, functions, temporary views and caches. Only rows that left Spark's plans have lost it (`localCheckpoint`,
`df.rdd`, `collect`, `toPandas`, files).
"""

import re
from urllib.parse import quote, unquote

from pyspark.sql import DataFrame

from bergline.spark.backends.choose import backend_of
from bergline.table.scans.scan import TableScan
from bergline.table.scans.version import BranchRead

_WORDS = "bergline read"
_NONE = "none"
_MARK = re.compile(rf"SubqueryAlias `{_WORDS} ([^\s`]+) ([^\s`]+) ([^\s`]+)`")
_CUT = re.compile(r"\.\.\. \d+ more characters\s*\Z|\ATruncated plan of \d+ characters")


def with_provenance(rows: DataFrame, scan: TableScan) -> DataFrame:
    """The rows of a scan, marked if it reads the head of a branch: other versions stay what they are."""
    read = scan.branch_read
    if read is None:
        return rows
    snapshot = _NONE if read.snapshot_id is None else read.snapshot_id
    return rows.alias(f"{_WORDS} {quote(read.table, safe='')} {snapshot} {quote(read.branch, safe='')}")


def is_marked(alias: str) -> bool:
    """Whether rows that have this alias are those of a scan."""
    return alias.startswith(_WORDS)


def branch_reads(frame: DataFrame) -> tuple[BranchRead, ...]:
    """The heads of branches that a frame reads, each once."""
    found = dict.fromkeys(_MARK.findall(_marked_plan(frame)))
    return tuple(
        BranchRead(unquote(table), unquote(branch), None if snapshot == _NONE else int(snapshot))
        for table, snapshot, branch in found
    )


def _marked_plan(frame: DataFrame) -> str:
    """The analyzed plan, or its named subqueries one by one: text that may be cut takes a fraction of the time."""
    backend = backend_of(frame)
    text = backend.plan_text(frame)
    return text if _CUT.search(text) is None else "\n".join(backend.named_subqueries(frame))
