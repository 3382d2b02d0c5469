"""Directories of tables that were there before are reserved in the background."""

import threading

import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.security_layout import RESERVED_DIRECTORIES
from bergline.server.reservation_job import ReservationJob
from support.servers.asgi_client import SCHEMA, set_property
from support.servers.granted_server import GrantedServer


def reserved(granted: GrantedServer) -> list[tuple[str, str]]:
    """Whose directories, and where in the warehouse."""
    home, rows = granted.context.settings.warehouse, RESERVED_DIRECTORIES.c
    query = sa.select(rows.kind, rows.name, rows.directory).order_by(rows.directory)
    with granted.context.records.database.reading() as connection:
        return [(f"{row[0]} {row[1]}", row[2].removeprefix(f"{home}/")) for row in connection.execute(query)]


def test_tables_and_views_without_a_reservation_get_one(granted: GrantedServer) -> None:
    context = granted.context
    home = context.settings.warehouse
    moved = granted.commit("root", set_property("write.data.path", f"{home}/far"))
    assert moved.status == 200
    version = {"version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {}, "default-namespace": ["db"]}
    version |= {"representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}]}
    view = {"name": "v", "schema": SCHEMA, "view-version": version, "properties": {}}
    assert granted("root", "POST", "/v1/namespaces/db/views", view).status == 200
    expected = [("table orders", "db/orders"), ("view v", "db/v"), ("table orders", "far")]
    assert reserved(granted) == expected
    with context.records.database.changing() as connection:
        connection.execute(sa.delete(RESERVED_DIRECTORIES))
    assert context.store.create(TableName(("db",), "unreadable"), f"{home}/db/gone/metadata/1.metadata.json")
    job = ReservationJob(context)
    assert job.run_once() == 2
    assert reserved(granted) == expected
    assert job.run_once() == 0


def test_job_ends(granted: GrantedServer) -> None:
    job = ReservationJob(granted.context)
    before = threading.active_count()
    job.start()
    job.stop()
    assert threading.active_count() == before
