"""How files are written, by table properties."""

import msgspec
import pytest

from bergline.datafiles.write.metrics_mode import COUNTS, MetricsModes
from bergline.datafiles.write.write_spec import ParquetOptions, delete_write_spec, write_spec
from bergline.errors import InvalidInputError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.format.types.types import BOOLEAN, LONG, STRING, ListType, NestedField, StructType


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, ("memory:/lake/orders/data", "zstd", 512 * 1024 * 1024)),
        ({"write.data.path": "memory:/elsewhere"}, ("memory:/elsewhere", "zstd", 512 * 1024 * 1024)),
        (
            {"write.parquet.compression-codec": "UNCOMPRESSED", "write.target-file-size-bytes": "7"},
            ("memory:/lake/orders/data", "none", 7),
        ),
    ],
)
def test_properties_of_the_table_are_followed(
    metadata: TableMetadata, properties: dict[str, str], expected: tuple[str, str, int]
) -> None:
    found = write_spec(msgspec.structs.replace(metadata, properties=properties))
    assert (found.data_location, found.compression, found.target_file_size) == expected


def test_layout_follows_the_properties_of_java(metadata: TableMetadata) -> None:
    properties = {
        "write.parquet.compression-level": "7",
        "write.parquet.row-group-size-bytes": "1000",
        "write.parquet.page-size-bytes": "200",
        "write.parquet.dict-size-bytes": "300",
        "write.metadata.metrics.default": "counts",
        "write.delete.parquet.page-size-bytes": "201",
        "write.delete.parquet.compression-codec": "snappy",
        "write.delete.target-file-size-bytes": "5",
    }
    table = msgspec.structs.replace(metadata, properties=properties)
    data, deletes = write_spec(table), delete_write_spec(table)
    assert data.options == ParquetOptions(7, 1000, 200, 300)
    assert data.metrics == MetricsModes(COUNTS)
    assert (deletes.compression, deletes.target_file_size) == ("snappy", 5)
    assert deletes.options == ParquetOptions(None, 1000, 201, 300)


def test_columns_get_the_bloom_filters_that_they_can_have(metadata: TableMetadata) -> None:
    enabled = "write.parquet.bloom-filter-enabled.column."
    schema = Schema(
        fields=(
            NestedField(1, "id", True, LONG),
            NestedField(2, "ok", False, BOOLEAN),
            NestedField(3, "at", False, StructType((NestedField(4, "city", False, STRING),))),
            NestedField(5, "tags", False, ListType(6, STRING, False)),
            NestedField(7, "a.b", False, LONG),
            NestedField(8, "other", False, LONG),
        )
    )
    names = ("id", "ok", "at", "at.city", "tags", "tags.element", "a.b", "gone")
    properties = {f"{enabled}{name}": "true" for name in names} | {
        f"{enabled}other": "false",
        "write.parquet.bloom-filter-fpp.column.at.city": "0.05",
        "write.parquet.bloom-filter-max-bytes": "2048",
    }
    table = msgspec.structs.replace(
        metadata, properties=properties, schemas=(schema,), current_schema_id=schema.schema_id
    )
    options = write_spec(table).options
    assert options.bloom_filters == ((("id",), 0.01), (("at", "city"), 0.05))
    assert options.bloom_filter_bytes == 2048
    assert delete_write_spec(table).options.bloom_filters == ()


@pytest.mark.parametrize(
    "properties",
    [
        {f"write.parquet.bloom-filter-{name}.column.id": text for name, text in (("enabled", "true"), ("fpp", "1.5"))},
        {"write.parquet.compression-codec": "zip"},
        {"write.target-file-size-bytes": "big"},
        {"write.parquet.compression-level": "high"},
        {"write.parquet.page-size-bytes": "-1"},
    ],
)
def test_impossible_property_is_refused(metadata: TableMetadata, properties: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError, match="found `"):
        write_spec(msgspec.structs.replace(metadata, properties=properties))


@pytest.mark.parametrize(
    ("size", "files", "rows", "expected"),
    [("4194304", "2", "4096", 1024), ("2097151", "2", "4096", None), ("9" * 9, "1", "0", None), ("x", "1", "9", None)],
)
def test_rows_take_what_they_take_in_large_files_of_the_table(
    metadata: TableMetadata, size: str, files: str, rows: str, expected: int | None
) -> None:
    totals = {"total-files-size": size, "total-data-files": files, "total-records": rows}
    snapshots = tuple(msgspec.structs.replace(snapshot, summary=totals) for snapshot in metadata.snapshots)
    assert write_spec(msgspec.structs.replace(metadata, snapshots=snapshots)).row_bytes == expected
