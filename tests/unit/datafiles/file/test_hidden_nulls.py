"""Null structs that have required fields: written, read and written again."""

import datetime as dt
import io
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline.datafiles.file.hidden_nulls import fill_hidden_nulls
from bergline.datafiles.write.fit import fit_to_schema
from bergline.format.schema.schema import Schema
from bergline.format.types.types import INT, LONG, STRING, NestedField, StructType
from bergline.lake.lake import Lake

_A = pa.field("a", pa.int32(), nullable=False)
_OF_EVERY_TYPE = pa.struct(
    [
        pa.field(name, type_, nullable=False)
        for name, type_ in {
            "u": pa.uuid(),
            "d": pa.decimal128(9, 2),
            "f": pa.binary(3),
            "t": pa.timestamp("us", "UTC"),
            "x": pa.binary(),
            "s": pa.string(),
            "b": pa.bool_(),
            "c": pa.time64("us"),
            "e": pa.date32(),
            "g": pa.float64(),
        }.items()
    ]
)
_TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "struct": (pa.struct([_A, ("b", pa.string())]), [None, {"a": 1, "b": None}]),
    "struct in a struct": (pa.struct([pa.field("i", pa.struct([_A]), nullable=False)]), [None, {"i": {"a": 1}}]),
    "null in a struct": (pa.struct([("i", pa.struct([_A]))]), [None, {"i": None}, {"i": {"a": 1}}]),
    "list in a struct": (
        pa.struct([pa.field("l", pa.list_(pa.field("element", pa.int32(), nullable=False)), nullable=False)]),
        [None, {"l": []}, {"l": [1]}],
    ),
    "struct in a list": (pa.list_(pa.struct([_A])), [None, [None, {"a": 1}], []]),
    "struct in a map": (pa.map_(pa.string(), pa.struct([_A])), [None, [("k", None), ("l", {"a": 1})]]),
}


def _nullable(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(f.name, _nullable(f.type)) for f in type_])
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, _nullable(type_.item_type))
    return pa.list_(_nullable(type_.value_type)) if pa.types.is_list(type_) else type_


@pytest.mark.parametrize("name", _TYPES)
@pytest.mark.parametrize("of_rows", [_nullable, lambda type_: type_], ids=["nullable rows", "rows as the table"])
def test_null_structs_with_required_fields_come_back(lake: Lake, name: str, of_rows: Any) -> None:
    type_, values = _TYPES[name]
    table = lake.create_table("db.nulls", pa.schema([("v", type_)]))
    table.append(pa.table({"v": pa.array(values, of_rows(type_))}))
    found = table.scan().to_arrow()
    assert found["v"].to_pylist() == values
    pq.write_table(found, io.BytesIO())
    table.append(found.slice(1))
    assert sorted(map(str, table.scan().to_arrow()["v"].to_pylist())) == sorted(map(str, [*values, *values[1:]]))


@pytest.mark.parametrize("type_", [*(t for t, _ in _TYPES.values()), _OF_EVERY_TYPE], ids=str)
def test_column_that_rows_lack_is_null(lake: Lake, type_: pa.DataType) -> None:
    table = lake.create_table("db.lacks", pa.schema([("id", pa.int64()), ("v", type_)]))
    table.append(pa.table({"id": [1, 2]}))
    table.append(pa.table({"id": [3], "v": pa.nulls(1)}))
    table.append(table.scan().to_arrow())
    assert table.scan().to_arrow()["v"].to_pylist() == [None] * 6


def test_struct_of_every_type_beside_a_null_one(lake: Lake) -> None:
    row = {
        "u": uuid.UUID(int=5).bytes,
        "d": Decimal("1.50"),
        "f": b"abc",
        "t": dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        "x": b"",
        "s": "é",
        "b": True,
        "c": dt.time(1),
        "e": dt.date(2024, 1, 1),
        "g": 0.5,
    }
    storage = pa.struct([pa.field(f.name, pa.binary(16) if f.name == "u" else f.type) for f in _OF_EVERY_TYPE])
    parts = pa.array([row, row], storage).flatten()
    parts[0] = pa.ExtensionArray.from_storage(pa.uuid(), parts[0])
    values = pa.StructArray.from_arrays(parts, names=list(row), mask=pa.array([False, True]))
    table = lake.create_table("db.every", pa.schema([("v", _OF_EVERY_TYPE)]))
    table.append(pa.table({"v": values}))
    table.append(table.scan().to_arrow())
    assert table.scan().to_arrow()["v"].to_pylist() == [row | {"u": uuid.UUID(int=5)}, None] * 2


def test_metrics_count_what_is_hidden_as_null(lake: Lake) -> None:
    table = lake.create_table("db.counts", pa.schema([("v", pa.struct([_A]))]))
    table.append(pa.table({"v": pa.array([None, {"a": 5}], pa.struct([("a", pa.int32())]))}))
    (planned,) = table.scan().plan().files
    assert (planned.file.value_counts, planned.file.null_value_counts) == ({2: 2}, {2: 1})
    assert planned.file.lower_bounds == {2: (5).to_bytes(4, "little")}


def test_null_of_a_required_field_in_a_struct_that_is_there_stays() -> None:
    field = pa.field("v", pa.struct([_A]))
    shown = pa.StructArray.from_arrays([pa.array([None, None], pa.int32())], fields=[_A], mask=pa.array([True, False]))
    found = fill_hidden_nulls(shown, field)
    assert found.to_pylist() == [None, {"a": None}]
    assert found.field(0).null_count == 1


def test_column_without_hidden_nulls_is_not_copied() -> None:
    type_ = pa.struct([_A, ("l", pa.list_(pa.struct([_A])))])
    array = pa.array([{"a": 1, "l": [{"a": 2}]}, {"a": 1, "l": None}], type_)
    assert fill_hidden_nulls(array, pa.field("v", type_)) is array


@pytest.mark.parametrize("default", [None, {}])
def test_struct_with_defaults_inside_that_rows_lack(default: dict[str, Any] | None) -> None:
    inside = NestedField(3, "a", True, INT, initial_default=7, write_default=7)
    type_ = StructType((inside, NestedField(4, "b", False, STRING)))
    struct = NestedField(2, "v", False, type_, initial_default=default, write_default=default)
    found = fit_to_schema(pa.table({"id": [1]}), Schema((NestedField(1, "id", False, LONG), struct)))
    assert found["v"].to_pylist() == [None if default is None else {"a": 7, "b": None}]
    pq.write_table(found, io.BytesIO())
