"""Which deletes apply to which files: partition, path and sequence number."""

from typing import Any

import msgspec
import pytest

from bergline.datafiles.file.arrow_schema import schema_from_arrow
from bergline.errors import FormatError, UnsupportedError
from bergline.format.deletes.delete_files import FILE_PATH_ID
from bergline.format.manifest.manifest import DataFile, EntryStatus, FileContent, ManifestEntry, partition_key
from bergline.format.metadata.new_table import new_metadata
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.spec import UNPARTITIONED, PartitionSpec, parse_partition_by
from bergline.scan.delete_index import DeleteIndex
from support.fixtures.rows import ORDERS

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


def found(index: DeleteIndex, data: ManifestEntry) -> tuple[DataFile, ...]:
    assert data.sequence_number is not None
    return index.deletes_for(data.data_file.file_path, partition_key(data.data_file), data.sequence_number)


def applies(metadata: TableMetadata, delete: ManifestEntry, data: ManifestEntry) -> bool:
    return found(DeleteIndex([delete], metadata), data) == (delete.data_file,)


def vector(number: int, path: str = "memory://dv", **fields: Any) -> ManifestEntry:
    about = {"referenced_data_file": "memory://a", "content_offset": 4, "content_size_in_bytes": 40}
    made = entry(number, path, content=POSITION, **(about | fields))
    return msgspec.structs.replace(made, data_file=msgspec.structs.replace(made.data_file, file_format="PUFFIN"))


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


def test_deletes_in_unknown_formats_are_refused(metadata: TableMetadata) -> None:
    delete = entry(5, content=EQUALITY)
    other = msgspec.structs.replace(delete, data_file=msgspec.structs.replace(delete.data_file, file_format="LANCE"))
    with pytest.raises(UnsupportedError, match="PARQUET, ORC, AVRO, found `LANCE`"):
        DeleteIndex([other], metadata)


def test_data_file_in_a_delete_manifest_is_refused(metadata: TableMetadata) -> None:
    with pytest.raises(FormatError, match="found the data file memory://a"):
        DeleteIndex([entry(5)], metadata)


def test_deletion_vector_hides_position_deletes_but_not_equality_deletes(metadata: TableMetadata) -> None:
    position, equality = entry(6, "memory://p", content=POSITION), entry(6, "memory://e", content=EQUALITY)
    dv = vector(5)
    index = DeleteIndex([position, dv, equality], metadata)
    assert found(index, entry(5)) == (dv.data_file, equality.data_file)
    assert found(index, entry(5, "memory://b")) == (position.data_file, equality.data_file)


def test_two_deletion_vectors_for_one_file_are_refused(metadata: TableMetadata) -> None:
    with pytest.raises(FormatError, match="one deletion vector for memory://a, found memory://dv and memory://x"):
        DeleteIndex([vector(5), vector(6, "memory://x")], metadata)


def test_deletion_vector_older_than_its_file_is_refused(metadata: TableMetadata) -> None:
    with pytest.raises(FormatError, match="not older than its data file of number 6, found number 5"):
        found(DeleteIndex([vector(5)], metadata), entry(6))


@pytest.mark.parametrize("missing", ["referenced_data_file", "content_offset", "content_size_in_bytes"])
def test_deletion_vector_must_say_where_it_is(metadata: TableMetadata, missing: str) -> None:
    with pytest.raises(FormatError, match="an offset and a size for a deletion vector"):
        DeleteIndex([vector(5, **{missing: None})], metadata)


@pytest.mark.parametrize(
    "delete", [vector(5), entry(5, "memory://d", content=POSITION, referenced_data_file="memory://a")]
)
def test_delete_of_one_file_must_be_in_its_partition(metadata: TableMetadata, delete: ManifestEntry) -> None:
    with pytest.raises(FormatError, match="spec and partition of its data file memory://a"):
        found(DeleteIndex([delete], metadata), entry(1, partition="us"))
