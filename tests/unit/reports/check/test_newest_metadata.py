"""The newest metadata file of a table: by what metadata logs say, not by names."""

from pathlib import Path

import msgspec

from bergline import Lake, Table
from bergline.catalog.metadata_files import next_location
from bergline.format.metadata.json import render_metadata
from bergline.reports.check.newest_metadata import NewestMetadata, find_newest_metadata

ROW = [{"id": 1}]


def newest(lake: Lake, pointer: str, uuid: str | None = None) -> NewestMetadata:
    return find_newest_metadata(lake.catalog.io, pointer, uuid)


def test_newest_file_that_descends_is_found(lake: Lake, orders: Table) -> None:
    pointer = orders.metadata_location
    assert newest(lake, pointer) == NewestMetadata(pointer)
    for _ in range(3):
        orders.append(ROW)
    assert newest(lake, pointer, str(orders.metadata.table_uuid)) == NewestMetadata(orders.metadata_location)


def test_short_logs_are_followed_from_file_to_file(lake: Lake, orders: Table) -> None:
    orders.set_properties({"write.metadata.previous-versions-max": "2"})
    pointer = orders.metadata_location
    for _ in range(6):
        orders.append(ROW)
    assert pointer not in {entry.metadata_file for entry in orders.metadata.metadata_log}
    assert newest(lake, pointer).location == orders.metadata_location


def test_file_with_a_higher_number_counts_only_if_it_descends(lake: Lake, orders: Table) -> None:
    orders.append(ROW)
    pointer = Path(orders.metadata_location.removeprefix("file://"))
    other = lake.create_table("db.other", orders.schema)
    stranger = Path(other.metadata_location.removeprefix("file://"))
    (pointer.parent / "00099-a.metadata.json").write_bytes(stranger.read_bytes())
    (pointer.parent / "00098-b.metadata.json").write_bytes(b"{")
    (pointer.parent / "00097-c.metadata.json").write_bytes(pointer.read_bytes())  # its log does not name itself
    assert newest(lake, orders.metadata_location).location == orders.metadata_location
    descendant = orders.metadata_location
    orders.append(ROW)
    assert newest(lake, descendant).location == orders.metadata_location
    assert newest(lake, descendant, "another table").location == descendant


def test_two_last_attempts_leave_the_table_at_their_base(lake: Lake, orders: Table) -> None:
    pointer = orders.metadata_location
    orders.append(ROW)
    base = orders.metadata_location
    orders.append(ROW)
    twin = next_location(orders.metadata, base)
    changed = msgspec.structs.replace(orders.metadata, properties={"a": "b"})
    lake.catalog.io.create(twin, render_metadata(changed))
    assert newest(lake, pointer) == NewestMetadata(base, tuple(sorted([twin, orders.metadata_location])))
    orders.append(ROW)  # on one of the two, which therefore happened
    assert newest(lake, pointer) == NewestMetadata(orders.metadata_location)


def test_missing_pointer_is_known_by_the_log_of_its_successor(lake: Lake, orders: Table) -> None:
    pointer = orders.metadata_location
    orders.append(ROW)
    lake.catalog.io.delete([pointer])
    assert newest(lake, pointer).location == orders.metadata_location
