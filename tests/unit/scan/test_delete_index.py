"""Which deletes apply to which files: partition, path and sequence number."""

from typing import Any

import msgspec
import pytest
from rows import ORDERS

from bergline.errors import UnsupportedError
from bergline.format.deletes import FILE_PATH_ID
from bergline.format.manifest import DataFile, EntryStatus, FileContent, ManifestEntry
from bergline.format.metadata import TableMetadata, new_metadata
from bergline.format.partition import UNPARTITIONED, PartitionSpec, parse_partition_by
from bergline.parquet.arrow_schema import schema_from_arrow
from bergline.scan.delete_index import DeleteIndex

POSITION, EQUALITY = FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES


@pytest.fixture
def metadata() -> TableMetadata:
    """Spec 0 by region, spec 1 unpartitioned."""
    schema = schema_from_arrow(ORDERS)
    table = new_metadata(
        schema=schema,
        spec=parse_partition_by(["region"], schema),
        location="memory://t",
        properties={},
        table_uuid="u",
        now_ms=0,
    )
    return msgspec.structs.replace(
        table, partition_specs=(*table.partition_specs, PartitionSpec(1, UNPARTITIONED.fields))
    )


def entry(number: int, path: str = "memory://a", partition: Any = "eu", **fields: Any) -> ManifestEntry:
    values = () if fields.get("spec_id") == 1 else (partition,)
    file = DataFile(path, "PARQUET", values, 1, 1, **fields)
    return ManifestEntry(EntryStatus.ADDED, file, 1, number, number)


def applies(metadata: TableMetadata, delete: ManifestEntry, data: ManifestEntry) -> bool:
    return DeleteIndex([delete], metadata).deletes_for(data) == (delete.data_file,)


@pytest.mark.parametrize(
    ("content", "written", "expected"),
    [
        (POSITION, 4, True),
        (POSITION, 5, True),
        (POSITION, 6, False),
        (EQUALITY, 4, True),
        (EQUALITY, 5, False),
        (EQUALITY, 6, False),
    ],
)
def test_deletes_touch_older_rows_only(
    metadata: TableMetadata, content: FileContent, written: int, expected: bool
) -> None:
    delete = entry(5, "memory://d", content=content, equality_ids=(1,))
    assert applies(metadata, delete, entry(written)) is expected


@pytest.mark.parametrize("content", [POSITION, EQUALITY])
def test_deletes_stay_in_their_partition(metadata: TableMetadata, content: FileContent) -> None:
    delete = entry(5, "memory://d", content=content)
    assert applies(metadata, delete, entry(1))
    assert not applies(metadata, delete, entry(1, partition="us"))
    assert not applies(metadata, delete, entry(1, spec_id=1))
    assert applies(metadata, entry(5, partition=float("nan"), content=content), entry(1, partition=float("nan")))


def test_unpartitioned_equality_deletes_apply_everywhere_and_position_deletes_do_not(metadata: TableMetadata) -> None:
    for content, everywhere in ((EQUALITY, True), (POSITION, False)):
        delete = entry(5, "memory://d", spec_id=1, content=content)
        assert applies(metadata, delete, entry(1, spec_id=1))
        assert applies(metadata, delete, entry(1)) is everywhere


@pytest.mark.parametrize(
    "about",
    [
        {"referenced_data_file": "memory://a"},
        {"lower_bounds": {FILE_PATH_ID: b"memory://a"}, "upper_bounds": {FILE_PATH_ID: b"memory://a"}},
    ],
)
def test_position_deletes_about_one_file_touch_no_other(metadata: TableMetadata, about: dict[str, Any]) -> None:
    delete = entry(5, "memory://d", content=POSITION, **about)
    assert applies(metadata, delete, entry(1))
    assert not applies(metadata, delete, entry(1, "memory://b"))


def test_deletes_in_other_formats_are_refused(metadata: TableMetadata) -> None:
    delete = entry(5, content=POSITION)
    puffin = msgspec.structs.replace(delete, data_file=msgspec.structs.replace(delete.data_file, file_format="PUFFIN"))
    with pytest.raises(UnsupportedError, match="found PUFFIN"):
        DeleteIndex([puffin], metadata)
