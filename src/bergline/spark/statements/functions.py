"""Temporary SQL functions that read lake tables.

Spark keeps the text of a function and resolves it at each call. In that text global temporary views stand for the
tables; a statement that calls the function first replaces them by the tables as they are then.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

import msgspec
from pyspark.errors import AnalysisException, PySparkException

from bergline.errors import NotFoundError, SqlSyntaxError, UnsupportedError
from bergline.quoting import back_quoted
from bergline.spark.runtime.sql_backend import SqlFunction
from bergline.spark.statements.session_queries import SessionQueries
from bergline.sql.queries.query import Query, TableUse
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.names import called_functions
from bergline.sql.text.tokens import SqlText

_GLOBAL = "global_temp"
_CREATE_AGAIN = "CREATE OR REPLACE TEMPORARY FUNCTION makes it anew, DROP TEMPORARY FUNCTION removes it"


class TableView(msgspec.Struct, frozen=True):
    """The view that stands for a table in the text of a function, and the columns that the table had."""

    name: str
    use: TableUse
    query: Query
    columns: tuple[str, ...]

    @property
    def table(self) -> str:
        """The table in words."""
        return ".".join(self.use.name)


class LakeFunction(msgspec.Struct, frozen=True):
    """A function of the session, by the name that it was created with."""

    name: str
    views: tuple[TableView, ...]
    calls: frozenset[str]
    """The functions that it calls, in lower case."""


class SessionFunctions:
    """The functions of one session that read lake tables."""

    def __init__(
        self, functions: Mapping[str, LakeFunction] | None = None, others: Mapping[str, frozenset[str]] | None = None
    ) -> None:
        self._functions = dict(functions or {})
        self._others = dict(others or {})
        """What other functions call, which were created since the first."""

    def copied(self) -> "SessionFunctions":
        """Those of a clone of the session."""
        return SessionFunctions(self._functions, self._others)

    def __bool__(self) -> bool:
        return bool(self._functions)

    def create(self, queries: SessionQueries, sql: SqlText) -> bool:
        """CREATE FUNCTION with lake tables in it; false if Spark can run the statement as it is."""
        function = queries.tables.backend.sql.read_function(sql)
        if function is None:
            return False
        uses = [use for use in function.body.tables if queries.tables.lakes.place(use.name) is not None]
        calls = frozenset(name.casefold() for name in called_functions(function.text))
        if not uses:
            if not self._functions or not function.is_temporary:
                return False
            queries.run_sql(sql.text)
            self._forget(function.name, queries)
            self._others[function.name.casefold()] = calls
            return True
        _check_temporary(function, uses)
        views = tuple(_new_view(function, use, queries) for use in uses)
        edits = [(view.use.start, view.use.end, _reference(view)) for view in views]
        try:
            queries.run_sql(sql.edited(edits).text)
        except PySparkException:
            _drop_views(views, queries)
            raise
        self._forget(function.name, queries)
        self._functions[function.name.casefold()] = LakeFunction(function.name, views, calls)
        return True

    def note_dropped(self, queries: SessionQueries, sql: SqlText) -> None:
        """Forget the function that a DROP TEMPORARY FUNCTION dropped."""
        cursor = Cursor(sql)
        if cursor.accept("DROP", "TEMPORARY", "FUNCTION") or cursor.accept("DROP", "TEMP", "FUNCTION"):
            cursor.accept("IF", "EXISTS")
            self._forget(cursor.expect_dotted_name("a function's name")[-1], queries)

    @contextmanager
    def as_of_now(self, queries: SessionQueries, sql: SqlText) -> Iterator[None]:
        """Let the functions that a statement calls read their tables as they are now, and say which no longer fit."""
        called = self.refresh(queries, sql)
        try:
            yield
        except AnalysisException as error:
            if not (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
                raise
            for function in called:
                _check_columns(function, queries, error)
            raise

    def refresh(self, queries: SessionQueries, sql: SqlText) -> list[LakeFunction]:
        """Let the functions that a statement calls read their tables as they are now."""
        called = self._called(sql)
        for function in called:
            self._refresh(function, queries)
        return called

    def drop(self, queries: SessionQueries) -> None:
        """Drop all functions: their tables are no longer known."""
        for function in list(self._functions.values()):
            queries.run_sql(f"DROP TEMPORARY FUNCTION IF EXISTS {back_quoted(function.name)}")
            self._forget(function.name, queries)

    def _called(self, sql: SqlText) -> list[LakeFunction]:
        """The functions that a statement may call, also through others."""
        try:
            if not self._functions or _creates_function(sql):
                return []
            if sql.first_word == "EXECUTE":  # nobody knows what it runs
                return list(self._functions.values())
            pending = [name.casefold() for name in called_functions(sql)]
        except SqlSyntaxError:  # who runs it says what is wrong
            return []
        found: set[str] = set()
        while pending:
            name = pending.pop()
            if name not in found:
                found.add(name)
                known = self._functions.get(name)
                pending += known.calls if known is not None else self._others.get(name, ())
        return [function for name, function in self._functions.items() if name in found]

    def _refresh(self, function: LakeFunction, queries: SessionQueries) -> None:
        try:
            for view in function.views:
                queries.table_rows(view.query, view.use).createOrReplaceGlobalTempView(view.name)
        except NotFoundError as error:
            if not _is_current(function, queries):
                self._forget(function.name, queries)
                return
            error.message += f", which function `{function.name}` reads"
            error.hints = (*error.hints, _CREATE_AGAIN)
            raise

    def _forget(self, name: str, queries: SessionQueries) -> None:
        known = self._functions.pop(name.casefold(), None)
        if known is not None:
            _drop_views(known.views, queries)


def _creates_function(sql: SqlText) -> bool:
    cursor = Cursor(sql)
    if not cursor.accept("CREATE"):
        return False
    cursor.accept("OR", "REPLACE")
    return cursor.accept("TEMPORARY", "FUNCTION") or cursor.accept("TEMP", "FUNCTION") or cursor.accept("FUNCTION")


def _check_temporary(function: SqlFunction, uses: Iterable[TableUse]) -> None:
    use = next(iter(uses))
    if not function.is_temporary:
        raise UnsupportedError(
            f"expected a temporary function for `{'.'.join(use.name)}`, found one in Spark's own catalog, which knows "
            "no tables of lakes",
            hints=["CREATE TEMPORARY FUNCTION creates one for this session", "a view of the lake is there for all"],
        )
    if any(use.options or use.is_stream for use in uses):
        raise UnsupportedError(f"cannot read `{'.'.join(use.name)}` with options or as a stream in a function")


def _new_view(function: SqlFunction, use: TableUse, queries: SessionQueries) -> TableView:
    """A view of a table as it is now; later it is found by its full name, whatever USE says then."""
    known = msgspec.structs.replace(use, name=queries.tables.table_place(use).name)
    query = msgspec.structs.replace(function.body, tables=(known,))
    rows = queries.table_rows(query, known)
    name = f"bergline_{uuid.uuid4().hex}"
    rows.createOrReplaceGlobalTempView(name)
    return TableView(name, known, query, tuple(rows.columns))


def _reference(view: TableView) -> str:
    """The view with the alias that the table's name is; another alias may follow."""
    return f"({_GLOBAL}.{view.name} AS {back_quoted(view.use.name[-1])})"


def _drop_views(views: Iterable[TableView], queries: SessionQueries) -> None:
    for view in views:
        queries.tables.spark.catalog.dropGlobalTempView(view.name)


def _is_current(function: LakeFunction, queries: SessionQueries) -> bool:
    """Whether the function is still the one that was created here: others may take its name."""
    with suppress(AnalysisException):
        described = queries.run_sql(f"DESCRIBE FUNCTION EXTENDED {back_quoted(function.name)}").collect()
        return any(function.views[0].name in row[0] for row in described)
    return False


def _check_columns(function: LakeFunction, queries: SessionQueries, error: AnalysisException) -> None:
    """Say in our words that a column is gone which a function needs."""
    wanted = (error.getMessageParameters() or {}).get("objectName", "").rpartition(".")[2].strip("`")
    for view in function.views:
        gone = set(view.columns) - set(queries.table_rows(view.query, view.use).columns)
        if wanted.casefold() in {name.casefold() for name in gone}:
            raise NotFoundError(
                f"no column `{wanted}` any more in `{view.table}`, which function `{function.name}` reads",
                kind="column",
                name=wanted,
                hints=[_CREATE_AGAIN],
            ) from error
