"""Which branches a frame reads, and at which snapshots: every read leaves a mark in its plan.

The mark is the name of a subquery, which Spark keeps in the analyzed plan whatever is made of the frame: joins, unions,
subqueries, functions, temporary views and caches. Only rows that left Spark's plans have lost it (`localCheckpoint`,
`df.rdd`, `collect`, `toPandas`, files).
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote

from pyspark.sql import DataFrame

from bergline.errors import UnsupportedError
from bergline.spark.pushdown.catalyst import class_of, scala_items
from bergline.spark.runtime.connect import over_connect
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


def branch_reads(frame: DataFrame) -> tuple[BranchRead, ...]:
    """The heads of branches that a frame reads, each once."""
    found = dict.fromkeys(_MARK.findall(_analyzed(frame)))
    return tuple(
        BranchRead(unquote(table), unquote(branch), None if snapshot == _NONE else int(snapshot))
        for table, snapshot, branch in found
    )


def _analyzed(frame: DataFrame) -> str:
    """The analyzed plan as text; a server of Spark Connect knows what its views and caches are made of."""
    if not over_connect(frame):
        plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
        text = str(plan.toString())
        return text if _CUT.search(text) is None else "\n".join(_subqueries(plan))
    text = str(frame._explain_string(extended=True))  # type: ignore[operator]  # noqa: SLF001
    if _CUT.search(text) is not None:
        raise UnsupportedError(
            "cannot tell what the rows were read from: the plan is longer than spark.sql.maxPlanStringLength",
            hints=[
                "raise the setting",
                "say it by the option `validate-from-snapshot-id`, or `isolation-level` = `none`",
            ],
        )
    return text


def _subqueries(plan: Any) -> Iterator[str]:
    """The named subqueries of a plan, node by node: text that may be cut takes a fraction of the time."""
    pending = [plan]
    while pending:
        node = pending.pop()
        if class_of(node) == "SubqueryAlias":
            yield f"SubqueryAlias `{node.alias()}`"
        pending += [*scala_items(node.children()), *scala_items(node.subqueries())]
