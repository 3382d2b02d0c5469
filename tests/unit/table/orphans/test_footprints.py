"""Which other tables are looked at before files are deleted: by their kept directories first."""

from pathlib import Path
from typing import Any

import pytest

from bergline import Lake, Table
from bergline.catalog.catalog import LoadedTable
from bergline.catalog.footprint import Footprint, FootprintKind, FootprintOwner, Footprints
from bergline.catalog.identifiers import parse_table_name
from bergline.catalog.sql.records import sql_store_of
from bergline.catalog.table_locations import FILES_ELSEWHERE
from bergline.errors import RefusedError
from bergline.io.fileio import FileIO
from bergline.table.expiry.path_rules import PathRules
from bergline.table.orphans.directory_set import DirectorySet
from bergline.table.orphans.footprints import NearOwners, find_near, footprint_of_table
from support.fixtures.rows import ORDERS, order_rows


class CountedReads:
    """Files, and which of them were read."""

    def __init__(self, io: FileIO) -> None:
        self._io = io
        self.read_files: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._io, name)

    def read(self, location: str, most_bytes: int | None = None) -> bytes:
        self.read_files.append(location)
        return self._io.read(location, most_bytes)


def near(lake: Lake, table: Table, footprints: Footprints | None = None) -> tuple[NearOwners, list[str]]:
    """What is near a table, and the files that were read to know."""
    io: Any = CountedReads(lake.catalog.io)
    kept = footprints or sql_store_of(lake.catalog).footprints()
    assert kept is not None
    directories = DirectorySet(PathRules({}, {}), [table.location])
    return find_near(io, kept, directories, table.metadata.table_uuid), io.read_files


def names(found: NearOwners) -> list[str]:
    return [str(name) for name in found.tables]


def test_metadata_files_are_read_once(lake: Lake, orders: Table) -> None:
    items = lake.create_table("db.items", ORDERS).append(order_rows(1))
    lake.create_view("db.v", "SELECT 1", ORDERS)
    found, read = near(lake, orders)
    assert names(found) == ["db.orders"]
    assert found.views == ()
    assert len(read) == 3
    assert near(lake, orders) == (found, [])
    items = lake.load_table("db.items").append(order_rows(1))
    assert near(lake, orders) == (found, [items.metadata_location])


def test_table_that_comes_near_is_found(lake: Lake, orders: Table) -> None:
    lake.create_table("db.items", ORDERS)
    assert names(near(lake, orders)[0]) == ["db.orders"]
    lake.load_table("db.items").set_properties({"write.data.path": f"{orders.location}/data"})
    assert names(near(lake, orders)[0]) == ["db.items", "db.orders"]


def test_table_with_files_elsewhere_is_always_near(lake: Lake, orders: Table) -> None:
    lake.create_table("db.items", ORDERS, properties={FILES_ELSEWHERE: "true"}).append(order_rows(1))
    for _ in range(2):
        assert names(near(lake, orders)[0]) == ["db.items", "db.orders"]


def test_table_registered_twice_is_near_by_its_uuid(lake: Lake, orders: Table, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "metadata"
    copy.mkdir(parents=True)
    text = Path(orders.metadata_location.removeprefix("file://")).read_text()
    (copy / "1.metadata.json").write_text(text.replace(orders.location, f"file://{tmp_path}/copy"))
    lake.register_table("db.again", f"file://{copy}/1.metadata.json")
    for _ in range(2):
        assert names(near(lake, orders)[0]) == ["db.again", "db.orders"]


def test_link_that_leads_near_later_is_followed(lake: Lake, orders: Table, tmp_path: Path) -> None:
    places = tmp_path / "one", tmp_path / "link"
    places[0].mkdir()
    places[1].symlink_to(places[0])
    lake.create_table("db.items", ORDERS, location=f"file://{places[1]}/items")
    assert names(near(lake, orders)[0]) == ["db.orders"]
    places[1].unlink()
    places[1].symlink_to(orders.location.removeprefix("file://"))
    assert names(near(lake, orders)[0]) == ["db.items", "db.orders"]


def test_unreadable_table_stays_near(lake: Lake, orders: Table) -> None:
    items = lake.create_table("db.items", ORDERS)
    lake.catalog.io.delete([items.metadata_location])
    for _ in range(2):
        assert names(near(lake, orders)[0]) == ["db.items", "db.orders"]


def test_reader_who_may_not_keep_anything_looks_at_all(lake: Lake, orders: Table, monkeypatch: Any) -> None:
    lake.create_table("db.items", ORDERS)
    kept = sql_store_of(lake.catalog).footprints()

    def refuse(_: list[Footprint]) -> None:
        raise RefusedError("read-only")

    with monkeypatch.context() as patched:
        patched.setattr(kept, "keep", refuse)
        assert names(near(lake, orders, kept)[0]) == ["db.items", "db.orders"]
    assert names(near(lake, orders, kept)[0]) == ["db.orders"]


def test_second_purge_reads_the_metadata_of_no_other_table(lake: Lake, orders: Table) -> None:
    for number in range(5):
        lake.create_table(f"db.t{number}", ORDERS).append(order_rows(1))
    catalog: Any = lake.catalog
    lake.purge_table("db.t0")
    catalog.io = io = CountedReads(catalog.io)
    lake.purge_table("db.t1")
    assert not [location for location in io.read_files if "/db/t1/" not in location]
    assert [str(name) for name in lake.list_tables("db")] == ["db.orders", "db.t2", "db.t3", "db.t4"]
    assert lake.load_table("db.t2").scan().to_arrow().num_rows == 1


@pytest.mark.parametrize(
    ("location", "properties", "paths"),
    [
        ("s3://b/t", {}, ["/t/"]),
        ("s3://b/t", {"write.data.path": "s3a://c/d"}, ["/d/", "/t/"]),
        ("s3://b/t", {"write.data.path": "s3://b/t/data"}, ["/t/"]),
        ("s3://b/t%20x", {}, ["/t x/"]),
        ("s3://b/" + "x" * 2000, {}, []),
    ],
)
def test_directories_are_kept_by_their_paths(
    orders: Table, location: str, properties: dict[str, str], paths: list[str]
) -> None:
    metadata = orders.metadata
    moved = type(metadata)(**{f: getattr(metadata, f) for f in metadata.__struct_fields__} | {"location": location})
    moved = type(moved)(
        **{f: getattr(moved, f) for f in moved.__struct_fields__} | {"properties": properties, "metadata_log": ()}
    )
    pointer, name = f"{location}/metadata/1.metadata.json", parse_table_name("db.t")
    owner = FootprintOwner(FootprintKind.TABLE, name, pointer)
    found = footprint_of_table(LoadedTable(name, moved, pointer), owner)
    assert [directory.path for directory in found.directories] == paths
