"""A query on lake tables: what it asks of each table is found out first, then files are looked up and it is run."""

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from bergline.expressions.predicate import ALWAYS_TRUE, Predicate
from bergline.spark.pushdown.connect_conditions import known_filters
from bergline.spark.pushdown.pushed_filters import placeholder, pushed_filters, used_columns
from bergline.spark.reads.explain import remember_reads
from bergline.spark.reads.scan import read
from bergline.spark.reads.types import read_schema
from bergline.spark.runtime.connect import over_connect
from bergline.spark.session.query_errors import sent_query
from bergline.sql.rewrite.tables import RewrittenQuery, escaped
from bergline.sql.text.tokens import tokenize
from bergline.table.scans.scan import TableScan


def run_query(
    query: RewrittenQuery,
    args: Any,
    tables: Mapping[str, TableScan | DataFrame],
    *,
    labels: Mapping[str, str],
    writes: bool,
    spark: SparkSession,
    run_sql: Callable[..., DataFrame],
    head: str = "",
) -> DataFrame:
    """Run a query in which tables stand as `{names}`; each is a scan, or a frame that is taken as it is.

    `labels` are the names that the tables have for people, `head` is what a statement has before its query. A text that
    writes is run once only.
    """
    scans = {name: source for name, source in tables.items() if isinstance(source, TableScan)}
    text = query.text

    def run(frames: Mapping[str, Any], head: str = "") -> DataFrame:
        if over_connect(spark):
            return run_sql(escaped(head) + text, args, **frames)
        with sent_query(query, head, frames, labels, spark) as sent:
            return run_sql(sent, args)

    @functools.cache
    def asked() -> DataFrame:
        marked = {name: placeholder(spark, read_schema(s.schema), i) for i, (name, s) in enumerate(scans.items())}
        return run({**tables, **marked})

    @functools.cache
    def used_by_table() -> dict[str, frozenset[str] | None]:
        return dict(zip(scans, used_columns(asked(), len(scans)), strict=True))

    def used(name: str) -> frozenset[str] | None:
        return None if writes or head or over_connect(spark) else used_by_table()[name]

    filters: Mapping[str, Predicate] = dict.fromkeys(scans, ALWAYS_TRUE)
    if over_connect(spark):
        filters = {**filters, **known_filters(text, {name: s.table_schema for name, s in scans.items()})}
    elif not writes and scans and any(token.is_word("WHERE", "ON", "HAVING") for token in tokenize(text)):
        with contextlib.suppress(AnalysisException) if head else contextlib.nullcontext():  # the statement says it
            filters = dict(zip(scans, pushed_filters(asked(), [s.table_schema for s in scans.values()]), strict=True))
    pruned = {name: scan.where(filters[name]) for name, scan in scans.items()}
    frames = {name: read(scan, spark, functools.partial(used, name)) for name, scan in pruned.items()}
    reads = [(labels[name], scan, functools.partial(used, name)) for name, scan in pruned.items()]
    return remember_reads(run({**tables, **frames}, head), reads)
