"""Orphan files: old files that nothing names go, and not one that anything needs."""

import contextlib
import datetime as dt
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import BerglineError, ConflictError, FormatError, InvalidInputError, NotFoundError, RefusedError
from bergline.format.manifest.manifest import DataFile
from bergline.format.metadata.table_metadata import PartitionStatisticsFile, StatisticsFile
from bergline.io.locations import local_path
from bergline.io.memory import MemoryFileIO
from bergline.io.schemes import SchemeFileIO
from bergline.scan.manifests import live_entries, load_manifest_list
from bergline.table.commits.retry import Timing
from bergline.table.orphans import sweep as orphan_sweep
from bergline.table.orphans.plan import OrphanPlan
from bergline.table.orphans.sweep import SweepResult
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

DAY_MS = 86_400_000
EVERYTHING: dict[str, Any] = {"older_than": dt.datetime(2200, 1, 1, tzinfo=dt.UTC), "allow_recent": True}
NAMES = (
    "data/x y.parquet",
    "data/100%.parquet",
    "data/a%20b",
    "data/a+b#c?d",
    "data/ünï/日本/😀",
    "metadata/stray.avro",
)


class Clock:
    """Time that goes on only when a test says so."""

    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def __call__(self) -> int:
        self.ms += 1
        return self.ms

    def pass_days(self, days: float) -> None:
        self.ms += int(days * DAY_MS)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lake(clock: Clock) -> Iterator[Lake]:
    """A lake in memory, whose files are as old as the clock says."""
    io = SchemeFileIO({"memory": MemoryFileIO(clock_ms=clock)})
    with Lake(
        PointerCatalog(MemoryPointerStore(), io, "memory://warehouse"), "lake", timing=Timing(clock_ms=clock)
    ) as opened:
        opened.create_namespace("db")
        yield opened


def stray(table: Table, name: str, data: bytes = b"stray") -> str:
    location = f"{table.location}/{name}"
    table.io.create(location, data)
    return location


def planned(table: Table, **arguments: object) -> list[str]:
    return [f.location for f in table.plan_orphans(**arguments).files]  # type: ignore[arg-type]


def a_data_file(table: Table) -> DataFile:
    assert table.current_snapshot
    manifests = load_manifest_list(table.io, table.current_snapshot)
    return next(live_entries(table.io, manifests, table.metadata)).data_file


def copied(table: Table, name: str) -> DataFile:
    """A data file that no snapshot has, fit to be added."""
    file = a_data_file(table)
    return msgspec.structs.replace(file, file_path=stray(table, name, table.io.read(file.file_path)))


def at(clock: Clock, days_ago: float) -> dt.datetime:
    return dt.datetime.fromtimestamp((clock.ms - days_ago * DAY_MS) / 1000, dt.UTC)


def test_old_strays_go_and_everything_else_stays(orders: Table, clock: Clock) -> None:
    orders.append(order_rows(0)).append(order_rows(1))
    strays = [stray(orders, name) for name in NAMES]
    clock.pass_days(4)
    young = stray(orders, "data/young.parquet")
    before = orders.io.list(orders.location)
    plan = orders.plan_orphans()
    assert [f.location for f in plan.files] == sorted(strays)
    assert (plan.size, plan.needed, plan.recent, plan.hidden) == (5 * len(NAMES), len(before) - len(NAMES) - 1, 1, 0)
    assert orders.io.list(orders.location) == before
    result = orders.sweep_orphans(plan)
    assert sorted(result.deleted) == sorted(strays)
    assert (result.deleted_bytes, result.failed, result.spared) == (5 * len(NAMES), (), ())
    assert orders.io.list(orders.location) == [f for f in before if f not in strays]
    assert orders.io.exists(young)
    assert ids(orders.scan().to_arrow()) == [0, 1]
    assert orders.plan_orphans().files == ()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_nothing_that_any_metadata_names_is_an_orphan(lake: Lake, clock: Clock, version: int) -> None:
    properties = {"format-version": str(version)} | ({"write.delete.mode": "merge-on-read"} if version > 1 else {})
    table = lake.create_table("db.t", ORDERS, partition_by=["region"], properties=properties)
    table.append(order_rows(*range(9))).append(order_rows(10, 11, 12, region="a b/c%"))
    table.refs.create_branch("dev")
    table.append(order_rows(20), branch="dev")
    table.refs.create_tag("pin")
    table.delete("id = 3")
    table.delete("id = 11")
    table.overwrite(order_rows(30))
    table.compact()
    table.rewrite_manifests()
    table.refs.drop_tag("pin")
    head = table.metadata.snapshots[-1].snapshot_id
    table.set_statistics(StatisticsFile(head, stray(table, "metadata/s.stats"), 5, 1, ()))
    table.set_statistics(PartitionStatisticsFile(head, stray(table, "data/p.parquet"), 5))
    table.refs.drop_branch("dev")  # its snapshot stays, and no ref leads to it
    clock.pass_days(10)
    plan = table.plan_orphans()
    assert plan.files == ()
    assert plan.needed == len(table.io.list(table.location)) > 20


def test_files_on_a_disk_with_awkward_names(tmp_path: Path) -> None:
    with bergline.connect(
        f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/ware house %20#ü", create=True
    ) as lake:
        lake.create_namespace("db")
        orders = lake.create_table("db.orders", ORDERS).append(order_rows(1))
        strays = [stray(orders, name) for name in NAMES]
        (tmp_path / "ware house %20#ü/db/orders/data" / os.fsdecode(b"\xff.parquet")).write_bytes(b"")
        plan = orders.plan_orphans(**EVERYTHING)
        assert plan.to_arrow().num_rows == len(str(plan).splitlines()[3:-1]) == len(NAMES) + 1
        assert set(strays) < {f.location for f in plan.files}
        assert len(orders.sweep_orphans(plan).deleted) == len(NAMES) + 1
        assert orders.plan_orphans(**EVERYTHING).files == ()
        assert ids(orders.scan().to_arrow()) == [1]


def test_links_on_a_disk_lead_to_the_same_file_and_are_no_orphans_themselves(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/real", create=True) as lake:
        lake.create_namespace("db")
        orders = lake.create_table("db.orders", ORDERS).append(order_rows(1))
        orders.set_location(f"{tmp_path}/link/db/orders")
        orders.append(order_rows(2))
        stray(orders, "data/stray")
        (tmp_path / "real/db/orders/data/to-stray").symlink_to("stray")
        assert planned(orders, **EVERYTHING) == [f"file://{tmp_path}/link/db/orders/data/stray"]
        assert len(orders.sweep_orphans(orders.plan_orphans(**EVERYTHING)).deleted) == 1
        assert ids(orders.scan().to_arrow()) == [1, 2]


def test_what_a_link_in_metadata_leads_to_is_needed(tmp_path: Path) -> None:
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db", create=True) as lake:
        lake.create_namespace("db")
        orders = lake.create_table("db.orders", ORDERS).append(order_rows(1))
        path = Path(a_data_file(orders).file_path.removeprefix("file://"))
        path.symlink_to(path.rename(path.with_name("elsewhere.parquet")))
        assert planned(orders, **EVERYTHING) == []


def test_the_catalog_is_no_orphan_by_whatever_link_it_was_opened(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with bergline.connect(f"sqlite:///{tmp_path}/link/catalog.db", warehouse=f"{tmp_path}/w", create=True) as lake:
        lake.create_namespace("db")
        orders = lake.create_table("db.orders", ORDERS, location=f"{tmp_path}/real")
        assert planned(orders, **EVERYTHING) == []


def test_a_place_with_two_spellings_is_looked_through_once(orders: Table, clock: Clock) -> None:
    orders.set_properties({"write.data.path": orders.location.replace("/db/", "/db//")})
    location = stray(orders, "data/stray")
    clock.pass_days(4)
    plan = orders.plan_orphans()
    assert (plan.locations, [f.location for f in plan.files]) == ((orders.location,), [location])


def test_a_file_moved_in_with_its_old_time_is_young(tmp_path: Path) -> None:
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db", create=True) as lake:
        lake.create_namespace("db")
        orders = lake.create_table("db.orders", ORDERS).append(order_rows(1))
        moved = tmp_path / "old.parquet"
        moved.write_bytes(b"")
        os.utime(moved, (1e9, 1e9))
        moved.rename(local_path(f"{orders.location}/data/moved.parquet"))
        assert (orders.plan_orphans().files, len(orders.plan_orphans(**EVERYTHING).files)) == ((), 1)


def test_what_a_killed_writer_left_unfinished_goes(tmp_path: Path) -> None:
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db", create=True) as lake:
        lake.create_namespace("db")
        orders = lake.create_table("db.orders", ORDERS).append(order_rows(1))
        killed = orders.io.create_output(f"{orders.location}/data/killed.parquet")
        killed.stream().write(b"half a file")
        killed.stream().flush()
        for name in ("data/.hidden.parquet", f"_other/.{'a' * 32}.tmp"):
            stray(orders, name)
        (found,) = planned(orders, **EVERYTHING)
        assert found.endswith(".killed.parquet")
        assert orders.plan_orphans().recent > 0
        killed.abort()


def test_a_former_data_path_can_be_swept(lake: Lake, clock: Clock) -> None:
    former = "memory://other/former"
    table = lake.create_table("db.t", ORDERS, partition_by=["region"], properties={"write.data.path": former})
    table.append(order_rows(1)).set_properties({"write.data.path": "memory://other/new"})
    table.io.create(f"{former}/stray", b"")
    clock.pass_days(4)
    assert planned(table) == []
    assert planned(table, location=former) == [f"{former}/stray"]
    for foreign in ("memory://other", f"{former}-x", "memory://other/x"):
        with pytest.raises(RefusedError, match="not a directory of this table"):
            table.plan_orphans(location=foreign)


def test_the_cutoff_is_three_days_and_less_than_one_is_refused(orders: Table, clock: Clock) -> None:
    location = stray(orders, "data/stray")
    clock.pass_days(2)
    assert planned(orders) == []
    assert planned(orders, older_than=at(clock, 1.5)) == [location]
    for days in (0.9, -1):
        with pytest.raises(RefusedError, match="of the last 24 hours") as caught:
            orders.plan_orphans(older_than=at(clock, days))
        assert "allow_recent" in caught.value.hints[1]
        assert planned(orders, older_than=at(clock, days), allow_recent=True)[-1:] == [location]
    clock.pass_days(1.1)
    assert planned(orders) == [location]


def test_hidden_names_stay_unless_a_partition_is_called_so(lake: Lake, clock: Clock) -> None:
    rows = pa.table({"_k": ["a", "b"], "n": [1, 2]})
    table = lake.create_table("db.t", rows.schema, partition_by=["_k"]).append(rows)
    hidden = [stray(table, name) for name in ("_tmp/1", "data/.1.tmp", "data/_k/1", "metadata/_x", ".a/b/c")]
    shown = [stray(table, name) for name in ("data/_k=a/1", "data/_k=zz/2")]
    clock.pass_days(4)
    plan = table.plan_orphans()
    assert [f.location for f in plan.files] == shown
    assert plan.hidden == len(hidden)


def test_custom_paths_are_looked_at_too(lake: Lake, clock: Clock) -> None:
    paths = {"write.data.path": "memory://other/data", "write.metadata.path": "memory://warehouse/db/t/_meta"}
    table = lake.create_table("db.t", ORDERS, properties=paths).append(order_rows(1))
    strays = [f"{place}/stray" for place in ("memory://other/data/x", paths["write.metadata.path"], table.location)]
    for location in strays:
        table.io.create(location, b"")
    clock.pass_days(4)
    plan = table.plan_orphans()
    assert plan.locations == (table.location, paths["write.data.path"], paths["write.metadata.path"])
    assert [f.location for f in plan.files] == sorted(strays)
    assert set(table.sweep_orphans(plan).deleted) == set(strays)
    assert ids(table.scan().to_arrow()) == [1]


def test_a_location_narrows_the_search_to_one_directory_of_the_table(orders: Table, clock: Clock) -> None:
    orders.append(order_rows(1))
    data, metadata = stray(orders, "data/stray"), stray(orders, "metadata/stray")
    clock.pass_days(4)
    assert planned(orders, location=f"{orders.location}/data/") == [data]
    assert planned(orders, location=f"{orders.location}/metadata") == [metadata]
    for foreign in ("memory://warehouse/db", "memory://warehouse", "memory://elsewhere/db/orders", "/tmp"):  # noqa: S108
        with pytest.raises(RefusedError, match="not a directory of this table"):
            orders.plan_orphans(location=foreign)


def test_an_old_location_can_be_swept_while_the_table_has_metadata_there(orders: Table, clock: Clock) -> None:
    old = orders.append(order_rows(1)).location
    stray(orders, "data/stray")
    orders.set_location("memory://warehouse/db/moved")
    orders.append(order_rows(2))
    clock.pass_days(4)
    assert planned(orders) == []
    assert planned(orders, location=old) == [f"{old}/data/stray"]


def test_garbage_collection_that_is_off_is_respected(orders: Table, clock: Clock) -> None:
    stray(orders, "data/stray")
    clock.pass_days(4)
    plan = orders.plan_orphans()
    orders.set_properties({"gc.enabled": "false"})
    for attempt in (orders.plan_orphans, lambda: orders.sweep_orphans(plan)):
        with pytest.raises(RefusedError, match=r"`gc\.enabled` is false"):
            attempt()
    assert orders.io.exists(f"{orders.location}/data/stray")


def nested_table(lake: Lake) -> None:
    lake.create_table("db.other", ORDERS, location="memory://warehouse/db/orders/data/inner")


def table_around(lake: Lake) -> None:
    lake.create_table("db.other", ORDERS, location="memory://warehouse/db")


def shared_data_path(lake: Lake) -> None:
    lake.create_table("db.other", ORDERS, properties={"write.data.path": "memory://warehouse/db/orders/data"})


def same_table_twice(lake: Lake) -> None:
    lake.register_table("db.other", lake.load_table("db.orders").metadata_location)


def moved_away(lake: Lake) -> None:
    """Its old files stay where it was, and its log and first snapshot still lead there."""
    other = lake.create_table("db.other", ORDERS, location="memory://warehouse/db/orders/data/old")
    other.append(order_rows(1)).set_location("memory://warehouse/db/new")
    other.append(order_rows(2))


def data_path_of_before(lake: Lake) -> None:
    """Only a manifest still leads to the data file there."""
    path = {"write.data.path": "memory://warehouse/db/orders/data/other"}
    other = lake.create_table("db.other", ORDERS, properties=path).append(order_rows(1))
    other.set_properties({"write.data.path": "memory://warehouse/db/other/data"})


def metadata_of_a_view(lake: Lake) -> None:
    path = {"write.metadata.path": "memory://warehouse/db/orders/views"}
    lake.create_view("db.other", "select 1", ORDERS, properties=path)


def nested_view(lake: Lake) -> None:
    location = "memory://warehouse/db/orders/views/v"
    lake.create_view("db.other", "select 1", ORDERS, location=location)


@pytest.mark.parametrize(
    "make_other",
    [
        nested_table,
        table_around,
        shared_data_path,
        data_path_of_before,
        same_table_twice,
        moved_away,
        nested_view,
        metadata_of_a_view,
    ],
)
def test_a_place_that_another_table_uses_is_refused(
    lake: Lake, orders: Table, clock: Clock, make_other: Callable[[Lake], None]
) -> None:
    orders.append(order_rows(1))
    stray(orders, "data/stray")
    clock.pass_days(4)
    plan = orders.plan_orphans()
    make_other(lake)
    clock.pass_days(4)
    for attempt in (orders.plan_orphans, lambda: orders.sweep_orphans(plan)):
        with pytest.raises(RefusedError, match=r"`db\.other` has files in memory://warehouse/db/orders too"):
            attempt()
    assert orders.io.exists(f"{orders.location}/data/stray")


def test_other_tables_beside_it_are_no_hindrance(lake: Lake, orders: Table, clock: Clock) -> None:
    lake.create_table("db.orders2", ORDERS).append(order_rows(1))
    location = stray(orders, "data/stray")
    clock.pass_days(4)
    assert planned(orders) == [location]
    assert planned(lake.load_table("db.orders2")) == []


def lose_metadata(lake: Lake, table: Table) -> None:
    table.io.delete([table.metadata_location])
    files = lake.catalog.tables.files  # type: ignore[attr-defined]
    for cached in list(files._cache):
        files._forget(cached)


def lose_manifests(_: Lake, table: Table) -> None:
    table.io.delete([table.metadata.snapshots[0].manifest_list or ""])


@pytest.mark.parametrize("lose", [lose_metadata, lose_manifests])
def test_another_table_elsewhere_that_cannot_be_read_is_no_hindrance_unless_all_are_to_be_read(
    lake: Lake, orders: Table, clock: Clock, lose: Callable[[Lake, Table], None]
) -> None:
    orders.append(order_rows(1))
    location = stray(orders, "data/stray")
    lose(lake, lake.create_table("db.other", ORDERS).append(order_rows(1)))
    clock.pass_days(4)
    assert orders.sweep_orphans(orders.plan_orphans()).deleted == (location,)
    with pytest.raises(RefusedError, match=r"what `db\.other` uses cannot be read"):
        orders.plan_orphans(read_all_tables=True)


@pytest.mark.parametrize(
    "place", ["memory://warehouse/db/orders/data/inner", "memory://warehouse/db", "memory://other/db/orders"]
)
def test_another_table_that_cannot_be_read_and_may_lie_there_stops_it(
    lake: Lake, orders: Table, clock: Clock, place: str
) -> None:
    lose_metadata(lake, lake.create_table("db.other", ORDERS, location=place).append(order_rows(1)))
    clock.pass_days(4)
    with pytest.raises(RefusedError, match=r"what `db\.other` uses cannot be read"):
        orders.plan_orphans()


@pytest.mark.parametrize(
    "properties",
    [
        {"bergline.files-elsewhere": "true"},
        {"gc.enabled": "false"},
        {"snapshot": "true"},
        {"migrated": "true"},
        {"write.location-provider.impl": "org.example.Own"},
    ],
)
def test_another_table_that_may_have_files_elsewhere_is_read(
    lake: Lake, orders: Table, clock: Clock, properties: dict[str, str]
) -> None:
    other = lake.create_table("db.other", ORDERS, properties=properties).append(order_rows(1))
    clock.pass_days(4)
    orders.plan_orphans()
    lose_manifests(lake, other)
    with pytest.raises(RefusedError, match=r"what `db\.other` uses cannot be read"):
        orders.plan_orphans()


def test_view_elsewhere_that_cannot_be_read_is_no_hindrance(lake: Lake, orders: Table, clock: Clock) -> None:
    lake.create_view("db.v", "select 1", ORDERS)
    lake.create_view("db.inner", "select 1", ORDERS, location="memory://warehouse/db/orders/v")
    clock.pass_days(4)
    for name, stops in (("v", False), ("inner", True)):
        lake.catalog.io.delete([lake.catalog.view_pointer(TableName(("db",), name))])  # type: ignore[attr-defined]
        lake.catalog.views.files._cache.clear()  # type: ignore[attr-defined]
        if stops:
            with pytest.raises(RefusedError, match=r"what `db\.inner` uses cannot be read"):
                orders.plan_orphans()
        else:
            lake.drop_view("db.inner")
            orders.plan_orphans()
            lake.create_view("db.inner", "select 1", ORDERS, location="memory://warehouse/db/orders/v2")


@pytest.mark.parametrize("damage", ["list gone", "list broken", "manifest gone", "manifest broken"])
def test_metadata_that_cannot_be_read_stops_everything(orders: Table, clock: Clock, damage: str) -> None:
    orders.append(order_rows(1)).append(order_rows(2))
    stray(orders, "data/stray")
    clock.pass_days(4)
    plan = orders.plan_orphans()
    first = orders.metadata.snapshots[0]
    location = first.manifest_list or ""
    if "manifest" in damage:
        location = load_manifest_list(orders.io, first)[0].manifest_path
    orders.io.delete([location])
    if "broken" in damage:
        orders.io.create(location, b"no manifest")
    before = orders.io.list(orders.location)
    for attempt in (orders.plan_orphans, lambda: orders.sweep_orphans(plan)):
        with pytest.raises((NotFoundError, FormatError), match=location):
            attempt()
        assert orders.io.list(orders.location) == before


def test_what_was_committed_since_the_plan_is_spared(lake: Lake, orders: Table, clock: Clock) -> None:
    orders.append(order_rows(1))
    file = copied(orders, "data/late.parquet")
    other = stray(orders, "data/stray")
    clock.pass_days(4)
    plan = orders.plan_orphans()
    assert [f.location for f in plan.files] == [file.file_path, other]
    lake.load_table("db.orders").row_delta(add=[file])
    result = orders.sweep_orphans(plan)
    assert (result.deleted, result.spared) == ((other,), (file.file_path,))
    assert ids(orders.refresh().scan().to_arrow()) == [1, 1]


def test_what_is_committed_during_the_sweep_is_spared(
    lake: Lake, orders: Table, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphan_sweep, "_FILES_AT_ONCE", 1)
    orders.append(order_rows(1))
    strays = [stray(orders, f"data/{n}") for n in range(3)]
    file = copied(orders, "data/late.parquet")
    clock.pass_days(4)

    def commit_once(done: int, total: int) -> None:
        seen.append((done, total))
        if done == 1:
            lake.load_table("db.orders").row_delta(add=[file])

    seen: list[tuple[int, int]] = []
    result = orders.sweep_orphans(orders.plan_orphans(), threads=1, progress=commit_once)
    assert set(result.deleted) == set(strays)
    assert result.spared == (file.file_path,)
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert ids(orders.refresh().scan().to_arrow()) == [1, 1]


def test_files_that_changed_since_the_plan_are_spared(orders: Table, clock: Clock) -> None:
    changed, gone, kept = (stray(orders, f"data/{n}") for n in range(3))
    clock.pass_days(4)
    plan = orders.plan_orphans()
    orders.io.delete([changed, gone])
    stray(orders, "data/0", b"other")
    result = orders.sweep_orphans(plan)
    assert (result.deleted, result.spared) == ((kept,), (changed,))
    again = orders.sweep_orphans(plan)  # what is gone is no news
    assert (again.deleted, again.spared) == ((), (changed,))
    assert orders.io.read(changed) == b"other"


def test_history_that_expires_while_it_is_read_is_looked_at_again(
    lake: Lake, orders: Table, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    location = stray(orders, "data/stray")
    clock.pass_days(10)
    load, calls = lake.catalog.load_table, []

    def load_then_expire(name: object) -> object:
        loaded = load(name)  # type: ignore[arg-type]
        if not calls:
            calls.append(name)
            Table(lake.catalog, loaded, timing=Timing(clock_ms=clock)).expire()
        return loaded

    monkeypatch.setattr(lake.catalog, "load_table", load_then_expire)
    assert planned(orders) == [location]


class RefusingIO(SchemeFileIO):
    """Files that cannot be deleted."""

    def delete(self, locations: Iterable[str]) -> list[str]:
        refused = [location for location in locations if "keep" in location]
        return [*refused, *super().delete([location for location in locations if "keep" not in location])]


def test_what_cannot_be_deleted_is_told(orders: Table, clock: Clock) -> None:
    kept, gone = stray(orders, "data/keep"), stray(orders, "data/stray")
    clock.pass_days(4)
    memory = orders.io.storage_for("memory:/")  # type: ignore[attr-defined]
    orders._handle.catalog.io = RefusingIO({"memory": memory})
    result = orders.sweep_orphans(orders.plan_orphans())
    assert result == SweepResult(deleted=(gone,), deleted_bytes=5, failed=(kept,))


def test_the_same_path_under_another_prefix_stops_it(orders: Table, clock: Clock) -> None:
    orders.append(order_rows(1))
    head = orders.metadata.snapshots[-1].snapshot_id
    location = stray(orders, "metadata/s.puffin")
    named = location.replace("memory://warehouse", "s3a://bucket")
    orders.set_statistics(StatisticsFile(head, named, 5, 1, ()))
    clock.pass_days(4)
    with pytest.raises(
        RefusedError, match="under memory://warehouse, s3://bucket, and they are under memory://"
    ) as stop:
        orders.plan_orphans()
    assert "equal_schemes" in stop.value.hints[0]
    ignoring = orders.plan_orphans(prefix_mismatch="ignore")
    assert (ignoring.files, [f.location for f in ignoring.in_doubt]) == ((), [location])
    assert planned(orders, prefix_mismatch="delete") == [location]
    equal = {"equal_schemes": {"s3a, memory": "x"}, "equal_authorities": {"bucket,warehouse": "y"}}
    assert planned(orders, **equal) == []
    with pytest.raises(RefusedError, match="cannot tell"):
        orders.plan_orphans(equal_schemes=equal["equal_schemes"])
    orders.sweep_orphans(orders.plan_orphans(prefix_mismatch="delete"))
    assert not orders.io.exists(location)


def test_the_same_path_otherwise_encoded_stops_it(orders: Table, clock: Clock) -> None:
    orders.append(order_rows(1))
    location = stray(orders, "metadata/a b.puffin")
    head = orders.metadata.snapshots[-1].snapshot_id
    orders.set_statistics(StatisticsFile(head, location.replace(" ", "%20"), 5, 1, ()))
    clock.pass_days(4)
    with pytest.raises(RefusedError, match="encoded otherwise"):
        orders.plan_orphans()


def test_a_catalog_inside_a_table_is_no_orphan(tmp_path: Path) -> None:
    with bergline.connect(f"sqlite:///{tmp_path}/t/catalog.db", warehouse=f"{tmp_path}/w", create=True) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", ORDERS, location=f"{tmp_path}/t").append(order_rows(1))
        stray(table, "stray")
        assert planned(table, **EVERYTHING) == [f"file://{tmp_path}/t/stray"]


def test_versions_and_gravestones_of_a_version_hint_catalog_stay(tmp_path: Path) -> None:
    with bergline.connect(f"file://{tmp_path}/w", create=True) as lake:
        lake.create_namespace("db", {"owner": "ann"})
        lake.create_table("db.t", ORDERS).append(order_rows(1))
        lake.drop_table("db.t")
        table = lake.create_table("db.t", ORDERS, properties={"write.metadata.previous-versions-max": "1"})
        for number in range(3):
            table.append(order_rows(number))
        stray(table, "metadata/v7.metadata.json.tmp")
        kept = {p.name for p in tmp_path.rglob("metadata/v*.metadata.json")}
        assert {"v1.metadata.json", "v3.metadata.json", "v7.metadata.json"} <= kept
        plan = table.plan_orphans(**EVERYTHING)
        names = {f.location.rpartition("/")[2] for f in plan.files}
        assert "v7.metadata.json.tmp" in names
        assert not {n for n in names if n.endswith(".json") or n == "version-hint.text"}
        table.sweep_orphans(plan)
        assert {p.name for p in tmp_path.rglob("metadata/v*.metadata.json")} == kept
        assert ids(lake.load_table("db.t").scan().to_arrow()) == [0, 1, 2]
        assert lake.namespace_properties("db") == {"owner": "ann"}


def test_a_plan_is_for_one_table(lake: Lake, orders: Table, clock: Clock) -> None:
    stray(orders, "data/stray")
    clock.pass_days(4)
    plan, other = orders.plan_orphans(), lake.create_table("db.other", ORDERS)
    with pytest.raises(InvalidInputError, match=r"expected a plan for table `db\.other`, found one for `db\.orders`"):
        other.sweep_orphans(plan)
    lake.drop_table("db.orders")
    again = lake.create_table("db.orders", ORDERS)
    with pytest.raises(ConflictError, match="dropped and re-created"):
        again.sweep_orphans(plan)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"older_than": dt.datetime(2026, 1, 1)}, "with a time zone"),  # noqa: DTZ001
        ({"older_than": "yesterday"}, "with a time zone"),
        ({"location": 3}, "text for the location"),
        ({"equal_schemes": "s3"}, "a mapping"),
        ({"equal_authorities": {"a": 1}}, "text for authority"),
        ({"prefix_mismatch": "panic"}, "error, ignore, delete"),
        ({"prefix_mismatch": None}, "error, ignore, delete"),
    ],
)
def test_bad_arguments_are_one_clear_error(orders: Table, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        orders.plan_orphans(**arguments)  # type: ignore[arg-type]


def test_bad_plans_and_threads_are_refused(orders: Table) -> None:
    with pytest.raises(InvalidInputError, match="a plan from plan_orphans"):
        orders.sweep_orphans(["memory://warehouse/db/orders"])  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="threads"):
        orders.sweep_orphans(orders.plan_orphans(), threads=0)


def test_orphans_are_no_part_of_a_transaction(orders: Table) -> None:
    with orders.transaction() as inside, pytest.raises(InvalidInputError, match="expected no transaction"):
        inside.plan_orphans()


def test_a_plan_reads_well_and_has_rows(orders: Table, clock: Clock) -> None:
    locations = sorted(stray(orders, f"data/{n:02}", bytes(n * 100)) for n in range(25))
    clock.pass_days(4)
    said: list[tuple[int, int]] = []
    plan = orders.plan_orphans(progress=lambda listed, found: said.append((listed, found)))
    lines = str(plan).splitlines()
    assert lines[0].startswith("orphan files of `db.orders` from before 2023-11-15 22:13:20 UTC")
    assert lines[1:3] == ["  in memory://warehouse/db/orders", "25 may go (29.3 KiB):"]
    assert lines[3].split("  ")[-1] == locations[0]
    assert lines[-2:] == ["  and 5 more", "1 are needed, 0 are too recent, 0 are hidden, 0 are in doubt"]
    rows = plan.to_arrow()
    assert rows["location"].to_pylist() == locations
    assert rows["size_in_bytes"].to_pylist() == [n * 100 for n in range(25)]
    assert rows.schema.field("last_modified").type == pa.timestamp("ms", "UTC")
    assert said == [(26, 25)]


def test_thousands_of_files_are_planned_and_swept(orders: Table, clock: Clock) -> None:
    strays = {stray(orders, f"data/{n % 7}/{n}", b"") for n in range(5000)}
    clock.pass_days(4)
    assert set(orders.sweep_orphans(orders.plan_orphans()).deleted) == strays


def test_a_crash_in_the_sweep_leaves_a_plan_that_goes_on(orders: Table, clock: Clock) -> None:
    orders.append(order_rows(1))
    strays = [stray(orders, f"data/{n}") for n in range(3)]
    clock.pass_days(4)
    plan: OrphanPlan = orders.plan_orphans()

    def stop(_done: int, _total: int) -> None:
        raise BerglineError("stop")

    with contextlib.suppress(BerglineError):
        orders.sweep_orphans(plan, progress=stop)
    result = orders.sweep_orphans(plan)
    assert (result.failed, result.spared) == ((), ())
    assert not set(strays) & set(orders.io.list(orders.location))
    assert ids(orders.scan().to_arrow()) == [1]
