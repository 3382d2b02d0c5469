"""SQL texts on a Spark Connect server, which shows nothing of how it reads them."""

from collections.abc import Callable, Mapping
from string import Formatter
from typing import Any

import msgspec
from pyspark.sql import DataFrame

from bergline.errors import UnsupportedError
from bergline.expressions.predicate import Predicate
from bergline.spark.backends.connect.classes import connect_classes
from bergline.spark.backends.connect.conditions import known_filters
from bergline.spark.runtime.sql_backend import DeferredRows, Script, SqlFunction, TablePlace, TableQuery
from bergline.sql.queries.query import OtherStatement, Query
from bergline.sql.queries.read import read_query
from bergline.sql.queries.rewritten import escaped
from bergline.sql.text.tokens import SqlText
from bergline.table.scans.scan import TableScan


class ConnectSql(msgspec.Struct, frozen=True):
    """How a session on a server reads and runs SQL: tables are found in the text."""

    spark: Any

    @property
    def has_partition_functions(self) -> bool:
        return False  # what they are goes by types, which only the server knows

    def placeholder(self, scan: TableScan) -> tuple[int, DataFrame] | None:
        return None

    def deferred_filters(self, rows: DeferredRows) -> Mapping[int, Predicate]:
        return {}

    def with_files(self, rows: DataFrame, found: Mapping[int, DataFrame]) -> DataFrame:
        return rows

    def formatter(self) -> Formatter:
        formatter: Formatter = connect_classes().formatter(self.spark)
        return formatter

    def read_query(self, sql: SqlText) -> Query | OtherStatement:
        return read_query(sql)

    def read_script(self, sql: SqlText) -> Script | None:
        return None

    def run_script(
        self,
        script: Script,
        views: Mapping[int, Mapping[str, TablePlace]],
        change: Mapping[int, Callable[[], None]],
        args: Any,
    ) -> DataFrame:
        raise UnsupportedError("cannot run a script on lake tables over Spark Connect")

    def read_function(self, sql: SqlText) -> SqlFunction | None:
        return None

    def query_pushdown(self, query: TableQuery) -> "ConnectPushdown":
        return ConnectPushdown(query)

    def parsed_once(self, query: TableQuery) -> TableQuery:
        return query

    def run_query(self, query: TableQuery, frames: Mapping[str, DataFrame], head: str = "") -> DataFrame:
        return query.run_sql(escaped(head) + query.query.text, query.args, **frames)


class ConnectPushdown:
    """What the text of a query says of its tables."""

    def __init__(self, query: TableQuery) -> None:
        self._query = query

    def filters(self) -> Mapping[str | int, Predicate]:
        schemas = {name: scan.table_schema for name, scan in self._query.scans.items()}
        return dict(known_filters(self._query.query.text, schemas).items())

    def used_columns(self, name: str | int) -> frozenset[str] | None:
        return None
