"""Columns of a file that a read asks for: by id, by a name mapping, from the partition, and about the file itself."""

import io
import uuid
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline.datafiles.read.reader import read_batches, read_plan
from bergline.errors import FormatError
from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import ALWAYS_TRUE, bind
from bergline.format.manifest.manifest import DataFile
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.transforms import IDENTITY, Bucket
from bergline.format.schema.name_mapping import NameMapping
from bergline.format.schema.reserved import FILE, LAST_UPDATED_SEQUENCE_NUMBER, POS, ROW_ID, SPEC_ID, partition_column
from bergline.format.schema.schema import Schema
from bergline.format.types.types import DATE, INT, LONG, STRING, UUID, NestedField, StructType
from bergline.io.memory import MemoryFileIO
from bergline.scan.plan import PlannedFile, ScanPlan

PATH = "memory:/f.parquet"
SCHEMA = Schema(fields=(NestedField(1, "a", False, LONG), NestedField(2, "b", False, STRING)))


def with_id(name: str, type_: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(field_id)})


def stored(table: pa.Table, **options: Any) -> MemoryFileIO:
    out, files = io.BytesIO(), MemoryFileIO()
    pq.write_table(table, out, **options)
    files.create(PATH, out.getvalue())
    return files


def numbers(count: int) -> pa.Table:
    return pa.table([pa.array(range(count))], schema=pa.schema([with_id("a", pa.int64(), 1)]))


def plan(
    schema: Schema = SCHEMA,
    *extra: NestedField,
    file: DataFile | None = None,
    specs: dict[int, PartitionSpec] | None = None,
    mapping: NameMapping | None = None,
    row_filter: str | None = None,
) -> ScanPlan:
    return ScanPlan(
        1,
        schema,
        Schema(fields=(*schema.fields, *extra)),
        ALWAYS_TRUE if row_filter is None else bind(parse_predicate(row_filter), schema),
        (PlannedFile(file or DataFile(PATH, "PARQUET", (), 1, 1), 9),),
        specs=specs or {},
        name_mapping=mapping,
    )


IDENTITY_SPEC = PartitionSpec(
    3, (PartitionField(2, 1000, "b", IDENTITY), PartitionField(1, 1001, "a_bucket", Bucket(4)))
)


def test_missing_column_has_the_value_of_its_partition() -> None:
    file = DataFile(PATH, "PARQUET", ("eu", 2), 1, 1, spec_id=3)
    schema = Schema(fields=(SCHEMA.fields[0], NestedField(2, "b", False, STRING, initial_default="x")))
    found = read_plan(stored(numbers(2)), plan(schema, file=file, specs={3: IDENTITY_SPEC}))
    assert found.to_pydict() == {"a": [0, 1], "b": ["eu", "eu"]}
    only_bucket = PartitionSpec(3, (PartitionField(2, 1000, "b", Bucket(4)), PartitionField(1, 1001, "a", Bucket(4))))
    found = read_plan(stored(numbers(2)), plan(schema, file=file, specs={3: only_bucket}))
    assert found.to_pydict() == {"a": [0, 1], "b": ["x", "x"]}


def test_missing_field_of_a_struct_has_the_value_of_its_partition() -> None:
    arrow = pa.struct([with_id("x", pa.int64(), 4)])
    table = pa.table([pa.array([{"x": 1}, None], arrow)], schema=pa.schema([with_id("s", arrow, 3)]))
    point = StructType(
        (NestedField(4, "x", False, LONG), NestedField(5, "day", False, DATE, initial_default="2020-01-01"))
    )
    spec = PartitionSpec(3, (PartitionField(5, 1000, "day", IDENTITY),))
    schema = Schema(fields=(NestedField(3, "s", False, point),))
    for value, expected in ((1, "1970-01-02"), (None, "None")):
        file = DataFile(PATH, "PARQUET", (value,), 1, 1, spec_id=3)
        present, absent = read_plan(stored(table), plan(schema, file=file, specs={3: spec})).column("s").to_pylist()
        assert (present["x"], str(present["day"]), absent) == (1, expected, None)


def test_partition_values_must_be_those_of_the_spec() -> None:
    file = DataFile(PATH, "PARQUET", ("eu",), 1, 1, spec_id=3)
    with pytest.raises(FormatError, match=f"expected 2 partition values, found 1 for {PATH}"):
        read_plan(stored(numbers(1)), plan(file=file, specs={3: IDENTITY_SPEC}))


def test_stored_column_is_not_replaced_by_its_partition() -> None:
    spec = PartitionSpec(3, (PartitionField(1, 1000, "a", IDENTITY),))
    file = DataFile(PATH, "PARQUET", (7,), 1, 1, spec_id=3)
    assert read_plan(stored(numbers(1)), plan(file=file, specs={3: spec})).column("a").to_pylist() == [0]


def test_column_about_the_file_is_given_on_request() -> None:
    partition = StructType(
        (
            NestedField(1001, "a_bucket", False, INT),
            NestedField(1000, "b", False, STRING),
            NestedField(1002, "gone", False, DATE),
        )
    )
    file = DataFile(PATH, "PARQUET", ("eu", 2), 1, 1, spec_id=3)
    scan = plan(SCHEMA, FILE, POS, SPEC_ID, partition_column(partition), file=file, specs={3: IDENTITY_SPEC})
    found = read_plan(stored(numbers(5), row_group_size=2), scan)
    assert found.column("_file").to_pylist() == [PATH] * 5
    assert found.column("_pos").to_pylist() == [0, 1, 2, 3, 4]
    assert found.column("_spec_id").to_pylist() == [3] * 5
    assert found.column("_partition").to_pylist() == [{"a_bucket": 2, "b": "eu", "gone": None}] * 5


def test_partition_of_an_unpartitioned_table_is_null() -> None:
    found = read_plan(stored(numbers(1)), plan(SCHEMA, partition_column(StructType(()))))
    assert found.column("_partition").to_pylist() == [None]


def test_partition_values_of_every_kind_are_given() -> None:
    value = uuid.UUID(int=5)
    spec = PartitionSpec(3, (PartitionField(98, 1000, "u", IDENTITY), PartitionField(99, 1001, "d", IDENTITY)))
    fields = (NestedField(1000, "u", False, UUID), NestedField(1001, "d", False, DATE))
    file = DataFile(PATH, "PARQUET", (value, 1), 1, 1, spec_id=3)
    found = read_plan(
        stored(numbers(1)), plan(SCHEMA, partition_column(StructType(fields)), file=file, specs={3: spec})
    )
    assert str(found.column("_partition").to_pylist()) == str([{"u": value, "d": pa.scalar(1, pa.date32()).as_py()}])


LINEAGE = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)


def test_row_ids_are_inherited_by_position() -> None:
    file = DataFile(PATH, "PARQUET", (), 5, 1, first_row_id=100)
    scan = plan(SCHEMA, *LINEAGE, file=file, row_filter="a >= 3")
    found = read_plan(stored(numbers(5), row_group_size=2), scan)
    assert found.column("_row_id").to_pylist() == [103, 104]
    assert found.column("_last_updated_sequence_number").to_pylist() == [9, 9]


def test_stored_row_ids_win_where_they_are_not_null_and_count_only_with_a_first_row_id() -> None:
    fields = [with_id("a", pa.int64(), 1), with_id("r", pa.int64(), ROW_ID.id)]
    fields.append(with_id("n", pa.int64(), LAST_UPDATED_SEQUENCE_NUMBER.id))
    table = pa.table([[1, 2], [7, None], [None, 3]], schema=pa.schema(fields))
    for first, ids, updated in ((100, [7, 101], [9, 3]), (None, [None, None], [None, None])):
        file = DataFile(PATH, "PARQUET", (), 2, 1, first_row_id=first)
        found = read_plan(stored(table), plan(SCHEMA, *LINEAGE, file=file))
        assert found.column("_row_id").to_pylist() == ids
        assert found.column("_last_updated_sequence_number").to_pylist() == updated


@pytest.mark.parametrize("group", [3, 70_000])
def test_rows_come_in_pieces_of_bounded_size(group: int) -> None:
    files = stored(numbers(150_000) if group > 3 else numbers(10), row_group_size=group)
    batches = list(read_batches(files, plan(SCHEMA, POS)))
    assert all(0 < batch.num_rows <= min(group, 65_536) for batch in batches)
    assert len(batches) >= 3
    table = pa.Table.from_batches(batches)
    assert table.column("_pos").equals(table.column("a"))


def test_file_is_opened_only_when_its_turn_comes() -> None:
    scan = plan()
    missing = DataFile("memory:/nowhere", "PARQUET", (), 1, 1)
    scan = msgspec.structs.replace(scan, files=(*scan.files, PlannedFile(missing, 1)))
    batches = read_batches(stored(numbers(1)), scan)
    assert next(batches).num_rows == 1
