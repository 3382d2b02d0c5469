"""`spark.catalog`: what it lists and where names without a namespace belong, for lake tables; the rest is Spark's."""

from collections.abc import Callable
from typing import Any

from pyspark.sql.catalog import Catalog, CatalogMetadata, Column, Database
from pyspark.sql.catalog import Table as ListedTable

from bergline.arguments import check_text
from bergline.catalog.identifiers import TableName
from bergline.errors import NotFoundError
from bergline.format.partition.transforms import Identity
from bergline.lake.lake import Lake
from bergline.quoting import dotted
from bergline.spark.session.session import LakeSession
from bergline.spark.statements import caching
from bergline.spark.statements.session_text import session_name
from bergline.sql.grammar.spark_types import type_text
from bergline.sql.names.resolve import Lakes, ViewTarget
from bergline.sql.statements.drop_table import ForgetCached
from bergline.sql.statements.namespaces import Use
from bergline.sql.statements.registry import run_statement
from bergline.sql.statements.show_names import child_namespaces, matching
from bergline.sql.text.tokens import Name

Original = Callable[..., Any]


def current_catalog(session: LakeSession, original: Original, catalog: Catalog) -> Any:
    """The lake in use, or Spark's catalog."""
    return original(catalog) if session.lakes.current.lake is None else session.lakes.current.lake


def set_current_catalog(session: LakeSession, original: Original, catalog: Catalog, catalogName: str) -> Any:  # noqa: N803
    """Use a lake, or a catalog of Spark's."""
    lakes = session.lakes
    if lakes.has(catalogName):
        lakes.use(lakes.by_name(catalogName), ())
        return None
    lakes.use(None, ())
    return original(catalog, catalogName)


def list_catalogs(session: LakeSession, original: Original, catalog: Catalog, pattern: str | None = None) -> Any:
    """Spark's catalogs and the lakes."""
    theirs = original(catalog, pattern)
    known = {listed.name for listed in theirs}
    lakes = [name for name in session.lakes.names if name not in known]
    return [*theirs, *(CatalogMetadata(name=name, description=None) for name in matching(lakes, pattern))]


def refresh_table(session: LakeSession, original: Original, catalog: Catalog, tableName: str) -> Any:  # noqa: N803
    """Have what is cached of a table read again."""
    name = _parts(session, tableName)
    if session.lakes.resolve_relation(name) is None:
        return original(catalog, tableName)
    return caching.forget_cached(session.tables, ForgetCached(name))


def uncache_table(session: LakeSession, original: Original, catalog: Catalog, tableName: str) -> Any:  # noqa: N803
    """Drop what is cached of a table."""
    name = _parts(session, tableName)
    if session.lakes.resolve_relation(name) is None:
        return original(catalog, tableName)
    return caching.forget_cached(session.tables, ForgetCached(name, is_for_good=True))


def is_cached(session: LakeSession, original: Original, catalog: Catalog, tableName: str) -> Any:  # noqa: N803
    """Whether the rows of a table are cached; those of a lake's view are not."""
    name = _parts(session, tableName)
    if session.lakes.resolve_relation(name) is None:
        return original(catalog, tableName)
    scan = session.tables.scan_by_name(name)
    return scan is not None and caching.is_cached(session.queries, scan, tableName)


def cache_table(
    session: LakeSession,
    original: Original,
    catalog: Catalog,
    tableName: str,  # noqa: N803
    storageLevel: Any = None,  # noqa: N803
) -> Any:
    """Cache the rows of a table when they are read first."""
    name = _parts(session, tableName)
    if not session.lakes.place(name):
        return original(catalog, tableName) if storageLevel is None else original(catalog, tableName, storageLevel)
    scan = session.tables.scan_by_name(name)
    if scan is None:
        session.sql(f"CACHE TABLE {dotted(name)}")  # says why not
        return None
    return caching.cache_table(session.tables, scan, storageLevel, is_lazy=True)


def current_database(session: LakeSession, original: Original, catalog: Catalog) -> Any:
    """The namespace in use, or Spark's database."""
    current = session.lakes.current
    return original(catalog) if current.lake is None else dotted(current.namespace)


def set_current_database(session: LakeSession, original: Original, catalog: Catalog, dbName: str) -> Any:  # noqa: N803
    """Use a namespace of a lake, or a database of Spark's."""
    used = run_statement(Use(_parts(session, dbName)), session.lakes)
    return original(catalog, dbName) if used is None else None


def list_databases(session: LakeSession, original: Original, catalog: Catalog, pattern: str | None = None) -> Any:
    """The namespaces of the lake in use; before any USE, those of the default lake and then Spark's."""
    lakes = session.lakes
    names = {dotted(n): n for n in child_namespaces(lakes.default, ())}
    found = [_database(lakes, lakes.default, names[shown]) for shown in matching(list(names), pattern)]
    if lakes.current.lake is not None:
        return found
    theirs = original(catalog) if pattern is None else original(catalog, pattern)
    return [*found, *(database for database in theirs if database.name not in names)]


def get_database(session: LakeSession, original: Original, catalog: Catalog, dbName: str) -> Any:  # noqa: N803
    """A namespace."""
    placed = session.lakes.place_namespace(_parts(session, dbName))
    return _database(session.lakes, *placed) if placed and placed[1] else original(catalog, dbName)


def database_exists(session: LakeSession, original: Original, catalog: Catalog, dbName: str) -> Any:  # noqa: N803
    """Whether a lake or Spark has a namespace."""
    placed = session.lakes.place_namespace(_parts(session, dbName))
    if placed is None:
        return original(catalog, dbName)
    lake, namespace = placed
    return not namespace or lake.namespace_exists(namespace)


def list_tables(
    session: LakeSession,
    original: Original,
    catalog: Catalog,
    dbName: str | None = None,  # noqa: N803
    pattern: str | None = None,
) -> Any:
    """The tables and views of a namespace, by default the one in use."""
    lakes = session.lakes
    if dbName is None:
        placed = None if lakes.current.lake is None else (lakes.default, lakes.current.namespace)
    else:
        placed = lakes.place_namespace(_parts(session, dbName))
    if placed is None:
        return original(catalog, dbName, pattern)
    lake, namespace = placed
    if not namespace:
        return []
    tables = {t.name: _table for t in lake.catalog.list_tables(namespace)}
    kinds = tables | {v.name: _view for v in lake.catalog.list_views(namespace)}
    return [kinds[name](lakes, lake, TableName(namespace, name)) for name in matching(sorted(kinds), pattern)]


def get_table(session: LakeSession, original: Original, catalog: Catalog, tableName: str) -> Any:  # noqa: N803
    """A table or view."""
    placed = session.lakes.place_existing(_parts(session, tableName))
    if placed is None:
        return original(catalog, tableName)
    lake, name = placed[0], TableName(placed[1][:-1], placed[1][-1])
    is_view = not lake.table_exists(name) and session.lakes.find_view(_parts(session, tableName)) is not None
    return (_view if is_view else _table)(session.lakes, lake, name)


def table_exists(
    session: LakeSession,
    original: Original,
    catalog: Catalog,
    tableName: str,  # noqa: N803
    dbName: str | None = None,  # noqa: N803
) -> Any:
    """Whether a lake or Spark has a table or view."""
    full = _joined(session, tableName, dbName)
    placed = session.lakes.place_existing(full)
    if placed is None:
        return original(catalog, tableName, dbName)
    lake, name = placed
    return lake.table_exists(TableName(name[:-1], name[-1])) or session.lakes.find_view(full) is not None


def list_columns(
    session: LakeSession,
    original: Original,
    catalog: Catalog,
    tableName: str,  # noqa: N803
    dbName: str | None = None,  # noqa: N803
) -> Any:
    """The columns of a table or view."""
    table = session.lakes.resolve_table_or_view(_joined(session, tableName, dbName))
    if table is None:
        return original(catalog, tableName, dbName)
    schema = table.view.schema if isinstance(table, ViewTarget) else table.schema
    specs = () if isinstance(table, ViewTarget) else table.spec.fields
    partitions = {f.source_id for f in specs if isinstance(f.transform, Identity)}
    return [
        Column(
            name=field.name,
            description=field.doc,
            dataType=type_text(field.type),
            nullable=not field.required,
            isPartition=field.id in partitions,
            isBucket=False,
            isCluster=False,
        )
        for field in schema.fields
    ]


def _table(lakes: Lakes, lake: Lake, name: TableName) -> ListedTable:
    return _listed(lakes, lake, name, lambda: lake.load_table(name).properties, "MANAGED")


def _view(lakes: Lakes, lake: Lake, name: TableName) -> ListedTable:
    return _listed(lakes, lake, name, lambda: lake.load_view(name).properties, "VIEW")


def _listed(
    lakes: Lakes, lake: Lake, name: TableName, properties: Callable[[], dict[str, str]], kind: str
) -> ListedTable:
    try:
        comment = properties().get("comment")
    except NotFoundError as error:
        if error.kind != "file":
            raise
        comment = None  # its metadata is gone, and its name is still there
    return ListedTable(
        name=name.name,
        catalog=lakes.name_of(lake),
        namespace=list(name.namespace),
        description=comment,
        tableType=kind,
        isTemporary=False,
    )


def _database(lakes: Lakes, lake: Lake, namespace: Name) -> Database:
    properties = lake.namespace_properties(namespace)
    return Database(
        name=dotted(namespace),
        catalog=lakes.name_of(lake),
        description=properties.get("comment"),
        locationUri=properties.get("location", ""),
    )


def _joined(session: LakeSession, table: str, database: str | None) -> Name:
    return (*(() if database is None else _parts(session, database)), *_parts(session, table))


def _parts(session: LakeSession, name: str) -> Name:
    return session_name(check_text(name, "a name as text"), session.backend)
