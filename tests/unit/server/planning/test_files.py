"""Planned files as JSON of the protocol."""

import json
import math

import msgspec

from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.format.metadata.new_table import new_metadata
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.transforms import IDENTITY
from bergline.format.schema.schema import Schema
from bergline.format.types.types import DOUBLE, LONG, NestedField
from bergline.scan.plan import PlannedFile
from bergline.server.planning.files import PlannedFileJson, ScanTasks
from bergline.server.planning.residuals import WHOLE

SCHEMA = Schema(
    fields=(
        NestedField(id=1, name="id", type=LONG, required=True),
        NestedField(id=2, name="score", type=DOUBLE, required=False),
    )
)
SPEC = PartitionSpec(0, (PartitionField(source_id=2, field_id=1000, name="score", transform=IDENTITY),))
METADATA = new_metadata(schema=SCHEMA, spec=SPEC, location="memory://t", properties={}, table_uuid="u", now_ms=0)
FILE = DataFile("memory://t/f.parquet", "PARQUET", (1.5,), 3, 99, value_counts={1: 3, 2: 3}, lower_bounds={1: b"\x07"})
DELETES = DataFile("memory://t/d.parquet", "PARQUET", (1.5,), 1, 9, content=FileContent.POSITION_DELETES)


def rendered(statistics: frozenset[int] = frozenset()) -> PlannedFileJson:
    return PlannedFileJson(METADATA, columns=frozenset({1, 2}), statistics=statistics)


def test_file_has_the_protocols_fields() -> None:
    assert json.loads(msgspec.json.encode(rendered().content_file(FILE))) == {
        "spec-id": 0,
        "content": "data",
        "file-path": "memory://t/f.parquet",
        "file-format": "parquet",
        "partition": [1.5],
        "file-size-in-bytes": 99,
        "record-count": 3,
    }


def test_statistics_are_those_of_the_columns_that_were_requested() -> None:
    task = json.loads(bytes(rendered(frozenset({1})).scan_task(PlannedFile(FILE, 1), WHOLE, ())))
    assert task["data-file"]["value-counts"] == {"keys": [1], "values": [3]}
    assert task["data-file"]["lower-bounds"] == {"keys": [1], "values": ["07"]}
    assert task["residual-filter"] is True


def test_partition_values_that_json_has_no_number_for_are_text() -> None:
    for value, text in ((math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity"), (None, None)):
        file = msgspec.structs.replace(FILE, partition=(value,))
        assert json.loads(msgspec.json.encode(rendered().content_file(file)))["partition"] == [text]


def test_delete_files_are_named_once_and_referred_to_by_index() -> None:
    tasks = ScanTasks(rendered())
    for deletes in ((), (DELETES,), (DELETES,)):
        tasks.add(PlannedFile(FILE, 1, deletes), WHOLE)
    assert [json.loads(bytes(task)).get("delete-file-references") for task in tasks.files] == [None, [0], [0]]
    (deletes,) = (json.loads(bytes(file)) for file in tasks.deletes)
    assert (deletes["content"], deletes["file-path"]) == ("position-deletes", "memory://t/d.parquet")
    assert tasks.size == sum(map(len, [*tasks.files, *tasks.deletes]))
