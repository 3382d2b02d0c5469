"""BEGIN … END: scripts of Spark's that name lake tables.

A script reads the tables of lakes in the state that they have when it begins, and then what its own statements make of
them: temporary views, which are only there while it runs, are replaced after each change.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from bergline.errors import NotFoundError
from bergline.spark.runtime.backend import SparkBackend
from bergline.spark.runtime.sql_backend import Script, TablePlace
from bergline.spark.statements.immediate import is_about
from bergline.spark.statements.session_queries import SessionQueries
from bergline.sql.queries.query import OtherStatement, Query, TableUse
from bergline.sql.statements.other import check_not_of_lakes
from bergline.sql.text.names import dotted_names
from bergline.sql.text.tokens import SqlText

_ReadTables = Callable[[Query], Mapping[TableUse, DataFrame | None]]


def run_script(queries: SessionQueries, sql: SqlText, args: Any, run: Callable[[SqlText], object]) -> DataFrame | None:
    """Run BEGIN … END; None if it names no table of a lake. Statements that change a lake are run by `run`."""
    tables = queries.tables
    script = tables.backend.sql.read_script(sql)
    if script is None:
        found = tables.backend.sql.read_query(sql)
        if not (isinstance(found, OtherStatement) and found.leave_to_engine):
            check_not_of_lakes(OtherStatement("BEGIN … END", dotted_names(sql)), tables.lakes)
        return None

    def changes(text: SqlText) -> bool:
        statement = queries.analyze(text)
        return not isinstance(statement, Query) and is_about(statement, text, tables.lakes)

    def rows(query: Query) -> dict[TableUse, DataFrame | None]:
        queries.forget_states()
        ours = [use for use in query.tables if tables.lakes.place(use.name) is not None]
        return {use: _rows(queries, query, use, args) for use in ours}

    texts = [SqlText(statement.text, sql.dialect) for statement in script.statements]
    return _run_script(
        script, texts, args, tables.backend, changes=changes, run=run, rows=rows, place=tables.table_place
    )


def _rows(queries: SessionQueries, query: Query, use: TableUse, args: Any) -> DataFrame | None:
    """The rows of a table in a script; None for one that does not exist, which the script may create."""
    try:
        return queries.table_rows(query, use, args)
    except NotFoundError:
        return None


def _run_script(
    script: Script,
    texts: Sequence[SqlText],
    args: Any,
    backend: SparkBackend,
    *,
    changes: Callable[[SqlText], bool],
    run: Callable[[SqlText], object],
    rows: _ReadTables,
    place: Callable[[TableUse], TablePlace],
) -> DataFrame | None:
    """Run a script; None if it has nothing to do with lakes.

    `changes` says whether a statement changes a lake; then it is run by `run`.
    """
    changing = [n for n, text in enumerate(texts) if not script.statements[n].is_condition and changes(text)]
    reading = [number for number in range(len(texts)) if number not in changing]
    tables = _ScriptTables(script, backend, rows)

    def changed(number: int) -> None:
        run(texts[number])
        tables.create(reading, place)

    try:
        views = tables.create(reading, place)
        if not changing and not views:
            return None
        calls = {number: lambda number=number: changed(number) for number in changing}
        return backend.sql.run_script(script, views, calls, args)
    finally:
        tables.drop()


class _ScriptTables:
    """The views of a script; `rows` finds the lake tables that a statement reads, each by where it stands."""

    def __init__(self, script: Script, backend: SparkBackend, rows: _ReadTables) -> None:
        self._script = script
        self._backend = backend
        self._rows = rows
        self._names: dict[Any, str] = {}

    def create(self, numbers: list[int], place: Callable[[TableUse], TablePlace]) -> dict[int, dict[str, TablePlace]]:
        """Create the views of some statements, and say where each stands in which."""
        views: dict[int, dict[str, TablePlace]] = {}
        for number in numbers:
            query = self._script.statements[number].query
            for use, rows in self._rows(query).items():
                name = self._names.setdefault(_meaning(use), f"bergline_{uuid.uuid4().hex}")
                if rows is None:  # Spark says that the table does not exist, when it gets there
                    self._backend.spark.catalog.dropTempView(name)
                else:
                    rows.createOrReplaceTempView(name)
                places = views.setdefault(number, {})
                known = places.get(name, place(use))
                places[name] = known._replace(numbers=(*known.numbers, query.tables.index(use)))
        return views

    def drop(self) -> None:
        """Drop all views."""
        for name in self._names.values():
            self._backend.spark.catalog.dropTempView(name)


def _meaning(use: TableUse) -> Any:
    return use.name, use.as_of, use.options
