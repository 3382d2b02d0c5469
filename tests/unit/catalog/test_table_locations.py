"""The directories of a table, and files outside of them."""

import json
from pathlib import Path

import msgspec
import pytest

from bergline.catalog.catalog import LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.catalog.table_locations import (
    FILES_ELSEWHERE,
    FORMER_DIRECTORIES,
    OwnFiles,
    directories_of,
    is_outside,
    may_have_files_elsewhere,
    remembering_former,
    table_directories,
    written_directories,
)
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import RemoveProperties, SetLocation, SetProperties, Update


def table(metadata: TableMetadata, location: str, **properties: str) -> TableMetadata:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return msgspec.structs.replace(metadata, location=location, properties=named)


def test_location_comes_first_and_paths_of_properties_follow() -> None:
    properties = {"write.metadata.path": "s3://b/m", "write.data.path": "s3://b/d", "owner": "s3://b/x"}
    assert directories_of("s3://b/t", properties) == ("s3://b/t", "s3://b/d", "s3://b/m")


def test_directories_are_absolute_and_each_once(metadata: TableMetadata, tmp_path: Path) -> None:
    found = table(metadata, f"{tmp_path}/t", write_data_path=f"{tmp_path}/t")
    assert table_directories(found) == [f"file://{tmp_path}/t"]


@pytest.mark.parametrize(
    ("location", "outside"),
    [
        ("s3://b/t/data/x", False),
        ("s3a://b/t/x", False),
        ("s3://b/d/x", False),
        ("s3://b/tt/x", True),
        ("s3://b/x", True),
    ],
)
def test_locations_are_compared_by_directory(metadata: TableMetadata, location: str, outside: bool) -> None:
    assert is_outside(table(metadata, "s3://b/t", write_data_path="s3://b/d"), [location]) is outside


def test_link_that_leads_out_is_outside(metadata: TableMetadata, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "t/link").symlink_to(tmp_path / "other")
    found = table(metadata, f"file://{tmp_path}/t")
    assert not is_outside(found, [f"file://{tmp_path}/t/data/x"])
    assert is_outside(found, [f"file://{tmp_path}/t/link/x"])


@pytest.mark.parametrize(
    ("location", "own"),
    [
        ("s3://b/t/metadata/x.avro", True),
        ("s3://b/left/x", True),
        ("s3://b/t", False),
        ("s3://b/t/../other/x", False),
        ("s3://b/t/./x", False),
        ("s3://b/tt/x", False),
        ("s3://other/t/x", False),
        ("gs://b/t/x", False),
        ("file://host/t/x", False),
        ("", False),
    ],
)
def test_files_are_owned_where_the_table_writes_or_wrote(metadata: TableMetadata, location: str, own: bool) -> None:
    found = table(metadata, "s3://b/t")
    found.properties[FORMER_DIRECTORIES] = '["s3a://b/left"]'
    assert OwnFiles(found).has(location) is own


def test_table_that_is_not_there_yet_owns_what_it_is_given(metadata: TableMetadata) -> None:
    for own in (OwnFiles(None, ["s3://b/new"]), OwnFiles(metadata, ["s3a://b/new/"])):
        assert own.has("s3://b/new/data/x")
        assert not own.has("s3://b/newer/x")
    assert not OwnFiles(None).has("s3://b/new/data/x")


@pytest.mark.parametrize("former", ["x", "{}", "[1]", '"s3://b/left"'])
def test_former_directories_that_are_not_understood_are_none(metadata: TableMetadata, former: str) -> None:
    found = table(metadata, "s3://b/t")
    found.properties[FORMER_DIRECTORIES] = former
    assert table_directories(found) == ["s3://b/t"]


def test_table_behind_a_link_has_its_own_files(metadata: TableMetadata, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    own = OwnFiles(table(metadata, f"file://{tmp_path}/link"))
    assert own.has(f"file://{tmp_path}/link/x")
    assert not own.has(f"file://{tmp_path}/real/x")  # named otherwise than by the table: it may be of somebody else


def test_directories_that_a_table_leaves_are_remembered(metadata: TableMetadata) -> None:
    before = table(metadata, "s3://b/t")
    moved = table(metadata, "s3://b/new")

    def left(after: TableMetadata, *updates: Update) -> list[str]:
        found = remembering_former(before, after, updates).properties.get(FORMER_DIRECTORIES)
        return [] if found is None else msgspec.json.decode(found, type=list[str])

    assert left(moved, SetLocation("s3://b/new")) == ["s3://b/t"]
    assert left(before, SetProperties({"owner": "me"})) == []
    assert left(before, SetProperties({"write.data.path": "s3://b/d"})) == ["s3://b/d"]  # and taken away again
    assert left(before, SetLocation("s3://b/t/below"), SetLocation("s3://b/t")) == []
    assert left(before, SetLocation("s3://b/visited"), SetLocation("s3://b/t")) == ["s3://b/visited"]
    empty = msgspec.structs.replace(moved, snapshots=(), refs={}, current_snapshot_id=None)
    assert left(empty, SetLocation("s3://b/new")) == []


def test_directory_that_a_table_left_is_not_forgotten_until_it_returns(metadata: TableMetadata) -> None:
    there = table(metadata, "s3://b/new")
    there.properties[FORMER_DIRECTORIES] = '["s3://b/t"]'
    bare = table(metadata, "s3://b/new")
    assert remembering_former(there, bare, [RemoveProperties((FORMER_DIRECTORIES,))]) == there
    back = remembering_former(there, table(metadata, "s3://b/t"), [SetLocation("s3://b/t")])
    assert json.loads(back.properties[FORMER_DIRECTORIES]) == ["s3://b/new"]
    newer = msgspec.structs.replace(there, location="s3://b/newer")
    on = remembering_former(there, newer, [SetLocation("s3://b/newer")])
    assert json.loads(on.properties[FORMER_DIRECTORIES]) == ["s3://b/new", "s3://b/t"]
    whole = msgspec.structs.replace(there, location="s3://b")
    assert remembering_former(there, whole, [SetLocation("s3://b")]).properties == {}


def test_directories_that_were_left_are_not_written_to(metadata: TableMetadata) -> None:
    found = table(metadata, "s3://b/t", write_data_path="s3://b/d", owner="me")
    found.properties[FORMER_DIRECTORIES] = '["s3://b/left"]'
    assert written_directories(found) == ["s3://b/t", "s3://b/d"]
    assert table_directories(found) == ["s3://b/t", "s3://b/d", "s3://b/left"]


def test_directories_that_a_table_left_before_stay_when_it_moves_on(metadata: TableMetadata) -> None:
    there, on = table(metadata, "s3://b/new"), table(metadata, "s3://b/newer", owner="me")
    for one in (there, on):
        one.properties[FORMER_DIRECTORIES] = '["s3://b/t"]'
    moved = remembering_former(there, on, [SetLocation("s3://b/newer")])
    assert json.loads(moved.properties.pop(FORMER_DIRECTORIES)) == ["s3://b/new", "s3://b/t"]
    assert moved.properties == {"owner": "me"}


def test_directories_inside_of_that_to_which_a_table_returns_are_not_former(metadata: TableMetadata) -> None:
    below, back = table(metadata, "s3://b/t/below"), table(metadata, "s3://b/t", owner="me")
    for one in (below, back):
        one.properties[FORMER_DIRECTORIES] = '["s3://b/t"]'
    assert remembering_former(below, back, [SetLocation("s3://b/t")]).properties == {"owner": "me"}


def test_table_does_not_write_where_it_was(metadata: TableMetadata) -> None:
    found = table(metadata, "s3://b/t", write_data_path="s3://b/d", owner="me")
    found.properties[FORMER_DIRECTORIES] = '["s3://b/left"]'
    assert table_directories(found) == ["s3://b/t", "s3://b/d", "s3://b/left"]
    assert written_directories(found) == ["s3://b/t", "s3://b/d"]


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, False),
        ({FILES_ELSEWHERE: "true"}, True),
        ({"gc.enabled": "false"}, True),
        ({"snapshot": "true"}, True),
        ({"write.location-provider.impl": "my.Provider"}, True),
    ],
)
def test_properties_show_that_files_may_be_elsewhere(
    metadata: TableMetadata, properties: dict[str, str], expected: bool
) -> None:
    found = msgspec.structs.replace(metadata, location="s3://b/t", properties=properties)
    loaded = LoadedTable(TableName(("db",), "t"), found, "s3://b/t/metadata/1.metadata.json")
    assert may_have_files_elsewhere(loaded, ["s3://b/t/metadata/snap.avro"]) is expected
    assert may_have_files_elsewhere(loaded, ["s3://b/other/snap.avro"])
    empty = msgspec.structs.replace(found, snapshots=(), refs={}, current_snapshot_id=None)
    assert not may_have_files_elsewhere(msgspec.structs.replace(loaded, metadata=empty), ["s3://b/other/snap.avro"])
