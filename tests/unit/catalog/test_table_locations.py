"""The directories of a table, and files outside of them."""

from pathlib import Path

import msgspec
import pytest

from bergline.catalog.catalog import LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.catalog.table_locations import (
    FILES_ELSEWHERE,
    directories_of,
    drops_directory,
    is_outside,
    may_have_files_elsewhere,
    table_directories,
)
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import SetLocation, SetProperties


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


def test_directory_that_was_set_and_left_in_one_change_is_dropped(metadata: TableMetadata) -> None:
    before = table(metadata, "s3://b/t")
    assert drops_directory(before, table(metadata, "s3://b/new"), [SetLocation("s3://b/new")])
    assert not drops_directory(before, before, [SetProperties({"owner": "me"})])
    assert drops_directory(before, before, [SetProperties({"write.data.path": "s3://b/d"})])
    empty = msgspec.structs.replace(before, snapshots=(), refs={}, current_snapshot_id=None)
    assert not drops_directory(before, empty, [SetLocation("s3://b/new")])


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
