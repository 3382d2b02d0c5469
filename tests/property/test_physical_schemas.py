"""Files of any physical naming: Spark's own reader, the Arrow reader and brute force give the same rows.

Files have their columns in any order and under any names, also under each other's, with field ids or without, narrower
than the table has them now, or not at all; the same holds for what is inside structs, lists and maps.
"""

import datetime as dt
import functools
import itertools
import json
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bergline import Lake, Table
from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.spark.reads.scan import read_plan
from bergline.spark.runtime.arrow_rows import in_spark
from bergline.spark.runtime.types import read_schema
from bergline.table.scans.scan import TableScan
from support.fixtures.add_deletes import add_deletes, deletion_vectors
from support.fixtures.chosen_readers import groups_of
from support.fixtures.foreign_files import stored, write_foreign_file
from support.models.brute_force_reader import read_rows

pytestmark = pytest.mark.spark

Field = dict[str, Any]

# names that columns may have in files; most of them are also names that the table has for other columns
NAMES = ("a", "b", "c", "d", "e", "f", "g", "A", "col_1", "order_x20id", "order id", "_metadata", "größe")
TZ = dt.UTC
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": st.integers(-100, 100),
    "long": st.integers(-100, 100),
    "float": st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")]),
    "double": st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("-inf")]),
    "decimal(5, 2)": st.sampled_from([Decimal("1.25"), Decimal("-999.99")]),
    "decimal(20, 2)": st.sampled_from([Decimal("1.25"), Decimal("-999.99")]),
    "date": st.dates(dt.date(1500, 1, 1), dt.date(2500, 1, 1)),
    "timestamp": st.datetimes(dt.datetime(1600, 1, 1), dt.datetime(2500, 1, 1)),  # noqa: DTZ001
    "timestamptz": st.datetimes(dt.datetime(1600, 1, 1), dt.datetime(2500, 1, 1), timezones=st.just(TZ)),  # noqa: DTZ001
    "string": st.sampled_from(["", "x", "ü☃", "1"]),
    "binary": st.binary(max_size=3),
    "fixed[2]": st.just(b"ab"),
}
STORED: dict[str, list[pa.DataType]] = {
    "boolean": [pa.bool_()],
    "int": [pa.int32(), pa.int8(), pa.int16()],
    "long": [pa.int64(), pa.int32(), pa.int16(), pa.uint32()],
    "float": [pa.float32()],
    "double": [pa.float64(), pa.float32()],
    "decimal(5, 2)": [pa.decimal128(5, 2)],
    "decimal(20, 2)": [pa.decimal128(20, 2), pa.decimal128(5, 2), pa.decimal128(12, 2)],
    "date": [pa.date32()],
    "timestamp": [pa.timestamp("us"), pa.timestamp("ms")],
    "timestamptz": [pa.timestamp("us", "UTC")],
    "string": [pa.string(), pa.binary()],
    "binary": [pa.binary()],
    "fixed[2]": [pa.binary(2)],
}
DEFAULTS = {"int": 7, "long": 7, "string": "new", "date": "1500-01-01", "boolean": True, "double": 1.5} | {
    "timestamp": "1600-01-01T00:00:00.000001",
    "timestamptz": "1600-01-01T00:00:00.000001+00:00",
    "decimal(5, 2)": "1.25",
    "binary": "00ff",
    "float": 0.5,
}
_numbers = itertools.count()
_examples = int(os.environ.get("BERGLINE_EXAMPLES", "3"))
_TABLES_AT_ONCE = 6
_read_natively: list[int] = []


@st.composite
def columns(draw: st.DrawFn, ids: "itertools.count[int]", depth: int = 0) -> list[Field]:
    """Columns of a table, with ids and perhaps values for files that lack them."""
    names = draw(st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f"]), unique=True, min_size=1, max_size=4))
    found = []
    for name in names:
        field: Field = {"id": next(ids), "name": name, "required": False, "type": draw(types(ids, depth))}
        if field["type"] in list(DEFAULTS) and draw(st.integers(0, 3)) == 0:
            field["initial-default"] = DEFAULTS[field["type"]]
        found.append(field)
    return found


@st.composite
def types(draw: st.DrawFn, ids: "itertools.count[int]", depth: int) -> Any:
    nested = ["struct", "list", "map"] if depth < 2 else []
    match draw(st.sampled_from([*VALUES, *nested, *nested])):
        case "struct":
            return {"type": "struct", "fields": draw(columns(ids, depth + 1))}
        case "list":
            inner = {"element-id": next(ids), "element": draw(types(ids, depth + 1)), "element-required": False}
            return {"type": "list", **inner}
        case "map":
            key = {"key-id": next(ids), "key": draw(st.sampled_from(["string", "long"]))}
            value = {"value-id": next(ids), "value": draw(types(ids, depth + 1)), "value-required": False}
            return {"type": "map", **key, **value}
        case primitive:
            return primitive


class Writer:
    """Draws a file: what each column is called and how it is stored, and then its rows."""

    def __init__(self, data: st.DataObject, *, has_ids: bool) -> None:
        self._draw = data.draw
        self._has_ids = has_ids
        self.names: dict[int, str] = {}
        """What columns are called, for a name mapping."""

    def fields(self, wanted: list[Field]) -> Iterator[tuple[pa.Field, Field]]:
        """Some of the columns in some order, as the file has them."""
        picked = self._draw(st.permutations(wanted))
        few = self._draw(st.integers(0, 2)) == 0
        picked = picked[: max(1, len(picked) - 1)] if few else picked
        own_names = self._draw(st.integers(0, 2)) == 0
        taken = self._draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=len(picked), max_size=len(picked)))
        for field, other in zip(picked, taken, strict=True):
            name = field["name"] if own_names else other
            self.names[field["id"]] = name
            yield self._field(name, field["id"], field["type"]), field

    def _field(self, name: str, field_id: int, type_: Any) -> pa.Field:
        return stored(name, self._type(type_), field_id if self._has_ids else None)

    def _type(self, type_: Any) -> pa.DataType:
        if not isinstance(type_, dict):
            return self._draw(st.sampled_from([STORED[type_][0], *STORED[type_]]))
        if type_["type"] == "struct":
            return pa.struct([field for field, _ in self.fields(type_["fields"])])
        if type_["type"] == "list":
            return pa.list_(self._field("element", type_["element-id"], type_["element"]))
        key = self._field("key", type_["key-id"], type_["key"]).with_nullable(False)
        return pa.map_(key, self._field("value", type_["value-id"], type_["value"]))

    def value(self, field: pa.Field, type_: Any, *, required: bool = False) -> Any:
        if not required and self._draw(st.integers(0, 4)) == 0:
            return None
        if not isinstance(type_, dict):
            value = self._draw(VALUES[type_])
            if type_ == "string" and pa.types.is_binary(field.type):
                return value.encode()
            if field.type == pa.timestamp("ms"):
                return value.replace(microsecond=0)
            return abs(value) if field.type == pa.uint32() else value
        if type_["type"] == "struct":
            by_name = {self.names[f["id"]]: f for f in type_["fields"] if f["id"] in self.names}
            return {f.name: self.value(f, by_name[f.name]["type"]) for f in field.type}
        count = range(self._draw(st.integers(0, 2)))
        if type_["type"] == "list":
            return [self.value(field.type.value_field, type_["element"]) for _ in count]
        keys = self._draw(st.lists(VALUES[type_["key"]], unique=True, max_size=2))
        if field.type.key_type == pa.uint32():
            keys = sorted({abs(key) for key in keys})
        if pa.types.is_binary(field.type.key_type):
            keys = [key.encode() for key in keys]
        return [(key, self.value(field.type.item_field, type_["value"])) for key in keys]


def mapping_of(fields: list[Field], names: dict[int, str]) -> list[Field]:
    """A name mapping by the names that a file's columns have."""
    mapped = []
    for field in fields:
        type_ = field["type"]
        entry: Field = {"field-id": field["id"], "names": [names[field["id"]]] if field["id"] in names else []}
        entry["fields"] = mapping_of(_inside(type_), names)
        mapped.append(entry)
    return mapped


def _inside(type_: Any) -> list[Field]:
    match type_:
        case {"type": "struct"}:
            return list(type_["fields"])
        case {"type": "list"}:
            return [{"id": type_["element-id"], "name": "element", "type": type_["element"]}]
        case {"type": "map"}:
            key, value = (type_["key-id"], type_["key"]), (type_["value-id"], type_["value"])
            return [{"id": i, "name": n, "type": t} for n, (i, t) in (("key", key), ("value", value))]
    return []


def fixed_names(fields: list[Field]) -> dict[int, str]:
    """The names that are the same in every file: those of elements, keys and values."""
    found = {}
    for field in fields:
        inside = _inside(field["type"])
        found |= {f["id"]: f["name"] for f in inside if field["type"].get("type") != "struct"} | fixed_names(inside)
    return found


def foreign_table(lake: Lake, directory: Path, data: st.DataObject) -> tuple[Table, list[Field]]:
    """A table of files by other writers; its metadata knows one schema, and nothing of what files were called."""
    fields = data.draw(columns(itertools.count(1)))
    number = next(_numbers)
    base = lake.create_table(f"db.base{number}", pa.schema([("base", pa.int64())]), properties={"format-version": "3"})
    mapping: list[Field] | None = None
    for _ in range(data.draw(st.integers(1, 4))):
        has_ids = mapping is not None or data.draw(st.integers(0, 3)) > 0
        writer = Writer(data, has_ids=has_ids)
        drawn = list(writer.fields(fields))
        rows = data.draw(st.integers(1, 3))
        values = {column: [writer.value(column, f["type"]) for _ in range(rows)] for column, f in drawn}
        base.append_files([write_foreign_file(base, values, store_schema=data.draw(st.booleans()))])
        if not has_ids:
            mapping = mapping_of(fields, writer.names | fixed_names(fields))
    if data.draw(st.booleans()):
        file = data.draw(st.sampled_from([p.file for p in base.scan().plan().files]))
        deleted = data.draw(st.integers(0, file.record_count - 1))
        add_deletes(base, *deletion_vectors(base, {file.file_path: [deleted]}))
    metadata = json.loads(Path(base.refresh().metadata_location.removeprefix("file://")).read_bytes())
    metadata["schemas"] = [{"type": "struct", "schema-id": 0, "fields": fields}]
    metadata["last-column-id"] = 1000
    if mapping is not None:
        metadata["properties"]["schema.name-mapping.default"] = json.dumps(mapping)
    path = directory / f"{number}.metadata.json"
    path.write_text(json.dumps(metadata))
    return lake.register_table(f"db.t{number}", f"file://{path}"), fields


def as_text(frame: DataFrame, case: int, reader: str) -> DataFrame:
    row = F.to_json(F.struct("*"), {"ignoreNullFields": "false"})
    return frame.select(F.lit(case).alias("t"), F.lit(reader).alias("r"), row.alias("row"))


def in_session(spark: SparkSession, rows: pa.Table, scan: TableScan) -> DataFrame:
    columns = [in_spark(column.combine_chunks()) for column in rows.columns]
    return spark.createDataFrame(pa.table(columns, names=rows.column_names), read_schema(scan.schema))


def plain(rows: pa.Table) -> list[str]:
    """Rows as text that can be compared, in which NaN equals itself and -0.0 is not 0.0."""
    return sorted(map(repr, rows.to_pylist()))


def check_readers(spark: SparkSession, tables: list[tuple[Table, list[Field]]], data: st.DataObject) -> None:
    """All readers agree on some columns of all tables; Spark reads them in one job."""
    frames, about = [], []
    for table, fields in tables:
        names = [f["name"] for f in fields]
        chosen = data.draw(st.just(names) | st.lists(st.sampled_from(names), unique=True, min_size=1))
        scan = table.scan(columns=chosen)
        rows = read_rows(table.io.read, table.metadata_location)
        expected = pa.Table.from_pylist(
            [{name: row[name] for name in chosen} for row in rows], arrow_schema(scan.schema)
        )
        groups = groups_of(scan)
        about.append((fields, chosen, [f"{g.reader}: {g.reason}" for g in groups]))
        assert plain(scan.to_arrow()) == plain(expected), about[-1]
        natively = sum(len(g.files) for g in groups if g.reader == "native")
        _read_natively.append(natively)
        if natively:
            case = len(about) - 1
            frames.append(as_text(read_plan(scan.plan(), spark, scan.io), case, "spark"))
            frames.append(as_text(in_session(spark, expected, scan), case, "brute force"))
    if not frames:
        return
    found: dict[tuple[int, str], list[str]] = {}
    for row in functools.reduce(DataFrame.unionAll, frames).collect():
        found.setdefault((row.t, row.r), []).append(row.row)
    for case, what in enumerate(about):
        assert sorted(found.get((case, "spark"), [])) == sorted(found.get((case, "brute force"), [])), what


@given(st.data())
@settings(max_examples=_examples, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_every_reader_finds_columns_by_what_files_say_of_them(
    spark: SparkSession, lake: Lake, tmp_path: Path, data: st.DataObject
) -> None:
    check_readers(spark, [foreign_table(lake, tmp_path, data) for _ in range(_TABLES_AT_ONCE)], data)


def test_spark_read_some_of_these_files_by_itself() -> None:
    assert not _read_natively or sum(_read_natively)
