"""CREATE, DROP and ALTER NAMESPACE, COMMENT ON NAMESPACE, and USE."""

import contextlib
from typing import Any

import msgspec
import pyarrow as pa

from bergline.catalog.identifiers import Namespace
from bergline.errors import NotFoundError, UnsupportedError
from bergline.lake.lake import Lake
from bergline.sql.grammar.properties import parse_properties, parse_property_keys
from bergline.sql.grammar.spark_types import check_collation
from bergline.sql.names.resolve import Lakes
from bergline.sql.statements.statement import NO_ROWS, LakeStatement, StatementKind
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import Name, TokenKind

NAMESPACE_WORDS = ("NAMESPACE", "DATABASE", "SCHEMA")
_NAMESPACE = "a namespace's name"
_PROPERTIES = ("PROPERTIES", "DBPROPERTIES")


class CreateNamespace(LakeStatement, frozen=True):
    """CREATE NAMESPACE, SCHEMA or DATABASE; comment and location are properties."""

    namespace: Name
    if_not_exists: bool = False
    properties: dict[str, str] = msgspec.field(default_factory=dict)


class DropNamespace(LakeStatement, frozen=True):
    """DROP NAMESPACE; with `cascade` the tables and namespaces in it too."""

    namespace: Name
    if_exists: bool = False
    cascade: bool = False


class AlterNamespace(LakeStatement, frozen=True):
    """ALTER NAMESPACE and COMMENT ON NAMESPACE."""

    namespace: Name
    updates: dict[str, str] = msgspec.field(default_factory=dict)
    removals: tuple[str, ...] = ()


class Use(LakeStatement, frozen=True):
    """USE: a lake, a namespace, or both."""

    namespace: Name


def parse_create_namespace(cursor: Cursor) -> CreateNamespace:
    """Parse what follows CREATE NAMESPACE."""
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    namespace = cursor.expect_subject(_NAMESPACE)
    properties: dict[str, str] = {}
    while not cursor.is_at_end:
        if cursor.accept("COMMENT"):
            properties["comment"] = cursor.expect_text("a comment in quotes")
        elif cursor.accept("LOCATION"):
            properties["location"] = cursor.expect_text("a location in quotes")
        elif cursor.accept("WITH"):
            cursor.expect_one_of(*_PROPERTIES)
            properties.update(parse_properties(cursor))
        elif cursor.accept("DEFAULT", "COLLATION"):
            check_collation(cursor, f"tables of `{'.'.join(namespace)}`")
        else:
            cursor.fail("`COMMENT`, `LOCATION`, `WITH PROPERTIES`, the end of the statement")
    return CreateNamespace(namespace, if_not_exists, properties)


def parse_drop_namespace(cursor: Cursor) -> DropNamespace:
    """Parse what follows DROP NAMESPACE."""
    if_exists = cursor.accept("IF", "EXISTS")
    namespace = cursor.expect_subject(_NAMESPACE)
    cascade = cursor.accept("CASCADE")
    if not cascade:
        cursor.accept("RESTRICT")
    cursor.expect_end("`CASCADE`", "`RESTRICT`")
    return DropNamespace(namespace, if_exists, cascade)


def parse_alter_namespace(cursor: Cursor) -> AlterNamespace:
    """Parse what follows ALTER NAMESPACE."""
    namespace = cursor.expect_subject(_NAMESPACE)
    if cursor.accept("UNSET"):
        cursor.expect_one_of(*_PROPERTIES)
        cursor.accept("IF", "EXISTS")
        statement = AlterNamespace(namespace, removals=parse_property_keys(cursor))
    else:
        cursor.expect("SET")
        if cursor.accept("LOCATION"):
            statement = AlterNamespace(namespace, {"location": cursor.expect_text("a location in quotes")})
        else:
            cursor.expect_one_of(*_PROPERTIES, "LOCATION")
            statement = AlterNamespace(namespace, parse_properties(cursor))
    cursor.expect_end()
    return statement


def parse_comment_on_namespace(cursor: Cursor) -> AlterNamespace:
    """Parse what follows COMMENT ON NAMESPACE."""
    return AlterNamespace(cursor.expect_subject(_NAMESPACE), *parse_comment(cursor))


def parse_comment(cursor: Cursor) -> tuple[dict[str, str], tuple[str, ...]]:
    """`IS 'text' | NULL`, as properties to set and to remove."""
    cursor.expect("IS")
    text = None if cursor.accept("NULL") else cursor.expect_text("a comment in quotes, `NULL`")
    cursor.expect_end()
    return ({}, ("comment",)) if text is None else ({"comment": text}, ())


def parse_use(cursor: Cursor) -> Use:
    """Parse what follows USE."""
    if cursor.following.kind in {TokenKind.WORD, TokenKind.QUOTED}:
        any(cursor.accept(word) for word in NAMESPACE_WORDS)
    namespace = cursor.expect_subject(_NAMESPACE)
    cursor.expect_end()
    return Use(namespace)


def create_namespace(statement: CreateNamespace, lakes: Lakes) -> pa.Table | None:
    """CREATE NAMESPACE, owned by the user."""
    placed = lakes.place_new_namespace(statement.namespace)
    if placed is None:
        return None
    lake, name = placed
    owner = {"owner": lakes.engine.user} if lakes.engine.user else {}
    lake.create_namespace(name, owner | statement.properties, if_not_exists=statement.if_not_exists)
    return NO_ROWS


def drop_namespace(statement: DropNamespace, lakes: Lakes) -> pa.Table | None:
    """DROP NAMESPACE; with CASCADE, what is in it first."""
    placed = lakes.place_namespace(statement.namespace)
    if placed is None:
        return None
    lake, name = _inside(placed, statement.namespace)
    try:
        if statement.cascade:
            for inner in sorted(lake.catalog.list_namespaces(name), key=len, reverse=True):
                if lake.namespace_exists(inner):  # some are there only as long as one inside them is
                    _empty(lake, inner)
                    lake.drop_namespace(inner)
            _empty(lake, name)
        lake.drop_namespace(name)
    except NotFoundError as error:
        if not statement.if_exists or error.kind != "namespace":
            raise
    return NO_ROWS


def alter_namespace(statement: AlterNamespace, lakes: Lakes) -> pa.Table | None:
    """ALTER NAMESPACE."""
    placed = lakes.place_namespace(statement.namespace)
    if placed is None:
        return None
    lake, name = _inside(placed, statement.namespace)
    present = lake.namespace_properties(name)
    lake.update_namespace(name, statement.updates, remove=[k for k in statement.removals if k in present])
    return NO_ROWS


def use(statement: Use, lakes: Lakes) -> pa.Table | None:
    """Make a lake and a namespace current; a name that is not ours goes back to the engine's."""
    placed = lakes.place_namespace(statement.namespace)
    if placed is None:
        lakes.use(None, ())
        return None
    lake, namespace = placed
    if namespace:
        lake.namespace_properties(namespace)
    lakes.use(lake, namespace)
    return NO_ROWS


def _inside(placed: tuple[Lake, Name], namespace: Name) -> tuple[Lake, Namespace]:
    lake, name = placed
    if not name:
        raise UnsupportedError(f"expected a namespace, found the lake `{'.'.join(namespace)}`")
    return lake, name


def _empty(lake: Lake, namespace: Namespace) -> None:
    for table in lake.catalog.list_tables(namespace):
        lake.drop_table(table)
    with contextlib.suppress(UnsupportedError):  # a catalog without views
        for view in lake.catalog.list_views(namespace):
            lake.drop_view(view)


def _heads(verb: str) -> list[str]:
    return [f"{verb} {word}" for word in NAMESPACE_WORDS]


NAMESPACES: tuple[StatementKind[Any], ...] = (
    StatementKind(
        variants=(CreateNamespace,),
        parsers=dict.fromkeys(_heads("CREATE"), parse_create_namespace),
        run=create_namespace,
    ),
    StatementKind(
        variants=(DropNamespace,), parsers=dict.fromkeys(_heads("DROP"), parse_drop_namespace), run=drop_namespace
    ),
    StatementKind(
        variants=(AlterNamespace,),
        parsers={
            **dict.fromkeys(_heads("ALTER"), parse_alter_namespace),
            **dict.fromkeys(_heads("COMMENT ON"), parse_comment_on_namespace),
        },
        run=alter_namespace,
    ),
    StatementKind(variants=(Use,), parsers={"USE": parse_use}, run=use),
)
