"""Parser for CREATE, DROP and ALTER NAMESPACE, and for COMMENT ON."""

from bergline.sql.parse.properties import parse_properties, parse_property_keys
from bergline.sql.statements.namespace_statements import AlterNamespace, CreateNamespace, DropNamespace
from bergline.sql.statements.table_statements import AlterTable, SetTableProperties
from bergline.sql.text.cursor import Cursor

NAMESPACE_WORDS = ("NAMESPACE", "DATABASE", "SCHEMA")
_NAMESPACE = "a namespace's name"
_PROPERTIES = ("PROPERTIES", "DBPROPERTIES")


def parse_create_namespace(cursor: Cursor) -> CreateNamespace | None:
    """CREATE NAMESPACE; None if the text is another kind of statement."""
    if not _accept(cursor, "CREATE"):
        return None
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
        else:
            cursor.fail("`COMMENT`, `LOCATION`, `WITH PROPERTIES`, the end of the statement")
    return CreateNamespace(namespace, if_not_exists, properties)


def parse_drop_namespace(cursor: Cursor) -> DropNamespace | None:
    """DROP NAMESPACE; None if the text is another kind of statement."""
    if not _accept(cursor, "DROP"):
        return None
    if_exists = cursor.accept("IF", "EXISTS")
    namespace = cursor.expect_subject(_NAMESPACE)
    cascade = cursor.accept("CASCADE")
    if not cascade:
        cursor.accept("RESTRICT")
    cursor.expect_end("`CASCADE`", "`RESTRICT`")
    return DropNamespace(namespace, if_exists, cascade)


def parse_alter_namespace(cursor: Cursor) -> AlterNamespace | None:
    """ALTER NAMESPACE; None if the text is another kind of statement."""
    if not _accept(cursor, "ALTER"):
        return None
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


def parse_comment(cursor: Cursor) -> AlterNamespace | AlterTable | None:
    """COMMENT ON a table or namespace; None if it is on something else."""
    if not cursor.accept("COMMENT", "ON"):
        return None
    is_table = cursor.accept("TABLE")
    if not is_table and not any(cursor.accept(word) for word in NAMESPACE_WORDS):
        return None
    subject = cursor.expect_subject("a table name" if is_table else _NAMESPACE)
    cursor.expect("IS")
    text = None if cursor.accept("NULL") else cursor.expect_text("a comment in quotes, `NULL`")
    cursor.expect_end()
    updates, removals = ({}, ("comment",)) if text is None else ({"comment": text}, ())
    if is_table:
        return AlterTable(subject, SetTableProperties(updates, removals))
    return AlterNamespace(subject, updates, removals)


def _accept(cursor: Cursor, verb: str) -> bool:
    return any(cursor.accept(verb, word) for word in NAMESPACE_WORDS)
