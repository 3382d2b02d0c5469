"""CREATE and DROP of tables and namespaces, from sqlglot's tree."""

from itertools import count
from typing import Any

from sqlglot import exp

from bergline.errors import UnsupportedError
from bergline.format.schema import Schema
from bergline.format.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from bergline.sql.statements import CreateNamespace, CreateTable, DropTable, Name

_NAMESPACES = {"NAMESPACE", "SCHEMA", "DATABASE"}
_TYPES = {
    exp.DataType.Type.BOOLEAN: BOOLEAN,
    exp.DataType.Type.TINYINT: INT,
    exp.DataType.Type.SMALLINT: INT,
    exp.DataType.Type.INT: INT,
    exp.DataType.Type.BIGINT: LONG,
    exp.DataType.Type.FLOAT: FLOAT,
    exp.DataType.Type.DOUBLE: DOUBLE,
    exp.DataType.Type.DATE: DATE,
    exp.DataType.Type.TEXT: STRING,
    exp.DataType.Type.VARCHAR: STRING,
    exp.DataType.Type.CHAR: STRING,
    exp.DataType.Type.BINARY: BINARY,
    exp.DataType.Type.TIMESTAMP: TIMESTAMPTZ,
    exp.DataType.Type.TIMESTAMPTZ: TIMESTAMPTZ,
    exp.DataType.Type.TIMESTAMPLTZ: TIMESTAMPTZ,
    exp.DataType.Type.TIMESTAMPNTZ: TIMESTAMP,
}
_DEFAULT_DECIMAL = (10, 0)


def create_statement(tree: exp.Create) -> CreateTable | CreateNamespace | None:
    """CREATE TABLE with columns or CREATE NAMESPACE; None for what we do not run."""
    kind = str(tree.args.get("kind", "")).upper()
    exists = bool(tree.args.get("exists"))
    if kind in _NAMESPACES and isinstance(tree.this, exp.Table):
        return CreateNamespace(_name(tree.this), exists)
    if kind != "TABLE" or tree.args.get("replace") or tree.expression or not isinstance(tree.this, exp.Schema):
        return None
    if not isinstance(tree.this.this, exp.Table):
        return None
    ids = count(1)
    schema = Schema(fields=tuple(_column(c, ids) for c in tree.this.expressions))
    properties = tree.args.get("properties")
    return _with_properties(
        _name(tree.this.this), schema, properties.expressions if properties else [], if_not_exists=exists
    )


def created_name(tree: exp.Create) -> Name | None:
    """What a CREATE statement makes, if it is a table."""
    table = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    is_table = str(tree.args.get("kind", "")).upper() == "TABLE" and isinstance(table, exp.Table)
    return _name(table) if is_table else None


def drop_statement(tree: exp.Drop) -> DropTable | None:
    """DROP TABLE; None for what we do not run."""
    tables = tree.args.get("tables") or [tree.this]
    if str(tree.args.get("kind", "")).upper() != "TABLE" or len(tables) != 1 or not isinstance(tables[0], exp.Table):
        return None
    return DropTable(_name(tables[0]), bool(tree.args.get("exists")), bool(tree.args.get("purge")))


def _with_properties(table: Name, schema: Schema, clauses: list[Any], *, if_not_exists: bool) -> CreateTable:
    provider = location = None
    partition_by: tuple[str, ...] = ()
    properties: dict[str, str] = {}
    for clause in clauses:
        match clause:
            case exp.FileFormatProperty():
                provider = clause.name.lower()
            case exp.LocationProperty():
                location = clause.name
            case exp.SchemaCommentProperty():
                properties["comment"] = clause.name
            case exp.PartitionedByProperty():
                partition_by = tuple(e.sql(dialect="spark") for e in clause.this.expressions)
            case exp.Property() if type(clause) is exp.Property:
                properties[clause.name] = clause.args["value"].name
            case _:
                raise UnsupportedError(f"cannot create `{'.'.join(table)}` with `{clause.sql(dialect='spark')}` yet")
    return CreateTable(table, provider, schema, partition_by, properties, location, if_not_exists)


def _name(table: exp.Table) -> Name:
    return tuple(part.name for part in table.parts)


def _column(definition: Any, ids: "count[int]") -> NestedField:
    if not isinstance(definition, exp.ColumnDef) or not isinstance(definition.kind, exp.DataType):
        raise UnsupportedError(f"expected a column with a type, found `{definition.sql(dialect='spark')}`")
    required, doc = False, None
    for constraint in (c.kind for c in definition.args.get("constraints") or []):
        match constraint:
            case exp.NotNullColumnConstraint():
                required = not constraint.args.get("allow_null")
            case exp.CommentColumnConstraint():
                doc = constraint.name
            case _:
                raise UnsupportedError(f"cannot create column `{definition.name}` with a default or check yet")
    return NestedField(next(ids), definition.name, required, _type(definition.kind, definition.name, ids), doc)


def _type(kind: exp.DataType, column: str, ids: "count[int]") -> IcebergType:
    inner = kind.expressions
    if kind.is_type("decimal"):
        precision, scale = (*(int(p.name) for p in inner), *_DEFAULT_DECIMAL[len(inner) :])
        return DecimalType(precision, scale)
    if kind.is_type("array") and inner:
        return ListType(next(ids), _type(inner[0], column, ids), False)
    if kind.is_type("map") and inner:
        key_id, value_id = next(ids), next(ids)
        return MapType(key_id, _type(inner[0], column, ids), value_id, _type(inner[1], column, ids), False)
    if kind.is_type("struct") and inner:
        return StructType(tuple(_column(c, ids) for c in inner))
    if kind.this in _TYPES:
        return _TYPES[kind.this]
    raise UnsupportedError(
        f"expected a type that Iceberg has, found `{kind.sql(dialect='spark')}` in column `{column}`"
    )
