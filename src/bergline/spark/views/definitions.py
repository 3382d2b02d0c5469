"""New definitions of views: where they are stored, what their queries may refer to, the columns that they get."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from pyspark.sql import DataFrame

from bergline.catalog.identifiers import TableName
from bergline.errors import AlreadyExistsError, BerglineError, InvalidInputError, UnsupportedError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import NestedField
from bergline.lake.lake import Lake
from bergline.quoting import back_quoted_path
from bergline.spark.runtime.types import iceberg_schema
from bergline.spark.views.scopes import ViewScope
from bergline.sql.analyze import Statement
from bergline.sql.names.resolve import Lakes
from bergline.sql.queries.query import OtherStatement, Query
from bergline.sql.statements.other import check_not_of_lakes
from bergline.sql.statements.views import CHANGED_BY, CREATED_BY, QUERY_COLUMNS, AlterViewAs, CreateView
from bergline.sql.text.names import called_functions, dotted_names
from bergline.sql.text.tokens import Name

_GLOBAL_VIEWS = "global_temp"
_VARIABLE = re.compile(r"variablereference\(system\.session\.([^=]+)=")


class ViewDefinition(NamedTuple):
    """What CREATE VIEW or ALTER VIEW … AS stores."""

    lake: Lake
    name: TableName
    scope: ViewScope

    @property
    def exists(self) -> bool:
        """Whether there is a view of this name."""
        return self.lake.view_exists(self.name)

    def store(self, statement: CreateView | AlterViewAs, rows: DataFrame, version: str) -> None:
        """Create or replace the view, whose query gives these rows."""
        columns = _new_columns(statement, rows, self.scope.views[-1])
        properties = statement.properties if isinstance(statement, CreateView) else {}
        properties = {**properties, QUERY_COLUMNS: ",".join(rows.columns), CHANGED_BY: f"Spark {version}"}
        is_own = self.scope.views[-1] == f"{self.scope.catalog}.{self.name}"
        place = (self.scope.namespace, "" if is_own else self.scope.catalog)
        text = statement.query.text.strip()
        if isinstance(statement, CreateView) and not (statement.replaces and self.exists):
            try:
                self.lake.create_view(
                    self.name,
                    text,
                    columns,
                    properties={**properties, CREATED_BY: f"Spark {version}"},
                    default_namespace=place[0],
                    default_catalog=place[1] or None,
                    if_not_exists=statement.if_not_exists,
                )
            except AlreadyExistsError as error:
                if error.kind != "view" or not statement.replaces:
                    raise
            else:
                return
        view = self.lake.load_view(self.name)
        view.replace(text, columns, properties=properties, default_namespace=place[0], default_catalog=place[1])


def new_definition(statement: CreateView | AlterViewAs, lakes: Lakes) -> ViewDefinition | None:
    """Where a view is to be stored, and the scope of its query; None if it is not a lake's."""
    if isinstance(statement, CreateView):
        placed = lakes.place_new(statement.view)
    else:
        found = lakes.place_existing(statement.view)
        placed = None if found is None else (found[0], TableName(found[1][:-1], found[1][-1]))
    if placed is None:
        return None
    lake, name = placed
    scope = ViewScope((f"{lakes.name_of(lake)}.{name}",), lakes.default_name, lakes.current.namespace, checks=True)
    return ViewDefinition(lake, name, scope)


def check_sparks_view(statement: CreateView | AlterViewAs, query: Statement, lakes: Lakes) -> None:
    """Refuse a view in Spark's own catalog that reads lake tables: it would find none of them."""
    if not isinstance(query, Query):
        error = query.error if isinstance(query, OtherStatement) else None
        check_not_of_lakes(OtherStatement("CREATE VIEW", dotted_names(statement.query), error), lakes)
        return
    ours = next((use.name for use in query.tables if lakes.place(use.name)), None)
    if ours is not None:
        raise UnsupportedError(
            f"expected a lake's namespace for a view of `{'.'.join(ours)}`, found `{'.'.join(statement.view)}`, which "
            "would be in Spark's own catalog",
            hints=[
                f"name a namespace of a lake, as in `{lakes.default_name}.db.{statement.view[-1]}`",
                "CREATE TEMPORARY VIEW creates one for this session",
            ],
        )


def check_persistent(query: Query, definition: ViewDefinition, lakes: Lakes, functions: Iterable[str]) -> None:
    """INVALID_TEMP_OBJ_REFERENCE for temporary views and functions in the query of a view."""
    for use in query.tables:
        name = use.name
        is_global = len(name) == 2 and name[0].casefold() == _GLOBAL_VIEWS  # noqa: PLR2004
        if is_global or (len(name) == 1 and lakes.engine.has_temporary_view(name[0])):
            raise _temporary("VIEW", name, definition)
    temporary = {name.casefold() for name in functions if "." not in name}
    for function in called_functions(query.sql):
        if function.casefold() in temporary:
            raise _temporary("FUNCTION", (function,), definition)


def check_no_variables(plan: str, query: Query, definition: ViewDefinition) -> None:
    """INVALID_TEMP_OBJ_REFERENCE for session variables in the analyzed plan of a view's query."""
    words = {token.value.casefold() for token in query.sql.tokens}
    for name in _VARIABLE.findall(plan):
        if name.strip("`").casefold() in words:
            raise _temporary("VARIABLE", (name.strip("`"),), definition)


def _temporary(kind: str, name: Name, definition: ViewDefinition) -> BerglineError:
    return InvalidInputError(
        f"cannot create the persistent view `{definition.scope.views[-1]}`: its query refers to the temporary "
        f"{kind.lower()} {back_quoted_path(name)}",
        condition="INVALID_TEMP_OBJ_REFERENCE",
    )


def _new_columns(statement: CreateView | AlterViewAs, rows: DataFrame, view: str) -> Schema:
    """The columns of a view: names and comments of the statement, or else of the query."""
    given = statement.columns if isinstance(statement, CreateView) else ()
    found = rows.schema.fields
    if given and len(given) != len(found):
        few = len(found) < len(given)
        raise InvalidInputError(
            f"expected {len(given)} columns for view `{view}`, found {len(found)} in its query: "
            f"{', '.join(f'`{f.name}`' for f in found)}",
            condition=f"CREATE_VIEW_COLUMN_ARITY_MISMATCH.{'NOT_ENOUGH' if few else 'TOO_MANY'}_DATA_COLUMNS",
        )
    names = [name for name, _ in given] or [f.name for f in found]
    folded = [name.casefold() for name in names]
    for name in names:
        if folded.count(name.casefold()) > 1:
            message = f"expected distinct column names in view `{view}`, found `{name}` twice"
            raise InvalidInputError(message, condition="COLUMN_ALREADY_EXISTS")
    comments = [comment for _, comment in given] or [None] * len(found)
    fields = [
        NestedField(f.id, name, not known.nullable, f.type, comment or f.doc)
        for f, name, comment, known in zip(iceberg_schema(rows.schema).fields, names, comments, found, strict=True)
    ]
    return Schema(fields=tuple(fields))
