"""A query on lake tables: what it needs of each table is found first, then files are looked up and it is run."""

import functools
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.spark.reads.explain import remember_reads
from bergline.spark.reads.scan import read
from bergline.spark.runtime.backend import RunSql, SparkBackend, TableQuery
from bergline.sql.rewrite.tables import RewrittenQuery
from bergline.table.scans.scan import TableScan


def run_query(
    query: RewrittenQuery,
    args: Any,
    tables: Mapping[str, TableScan | DataFrame],
    *,
    labels: Mapping[str, str],
    writes: bool,
    backend: SparkBackend,
    run_sql: RunSql,
    head: str = "",
) -> DataFrame:
    """Run a query in which tables stand as `{names}`; each is a scan, or a frame that is taken as it is.

    `labels` are the names that the tables have for people, `head` is what a statement has before its query. A text that
    writes is run once only.
    """
    asked = TableQuery(query, args, tables, labels, run_sql, head, writes)
    pushdown = backend.query_pushdown(asked)
    filters = pushdown.filters()
    pruned = {name: scan.where(filters.get(name, ALWAYS_TRUE)) for name, scan in asked.scans.items()}
    used = {name: functools.partial(pushdown.used_columns, name) for name in pruned}
    frames = {name: rows for name, rows in tables.items() if isinstance(rows, DataFrame)}
    frames |= {name: read(scan, backend.spark, used[name]) for name, scan in pruned.items()}
    reads = [(labels[name], scan, used[name]) for name, scan in pruned.items()]
    return remember_reads(backend.run_query(asked, frames, head), reads)
