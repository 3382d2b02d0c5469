"""SHOW of catalogs, namespaces, tables, views and procedures, with the columns of the official runtime."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa

from bergline.catalog.identifiers import Namespace
from bergline.lake.lake import Lake
from bergline.quoting import dotted
from bergline.sql.names.resolve import Lakes
from bergline.sql.procedures.registry import PROCEDURES
from bergline.sql.statements.namespaces import NAMESPACE_WORDS
from bergline.sql.statements.statement import LakeStatement, StatementKind
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import Name, TokenKind

_SYSTEM = "system"
_PROCEDURES = pa.schema(
    [
        pa.field("catalog", pa.string(), nullable=False),
        pa.field("namespace", pa.list_(pa.string())),
        pa.field("schema", pa.string()),
        pa.field("procedure_name", pa.string(), nullable=False),
    ]
)


class ShowCurrentNamespace(LakeStatement, frozen=True):
    """SHOW CURRENT NAMESPACE."""


class ShowNamespaces(LakeStatement, frozen=True):
    """SHOW NAMESPACES, inside one or on the first level."""

    below: Name | None = None
    like: str | None = None


class ShowTables(LakeStatement, frozen=True):
    """SHOW TABLES, of a namespace or of the current one."""

    namespace: Name | None = None
    like: str | None = None


class ShowViews(LakeStatement, frozen=True):
    """SHOW VIEWS, of a namespace or of the current one."""

    namespace: Name | None = None
    like: str | None = None


class ShowCatalogs(LakeStatement, frozen=True):
    """SHOW CATALOGS."""

    like: str | None = None


class ShowProcedures(LakeStatement, frozen=True):
    """SHOW PROCEDURES, of a namespace or of all."""

    namespace: Name | None = None
    like: str | None = None


_Listing = TypeVar("_Listing", ShowNamespaces, ShowTables, ShowViews, ShowProcedures)


def parse_namespace(cursor: Cursor) -> Name | None:
    """`IN namespace`, if it comes next."""
    return cursor.expect_subject("a namespace's name") if cursor.accept("IN") or cursor.accept("FROM") else None


def parse_pattern(cursor: Cursor) -> str | None:
    """`LIKE 'pattern'`, if it comes next; LIKE may be omitted."""
    if cursor.accept("LIKE") or cursor.token.kind is TokenKind.STRING:
        return cursor.expect_text("a pattern in quotes")
    return None


def _parser(variant: type[_Listing]) -> Callable[[Cursor], _Listing]:
    """The parser of what stands behind `SHOW TABLES` and the like: `[IN namespace] [LIKE 'pattern']`."""

    def parse(cursor: Cursor) -> _Listing:
        statement = variant(parse_namespace(cursor), parse_pattern(cursor))
        cursor.expect_end()
        return statement

    return parse


def _parse_current(cursor: Cursor) -> ShowCurrentNamespace:
    cursor.expect_one_of(*NAMESPACE_WORDS)
    cursor.expect_end()
    return ShowCurrentNamespace()


def _parse_catalogs(cursor: Cursor) -> ShowCatalogs:
    statement = ShowCatalogs(parse_pattern(cursor))
    cursor.expect_end()
    return statement


def matching(names: list[str], pattern: str | None) -> list[str]:
    """The names that a pattern matches: `*` stands for anything, `|` separates alternatives, case is ignored."""
    if pattern is None:
        return names
    parts = [".*".join(re.escape(piece) for piece in part.strip().split("*")) for part in pattern.split("|")]
    wanted = re.compile("|".join(parts), re.IGNORECASE | re.DOTALL)
    return [name for name in names if wanted.fullmatch(name)]


def child_namespaces(lake: Lake, below: Namespace) -> list[Namespace]:
    """The namespaces directly in another one, () for the first level."""
    found = lake.catalog.list_namespaces(below)
    return sorted({n[: len(below) + 1] for n in found if len(n) > len(below)})


def shown_namespace(namespace: Name | None, lakes: Lakes) -> tuple[Lake, Name] | None:
    """The namespace that a statement asks about, by default the one in use; None if it is not ours."""
    if namespace is not None:
        return lakes.place_namespace(namespace)
    return (lakes.default, lakes.current.namespace) if lakes.current.namespace else None


def show_current_namespace(_: ShowCurrentNamespace, lakes: Lakes) -> pa.Table | None:
    """The lake and namespace in use."""
    if lakes.current.lake is None:
        return None
    return text_rows(("catalog", "namespace"), [(lakes.default_name, dotted(lakes.current.namespace))])


def show_catalogs(statement: ShowCatalogs, lakes: Lakes) -> pa.Table:
    """The lakes and the engine's catalogs."""
    names = sorted({*lakes.names, *lakes.engine.catalogs()})
    return text_rows(("catalog",), [(name,) for name in matching(names, statement.like)])


def show_namespaces(statement: ShowNamespaces, lakes: Lakes) -> pa.Table | None:
    """Those of the lake in use; before any USE, the default lake's and the engine's, which can all be named."""
    if statement.below is None:
        names = [dotted(n) for n in child_namespaces(lakes.default, ())]
        if lakes.current.lake is None:
            names += [name for name in lakes.engine.namespaces() if name not in names]
    else:
        placed = lakes.place_namespace(statement.below)
        if placed is None:
            return None
        lake, below = placed
        if below:
            lake.namespace_properties(below)
        names = [dotted(n) for n in child_namespaces(lake, below)]
    return text_rows(("namespace",), [(name,) for name in matching(names, statement.like)])


def show_tables(statement: ShowTables, lakes: Lakes) -> pa.Table | None:
    """The tables of a namespace."""
    placed = shown_namespace(statement.namespace, lakes)
    if placed is None:
        return None
    lake, namespace = placed
    names = sorted(t.name for t in lake.catalog.list_tables(namespace)) if namespace else []
    return _things("tableName", [(dotted(namespace), name, False) for name in matching(names, statement.like)])


def show_views(statement: ShowViews, lakes: Lakes) -> pa.Table | None:
    """The views of a namespace, followed by the session's temporary ones."""
    placed = shown_namespace(statement.namespace, lakes)
    if placed is None:
        return None
    lake, namespace = placed
    names = sorted(v.name for v in lake.catalog.list_views(namespace)) if namespace else []
    rows = [(dotted(namespace), name, False) for name in matching(names, statement.like)]
    temporary = matching(sorted(lakes.engine.temporary_views()), statement.like)
    return _things("viewName", [*rows, *(("", name, True) for name in temporary)])


def show_procedures(statement: ShowProcedures, lakes: Lakes) -> pa.Table | None:
    """A lake's procedures are in `system`; its other namespaces have none."""
    *lake, namespace = statement.namespace or (_SYSTEM,)
    name = lake[0] if len(lake) == 1 and lakes.has(lake[0]) else lakes.default_name
    if namespace != _SYSTEM or (lake and lake != [name]):
        placed = lakes.place_namespace(statement.namespace or ())
        return None if placed is None else _PROCEDURES.empty_table()
    row = {"catalog": name, "namespace": [_SYSTEM], "schema": _SYSTEM}
    return pa.Table.from_pylist(
        [{**row, "procedure_name": p} for p in matching(list(PROCEDURES), statement.like)], schema=_PROCEDURES
    )


def text_rows(names: tuple[str, ...], rows: list[tuple[str, ...]]) -> pa.Table:
    """Rows of string columns without nulls."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    fields = [pa.field(name, pa.string(), nullable=False) for name in names]
    return pa.table([pa.array(column, pa.string()) for column in columns], schema=pa.schema(fields))


def _things(kind: str, rows: list[tuple[str, str, bool]]) -> pa.Table:
    schema = pa.schema(
        [
            pa.field("namespace", pa.string(), nullable=False),
            pa.field(kind, pa.string(), nullable=False),
            pa.field("isTemporary", pa.bool_(), nullable=False),
        ]
    )
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)


SHOW_NAMES: tuple[StatementKind[Any], ...] = (
    StatementKind((ShowCurrentNamespace,), {"SHOW CURRENT": _parse_current}, show_current_namespace),
    StatementKind((ShowCatalogs,), {"SHOW CATALOGS": _parse_catalogs}, show_catalogs),
    StatementKind(
        (ShowNamespaces,),
        dict.fromkeys((f"SHOW {word}S" for word in NAMESPACE_WORDS), _parser(ShowNamespaces)),
        show_namespaces,
    ),
    StatementKind((ShowTables,), {"SHOW TABLES": _parser(ShowTables)}, show_tables),
    StatementKind((ShowViews,), {"SHOW VIEWS": _parser(ShowViews)}, show_views),
    StatementKind((ShowProcedures,), {"SHOW PROCEDURES": _parser(ShowProcedures)}, show_procedures),
)
