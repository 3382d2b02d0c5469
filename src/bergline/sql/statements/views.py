"""CREATE, ALTER and DROP VIEW, and what SHOW and DESCRIBE say about a view, with the rows of the official runtime.

The query of a view is checked by an engine: `CreateView` and `AlterViewAs` are run by the session.
"""

from typing import Any

import msgspec
import pyarrow as pa

from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.quoting import dotted, quoted_name, quoted_text
from bergline.sql.grammar.properties import check_table_properties, parse_properties, parse_property_keys
from bergline.sql.grammar.spark_types import type_text
from bergline.sql.names.resolve import Lakes, ViewTarget
from bergline.sql.statements.alter_table import renamed
from bergline.sql.statements.statement import NO_ROWS, LakeStatement, StatementKind
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import Name, SqlText
from bergline.table.view import DEFAULT_DIALECT

QUERY_COLUMNS = "spark.query-column-names"
"""The property with the names of the query's columns, separated by commas, as the official runtime writes it."""
CREATED_BY, CHANGED_BY = "create_engine_version", "engine_version"
_RESERVED = frozenset({QUERY_COLUMNS, CREATED_BY, CHANGED_BY, "format-version"})
_HIDDEN = _RESERVED | {"comment", "owner"}
_VIEW = "a view's name"
_CLAUSES = "`COMMENT`, `TBLPROPERTIES`, `AS`"
ViewRow = tuple[str, str, str | None]


class CreateView(LakeStatement, frozen=True):
    """CREATE VIEW: `columns` are names, each with a comment or None."""

    view: Name
    sql: SqlText
    start: int
    """Where the query begins in the statement."""
    columns: tuple[tuple[str, str | None], ...] = ()
    properties: dict[str, str] = msgspec.field(default_factory=dict)
    replaces: bool = False
    if_not_exists: bool = False

    @property
    def query(self) -> SqlText:
        """The query as it was written."""
        return self.sql.part(self.start).without_semicolon()


class AlterViewAs(LakeStatement, frozen=True):
    """ALTER VIEW … AS."""

    view: Name
    sql: SqlText
    start: int
    """Where the query begins in the statement."""

    @property
    def query(self) -> SqlText:
        """The query as it was written."""
        return self.sql.part(self.start).without_semicolon()


class SetViewProperties(LakeStatement, frozen=True):
    """ALTER VIEW … SET and UNSET TBLPROPERTIES."""

    view: Name
    updates: dict[str, str] = msgspec.field(default_factory=dict)
    removals: tuple[str, ...] = ()
    if_exists: bool = False


class RenameView(LakeStatement, frozen=True):
    """ALTER VIEW … RENAME TO."""

    view: Name
    name: Name


class DropView(LakeStatement, frozen=True):
    """DROP VIEW."""

    view: Name
    if_exists: bool = False


class UndropView(LakeStatement, frozen=True):
    """UNDROP VIEW: bring a dropped view back from the trash."""

    view: Name
    to: Name | None = None


AlterView = AlterViewAs | SetViewProperties | RenameView


def parse_create_view(cursor: Cursor, *, replaces: bool = False) -> CreateView:
    """Parse what follows CREATE [OR REPLACE] VIEW."""
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    view = cursor.expect_subject(_VIEW)
    if replaces and if_not_exists:
        raise InvalidInputError("expected OR REPLACE or IF NOT EXISTS, found both")
    columns = _columns(cursor) if cursor.accept_symbol("(") else ()
    properties: dict[str, str] = {}
    while not cursor.accept("AS"):
        if cursor.accept("COMMENT"):
            properties["comment"] = cursor.expect_text("a comment in quotes")
        elif cursor.accept("TBLPROPERTIES"):
            properties |= _checked(parse_properties(cursor))
        elif cursor.accept("WITH", "SCHEMA"):
            _expect_binding(cursor)
        else:
            cursor.fail(_CLAUSES)
    if cursor.is_at_end:
        cursor.fail("a query")
    return CreateView(view, cursor.sql, cursor.token.start, columns, properties, replaces, if_not_exists)


def _parse_create_or_replace(cursor: Cursor) -> CreateView:
    return parse_create_view(cursor, replaces=True)


def parse_alter_view(cursor: Cursor) -> AlterView:
    """Parse what follows ALTER VIEW."""
    view = cursor.expect_subject(_VIEW)
    statement: AlterView
    if cursor.accept("AS"):
        if cursor.is_at_end:
            cursor.fail("a query")
        return AlterViewAs(view, cursor.sql, cursor.token.start)
    if cursor.accept("SET", "TBLPROPERTIES"):
        statement = SetViewProperties(view, _checked(parse_properties(cursor)))
    elif cursor.accept("UNSET", "TBLPROPERTIES"):
        if_exists = cursor.accept("IF", "EXISTS")
        statement = SetViewProperties(view, removals=parse_property_keys(cursor), if_exists=if_exists)
    elif cursor.accept("RENAME", "TO"):
        statement = RenameView(view, cursor.expect_dotted_name("a new name"))
    else:
        cursor.fail("`AS`, `SET TBLPROPERTIES`, `UNSET TBLPROPERTIES`, `RENAME TO`")
    cursor.expect_end()
    return statement


def parse_drop_view(cursor: Cursor) -> DropView:
    """Parse what follows DROP VIEW."""
    if_exists = cursor.accept("IF", "EXISTS")
    view = cursor.expect_subject(_VIEW)
    cursor.expect_end()
    return DropView(view, if_exists)


def parse_undrop_view(cursor: Cursor) -> UndropView:
    """Parse what follows UNDROP VIEW."""
    view = cursor.expect_subject(_VIEW)
    to = cursor.expect_dotted_name(_VIEW) if cursor.accept("TO") else None
    cursor.expect_end(*(() if to else ("`TO`",)))
    return UndropView(view, to)


def _columns(cursor: Cursor) -> tuple[tuple[str, str | None], ...]:
    found = []
    while True:
        name = cursor.expect_name("a column's name")
        found.append((name, cursor.expect_text("a comment in quotes") if cursor.accept("COMMENT") else None))
        if cursor.accept_symbol(")"):
            return tuple(found)
        if not cursor.accept_symbol(","):
            cursor.fail("`,`, `)`")


def _checked(properties: dict[str, str]) -> dict[str, str]:
    for key in _RESERVED & properties.keys():
        raise InvalidInputError(f"expected no property `{key}`, found one: it is set by the engine")
    return check_table_properties(properties)


def _expect_binding(cursor: Cursor) -> None:
    """`WITH SCHEMA BINDING` is what a view in a lake does."""
    if cursor.token.is_word("COMPENSATION", "EVOLUTION", "TYPE"):
        raise UnsupportedError(
            f"expected `WITH SCHEMA BINDING`, found `{cursor.token.text}`: a view in a lake keeps its columns",
            hints=["CREATE OR REPLACE VIEW gives it those that its query has now"],
        )
    cursor.expect("BINDING")


def create_view(statement: CreateView, lakes: Lakes) -> pa.Table | None:
    """Only an engine can tell which columns a query has."""
    return None if lakes.place_new(statement.view) is None else _needs_engine()


def alter_view(statement: AlterView, lakes: Lakes) -> pa.Table | None:
    """Change a view, in one commit."""
    placed = lakes.place_existing(statement.view)
    if placed is None:
        return None
    lake, name = placed
    view_name = TableName(name[:-1], name[-1])
    match statement:
        case AlterViewAs():
            return _needs_engine()
        case RenameView():
            lake.rename_view(view_name, renamed(lake, name, statement.name, lakes))
        case SetViewProperties():
            view = lake.load_view(view_name)
            missing = [key for key in statement.removals if key not in view.properties or key in _RESERVED]
            if missing and not statement.if_exists:
                raise NotFoundError(
                    f"no property `{missing[0]}` of view `{view.name}`",
                    kind="property",
                    name=missing[0],
                    known=view.properties.keys() - _RESERVED,
                )
            view.set_properties(statement.updates, remove=[key for key in statement.removals if key not in missing])
    return NO_ROWS


def drop_view(statement: DropView, lakes: Lakes) -> pa.Table | None:
    """Drop a view; its files stay."""
    placed = lakes.place_existing(statement.view)
    if placed is None:
        return None
    lake, name = placed
    try:
        lake.drop_view(TableName(name[:-1], name[-1]))
    except NotFoundError as error:
        if not statement.if_exists or error.kind not in {"view", "namespace"}:
            raise
    except UnsupportedError:  # a catalog that has no views
        if not statement.if_exists:
            raise
    return NO_ROWS


def undrop_view(statement: UndropView, lakes: Lakes) -> pa.Table | None:
    """UNDROP VIEW, under its own name or another in the same lake."""
    placed = lakes.place(statement.view)
    if placed is None:
        return None
    lake, name = placed
    to = None if statement.to is None else renamed(lake, name, statement.to, lakes)
    lake.undrop_view(TableName(name[:-1], name[-1]), to)
    return NO_ROWS


def _needs_engine() -> pa.Table:
    raise UnsupportedError(
        "cannot check the query of a view without Spark",
        hints=["in Python: `lake.create_view(name, sql, schema)`, `lake.load_view(name).replace(sql, schema)`"],
    )


def spark_query(target: ViewTarget) -> str:
    """A view's query in Spark's dialect; UnsupportedError says which dialects it has instead."""
    view = target.view
    if DEFAULT_DIALECT not in view.dialects:
        found = ", ".join(f"`{dialect}`" for dialect in view.dialects) or "no query at all"
        raise UnsupportedError(
            f"expected a query in dialect `{DEFAULT_DIALECT}` for view `{target.name}`, found {found}",
            hints=["CREATE OR REPLACE VIEW in Spark, or `view.replace({'spark': …, …}, schema)`, adds one"],
        )
    return view.sql()


def shown_view_properties(target: ViewTarget) -> dict[str, str]:
    """The properties that SHOW TBLPROPERTIES lists: those that are set, and the state in the same form."""
    metadata = target.view.metadata
    shown = {key: value for key, value in metadata.properties.items() if key not in _HIDDEN}
    shown |= {"format-version": str(metadata.format_version), "location": metadata.location, "provider": "iceberg"}
    return dict(sorted(shown.items()))


def view_property(target: ViewTarget, key: str) -> str:
    """A property of a view, or that it has none of this name."""
    absent = f"View {_full_name(target)} does not have property: {key}"
    return shown_view_properties(target).get(key, absent)


def view_rows(target: ViewTarget, *, extended: bool) -> list[ViewRow]:
    """The rows of DESCRIBE: a view's columns, and with EXTENDED all its details."""
    view = target.view
    rows: list[ViewRow] = [(f.name, type_text(f.type), f.doc or "") for f in view.schema.fields]
    if not extended:
        return rows
    columns = view.properties.get(QUERY_COLUMNS, "")
    properties = ", ".join(_pairs(target))
    details = [
        ("Comment", view.properties.get("comment", "")),
        ("View Catalog and Namespace", dotted((target.lake, *view.name.namespace))),
        ("View Query Output Columns", f"[{', '.join(columns.split(','))}]"),
        ("View Properties", f"[{properties}]"),
        ("Created By", view.properties.get(CREATED_BY, "")),
    ]
    heading: list[ViewRow] = [("", "", ""), ("# Detailed View Information", "", "")]
    return [*rows, *heading, *((key, value, "") for key, value in details)]


def create_view_text(target: ViewTarget) -> str:
    """The statement that SHOW CREATE TABLE gives of a view."""
    view = target.view
    columns = [quoted_name(f.name) + (f" COMMENT {quoted_text(f.doc)}" if f.doc else "") for f in view.schema.fields]
    listed = ",\n  ".join(columns)
    lines = [f"CREATE VIEW {_full_name(target)} (\n  {listed})"]
    if comment := view.properties.get("comment"):
        lines.append(f"COMMENT {quoted_text(comment)}")
    properties = ",\n  ".join(_pairs(target))
    return "\n".join([*lines, f"TBLPROPERTIES (\n  {properties})", "AS", spark_query(target), ""])


def _pairs(target: ViewTarget) -> list[str]:
    return [f"{quoted_text(key)} = {quoted_text(value)}" for key, value in shown_view_properties(target).items()]


def _full_name(target: ViewTarget) -> str:
    return dotted((target.lake, *target.view.name.namespace, target.view.name.name))


VIEWS: tuple[StatementKind[Any], ...] = (
    StatementKind(
        (CreateView,),
        {"CREATE VIEW": parse_create_view, "CREATE OR REPLACE VIEW": _parse_create_or_replace},
        create_view,
    ),
    StatementKind((AlterViewAs, SetViewProperties, RenameView), {"ALTER VIEW": parse_alter_view}, alter_view),
    StatementKind((DropView,), {"DROP VIEW": parse_drop_view}, drop_view),
    StatementKind((UndropView,), {"UNDROP VIEW": parse_undrop_view}, undrop_view),
)
