"""Purging: the table and all its files are gone, or nothing is."""

import json
from itertools import product
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import msgspec
import pytest

from bergline import Lake, Table
from bergline.catalog.catalog import DroppedTable
from bergline.catalog.identifiers import TableName, parse_table_name
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.table_locations import FILES_ELSEWHERE, FORMER_DIRECTORIES
from bergline.errors import CommitUnknownError, FormatError, NotFoundError, RefusedError, UnavailableError
from bergline.io.schemes import SchemeFileIO
from bergline.testing.faults import Fault, FaultyStore
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

NO_SNAPSHOTS = {"current-snapshot-id": -1, "snapshot-log": []}


@pytest.fixture
def busy(orders: Table) -> Table:
    """A table with a history: two snapshots on main, one on a branch, one replaced."""
    orders.append(order_rows(1)).append(order_rows(2))
    orders.append(order_rows(3), branch="staging")
    return orders.overwrite(order_rows(4))


def files(table: Table) -> set[Path]:
    return {p for p in Path(table.location.removeprefix("file://")).rglob("*") if p.is_file()}


def through(lake: Lake, *faults: Fault) -> Lake:
    catalog = lake.catalog
    assert isinstance(catalog, PointerCatalog)
    faulty = FaultyStore(catalog.store, *faults)
    return Lake(PointerCatalog(faulty, catalog.io, "file:///unused", sleep=lambda _: None), "lake")


def test_purged_table_leaves_no_file(lake: Lake, busy: Table) -> None:
    count = len(files(busy))
    result = lake.purge_table("db.orders")
    assert (result.deleted_files, result.failed) == (count, ())
    assert files(busy) == set()
    assert lake.list_tables("db") == []


def test_files_of_other_tables_and_files_that_are_not_the_tables_stay(lake: Lake, busy: Table) -> None:
    other = lake.create_table("db.items", ORDERS).append(order_rows(9))
    note = Path(busy.location.removeprefix("file://")) / "note.txt"
    note.write_text("mine")
    lake.purge_table("db.orders")
    assert files(busy) == {note}
    assert ids(other.refresh().scan().to_arrow()) == [9]


def test_table_that_may_share_its_files_is_not_purged(lake: Lake, busy: Table) -> None:
    busy.set_properties({"gc.enabled": "false"})
    before = files(busy)
    with pytest.raises(RefusedError, match=r"`gc\.enabled` is false"):
        lake.purge_table("db.orders")
    assert files(busy) == before
    assert lake.list_tables("db") == ["db.orders"]


@pytest.mark.parametrize("moved_on", [False, True])
def test_table_with_two_names_is_not_purged(lake: Lake, busy: Table, moved_on: bool) -> None:
    twin = lake.register_table("db.twin", busy.metadata_location)
    if moved_on:
        twin.append(order_rows(5))
        busy.append(order_rows(6))
    before = files(busy)
    with pytest.raises(RefusedError, match=r"cannot purge table `db\.orders`: `db\.twin` uses the same files"):
        lake.purge_table("db.orders")
    assert files(busy) == before


def test_table_whose_data_files_another_table_has_is_not_purged(lake: Lake, busy: Table) -> None:
    other = lake.create_table("db.other", ORDERS)
    other.append_files([planned.file for planned in busy.scan().plan().files])
    before = files(busy)
    with pytest.raises(RefusedError, match=r"cannot purge table `db\.orders`: `db\.other` uses the same files"):
        lake.purge_table("db.orders")
    assert files(busy) == before


def test_table_whose_log_names_the_file_of_a_view_is_purged_without_it(lake: Lake, busy: Table, tmp_path: Path) -> None:
    lake.create_view("db.v", "SELECT 1", ORDERS)
    pointer = lake.catalog.load_view(parse_table_name("db.v")).metadata_location
    metadata = json.loads(Path(busy.metadata_location.removeprefix("file://")).read_bytes())
    metadata["metadata-log"] = [metadata["metadata-log"][0] | {"metadata-file": pointer}]
    forged = tmp_path / "forged.metadata.json"
    forged.write_text(json.dumps(metadata | {"table-uuid": str(uuid4()), "snapshots": [], "refs": {}} | NO_SNAPSHOTS))
    lake.register_table("db.forged", str(forged))
    lake.purge_table("db.forged")
    assert Path(pointer.removeprefix("file://")).exists()


def test_metadata_files_that_the_log_has_forgotten_go_too(lake: Lake) -> None:
    few = {"write.metadata.previous-versions-max": "1", "write.metadata.compression-codec": "gzip"}
    table = lake.create_table("db.t", ORDERS, properties=few)
    for number in range(4):
        table.append(order_rows(number))
    directory = Path(table.location.removeprefix("file://")) / "metadata"
    other = json.dumps({"table-uuid": "a77e25f8-6a86-4dbb-8f16-b9b4d9c8bcd7"})
    kept = {"00000-other.metadata.json": other, "00001-broken.metadata.json": "{", "note.txt": "mine"}
    for name, text in kept.items():
        (directory / name).write_text(text)
    count = len(files(table))
    assert lake.purge_table("db.t").deleted_files == count - len(kept)
    assert {path.name for path in files(table)} == kept.keys()


def test_tables_with_one_directory_for_metadata_are_told_apart(lake: Lake, tmp_path: Path) -> None:
    shared = {"write.metadata.path": f"file://{tmp_path}/metadata"}
    first, second = (lake.create_table(f"db.{n}", ORDERS, properties=shared).append(order_rows(1)) for n in "ab")
    lake.purge_table("db.a")
    assert files(first) == set()
    assert ids(second.refresh().scan().to_arrow()) == [1]


def test_table_with_two_names_of_which_one_has_moved_elsewhere_is_not_purged(
    lake: Lake, busy: Table, tmp_path: Path
) -> None:
    twin = lake.register_table("db.twin", busy.metadata_location)
    twin.set_location(f"file://{tmp_path}/moved").append(order_rows(5))
    with pytest.raises(RefusedError, match=r"`db\.twin` uses the same files"):
        lake.purge_table("db.orders")
    assert ids(lake.load_table("db.twin").scan().to_arrow()) == [4, 5]


class CountingIO(SchemeFileIO):
    """Remembers what was read."""

    def __init__(self) -> None:
        super().__init__()
        self.read_files: list[str] = []

    def read(self, location: str, most: int | None = None) -> bytes:
        """Read, and remember."""
        self.read_files.append(location)
        return super().read(location, most)

    def open_input(self, location: str) -> BinaryIO:
        """Open, and remember."""
        self.read_files.append(location)
        return super().open_input(location)

    def manifests_read(self, table: Table) -> int:
        return sum(f.startswith(table.location) and f.endswith(".avro") for f in self.read_files)


def fresh_lake(lake: Lake) -> tuple[Lake, CountingIO]:
    """The same lake with nothing in memory."""
    io = CountingIO()
    return Lake(PointerCatalog(_store(lake), io, "file:///unused"), "lake"), io


def test_manifests_of_tables_elsewhere_are_not_read(lake: Lake, busy: Table) -> None:
    others = [lake.create_table(f"db.t{n}", ORDERS).append(order_rows(n)) for n in range(20)]
    inside = lake.create_table("db.inside", ORDERS, location=f"{busy.location}/inside").append(order_rows(1))
    sharing = lake.create_table("db.sharing", ORDERS)
    sharing.append_files([planned.file for planned in others[0].scan().plan().files])
    again, io = fresh_lake(lake)
    again.purge_table("db.orders")
    assert [io.manifests_read(other) for other in others] == [0] * 20
    assert io.manifests_read(inside) > 0
    assert io.manifests_read(sharing) > 0
    with pytest.raises(RefusedError, match=r"cannot purge table `db\.t0`: `db\.sharing` uses the same files"):
        fresh_lake(lake)[0].purge_table("db.t0")
    fresh_lake(lake)[0].purge_table("db.sharing")  # what it shares is not its own
    assert others[0].scan().to_arrow().num_rows == 1
    again, io = fresh_lake(lake)
    again.purge_table("db.t1", read_all_tables=True)
    assert all(io.manifests_read(other) for other in others)


def break_metadata(table: Table, how: str) -> None:
    """Have metadata that cannot be read: the metadata file, or the manifests."""
    files = [Path(table.metadata_location.removeprefix("file://"))]
    if how.startswith("manifest"):
        files = list(files[0].parent.glob("*.avro"))
    for file in files:
        file.unlink()
        if how.endswith("is a directory"):
            file.mkdir()
        elif how.endswith("is nonsense"):
            file.write_text("nonsense")


UNREADABLE = ("metadata is nonsense", "metadata is gone", "metadata is a directory", "manifests are gone")


@pytest.mark.parametrize("how", UNREADABLE)
def test_table_elsewhere_that_cannot_be_read_stops_a_purge_only_if_all_are_to_be_read(
    lake: Lake, busy: Table, how: str
) -> None:
    break_metadata(lake.create_table("db.items", ORDERS).append(order_rows(1)), how)
    before = files(busy)
    with pytest.raises(RefusedError, match=r"cannot purge table `db\.orders`: what `db\.items` uses cannot be read"):
        fresh_lake(lake)[0].purge_table("db.orders", read_all_tables=True)
    assert files(busy) == before
    fresh_lake(lake)[0].purge_table("db.orders")
    assert files(busy) == set()


@pytest.mark.parametrize(
    ("where", "how"), [*product(("inside", "around"), UNREADABLE), ("it has its files", "manifests are gone")]
)
def test_table_that_cannot_be_read_and_may_have_the_same_files_stops_a_purge(
    lake: Lake, busy: Table, where: str, how: str
) -> None:
    inner, outer = f"{busy.location}/data/items", busy.location.rpartition("/")[0]
    other = lake.create_table("db.items", ORDERS, location={"inside": inner, "around": outer}.get(where))
    other.append(order_rows(1))
    if where == "it has its files":
        other.append_files([planned.file for planned in busy.scan().plan().files])
    break_metadata(other, how)
    before = files(busy)
    again, _ = fresh_lake(lake)
    with pytest.raises(RefusedError, match=r"what `db\.items` uses cannot be read") as refused:
        again.purge_table("db.orders")
    way_out = "make `db.items` readable again, or drop it without purging it if it is no longer needed"
    assert refused.value.hints == (way_out,)
    assert files(busy) == before


@pytest.mark.parametrize("kind", ["write.data.path", "location"])
def test_table_remembers_the_place_that_it_left(lake: Lake, tmp_path: Path, kind: str) -> None:
    table = lake.create_table("db.t", ORDERS, properties={"write.data.path": f"{tmp_path}/first"})
    table.set_properties({"write.data.path": f"{tmp_path}/second"})
    assert FORMER_DIRECTORIES not in table.metadata.properties  # it had no files there
    table.append(order_rows(1)).set_properties({"a": "b"})
    assert FORMER_DIRECTORIES not in table.metadata.properties
    left = table.location if kind == "location" else f"file://{tmp_path}/second"
    if kind == "location":
        table.set_location(f"{tmp_path}/third")
    else:
        table.set_properties(remove=["write.data.path"])
    assert json.loads(table.metadata.properties[FORMER_DIRECTORIES]) == [left]
    assert FILES_ELSEWHERE not in table.metadata.properties


def test_place_that_means_nothing_stops_neither_commits_nor_purges(lake: Lake, busy: Table, tmp_path: Path) -> None:
    other = lake.create_table("db.other", ORDERS).append(order_rows(1))
    metadata = json.loads(Path(other.metadata_location.removeprefix("file://")).read_bytes())
    metadata["properties"]["write.object-storage.path"] = "file://host/x"
    lake.drop_table("db.other")
    file = Path(other.metadata_location.removeprefix("file://")).with_name("00009-own.metadata.json")
    file.write_text(json.dumps(metadata))
    other = lake.register_table("db.other", f"file://{file}").append(order_rows(2))
    lake.purge_table("db.orders")
    assert files(busy) == set()
    assert ids(other.refresh().scan().to_arrow()) == [1, 2]


def test_files_in_the_places_of_a_table_leave_no_mark(lake: Lake, busy: Table) -> None:
    own = lake.create_table("db.own", ORDERS).append(order_rows(1))
    copy = Path(own.location.removeprefix("file://")) / "data" / "copy.parquet"
    file = next(iter(own.scan().plan().files)).file
    copy.write_bytes(Path(file.file_path.removeprefix("file://")).read_bytes())
    own.append_files([msgspec.structs.replace(file, file_path=str(copy))])
    assert FILES_ELSEWHERE not in own.metadata.properties
    own.append_files([planned.file for planned in busy.scan().plan().files])
    assert own.metadata.properties[FILES_ELSEWHERE] == "true"


@pytest.mark.parametrize("gone", ["zz", "db.items"])
def test_what_others_drop_meanwhile_does_not_stop_a_purge(
    lake: Lake, busy: Table, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create_namespace("zz")
    lake.create_table("db.items", ORDERS)
    list_namespaces, list_tables = lake.catalog.list_namespaces, lake.catalog.list_tables

    def namespaces(below: tuple[str, ...] = ()) -> object:
        found = list_namespaces(below)
        if gone == "zz" and lake.namespace_exists("zz"):
            lake.drop_namespace("zz")
        return found

    def tables(namespace: tuple[str, ...]) -> object:
        found = list_tables(namespace)
        if gone == "db.items" and namespace == ("db",):
            lake.drop_table(gone)
        return found

    monkeypatch.setattr(lake.catalog, "list_namespaces", namespaces)
    monkeypatch.setattr(lake.catalog, "list_tables", tables)
    lake.purge_table("db.orders")
    assert files(busy) == set()


@pytest.mark.parametrize("broken", ["*-m0.avro", "snap-*.avro"])
@pytest.mark.parametrize("how", ["missing", "corrupt"])
def test_nothing_is_deleted_when_anything_cannot_be_read(lake: Lake, orders: Table, broken: str, how: str) -> None:
    orders.append(order_rows(1)).scan().to_arrow()  # has read all of it, which must not count
    victim = next(Path(orders.location.removeprefix("file://")).rglob(broken))
    victim.unlink() if how == "missing" else victim.write_bytes(b"nonsense")
    before = files(orders)
    with pytest.raises((NotFoundError, FormatError)):
        lake.purge_table("db.orders")
    assert files(orders) == before
    assert lake.list_tables("db") == ["db.orders"]


def _store(lake: Lake) -> FaultyStore:
    assert isinstance(lake.catalog, PointerCatalog)
    return FaultyStore(lake.catalog.store)


def test_purge_whose_answer_is_lost_is_done_when_the_table_is_gone(lake: Lake, busy: Table) -> None:
    assert through(lake, Fault.LANDS_BUT_ANSWER_IS_LOST).purge_table("db.orders").failed == ()
    assert files(busy) == set()


@pytest.mark.parametrize("fault", [Fault.STORE_GOES_AWAY, Fault.STORE_WENT_AWAY])
def test_nothing_is_deleted_while_it_is_unknown_whether_the_table_is_gone(
    lake: Lake, busy: Table, fault: Fault
) -> None:
    before = files(busy)
    with pytest.raises(CommitUnknownError, match=r"cannot find out whether table `db\.orders` was dropped"):
        through(lake, fault).purge_table("db.orders")
    assert files(busy) == before


@pytest.mark.parametrize("rival", ["renames", "drops into the trash"])
def test_table_that_another_took_away_while_the_answer_was_lost_keeps_its_files(
    lake: Lake, busy: Table, monkeypatch: pytest.MonkeyPatch, rival: str
) -> None:
    before = files(busy)
    purging = through(lake)
    pointer = busy.metadata_location

    def taken_away(*_: object) -> bool:
        if rival == "renames":
            lake.rename_table("db.orders", "db.kept")
        else:
            lake.drop_table("db.orders")
            dropped = DroppedTable(busy.name, pointer, 1, 2, "ann", purges_files=False)
            monkeypatch.setattr(purging.catalog, "dropped_tables", lambda: [dropped])
        raise OSError("no answer")

    monkeypatch.setattr(purging.catalog.store, "drop", taken_away)  # type: ignore[attr-defined]
    with pytest.raises((RefusedError, CommitUnknownError), match=r"its files stay|dropped or renamed: it is gone"):
        purging.purge_table("db.orders")
    assert files(busy) == before


def test_nothing_is_deleted_while_the_catalog_still_names_the_table(lake: Lake, busy: Table) -> None:
    before = files(busy)
    lying = through(lake)
    store = lying.catalog.store  # type: ignore[attr-defined]
    store.drop = lambda *_: True
    with pytest.raises(CommitUnknownError, match=r"`db\.orders` should have been dropped.* still has it"):
        lying.purge_table("db.orders")
    assert files(busy) == before
    assert ids(lake.load_table("db.orders").scan().to_arrow()) == [4]


def test_nothing_is_deleted_while_the_catalog_cannot_say_that_the_table_is_gone(lake: Lake, busy: Table) -> None:
    before = files(busy)
    going = through(lake)
    store = going.catalog.store  # type: ignore[attr-defined]
    drop = store.drop

    def drop_and_go(*arguments: str) -> bool:
        dropped = drop(*arguments)
        store._gone = True
        return bool(dropped)

    store.drop = drop_and_go
    with pytest.raises(CommitUnknownError, match=r"`db\.orders` was dropped, but .*files stay"):
        going.purge_table("db.orders")
    assert files(busy) == before


def test_new_table_of_the_same_name_does_not_stop_a_purge(lake: Lake, busy: Table) -> None:
    purging = through(lake)
    store = purging.catalog.store  # type: ignore[attr-defined]
    drop = store.drop

    def drop_and_create(*arguments: str) -> bool:
        dropped = drop(*arguments)
        lake.create_table("db.orders", ORDERS).append(order_rows(9))
        return bool(dropped)

    store.drop = drop_and_create
    purging.purge_table("db.orders")
    assert ids(lake.load_table("db.orders").scan().to_arrow()) == [9]


def test_drop_that_never_arrived_is_sent_again(lake: Lake, busy: Table) -> None:
    through(lake, Fault.NEVER_ARRIVES).purge_table("db.orders")
    assert files(busy) == set()


def test_locked_catalog_purges_nothing(lake: Lake, busy: Table) -> None:
    before = files(busy)
    with pytest.raises(UnavailableError):
        through(lake, Fault.REFUSED_AS_LOCKED).purge_table("db.orders")
    assert files(busy) == before
    assert lake.list_tables("db") == ["db.orders"]


def test_commit_that_comes_in_between_is_purged_too(lake: Lake, busy: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    drop, came = PointerCatalog.drop_table, []

    def late(self: PointerCatalog, name: object, expected: str | None = None) -> None:
        if not came:
            came.append(busy.append(order_rows(7)))
        drop(self, name, expected)  # type: ignore[arg-type]

    monkeypatch.setattr(PointerCatalog, "drop_table", late)
    lake.purge_table("db.orders")
    assert files(busy) == set()


def test_place_that_a_table_had_for_one_transaction_alone_is_remembered(lake: Lake, tmp_path: Path) -> None:
    other = lake.create_table("db.other", ORDERS)
    with other.transaction() as changes:
        changes.set_properties({"write.data.path": f"file://{tmp_path}/elsewhere"})
        changes.append(order_rows(1))
        changes.set_properties(remove=["write.data.path"])
    assert json.loads(other.refresh().metadata.properties[FORMER_DIRECTORIES]) == [f"file://{tmp_path}/elsewhere"]


def test_file_behind_a_link_lies_where_the_link_leads(lake: Lake, busy: Table, tmp_path: Path) -> None:
    other = lake.create_table("db.other", ORDERS)
    (tmp_path / "away").mkdir()
    directory = Path(other.location.removeprefix("file://"))
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "data").symlink_to(tmp_path / "away")
    other.append(order_rows(1))
    assert other.metadata.properties[FILES_ELSEWHERE] == "true"


class SlowIO(SchemeFileIO):
    """Does not answer for files of one table."""

    slow = ""

    def read(self, location: str, most: int | None = None) -> bytes:
        """Read what is there."""
        if self.slow and self.slow in location:
            raise UnavailableError("try later")
        return super().read(location, most)


def test_table_that_does_not_answer_now_stops_a_purge(lake: Lake, busy: Table) -> None:
    other = lake.create_table("db.other", ORDERS).append(order_rows(1))
    catalog, io = lake.catalog, SlowIO()
    assert isinstance(catalog, PointerCatalog)
    slow = Lake(PointerCatalog(catalog.store, io, "file:///unused"), "lake")
    io.slow = other.location
    before = files(busy)
    with pytest.raises(UnavailableError, match="try later"):
        slow.purge_table("db.orders")
    assert files(busy) == before


def test_table_registered_under_another_name_while_it_is_dropped_keeps_its_files(lake: Lake, busy: Table) -> None:
    catalog = lake.catalog
    assert isinstance(catalog, PointerCatalog)

    class Renaming(PointerCatalog):
        def drop_table(self, name: TableName, expected: str | None = None) -> None:
            lake.register_table("db.kept", busy.metadata_location)
            super().drop_table(name, expected)

    racing = Lake(Renaming(catalog.store, catalog.io, "file:///unused"), "lake")
    with pytest.raises(RefusedError, match=r"is gone, and its files stay: .*`db\.kept` uses the same files"):
        racing.purge_table("db.orders")
    assert lake.load_table("db.kept").scan().to_arrow().num_rows
