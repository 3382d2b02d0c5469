"""Queries on lake tables, and what statements leave in a session: rows as frames, and temporary views.

What a query needs of each table is found first, then files are looked up and it is run. A view keeps the plan of its
query, whose relations follow their tables.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.errors import UnsupportedError
from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.quoting import back_quoted
from bergline.spark.backends.choose import backend_of
from bergline.spark.pushdown.provenance import is_marked, with_provenance
from bergline.spark.reads.explain import remember_reads
from bergline.spark.reads.metadata_aggregates import known_aggregates
from bergline.spark.reads.scan import all_columns, read, whole_relation
from bergline.spark.runtime.arrow_rows import arrow_frame
from bergline.spark.runtime.backend import SparkBackend
from bergline.spark.runtime.sql_backend import DeferredRows, LabeledScan, RunSql, TablePlace, TableQuery
from bergline.sql.queries.rewritten import RewrittenQuery
from bergline.sql.queries.wrappers import ViewHead, cached_view, parse_view_head
from bergline.sql.text.tokens import SqlText
from bergline.table.scans.scan import TableScan

_AGGREGATES = ("COUNT", "MIN", "MAX")
_NOT_ALONE = ("WHERE", "GROUP", "HAVING", "JOIN", "OVER", "DISTINCT", "UNION", "LATERAL", "LIMIT")


class QueryRows(NamedTuple):
    """The rows of a query, and the scans of its tables, with the filters that they were planned with."""

    rows: DataFrame
    scans: Mapping[str, TableScan]


def run_query(
    query: RewrittenQuery,
    args: Any,
    tables: Mapping[str, TableScan | DataFrame | DeferredRows],
    *,
    labels: Mapping[str, str],
    writes: bool,
    backend: SparkBackend,
    run_sql: RunSql,
    head: str = "",
    parsed: Any = None,
    places: Mapping[str, TablePlace] | None = None,
    deferred: dict[int, LabeledScan] | None = None,
    keeps: bool = False,
) -> QueryRows:
    """Run a query in which tables stand as `{names}`; each is a scan, or a frame that is taken as it is.

    `labels` are the names that the tables have for people, `head` is what a statement has before its query. A text that
    writes is run once only. What the backend parsed itself counts in place of the text. With `deferred`, no files are
    looked up where that can be: placeholders stand for them, whose scans are noted there. What a session `keeps`, as a
    view, is computed each time, even if metadata knows it now.
    """
    scans = {name: source for name, source in tables.items() if isinstance(source, TableScan)}
    whole = {} if parsed is None else {name: whole_relation(scan, backend) for name, scan in scans.items()}
    known = {name: rows for name, rows in whole.items() if rows is not None}
    asked = backend.sql.parsed_once(
        TableQuery(query, args, {**tables, **known}, labels, run_sql, head, writes, parsed, places or {})
    )
    if deferred is not None and (frames := _placeholders(asked, backend, deferred)) is not None:
        return QueryRows(backend.sql.run_query(asked, frames, head), scans)
    pushdown = backend.sql.query_pushdown(asked)
    filters = pushdown.filters()
    pruned = {key: scan.where(filters.get(key, ALWAYS_TRUE)) for key, scan in asked.unread.items()}
    used = {key: functools.partial(pushdown.used_columns, key) for key in pruned}
    found = {key: read(scan, backend.spark, used[key]) for key, scan in pruned.items()}
    views = {name: _with_files(view, found, backend) for name, view in asked.views.items()}
    frames = {**asked.frames, **views, **{name: found[name] for name in asked.scans}}
    reads = [(labels[name], pruned.get(name, scan), used.get(name, all_columns)) for name, scan in scans.items()]
    of_views = {number: table.label for view in asked.views.values() for number, table in view.scans.items()}
    reads += [(label, pruned[number], used[number]) for number, label in of_views.items()]
    rows = backend.sql.run_query(asked, frames, head)
    if parsed is not None and not (head or writes or keeps) and len(scans) == 1 and _may_aggregate(query.sql):
        rows = _from_metadata(rows, next(iter(scans.values())), backend, run_sql)
    return QueryRows(remember_reads(rows, reads), {name: pruned.get(name, scan) for name, scan in scans.items()})


def read_deferred(view: DeferredRows, backend: SparkBackend) -> DataFrame:
    """All rows of a view: its own conditions choose the files."""
    filters = backend.sql.deferred_filters(view)
    scans = {number: table.scan.where(filters.get(number, ALWAYS_TRUE)) for number, table in view.scans.items()}
    return backend.sql.with_files(view.rows, {number: read(scan, backend.spark) for number, scan in scans.items()})


def _with_files(view: DeferredRows, found: Mapping[str | int, DataFrame], backend: SparkBackend) -> DataFrame:
    return backend.sql.with_files(view.rows, {number: found[number] for number in view.scans})


def _placeholders(
    asked: TableQuery, backend: SparkBackend, deferred: dict[int, LabeledScan]
) -> dict[str, DataFrame] | None:
    """Frames without files for a query, whose scans are noted; None if files must be looked up."""
    frames = {**asked.frames, **{name: view.rows for name, view in asked.views.items()}}
    for name, scan in asked.scans.items():
        found = backend.sql.placeholder(scan)
        if found is None:
            return None
        number, frames[name] = found
        deferred[number] = LabeledScan(asked.labels[name], scan)
    for view in asked.views.values():
        deferred.update(view.scans)
    return frames


def _may_aggregate(sql: SqlText) -> bool:
    """Whether a text may ask for nothing but aggregates of a table: the plan says, but asking it takes time."""
    return sql.first_word == "SELECT" and sql.has_word(*_AGGREGATES) and not sql.has_word(*_NOT_ALONE)


def _from_metadata(rows: DataFrame, scan: TableScan, backend: SparkBackend, run_sql: RunSql) -> DataFrame:
    """Aggregates of a table that its metadata tells, or the rows as they are."""
    asked = backend.asked_aggregates(rows, is_marked) if type(scan) is TableScan else None
    values = known_aggregates(scan, asked, backend) if asked else None
    if not asked or values is None:
        return rows
    named = (f"{value} AS {back_quoted(name)}" for value, (_, _, name) in zip(values, asked, strict=True))
    return with_provenance(run_sql(f"SELECT {', '.join(named)}"), scan)


def result_frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """The rows that a statement gave."""
    return arrow_frame(spark, rows) if rows.num_columns else no_result(spark)


def no_result(spark: SparkSession) -> DataFrame:
    """What a statement gives that has no rows to show."""
    return backend_of(spark).empty_frame()


def create_view(rows: DataFrame, head: SqlText, run_sql: RunSql) -> None:
    """CREATE TEMPORARY VIEW … AS: a view of a frame keeps its plan, with the names and comments that the head gives."""
    view = parse_view_head(head)
    if view is None or len(view.columns) not in {0, len(rows.columns)}:
        # Spark refuses such a head in its own words
        run_sql(head.text + "SELECT " + ", ".join(f"{i} AS _{i}" for i in range(len(rows.columns))))
        raise UnsupportedError(f"cannot make a temporary view of lake tables by `{head.text.strip()}`")
    if view.columns:
        numbered = rows.toDF(*(f"_{i}" for i in range(len(rows.columns))))
        rows = numbered.select(*(_named(F.col(f"_{i}"), *column) for i, column in enumerate(view.columns)))
    _creation(rows, view)(back_quoted(view.name))


def cache_rows(rows: DataFrame, head: SqlText, run_sql: RunSql) -> None:
    """CACHE TABLE … AS: a temporary view of the rows, which is cached; nothing is left if that fails."""
    name, statement = cached_view(head)
    rows.createTempView(name)
    try:
        run_sql(statement)
    except PySparkException:
        run_sql(f"DROP VIEW IF EXISTS {name}")
        raise


def _named(column: Column, name: str, comment: str | None) -> Column:
    return column.alias(name) if comment is None else column.alias(name, metadata={"comment": comment})


def _creation(rows: DataFrame, view: ViewHead) -> Callable[[str], None]:
    if view.is_global:
        return rows.createOrReplaceGlobalTempView if view.replaces else rows.createGlobalTempView
    return rows.createOrReplaceTempView if view.replaces else rows.createTempView
