"""SHOW of catalogs, namespaces, tables, views and procedures, with the columns of the official runtime."""

import re

import pyarrow as pa

from bergline.catalog.identifiers import Namespace
from bergline.lake.lake import Lake
from bergline.quoting import dotted
from bergline.sql.names.resolve import Lakes
from bergline.sql.procedures.registry import PROCEDURES
from bergline.sql.statements.show_statements import ShowCatalogs, ShowNamespaces, ShowProcedures, ShowTables, ShowViews
from bergline.sql.statements.statements import Name

_SYSTEM = "system"
_PROCEDURES = pa.schema(
    [
        pa.field("catalog", pa.string(), nullable=False),
        pa.field("namespace", pa.list_(pa.string())),
        pa.field("schema", pa.string()),
        pa.field("procedure_name", pa.string(), nullable=False),
    ]
)


def matching(names: list[str], pattern: str | None) -> list[str]:
    """The names that a pattern matches: `*` stands for anything, `|` parts alternatives, case does not count."""
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


def show_catalogs(statement: ShowCatalogs, lakes: Lakes) -> pa.Table:
    """The lakes and the engine's catalogs."""
    names = sorted({*lakes.names, *lakes.surroundings.catalogs()})
    return text_rows(("catalog",), [(name,) for name in matching(names, statement.like)])


def show_namespaces(statement: ShowNamespaces, lakes: Lakes) -> pa.Table | None:
    """Those of the lake in use; before any USE, the default lake's and the engine's, which can all be named."""
    if statement.below is None:
        names = [dotted(n) for n in child_namespaces(lakes.default, ())]
        if lakes.current.lake is None:
            names += [name for name in lakes.surroundings.namespaces() if name not in names]
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
    """The views of a namespace, and behind them the session's temporary ones."""
    placed = shown_namespace(statement.namespace, lakes)
    if placed is None:
        return None
    lake, namespace = placed
    names = sorted(v.name for v in lake.catalog.list_views(namespace)) if namespace else []
    rows = [(dotted(namespace), name, False) for name in matching(names, statement.like)]
    temporary = matching(sorted(lakes.surroundings.temporary_views()), statement.like)
    return _things("viewName", [*rows, *(("", name, True) for name in temporary)])


def show_procedures(statement: ShowProcedures, lakes: Lakes) -> pa.Table | None:
    """Those of a lake are in `system`: a lake's other namespaces have none."""
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
    """Columns of text, none of it null."""
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
