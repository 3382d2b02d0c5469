"""Rows to and from pandas and polars, through a table."""

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.errors import InvalidInputError
from support.fixtures.every_type import COLUMNS, every_type_rows, every_type_schema
from support.fixtures.rows import ids, order_rows

pytestmark = pytest.mark.long

WITH_NAN = {"float", "double", "nan", "point", "map"}
"""Columns with NaN, which to pandas is the same as null."""


@pytest.fixture(scope="module")
def memory() -> Iterator[Lake]:
    with bergline.connect("memory:") as lake:
        lake.create_namespace("db")
        every = lake.create_table("db.every", every_type_schema(), properties={"format-version": "3"})
        every.append(every_type_rows())
        yield lake


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_comes_back_from_pandas_polars_and_python(memory: Lake, name: str) -> None:
    scan = memory.load_table("db.every").scan(columns=[name])
    copy = memory.create_table(f"db.{name}", scan.schema, properties={"format-version": "3"})
    expected = repr(scan.to_arrow().to_pylist())
    for rows in (scan.to_polars(), scan.to_arrow().to_pylist(), scan.to_pandas(types_mapper=pd.ArrowDtype)):
        assert repr(copy.overwrite(rows).scan().to_arrow().to_pylist()) == expected
    frame = scan.to_pandas()
    without_nan = re.sub(r"\bnan\b(?!')", "None", expected) if name in WITH_NAN else expected
    assert repr(copy.overwrite(frame).scan().to_arrow().to_pylist()) == without_nan


def test_whole_numbers_with_nulls_keep_all_digits_in_pandas(lake: Lake) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int32()), ("c", pa.int64()), ("l", pa.list_(pa.int64()))])
    table = lake.create_table("db.t", schema)
    table.append([{"a": 2**60 + 1, "b": 5, "c": 1, "l": [2**60 + 1, None]}, {"a": None, "b": None, "c": 2, "l": None}])
    frame = table.scan().to_pandas()
    assert [str(kind) for kind in frame.dtypes] == ["Int64", "Int32", "int64", "object"]
    assert frame["a"].tolist() == [2**60 + 1, pd.NA]
    assert list(frame["l"][0]) == [2**60 + 1, None]
    only = table.scan(columns=["b", "a"]).to_pandas()
    assert (list(only.columns), len(only)) == (["b", "a"], 2)
    assert str(table.scan().to_pandas(types_mapper=pd.ArrowDtype)["c"].dtype) == "int64[pyarrow]"


def test_every_scan_has_pandas_and_polars(orders: Table) -> None:
    orders.append(order_rows(1))
    first = orders.metadata.snapshots[0].snapshot_id
    orders.append(order_rows(2, 3))
    for scan, expected in (
        (orders.scan("id > 1"), [2, 3]),
        (orders.scan(snapshot_id=first), [1]),
        (orders.scan_appends(first), [2, 3]),
        (orders.scan("id > 9"), []),
    ):
        assert scan.to_pandas()["id"].tolist() == scan.to_polars()["id"].to_list() == expected
        assert list(scan.to_pandas().columns) == scan.to_polars().columns == [f.name for f in scan.schema.fields]


def frames(*numbers: int) -> list[Any]:
    rows = order_rows(*numbers)
    return [rows.to_pandas(), pl.DataFrame(rows), rows.to_pylist()]


@pytest.mark.parametrize("kind", [0, 1, 2], ids=["pandas", "polars", "dictionaries"])
def test_everything_that_writes_rows_takes_them(orders: Table, kind: int) -> None:
    orders.append(frames(1, 2)[kind])
    orders.overwrite(frames(3)[kind], "id = 2")
    orders.append(frames(4)[kind], branch="staging")
    orders.append(frames(5)[kind], wap_id="w")
    with orders.transaction() as open_table:
        open_table.append(frames(6)[kind])
    assert ids(orders.scan().to_arrow()) == [1, 3, 6]
    assert ids(orders.overwrite_partitions(frames(7)[kind]).scan().to_arrow())[-1] == 7
    assert ids(orders.overwrite(frames(8)[kind]).scan().to_arrow()) == [8]


def test_rows_with_a_named_index_write_nothing(orders: Table) -> None:
    with pytest.raises(InvalidInputError, match="found `id` in the index of the DataFrame"):
        orders.append(order_rows(1).to_pandas().set_index("id"))
    assert orders.refresh().current_snapshot is None


def test_without_pandas_the_error_says_what_to_install() -> None:
    program = """
import sys
class NoPandas:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError("no pandas", name=name)
sys.meta_path.insert(0, NoPandas())
import bergline, pyarrow as pa
from bergline.errors import UnsupportedError
lake = bergline.connect("memory:")
lake.create_namespace("db")
table = lake.create_table("db.t", pa.schema([("id", pa.int64())])).append([{"id": 1}])
assert table.scan().to_polars()["id"].to_list() == [1]
try:
    table.scan().to_pandas()
except UnsupportedError as error:
    print(error, error.hints)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "cannot make a DataFrame without pandas ('pip install pandas',)\n"
