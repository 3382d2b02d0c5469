"""What can go wrong around a catalog: one clear error each, and what was committed stays readable."""

import contextlib
import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa

import bergline
from bergline import Lake, Table
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.sql.sqlite import SqlitePointerStore
from bergline.errors import (
    BerglineError,
    CommitUnknownError,
    ConflictError,
    FormatError,
    InvalidInputError,
    MetadataChangedError,
    NotFoundError,
    RefusedError,
    StorageError,
    UnavailableError,
)
from bergline.io.schemes import SchemeFileIO
from bergline.table.commits.retry import Timing
from bergline.testing.faults import FaultyStore
from support.fixtures.competing_writers import rival_lake
from support.fixtures.damaged_tables import accept_metadata
from support.fixtures.disks import mounted, remount_read_only
from support.fixtures.rows import ORDERS, ids, order_rows
from support.proxies.postgres_proxy import PostgresProxy, postgres_proxy

LONG = "n" * 256
NO_WAIT = Timing(sleep=lambda _: None)


def local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def files(directory: Path) -> set[Path]:
    return {p for p in directory.rglob("*") if p.is_file() and not p.name.startswith("catalog.db")}


def home(lake: Lake) -> str:
    return lake.load_table("db.orders").location


def without_waits(lake: Lake) -> Lake:
    """The same lake, that neither waits between attempts nor while it finds out what happened."""
    catalog = lake.catalog
    assert isinstance(catalog, PointerCatalog)
    return Lake(
        PointerCatalog(catalog.store, catalog.io, "file:///unused", sleep=lambda _: None), "lake", timing=NO_WAIT
    )


# names over the layout's limits


@pytest.mark.parametrize(
    "call",
    [
        lambda lake: lake.create_table(f"db.{LONG}", ORDERS),
        lambda lake: lake.create_view(f"db.{LONG}", "SELECT 1", ORDERS),
        lambda lake: lake.create_namespace(LONG),
        lambda lake: lake.create_namespace(".".join(["n" * 64] * 4)),
        lambda lake: lake.rename_table("db.orders", f"db.{LONG}"),
        lambda lake: lake.register_table(f"db.{LONG}", lake.load_table("db.orders").metadata_location),
        lambda lake: lake.create_table("db.t", ORDERS, location="/".join([home(lake), *["d" * 99] * 10])),
        lambda lake: lake.create_namespace("x", {"k" * 256: "v"}),
        lambda lake: lake.update_namespace("db", {"k": "v" * 1001}),
        lambda lake: lake.create_namespace(("a.b",)),
    ],
)
def test_what_the_layout_cannot_hold_is_refused_at_once_and_leaves_nothing(
    lake: Lake, orders: Table, tmp_path: Path, call: Callable[[Lake], object]
) -> None:
    before = files(tmp_path)
    without_time, waits = rival_lake(lake)
    with pytest.raises((InvalidInputError, StorageError)):
        call(without_time)
    assert waits == []
    assert files(tmp_path) == before
    assert (lake.list_namespaces(), lake.list_tables("db")) == (["db"], ["db.orders"])


def test_catalog_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="up to 255 characters, found 256"):
        bergline.connect(f"sqlite:///{tmp_path}/c.db", name=LONG, create=True)


# a pointer to a file that is missing or corrupt


@pytest.mark.parametrize("how", ["missing", "corrupt", "empty", "not metadata"])
def test_table_whose_metadata_is_damaged_can_be_named_and_replaced_but_not_loaded(
    tmp_path: Path, lake: Lake, orders: Table, how: str
) -> None:
    first = orders.append(order_rows(1)).metadata_location
    pointer = local(orders.append(order_rows(2)).metadata_location)
    pointer.unlink()
    if how != "missing":
        pointer.write_bytes({"corrupt": b"\x00\xff{", "empty": b"", "not metadata": b"[]"}[how])
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db") as again:
        for call in (
            lambda: again.load_table("db.orders"),
            lambda: again.purge_table("db.orders"),
        ):
            with pytest.raises((NotFoundError, MetadataChangedError), match=pointer.name):
                call()
        assert again.table_exists("db.orders")
        assert again.list_tables("db") == ["db.orders"]
        if how != "missing":
            accept_metadata(again, f"file://{pointer}")
        again.rename_table("db.orders", "db.damaged")
        assert again.unregister_table("db.damaged") == f"file://{pointer}"
        repaired = again.register_table("db.orders", first)
        assert ids(repaired.append(order_rows(3)).scan().to_arrow()) == [1, 3]


def test_table_with_a_damaged_pointer_can_be_dropped_once_it_is_accepted(tmp_path: Path, orders: Table) -> None:
    local(orders.metadata_location).write_bytes(b"nonsense")
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db") as again:
        with pytest.raises(MetadataChangedError):
            again.drop_table("db.orders")
        accept_metadata(again, orders.metadata_location)
        again.drop_table("db.orders")
        assert again.list_tables("db") == []


def test_row_without_a_pointer_says_so(tmp_path: Path, lake: Lake, orders: Table) -> None:
    engine = sa.create_engine(f"sqlite:///{tmp_path}/catalog.db", poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE iceberg_tables SET metadata_location = NULL"))
    with pytest.raises(FormatError, match=r"expected a metadata location for `db\.orders`, found none"):
        lake.load_table("db.orders")
    assert lake.list_tables("db") == ["db.orders"]


def test_damaged_view_can_be_named_and_dropped(tmp_path: Path, lake: Lake) -> None:
    view = lake.create_view("db.v", "SELECT 1", ORDERS)
    local(view.metadata_location).unlink()
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db") as again:
        with pytest.raises(NotFoundError, match=r"view `db\.v` points to .*, which does not exist"):
            again.load_view("db.v")
        assert again.view_exists("db.v")
        again.drop_view("db.v")
        assert again.list_views("db") == []


# a table dropped or re-created under a writer


@pytest.mark.parametrize("again", [False, True])
def test_table_dropped_under_a_writer_gets_no_commit(lake: Lake, orders: Table, again: bool) -> None:
    orders.append(order_rows(1))
    catalog = lake.catalog
    assert isinstance(catalog, PointerCatalog)
    made: list[Table] = []

    def drop_once() -> None:
        if not made:
            lake.drop_table("db.orders")
            made.append(lake.create_table("db.orders", ORDERS).append(order_rows(7)) if again else orders)

    store = FaultyStore(catalog.store, before_swap=drop_once)
    writer = Lake(PointerCatalog(store, catalog.io, "file:///unused", sleep=lambda _: None), "lake", timing=NO_WAIT)
    table = writer.load_table("db.orders")
    error = ConflictError if again else NotFoundError
    with pytest.raises(error, match=r"dropped and re-created|no table `db\.orders`"):
        table.append(order_rows(2))
    if again:
        assert ids(lake.load_table("db.orders").scan().to_arrow()) == [7]


# a disk that is read-only or full


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "disk"
    directory.mkdir()
    with mounted(directory, "2m"):
        yield directory


def test_read_only_warehouse_takes_no_commit_and_is_read(tmp_path: Path, disk: Path) -> None:
    with bergline.connect(f"sqlite:///{tmp_path}/c.db", warehouse=disk, create=True) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", ORDERS).append(order_rows(1))
        remount_read_only(disk)
        for change in (
            lambda: table.append(order_rows(2)),
            lambda: table.set_properties({"a": "1"}),
            lambda: lake.create_table("db.u", ORDERS),
        ):
            with pytest.raises(StorageError, match="Read-only file system"):
                change()
        assert lake.list_tables("db") == ["db.t"]
        assert ids(lake.load_table("db.t").scan().to_arrow()) == [1]


def test_lake_on_a_read_only_disk_is_read(disk: Path) -> None:
    with bergline.connect(f"sqlite:///{disk}/c.db", create=True) as lake:
        lake.create_namespace("db")
        lake.create_table("db.t", ORDERS).append(order_rows(1))
    remount_read_only(disk)
    with bergline.connect(f"sqlite:///{disk}/c.db", create=True) as lake:
        assert ids(lake.load_table("db.t").scan().to_arrow()) == [1]
        with pytest.raises(RefusedError, match="it is read-only"):
            lake.drop_table("db.t")
        with pytest.raises(BerglineError, match=r"[Rr]ead-only"):
            lake.load_table("db.t").append(order_rows(2))


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as stream, contextlib.suppress(OSError):
        while True:
            stream.write(bytes(1024))


def test_full_warehouse_takes_no_commit_and_leaves_no_parts(tmp_path: Path, disk: Path) -> None:
    with bergline.connect(f"sqlite:///{tmp_path}/c.db", warehouse=disk, create=True) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", ORDERS).append(order_rows(1))
        before = files(disk)
        filler = disk / "filler"
        fill(filler)
        with pytest.raises(StorageError, match="No space left on device"):
            table.append(order_rows(2))
        assert files(disk) == before | {filler}
        filler.unlink()
        assert ids(table.append(order_rows(3)).scan().to_arrow()) == [1, 3]


def test_no_room_for_the_metadata_file_is_one_clear_error(
    lake: Lake, orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.append(order_rows(1))
    before = files(local(orders.location))

    def full(_stream: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("bergline.io.local._sync", full)
        for change in (lambda: orders.append(order_rows(2)), lambda: orders.set_properties({"a": "1"})):
            with pytest.raises(StorageError, match="No space left on device"):
                change()
    assert files(local(orders.location)) == before
    assert ids(orders.append(order_rows(3)).scan().to_arrow()) == [1, 3]


def test_catalog_database_that_cannot_grow_takes_no_commit(tmp_path: Path) -> None:
    store = SqlitePointerStore(f"{tmp_path}/c.db")
    lake = without_waits(Lake(PointerCatalog(store, SchemeFileIO(), f"file://{tmp_path}/wh"), "lake"))
    lake.create_namespace("db", {str(n): "x" * 1000 for n in range(20)})
    table = lake.create_table("db.t", ORDERS, location=f"{tmp_path}/wh/t").append(order_rows(1))
    sa.event.listen(
        store.database.engine, "checkout", lambda c, *_: c.execute("PRAGMA max_page_count=1") and None
    )  # no fewer than there are

    def grow() -> None:
        for number in range(100):
            lake.update_namespace("db", {f"more{number}": "x" * 1000})

    with pytest.raises(UnavailableError, match="the disk is full"):
        grow()
    assert ids(lake.load_table("db.t").scan().to_arrow()) == [1]
    assert table.refresh().metadata_location
    store.close()


# a database that goes away


@pytest.fixture
def behind_a_proxy(postgres: str, tmp_path: Path) -> Iterator[tuple[PostgresProxy, Lake]]:
    with (
        postgres_proxy(postgres) as (proxy, uri),
        bergline.connect(uri, warehouse=tmp_path, name=uuid4().hex, create=True) as lake,
    ):
        lake.create_namespace("db")
        lake.create_table("db.t", ORDERS).append(order_rows(1))
        yield proxy, without_waits(lake)


def cut_once(proxy: PostgresProxy, where: str, *, then_shut: bool = False) -> None:
    def cut(data: bytes) -> str | None:
        if b"COMMIT" not in data:
            return None
        proxy.cut = lambda _: None
        proxy.is_shut = then_shut
        return where

    proxy.cut = cut


@pytest.mark.parametrize("where", ["before", "after"])
def test_connection_lost_at_the_commit_is_found_out_and_done_once(
    behind_a_proxy: tuple[PostgresProxy, Lake], where: str
) -> None:
    proxy, lake = behind_a_proxy
    table = lake.load_table("db.t")
    cut_once(proxy, where)
    table.append(order_rows(2))
    assert ids(lake.load_table("db.t").scan().to_arrow()) == [1, 2]
    assert len(table.metadata.snapshots) == 2
    cut_once(proxy, where)
    lake.rename_table("db.t", "db.u")
    cut_once(proxy, where)
    lake.create_table("db.v", ORDERS, location=f"{table.location}-v")
    assert lake.list_tables("db") == ["db.u", "db.v"]
    cut_once(proxy, where)
    lake.drop_table("db.v")
    assert lake.list_tables("db") == ["db.u"]


@pytest.mark.parametrize("where", ["before", "after"])
def test_database_that_stays_away_leaves_the_commit_unknown_and_every_file(
    behind_a_proxy: tuple[PostgresProxy, Lake], where: str
) -> None:
    proxy, lake = behind_a_proxy
    table = lake.load_table("db.t")
    before = files(local(table.location))
    cut_once(proxy, where, then_shut=True)
    with pytest.raises(CommitUnknownError) as caught:
        table.append(order_rows(2))
    assert len(files(local(table.location)) - before) == 4
    with pytest.raises(UnavailableError, match="did not answer"):
        lake.load_table("db.t")
    assert ids(table.scan().to_arrow()) == [1]
    proxy.is_shut = False
    now = lake.load_table("db.t")
    assert (now.metadata_location == caught.value.metadata_location) == (where == "after")
    assert ids(now.scan().to_arrow()) == ([1, 2] if where == "after" else [1])
    assert ids(now.append(order_rows(3)).scan().to_arrow())[-1] == 3


def test_database_that_is_away_before_the_commit_changes_nothing(behind_a_proxy: tuple[PostgresProxy, Lake]) -> None:
    proxy, lake = behind_a_proxy
    table = lake.load_table("db.t")
    before = files(local(table.location))

    def cut(data: bytes) -> str | None:
        proxy.is_shut = b"UPDATE" in data or proxy.is_shut
        return "before" if proxy.is_shut else None

    proxy.cut = cut
    with pytest.raises(UnavailableError, match=r"did not answer|refused a change"):
        table.append(order_rows(2))
    assert files(local(table.location)) == before
    proxy.cut, proxy.is_shut = lambda _: None, False
    assert ids(table.append(order_rows(2)).scan().to_arrow()) == [1, 2]
