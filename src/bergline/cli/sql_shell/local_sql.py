"""Statements on a lake in this process: those that need no engine, and queries on a local one."""

import re
from typing import NoReturn

import pyarrow as pa

from bergline.cli.sql_shell.local_engines import LOCAL_ENGINES
from bergline.errors import UnsupportedError
from bergline.extras import install_hint
from bergline.lake.lake import Lake
from bergline.sql.analyze import analyze
from bergline.sql.names.resolve import Current, Lakes, Target, ViewTarget
from bergline.sql.names.selector import with_as_of, with_options
from bergline.sql.queries.query import OtherStatement, Query, TableUse
from bergline.sql.queries.rewritten import rewrite_query
from bergline.sql.statements.call import CallProcedure, bind_parameters
from bergline.sql.statements.create_table import CreateTable
from bergline.sql.statements.registry import run_statement
from bergline.sql.statements.statement import LakeStatement
from bergline.sql.statements.views import AlterViewAs, CreateView
from bergline.sql.text.tokens import SqlText

_COUNT_ALL = re.compile(r"\bcount\s*\(\s*\*\s*\)", re.IGNORECASE)
_NATURAL = re.compile(r"\bNATURAL\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d]\w*|`((?:[^`]|``)+)`")


class LocalSql:
    """Runs statements on one lake; USE applies to the following ones."""

    def __init__(self, lake: Lake, name: str, engine: str) -> None:
        self._lakes = {name: lake}
        self._name = name
        self._engine = engine
        self._current = Current()

    def run(self, text: str) -> pa.RecordBatchReader | None:
        """The rows of a statement, if it has any; UnsupportedError for what only Spark can run."""
        sql = SqlText(text)
        lakes = Lakes(self._lakes, self._name, self._current)
        statement = analyze(sql)
        match statement:
            case Query(writes=False):
                return self._query(statement, lakes)
            case OtherStatement(error=error) if error is not None:
                raise error
            case CreateView() | AlterViewAs() | CreateTable(query=Query()):
                self._refuse(sql)
            case LakeStatement():
                bound = bind_parameters(statement, None) if isinstance(statement, CallProcedure) else statement
                rows = run_statement(bound, lakes)
                if rows is not None:
                    return rows.to_reader() if rows.num_columns else None
        return self._refuse(sql)

    def _refuse(self, sql: SqlText) -> NoReturn:
        raise UnsupportedError(
            f"cannot run {sql.first_word} without Spark",
            hints=[
                "without it there are SELECT, and statements about refs, tables and namespaces",
                f"`--engine spark` runs it, with Java: {install_hint('spark')}",
            ],
        )

    def _query(self, query: Query, lakes: Lakes) -> pa.RecordBatchReader:
        """Run a query on its tables in memory, with the columns that it may use."""
        used = _used_columns(query.sql.text)
        tables, frames = {}, {}
        for number, use in enumerate(query.tables):
            target = lakes.resolve_relation(use.name)
            if target is None:
                continue
            if isinstance(target, ViewTarget):
                raise UnsupportedError(
                    f"cannot read the view `{target.name}` without Spark",
                    hints=[f"its query can be run by itself: SHOW CREATE TABLE {'.'.join(use.name)}"],
                )
            frames[use] = f"t{number}_"
            tables[frames[use]] = _rows(use, target, lakes, used)
        text = rewrite_query(query, frames).text.format_map({name: name for name in tables})
        return LOCAL_ENGINES[self._engine](text, tables)


def _rows(use: TableUse, target: Target, lakes: Lakes, used: frozenset[str] | None) -> pa.Table:
    """The rows of a table in the state that its name selects."""
    selector = with_as_of(target.selector, use.as_of, "UTC")
    if use.options:
        selector = with_options(selector, dict(use.options), "UTC")
    table, selector = target.table, lakes.target(target.table, selector).selector
    ref = selector.ref if selector.branch is None else selector.branch
    if selector.changes is not None:
        return table.scan_changes(selector.changes).to_arrow()
    if selector.metadata_table is not None:
        name, snapshot_id, moment = selector.metadata_table, selector.snapshot_id, selector.as_of_ms
        return table.inspect(name, ref=ref, snapshot_id=snapshot_id, as_of_ms=moment)
    if selector.after is not None:
        return table.scan_appends(selector.after, selector.snapshot_id).to_arrow()
    scan = table.scan(ref=ref, snapshot_id=selector.snapshot_id, as_of_ms=selector.as_of_ms)
    names = [field.name for field in scan.schema.fields]
    if used is not None:
        names = [name for name in names if name.casefold() in used] or names[:1]
    return table.scan(ref=ref, snapshot_id=selector.snapshot_id, as_of_ms=selector.as_of_ms, columns=names).to_arrow()


def _used_columns(text: str) -> frozenset[str] | None:
    """The words of a query, which include all columns that it uses; None if it may use others."""
    if "*" in _COUNT_ALL.sub("", text) or _NATURAL.search(text):
        return None
    return frozenset((match[1] or match[0]).replace("``", "`").casefold() for match in _WORD.finditer(text))
