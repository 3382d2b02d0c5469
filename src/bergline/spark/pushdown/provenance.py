"""Which branches a frame reads, and at which snapshots: every read leaves a mark in its plan.

The mark is the name of a subquery, which Spark keeps in the analyzed plan whatever is made of the frame: joins, unions,
subqueries, functions, temporary views and caches. Only rows that left Spark's plans have lost it (`localCheckpoint`,
`df.rdd`, `collect`, `toPandas`, files).
"""

import re
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote

from pyspark.sql import DataFrame

from bergline.spark.backends.choose import backend_of
from bergline.table.scans.scan import TableScan
from bergline.table.scans.version import BranchRead

_WORDS = "bergline read"
_NONE = "none"
_MARK = re.compile(rf"SubqueryAlias `{_WORDS} ([^\s`]+) ([^\s`]+) ([^\s`]+)`")
_MARKED_LINE = re.compile(rf"(?P<indent>[ :]*)(?P<branch>(?:[+:]- )?)SubqueryAlias `{_WORDS} [^`]*`")
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


def with_unmarked_plans(log: Callable[[Any], None]) -> Callable[[Any], None]:
    """PySpark's function that logs an error, as the last step of making it: both then show tables by name alone.

    The log has the text of the exception that is being handled, that of Java or gRPC, which cannot be changed: it is
    handed another one of that name.
    """

    def logged(error: Any) -> None:
        for field in ("_desc", "_stackTrace", "_message", "_stacktrace"):  # in classic sessions, and over Connect
            if _WORDS in (text := str(getattr(error, field, ""))):
                setattr(error, field, unmarked(text))
        handled = sys.exc_info()[1]
        if handled is None or _WORDS not in (text := str(handled)):
            log(error)
            return
        shown = type(type(handled).__name__, (Exception,), {})(unmarked(text))
        try:
            raise shown.with_traceback(handled.__traceback__)  # noqa: TRY301  (what is being handled is what is logged)
        except Exception:  # noqa: BLE001
            log(error)

    return logged


def unmarked(plan: str) -> str:
    """A plan as Spark shows it, with what is below a mark in its place."""
    lines = plan.split("\n")
    for place in reversed(range(len(lines))):
        found = _MARKED_LINE.fullmatch(lines[place])
        if found is None:
            continue
        indent, branch = found["indent"], found["branch"]
        inside = indent + (branch[:1].replace("+", " ") + "  " if branch else "")
        end = place + 1
        while end < len(lines) and lines[end].startswith((f"{inside}   ", f"{inside}+- ", f"{inside}:")):
            end += 1
        below = [inside + line[len(inside) + 3 :] for line in lines[place + 1 : end]]
        if below:
            below[0] = indent + branch + below[0][len(inside) :]
        lines[place:end] = below
    return "\n".join(lines)


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
