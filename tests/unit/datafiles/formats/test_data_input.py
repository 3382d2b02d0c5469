"""Files of every format give the same rows by the same reader; others are refused by name."""

from typing import Any

import pyarrow as pa
import pytest

from bergline.datafiles.formats import avro
from bergline.datafiles.formats.data_input import open_data_file
from bergline.datafiles.read.reader import read_plan
from bergline.errors import FormatError, NotFoundError, UnsupportedError
from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import bind
from bergline.format.deletes.delete_files import POSITION_DELETE_SCHEMA
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.format.schema.name_mapping import parse_name_mapping
from bergline.format.schema.schema import Schema
from bergline.format.types.types import INT, LONG, STRING, ListType, MapType, NestedField, StructType
from bergline.io.memory import MemoryFileIO
from bergline.scan.plan import KeyColumn, PlannedFile, ScanPlan
from support.fixtures.every_type import comparable, every_type_rows, every_type_schema
from support.fixtures.other_formats import avro_file, orc_file

LOCATION = "memory:/f"
FORMATS = {"ORC": orc_file, "AVRO": avro_file}


@pytest.fixture(params=["ORC", "AVRO", "AVRO without polars"])
def file_format(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each format, and Avro as executors read it that have no polars."""
    name, _, without = request.param.partition(" ")
    if without:
        monkeypatch.setattr(avro, "_polars", lambda: None)
    return str(name)


def stored(content: bytes, location: str = LOCATION, files: MemoryFileIO | None = None) -> MemoryFileIO:
    files = files or MemoryFileIO()
    files.create(location, content)
    return files


def plan(schema: Schema, planned: PlannedFile, text: str = "true", **options: Any) -> ScanPlan:
    return ScanPlan(1, schema, schema, bind(parse_predicate(text), schema), (planned,), **options)


def data_file(file_format: str, **fields: Any) -> DataFile:
    return DataFile(LOCATION, file_format, (), 1, 1, **fields)


def near(rows: pa.Table) -> pa.Table:
    """Rows with timestamps that nanoseconds can tell, which is what pyarrow reads from ORC."""
    for name in ("timestamp", "timestamptz"):
        column = pa.array([None, 1, 2**52, -(2**52)], pa.int64()).cast(rows.schema.field(name).type)
        rows = rows.set_column(rows.column_names.index(name), name, column)
    return rows


def test_every_type_is_read(file_format: str) -> None:
    schema, rows = every_type_schema(), every_type_rows()
    if file_format == "ORC":
        rows = near(rows)
    files = stored(FORMATS[file_format](schema, rows))
    found = read_plan(files, plan(schema, PlannedFile(data_file(file_format), 1)))
    assert comparable(found) == comparable(rows)


def test_rows_are_those_of_the_current_schema(file_format: str) -> None:
    old = Schema(
        fields=(
            NestedField(1, "a", False, INT),
            NestedField(2, "b", False, STRING),
            NestedField(3, "s", False, StructType((NestedField(4, "x", False, INT), NestedField(5, "y", False, INT)))),
            NestedField(6, "m", False, MapType(7, STRING, 8, ListType(9, INT, False), False)),
        )
    )
    new = Schema(
        fields=(
            NestedField(
                3, "t", False, StructType((NestedField(5, "x", False, LONG), NestedField(10, "z", False, INT)))
            ),
            NestedField(2, "a", False, STRING),
            NestedField(11, "d", False, INT, initial_default=7),
            NestedField(1, "b", False, LONG),
            NestedField(6, "m", False, MapType(7, STRING, 8, ListType(9, LONG, False), False)),
        )
    )
    rows = pa.table(
        {
            "a": pa.array([1, None, 3], pa.int32()),
            "b": ["x", "y", None],
            "s": pa.array(
                [{"x": 1, "y": 2}, None, {"x": None, "y": None}], pa.struct([("x", pa.int32()), ("y", pa.int32())])
            ),
            "m": pa.array([[("k", [1, None])], None, []], pa.map_(pa.string(), pa.list_(pa.int32()))),
        }
    )
    files = stored(FORMATS[file_format](old, rows))
    found = read_plan(files, plan(new, PlannedFile(data_file(file_format), 1), "b >= 1"))
    assert found.to_pylist() == [
        {"t": {"x": 2, "z": None}, "a": "x", "d": 7, "b": 1, "m": [("k", [1, None])]},
        {"t": {"x": None, "z": None}, "a": None, "d": 7, "b": 3, "m": []},
    ]


def test_names_are_mapped_in_files_without_ids(file_format: str) -> None:
    schema = Schema(fields=(NestedField(1, "a", False, LONG), NestedField(2, "l", False, ListType(3, STRING, False))))
    rows = pa.table({"a": [1], "l": [["x"]]})
    files = stored(FORMATS[file_format](schema, rows, with_ids=False))
    now = Schema(fields=(NestedField(2, "a", False, ListType(3, STRING, False)), NestedField(1, "b", False, LONG)))
    planned = PlannedFile(data_file(file_format), 1)
    with pytest.raises(UnsupportedError, match=f"expected field ids or a name mapping, found neither in {LOCATION}"):
        read_plan(files, plan(now, planned))
    mapping = parse_name_mapping(
        '[{"field-id": 1, "names": ["a"]}, '
        '{"field-id": 2, "names": ["l"], "fields": [{"field-id": 3, "names": ["element"]}]}]'
    )
    assert read_plan(files, plan(now, planned, name_mapping=mapping)).to_pylist() == [{"a": ["x"], "b": 1}]


def test_deletes_are_read_and_applied(file_format: str) -> None:
    write = FORMATS[file_format]
    schema = Schema(fields=(NestedField(1, "id", False, LONG), NestedField(2, "k", False, STRING)))
    files = stored(write(schema, pa.table({"id": range(6), "k": ["a", None, "c", "d", None, "f"]})))
    positions = pa.table({"file_path": [LOCATION, LOCATION, "memory:/other"], "pos": [0, 5, 1]})
    stored(write(POSITION_DELETE_SCHEMA, positions), "memory:/positions", files)
    keys = Schema(fields=(schema.fields[1],))
    stored(write(keys, pa.table({"k": ["c", None]})), "memory:/keys", files)
    deletes = (
        DataFile("memory:/positions", file_format, (), 3, 1, content=FileContent.POSITION_DELETES),
        DataFile("memory:/keys", file_format, (), 2, 1, content=FileContent.EQUALITY_DELETES, equality_ids=(2,)),
    )
    column = KeyColumn(2, ("k",), schema.fields[1])
    found = read_plan(files, plan(schema, PlannedFile(data_file(file_format), 1, deletes), key_columns=(column,)))
    assert found["id"].to_pylist() == [3]
    stored(write(POSITION_DELETE_SCHEMA, pa.table({"file_path": [LOCATION], "pos": [6]})), "memory:/beyond", files)
    beyond = DataFile("memory:/beyond", file_format, (), 1, 1, content=FileContent.POSITION_DELETES)
    with pytest.raises(FormatError, match="expected deletes at positions below 6, found 6"):
        read_plan(files, plan(schema, PlannedFile(data_file(file_format), 1, (beyond,))))


def test_rows_are_counted_without_columns(file_format: str) -> None:
    schema = Schema(fields=(NestedField(1, "id", False, LONG),))
    files = stored(FORMATS[file_format](schema, pa.table({"id": range(5)})))
    with open_data_file(files, data_file(file_format)) as file:
        assert (list(file.group_rows), file.num_groups) == ([5], 1)
        assert [(first, batch.num_rows) for first, batch in file.batches([])] == [(0, 5)]
        assert list(file.batches(["id"], [])) == []


def test_what_cannot_be_read_is_refused_by_name(file_format: str) -> None:
    files = stored(b"PAR1, of all things")
    expected = pytest.raises(FormatError, match=f"expected an (ORC|Avro) file, found .* in {LOCATION}")
    with expected, open_data_file(files, data_file(file_format)):
        pass
    with pytest.raises(NotFoundError, match=LOCATION), open_data_file(MemoryFileIO(), data_file(file_format)):
        pass
    refused = {
        f"^cannot read the encrypted file {LOCATION}$": data_file(file_format, key_metadata=b"key"),
        f"PARQUET, ORC, AVRO, found `{file_format}2` at {LOCATION}$": data_file(f"{file_format}2"),
    }
    for message, file in refused.items():
        with pytest.raises(UnsupportedError, match=message), open_data_file(files, file):
            pass
