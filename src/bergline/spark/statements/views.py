"""CREATE VIEW and ALTER VIEW: new views of lakes are checked and stored; temporary ones may read lake tables."""

import msgspec

from bergline.quoting import back_quoted_path
from bergline.spark.statements.queries import create_view
from bergline.spark.statements.session_queries import SessionQueries
from bergline.spark.views.definitions import (
    check_no_variables,
    check_persistent,
    check_sparks_view,
    new_definition,
)
from bergline.sql.queries.query import Query
from bergline.sql.statements.views import AlterViewAs, CreateView
from bergline.sql.text.tokens import SqlText


def define_view(queries: SessionQueries, statement: CreateView | AlterViewAs) -> bool:
    """CREATE VIEW and ALTER VIEW … AS; false if Spark must run the statement."""
    tables = queries.tables
    definition = new_definition(statement, tables.lakes)
    if definition is None:
        return _define_sparks_view(queries, statement)
    if isinstance(statement, CreateView) and statement.if_not_exists and definition.exists:
        return True
    query = queries.read_view_query(statement.query, f"view `{definition.scope.views[-1]}`")
    query = msgspec.structs.replace(query, within=(statement.sql.text, statement.start))
    functions = [row[0] for row in queries.run_sql("SHOW USER FUNCTIONS").collect()]
    check_persistent(query, definition, tables.lakes, functions)
    rows = queries.rows_within(definition.scope, tables.lakes.name_of(definition.lake), query)
    check_no_variables(tables.backend.plan_text(rows), query, definition)
    definition.store(statement, rows, tables.spark.version)
    return True


def _define_sparks_view(queries: SessionQueries, statement: CreateView | AlterViewAs) -> bool:
    """A temporary view may read lake tables, one in Spark's catalog may not; false if Spark can do it alone."""
    lakes, view = queries.tables.lakes, statement.view
    query = queries.analyze(statement.query)
    is_temporary = len(view) == 1 and lakes.engine.has_temporary_view(view[0])
    if isinstance(statement, CreateView) or not is_temporary:
        check_sparks_view(statement, query, lakes)
        return False
    if not isinstance(query, Query) or not any(lakes.place(use.name) for use in query.tables):
        return False
    head = SqlText(f"CREATE OR REPLACE TEMPORARY VIEW {back_quoted_path(view)} AS ")
    create_view(queries.following(keeps=True).run_query(query, None), head, queries.run_sql)
    return True
