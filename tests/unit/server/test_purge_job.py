"""The purge of tables whose time in the trash is over."""

import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import bergline
from bergline import Lake, Table
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.trash.dropped_tables import ClaimedPurge
from bergline.errors import ConflictError, RefusedError, StorageError
from bergline.governance.grants.grant import make_grants
from bergline.governance.grants.store import SqlGrants
from bergline.server.context.context import ServerContext
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from bergline.server.purge_job import PurgeJob
from support.fixtures.catalog_files import new_catalog_uri
from support.fixtures.rows import ORDERS, order_rows
from support.servers.asgi_client import AsgiClient

HOUR_MS = 3_600_000
LAST_STAGE = 3  # after data files, manifests, and manifest lists: the metadata files
PATH = "/v1/namespaces/db/tables/orders"


class Clock:
    """A clock that is set by hand."""

    def __init__(self, start: int) -> None:
        self.now = start

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def context(tmp_path: Path) -> Iterator[ServerContext]:
    """A server that keeps dropped tables for an hour."""
    opened = open_server(new_catalog_uri(tmp_path / "lake/catalog.db"), limits=ServerSettings(drop_retention_s=3600))
    yield opened
    opened.catalog.close()


@pytest.fixture
def lake(context: ServerContext, tmp_path: Path) -> Iterator[Lake]:
    """The same catalog without the server."""
    with bergline.connect(f"sqlite:///{tmp_path}/lake/catalog.db") as opened:
        opened.create_namespace("db")
        yield opened


@pytest.fixture
def orders(lake: Lake) -> Table:
    """A table with two snapshots and a tag."""
    table = lake.create_table("db.orders", ORDERS)
    table.append(order_rows(1, 2))
    table.refs.create_tag("v1")
    table.append(order_rows(3))
    return table


def dropped(client: AsgiClient, context: ServerContext, *, purge: bool = True) -> Clock:
    """Drop the table; a clock that shows the end of its time."""
    assert client("DELETE", PATH, query={"purgeRequested": str(purge).lower()}).status == 204
    return Clock(context.catalog.dropped_tables()[0].keep_until_ms)


def files(table: Table) -> list[str]:
    return table.io.list(table.location)


def test_files_go_when_the_time_is_over_and_not_before(
    client: AsgiClient, context: ServerContext, orders: Table
) -> None:
    before = len(files(orders))
    clock = dropped(client, context)
    job = PurgeJob(context, clock)
    clock.now -= 1
    assert not job.run_once()
    assert len(files(orders)) == before
    clock.now += 1
    assert job.run_once()
    assert files(orders) == []
    assert context.catalog.dropped_tables() == []
    assert not job.run_once()


def test_files_of_a_table_that_was_only_dropped_stay(client: AsgiClient, context: ServerContext, orders: Table) -> None:
    before = files(orders)
    clock = dropped(client, context, purge=False)
    assert PurgeJob(context, clock).run_once()
    assert files(orders) == before
    assert context.catalog.dropped_tables() == []


def test_table_that_came_back_keeps_its_files(
    client: AsgiClient, context: ServerContext, lake: Lake, orders: Table
) -> None:
    clock = dropped(client, context)
    assert lake.undrop_table("db.orders").scan().to_arrow().num_rows == 3
    assert not PurgeJob(context, clock).run_once()


def test_table_that_comes_back_while_its_purge_is_planned_keeps_its_files(
    client: AsgiClient, context: ServerContext, lake: Lake, orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = dropped(client, context)
    trash = context.store.table_trash
    begin = trash.begin

    def restored_first(claim: ClaimedPurge) -> bool:
        lake.undrop_table("db.orders")
        return begin(claim)

    monkeypatch.setattr(trash, "begin", restored_first)
    assert PurgeJob(context, clock).run_once()
    assert lake.load_table("db.orders").scan().to_arrow().num_rows == 3


def test_new_table_of_the_same_name_is_left_alone(
    client: AsgiClient, context: ServerContext, lake: Lake, orders: Table
) -> None:
    clock = dropped(client, context)
    new = lake.create_table("db.orders", ORDERS)
    new.append(order_rows(7))
    assert PurgeJob(context, clock).run_once()
    assert files(orders) == []
    assert lake.load_table("db.orders").scan().to_arrow().num_rows == 1


def test_table_that_another_name_leads_to_is_not_purged_and_says_why(
    client: AsgiClient, context: ServerContext, lake: Lake, orders: Table
) -> None:
    clock = dropped(client, context)
    lake.register_table("db.copy", context.catalog.dropped_tables()[0].metadata_location)
    assert PurgeJob(context, clock).run_once()
    assert lake.load_table("db.copy").scan().to_arrow().num_rows == 3
    (kept,) = context.catalog.dropped_tables()
    assert "`db.copy` uses the same files" in (kept.problem or "")
    assert not kept.purge_begun
    assert not PurgeJob(context, clock).run_once()
    lake.unregister_table("db.copy")
    clock.now += HOUR_MS
    assert PurgeJob(context, clock).run_once()
    assert files(orders) == []


def test_bin_of_a_server_with_grants_does_not_name_the_table_that_shares_files(
    client: AsgiClient, context: ServerContext, lake: Lake, orders: Table, caplog: pytest.LogCaptureFixture
) -> None:
    clock = dropped(client, context)
    lake.register_table("db.copy", context.catalog.dropped_tables()[0].metadata_location)
    records = context.records
    SqlGrants(records.database, records.catalog_name).grant(make_grants("administer", "catalog", "root"))
    assert PurgeJob(context, clock).run_once()
    (kept,) = context.catalog.dropped_tables()
    assert kept.problem == "cannot purge table `db.orders`: another table uses the same files"
    assert "`db.copy` uses the same files" in caplog.text


@pytest.mark.parametrize("cut", range(4))
def test_purge_that_ended_half_way_is_finished_by_another_server(
    client: AsgiClient, context: ServerContext, orders: Table, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    clock = dropped(client, context)
    delete, calls = context.catalog.io.delete, itertools.count()

    def cut_off(_: object, locations: Sequence[str]) -> list[str]:
        if next(calls) < cut:
            return delete(locations)
        delete(locations[:1])
        raise KeyboardInterrupt  # the process ends here

    monkeypatch.setattr(type(context.catalog.io), "delete", cut_off)
    with pytest.raises(KeyboardInterrupt):
        PurgeJob(context, clock).run_once()
    monkeypatch.undo()
    assert not PurgeJob(context, clock).run_once()  # the other one may still be alive
    if cut < LAST_STAGE:
        with pytest.raises(ConflictError, match="being deleted"):
            context.catalog.undrop_table(TableName(("db",), "orders"))
    clock.now += HOUR_MS
    assert PurgeJob(context, clock).run_once()
    assert files(orders) == []
    assert context.catalog.dropped_tables() == []


def test_files_that_storage_does_not_delete_are_tried_again(
    client: AsgiClient, context: ServerContext, orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = dropped(client, context)

    def refuse(_: object, locations: Sequence[str]) -> list[str]:
        raise StorageError("disk says no")

    monkeypatch.setattr(type(context.catalog.io), "delete", refuse)
    assert PurgeJob(context, clock).run_once()
    assert "could not be deleted" in (context.catalog.dropped_tables()[0].problem or "")
    monkeypatch.undo()
    clock.now += HOUR_MS
    assert PurgeJob(context, clock).run_once()
    assert files(orders) == []


def test_orphan_sweep_of_a_table_in_the_same_place_leaves_a_dropped_table_alone(
    client: AsgiClient, context: ServerContext, lake: Lake, orders: Table
) -> None:
    dropped(client, context)
    beside = lake.create_table("db.beside", ORDERS, properties={"write.data.path": orders.location})
    with pytest.raises(RefusedError, match=r"`db\.orders` has files"):
        beside.plan_orphans()


def test_background_thread_purges_and_stops(client: AsgiClient, context: ServerContext, orders: Table) -> None:
    clock = dropped(client, context)
    job = PurgeJob(context, clock)
    job.start()
    while context.catalog.dropped_tables():
        time.sleep(0.01)
    job.stop()
    assert files(orders) == []
