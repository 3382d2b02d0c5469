"""Field ids of the columns in a Parquet file."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bergline.datafiles.read.reader import read_plan
from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import ALWAYS_TRUE, bind
from bergline.format.manifest.manifest import DataFile
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.name_mapping import NameMapping, parse_name_mapping
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, STRING, ListType, MapType, NestedField, StructType
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


MAPPING = parse_name_mapping(
    """[
    {"field-id": 1, "names": ["a", "alpha"]},
    {"field-id": 3, "names": ["s"], "fields": [{"field-id": 4, "names": ["x"]}, {"names": ["y"]}]},
    {"field-id": 5, "names": ["l"], "fields": [{"field-id": 6, "names": ["element"]}]},
    {"field-id": 7, "names": ["m"], "fields": [
        {"field-id": 8, "names": ["key"]},
        {"field-id": 9, "names": ["value"], "fields": [{"field-id": 10, "names": ["z"]}]}]}
    ]"""
)


MAPPED = Schema(
    fields=(
        NestedField(1, "A", False, LONG),
        NestedField(3, "S", False, StructType((NestedField(4, "X", False, LONG), NestedField(11, "y", False, LONG)))),
        NestedField(5, "L", False, ListType(6, LONG, False)),
        NestedField(7, "M", False, MapType(8, STRING, 9, StructType((NestedField(10, "Z", False, LONG),)), False)),
    )
)


def test_name_mapping_gives_ids_on_every_level() -> None:
    maps = pa.array([[("k", {"z": 5})]], pa.map_(pa.string(), pa.struct([("z", pa.int64())])))
    table = pa.table({"alpha": [1], "s": [{"x": 2, "y": 3}], "l": [[4]], "m": maps, "other": [6]})
    for options in ({}, {"use_compliant_nested_type": False}):
        assert read_plan(stored(table, **options), plan(MAPPED, mapping=MAPPING)).to_pylist() == [
            {"A": 1, "S": {"X": 2, "y": None}, "L": [4], "M": [("k", {"Z": 5})]}
        ]


def test_one_id_anywhere_means_that_names_do_not_count() -> None:
    table = pa.table([[1], [[2]]], schema=pa.schema([("a", pa.int64()), ("l", pa.list_(with_id("e", pa.int64(), 6)))]))
    assert read_plan(stored(table), plan(MAPPED, mapping=MAPPING)).to_pylist() == [
        {"A": None, "S": None, "L": None, "M": None}
    ]
