"""A million tables in one catalog, in SQLite and PostgreSQL: what each operation takes beside a catalog of a thousand.

PyIceberg's SqlCatalog works on the same database. The tables are rows alone, but for one with its files.
"""

import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import sqlalchemy as sa
from pyiceberg.catalog.sql import SqlCatalog

import bergline
from bergline import Lake
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.directories.table_directories import TableDirectories
from bergline.catalog.sql.records import records_of, sql_store_of
from bergline.catalog.sql.sql_store import SqlPointerStore
from results import Scaled, times

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.servers.postgres_server import running_postgres

SCHEMA = pa.schema([("id", pa.int64())])
IN_A_NAMESPACE = 1000
REAL = TableName(("n000000",), "t000500x")
MISSING = TableName(("n000000",), "t000500y")
_ROW = """'n' || {six_namespace}, 't' || {six_name}, 's3://b/wh/' || i || '/metadata/1.metadata.json'"""
_NUMBERS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < :most - 1)",
    "postgresql": "WITH n(i) AS (SELECT generate_series(0, :most - 1))",
}
_SIX = {"sqlite": "substr('00000' || ({}), -6)", "postgresql": "lpad(({})::text, 6, '0')"}


def fill(store: SqlPointerStore, tables: int) -> None:
    """Tables in namespaces of a thousand, and what is kept of where their files are."""
    dialect = store.database.engine.dialect.name
    six = _SIX[dialect]
    row = _ROW.format(six_namespace=six.format(f"i / {IN_A_NAMESPACE}"), six_name=six.format(f"i % {IN_A_NAMESPACE}"))
    namespaces = (
        f"{_NUMBERS[dialect]} INSERT INTO iceberg_namespace_properties SELECT :catalog, 'n' || {six.format('i')}"
    )
    tables_rows = f"{_NUMBERS[dialect]} INSERT INTO iceberg_tables SELECT :catalog, {row}, NULL, 'TABLE' FROM n"  # noqa: S608
    kept_rows = (
        f"{_NUMBERS[dialect]} INSERT INTO bergline_footprints (table_namespace, table_name, metadata_location, "  # noqa: S608
        f"catalog_name, number, version, table_uuid, directory, path) SELECT {row}, :catalog, 0, 1, "
        "'u' || i, 's3://b/wh/' || i, '/wh/' || i || '/' FROM n"
    )
    all_namespaces = f"{namespaces}, 'exists', 'true' FROM n"
    statements = ((tables_rows, tables), (all_namespaces, -(-tables // IN_A_NAMESPACE)), (kept_rows, tables))
    with store.database.writing() as connection:
        if dialect == "postgresql":
            connection.execute(sa.text("SELECT set_config('statement_timeout', '0', true)"))
        for statement, most in statements:
            connection.execute(sa.text(statement), {"catalog": store.catalog_name, "most": most})
    with store.database.writing() as connection:
        connection.exec_driver_sql("ANALYZE")


def ours(lake: Lake, store: SqlPointerStore) -> dict[str, Callable[[], Any]]:
    """The operations of bergline by their names."""
    directories = TableDirectories(records_of(lake.catalog), lambda _: [])
    footprints = store.footprints()
    assert footprints is not None

    def create_and_drop() -> None:
        name = TableName(("n000000",), uuid4().hex)
        assert store.create(name, f"s3://b/wh/{name.name}/metadata/1.metadata.json")
        assert store.rename(name, TableName(name.namespace, f"{name.name}2"))
        assert store.drop(TableName(name.namespace, f"{name.name}2"))

    return {
        "load a table": lambda: lake.load_table(REAL),
        "look for a missing table": lambda: _missing(lambda: lake.load_table(MISSING)),
        "list a namespace of 1,000 tables": lambda: lake.list_tables("n000000"),
        "list all namespaces": lake.list_namespaces,
        "list a page of tables": lambda: store.names_after(("n000000",), "t000500", 100),
        "list a page of namespaces": lambda: store.namespaces_after((), (True, "n000000"), 100),
        "look for a missing namespace": lambda: _missing(lambda: lake.list_tables("nope")),
        "create, rename and drop a name": create_and_drop,
        "check that a directory is its own": lambda: directories.check_apart(MISSING, ["s3://b/wh/new/table"]),
        "readiness": store.database.check_ready,
        "open the catalog": lambda: _reopen(store),
        "find the tables near a directory, for a purge": lambda: footprints.near(["/wh/77/"], "u78"),
    }


def theirs(catalog: Any) -> dict[str, Callable[[], Any]]:
    """Those that PyIceberg has too."""
    return {
        "load a table": lambda: catalog.load_table((*REAL.namespace, REAL.name)),
        "look for a missing table": lambda: _missing(lambda: catalog.load_table((*MISSING.namespace, MISSING.name))),
        "list a namespace of 1,000 tables": lambda: catalog.list_tables("n000000"),
        "list all namespaces": catalog.list_namespaces,
        "look for a missing namespace": lambda: _missing(lambda: catalog.list_tables("nope")),
    }


def _missing(ask: Callable[[], Any]) -> None:
    try:
        ask()
    except Exception:  # noqa: BLE001, S110  (each side has its own)
        pass
    else:
        raise AssertionError("found what should be missing")


def _reopen(store: SqlPointerStore) -> None:
    store.database.open_layout(create=False)


@contextlib.contextmanager
def databases() -> Iterator[dict[str, str]]:
    """The URIs of an SQLite file and of a PostgreSQL server."""
    with tempfile.TemporaryDirectory() as directory, running_postgres() as uri:
        yield {"SQLite": f"sqlite:///{directory}/catalog.db", "PostgreSQL": uri}


def cases(small: bool) -> Iterator[Scaled]:
    """Each operation at each number of tables."""
    sizes, rounds = ((1000, 3000), 3) if small else ((1000, 100_000, 1_000_000), 20)
    for size in sizes:
        with databases() as uris, tempfile.TemporaryDirectory() as warehouse:
            for kind, uri in uris.items():
                yield from _measured(kind, uri, warehouse, size, rounds)


def _measured(kind: str, uri: str, warehouse: str, size: int, rounds: int) -> Iterator[Scaled]:
    with bergline.connect(uri, warehouse=warehouse, create=True) as lake:
        store = sql_store_of(lake.catalog)
        fill(store, size)
        lake.create_table(REAL, SCHEMA)
        peer = SqlCatalog("lake", uri=uri.replace("postgresql://", "postgresql+psycopg://"), warehouse=warehouse)
        compared = theirs(peer)
        for case, run in ours(lake, store).items():
            run()
            mine = 1000 * min(times(rounds, run))
            other = compared.get(case)
            found = None if other is None else 1000 * min(times(max(rounds // 4, 2), other))
            name = f"{kind}, {size:,} tables: {case}"
            yield Scaled(name, "ms", mine, found, "PyIceberg" if found is not None else "")
        peer.close()
