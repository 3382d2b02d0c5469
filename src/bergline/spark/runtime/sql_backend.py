"""`SqlBackend`: how one kind of Spark reads and runs SQL texts with lake tables in them, and what it is given."""

from collections.abc import Callable, Mapping
from string import Formatter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pyspark.sql import DataFrame

from bergline.expressions.predicate import Predicate

if TYPE_CHECKING:
    from bergline.sql.queries.query import OtherStatement, Query
    from bergline.sql.queries.rewritten import RewrittenQuery
    from bergline.sql.text.tokens import SqlText
    from bergline.table.scans.scan import TableScan

RunSql = Callable[..., DataFrame]
"""A session's own `sql`, as it was before attach: text, arguments, and frames by name."""


class TablePlace(NamedTuple):
    """Where a table stands in a parsed statement, by numbers of its tables, and what its columns are qualified by."""

    numbers: tuple[int, ...]
    name: tuple[str, ...]


class DeferredRows(NamedTuple):
    """Rows of a view, on placeholders for tables whose files are looked up when the statement around it is known."""

    rows: DataFrame
    scans: "Mapping[int, LabeledScan]"
    """The tables, by the numbers of their placeholders."""


class LabeledScan(NamedTuple):
    """A scan, and the name that its table has for people."""

    label: str
    scan: "TableScan"


class TableQuery(NamedTuple):
    """A query in which lake tables stand as `{names}`: each is a scan, or a frame that is taken as it is."""

    query: "RewrittenQuery"
    args: Any
    tables: "Mapping[str, TableScan | DataFrame | DeferredRows]"
    labels: Mapping[str, str]
    """The names that the tables have for people."""
    run_sql: RunSql
    head: str = ""
    """What a statement has before its query."""
    writes: bool = False
    """Whether it must be run once only."""
    parsed: Any = None
    """What the backend's own parser made of the statement; the text does not count then."""
    places: Mapping[str, TablePlace] = {}
    """Where the tables stand in what was parsed."""

    @property
    def scans(self) -> "dict[str, TableScan]":
        """The tables of which files are still to be looked up."""
        return {n: source for n, source in self.tables.items() if not isinstance(source, DataFrame | DeferredRows)}

    @property
    def views(self) -> dict[str, DeferredRows]:
        """The views of which files are still to be looked up."""
        return {name: source for name, source in self.tables.items() if isinstance(source, DeferredRows)}

    @property
    def frames(self) -> dict[str, DataFrame]:
        """What is taken as it is."""
        return {name: source for name, source in self.tables.items() if isinstance(source, DataFrame)}

    @property
    def unread(self) -> "dict[str | int, TableScan]":
        """All scans of which files are still to be looked up: tables by name, those of views by number."""
        found: dict[str | int, TableScan] = dict(self.scans.items())
        for view in self.views.values():
            found |= {number: table.scan for number, table in view.scans.items()}
        return found


class ScriptStatement(NamedTuple):
    """A statement of a script: its text, and the tables in it as the backend parsed them."""

    text: str
    query: "Query"
    is_condition: bool
    """Whether it is a condition, and no statement by itself."""


class Script(NamedTuple):
    """`BEGIN … END` as the backend parsed it."""

    plan: Any
    statements: tuple[ScriptStatement, ...]


class SqlFunction(NamedTuple):
    """`CREATE FUNCTION … RETURN …` as the backend parsed it."""

    name: str
    body: "Query"
    """The tables that it reads, by where they stand in the statement."""
    text: "SqlText"
    """What it returns, as it was written."""
    is_temporary: bool


class QueryPushdown(Protocol):
    """What a query needs of each of its scans, which have the keys of `TableQuery.unread`."""

    def filters(self) -> Mapping[str | int, Predicate]:
        """What holds for all rows of a table that the query uses; a table is missing if nothing is known."""
        ...

    def used_columns(self, name: str | int) -> frozenset[str] | None:
        """The columns of a table that the query uses; None if it may use all."""
        ...


class SqlBackend(Protocol):
    """What a session's kind of Spark does with statements."""

    @property
    def has_partition_functions(self) -> bool:
        """Whether queries may call Iceberg's partition transforms."""
        ...

    def placeholder(self, scan: "TableScan") -> tuple[int, DataFrame] | None:
        """A frame of a scan's columns in place of its files, with a number; None if it can only be read."""
        ...

    def deferred_filters(self, rows: DeferredRows) -> Mapping[int, Predicate]:
        """What holds for all rows of scans that a view uses, whatever the statement around it asks for."""
        ...

    def with_files(self, rows: DataFrame, found: Mapping[int, DataFrame]) -> DataFrame:
        """The same rows with frames in place of placeholders, by their numbers."""
        ...

    def formatter(self) -> Formatter:
        """A new formatter of PySpark's own for the `{names}` in a statement."""
        ...

    def read_query(self, sql: "SqlText") -> "Query | OtherStatement":
        """The tables of a statement."""
        ...

    def read_script(self, sql: "SqlText") -> Script | None:
        """The statements of a script; None if there is none, or if the session's kind of Spark shows none."""
        ...

    def run_script(
        self,
        script: Script,
        views: Mapping[int, Mapping[str, TablePlace]],
        change: Mapping[int, Callable[[], None]],
        args: Any,
    ) -> DataFrame:
        """Run a script with views in place of tables, and with calls in place of statements, by their numbers."""
        ...

    def read_function(self, sql: "SqlText") -> SqlFunction | None:
        """The SQL function that a statement creates; None if it creates none, or if only Spark can tell."""
        ...

    def query_pushdown(self, query: TableQuery) -> QueryPushdown:
        """What a query needs of each of its scans, found without looking up files."""
        ...

    def parsed_once(self, query: TableQuery) -> TableQuery:
        """The query as the backend parses it, if it does, so that its text is not parsed again for each run."""
        ...

    def run_query(self, query: TableQuery, frames: Mapping[str, DataFrame], head: str = "") -> DataFrame:
        """Run a query with frames in place of its tables, after a head."""
        ...
