"""Rows of pandas, polars and Python: nothing is lost on the way, and what is no row is refused."""

import datetime as dt
import math
import re
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bergline.datafiles.write.fit import fit_to_schema
from bergline.errors import InvalidInputError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

ID, TEXT_ID = uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"
BERLIN = "Europe/Berlin"
NANO = pd.Timestamp("2026-01-31 12:00:00.000000001")
POINT = StructType((NestedField(10, "x", True, INT), NestedField(11, "y", False, STRING)))


def schema_of(type_: IcebergType, *, required: bool = False) -> Schema:
    return Schema(fields=(NestedField(1, "v", required, type_),))


def fitted(rows: Any, type_: IcebergType) -> list[Any]:
    return fit_to_schema(rows, schema_of(type_))["v"].to_pylist()  # type: ignore[no-any-return]


def kind_of(value: object) -> str:
    """A name for a case that is the same in every process."""
    return value if isinstance(value, str) else type(value).__name__


@pytest.mark.parametrize(
    ("series", "type_", "expected"),
    [
        (pd.Series([1, 2]), LONG, [1, 2]),
        (pd.Series([1.0, np.nan]), LONG, [1, None]),  # as pandas has whole numbers with gaps
        (pd.Series([1.0, np.nan]), INT, [1, None]),
        (pd.Series([2**60 + 1, pd.NA], dtype="Int64"), LONG, [2**60 + 1, None]),
        (pd.Series([1.5, np.nan]), DOUBLE, [1.5, None]),
        (pd.Series([1.5, np.nan], dtype="float32"), FLOAT, [1.5, None]),
        (pd.Series(["a", None, np.nan, pd.NA], dtype=object), STRING, ["a", None, None, None]),
        (pd.Series(["a", None], dtype="string"), STRING, ["a", None]),
        (pd.Series(["a", None], dtype="string[pyarrow]"), STRING, ["a", None]),
        (pd.Series(["a", None, "a"], dtype="category"), STRING, ["a", None, "a"]),
        (pd.Series([1, 2, 1], dtype="category"), LONG, [1, 2, 1]),
        (pd.Series([None, None]), STRING, [None, None]),
        (
            pd.Series([pd.Timestamp("2026-01-31 12:00", tz=BERLIN), pd.NaT]),
            TIMESTAMPTZ,
            [dt.datetime(2026, 1, 31, 11, tzinfo=dt.UTC), None],
        ),
        (pd.Series([pd.Timestamp("2026-01-31"), pd.NaT]), TIMESTAMP, [dt.datetime(2026, 1, 31), None]),  # noqa: DTZ001
        (pd.Series([NANO]), TIMESTAMP_NS, [NANO]),
        (pd.Series([NANO], dtype=object), TIMESTAMP_NS, [NANO]),
        (pd.Series([dt.date(2026, 1, 31), None]), DATE, [dt.date(2026, 1, 31), None]),
        (pd.Series([Decimal("1.5"), None]), DecimalType(9, 2), [Decimal("1.50"), None]),
        (pd.Series([ID, None]), UUID, [ID, None]),
        (pd.Series([TEXT_ID, None]), UUID, [ID, None]),
        (pd.Series([[1, 2], None, []]), ListType(2, LONG, False), [[1, 2], None, []]),
        (pd.Series([[ID], None]), ListType(2, UUID, False), [[ID], None]),
        (pd.Series([[b"ab"], None]), ListType(2, FixedType(2), False), [[b"ab"], None]),
        (pd.Series([{"a": 1}, None]), MapType(2, STRING, 3, LONG, False), [[("a", 1)], None]),
        (pd.Series([[("a", 1)], None]), MapType(2, STRING, 3, LONG, False), [[("a", 1)], None]),
        (pd.Series([{"x": 1, "y": "a"}, None]), POINT, [{"x": 1, "y": "a"}, None]),
        (pd.Series([1, 2], index=[7, 9]), LONG, [1, 2]),  # an index without a name is left out
    ],
    ids=kind_of,
)
def test_columns_of_pandas_keep_their_values(series: pd.Series, type_: IcebergType, expected: list[Any]) -> None:
    assert fitted(pd.DataFrame({"v": series}), type_) == expected


@pytest.mark.parametrize(
    ("frame", "type_", "message"),
    [
        (pd.DataFrame({"v": [1.5]}), LONG, "expected values of `long`, found others in column `v`: Float value 1.5"),
        (pd.DataFrame({"v": [3e10]}), INT, "expected values of `int`, found others in column `v`"),
        (pd.DataFrame({"v": [1, "a"]}), LONG, "expected values of `long`, found others in column `v`"),
        (pd.DataFrame({"v": ["1"]}), LONG, "expected `long`, found `string` in column `v`"),
        (pd.DataFrame({"v": [1]}), STRING, "expected `string`, found `int64` in column `v`"),
        (pd.DataFrame({"v": [NANO]}), TIMESTAMP, "expected values that fit `timestamp`"),
        (pd.DataFrame({"v": pd.Series([NANO], dtype=object)}), TIMESTAMP, "expected values that fit `timestamp`"),
        (pd.DataFrame({"v": [NANO]}), TIMESTAMPTZ, "expected `timestamptz`, found `timestamp[ns]`"),
        (pd.DataFrame({"v": [1j]}), DOUBLE, "expected values of `double`, found others in column `v`"),
        (pd.DataFrame({"v": pd.period_range("2026", periods=1)}), DATE, "in column `v`"),
        (pd.DataFrame({"w": [1]}), LONG, "expected columns `v`, found `w`"),
        (pd.DataFrame([[1]]), LONG, "expected text for a column's name, found 0"),
        (pd.DataFrame([[1, 2]], columns=["v", "v"]), LONG, "expected each column once, found `v`, `v`"),
        (
            pd.DataFrame({"v": [1], "w": [2]}).set_index("v"),
            LONG,
            "expected all values in columns, found `v` in the index of the DataFrame",
        ),
        (pd.Series([1], name="v"), LONG, "a list of dictionaries, found pandas.Series"),
        (pl.Series("v", [1]), LONG, "a list of dictionaries, found polars.Series"),
        (pl.LazyFrame({"v": [1]}), LONG, "a list of dictionaries, found polars.LazyFrame"),
        (pl.DataFrame({"v": [object()]}), LONG, "expected a column of values, found Python objects in column `v`"),
        (pl.DataFrame({"v": [1.5]}), LONG, "expected `long`, found `double` in column `v`"),
        ({"v": [1]}, LONG, "expected rows as Arrow data (pyarrow.Table), as a pandas or polars DataFrame or as a list"),
        ([1], LONG, "a list of dictionaries, found list"),
        ("v", LONG, "a list of dictionaries, found str"),
        (None, LONG, "a list of dictionaries, found NoneType"),
        ([{"v": 1}, {}], LONG, "expected the same columns in every row, found `v` in only one of rows 0 and 1"),
        ([{"v": 1}, {"v": 1, "w": 2}], LONG, "found `w` in only one of rows 0 and 1"),
        ([{5: 1}], LONG, "expected text for a column's name, found 5"),
        ([{"v": 2**70}], LONG, "in column `v`"),
        ([{"v": "ab"}], ListType(2, UUID, False), "expected values of `list<uuid>`, found others in column `v`"),
        ([{"v": 5}], MapType(2, STRING, 3, LONG, False), "expected values of `map<string, long>`, found others"),
        ([{"v": [5]}], MapType(2, STRING, 3, LONG, False), "expected values of `map<string, long>`, found others"),
        ([{"v": [NANO]}], ListType(2, TIMESTAMP, False), "expected values that fit `list<timestamp>`"),
        ([{"v": 1e300}], FLOAT, "expected `float`, found `double` in column `v`"),
        (
            [{"v": {"a": 1.5}}],
            MapType(2, STRING, 3, LONG, False),
            "expected `map<string, long>`, found `map<string, double>`",
        ),
    ],
    ids=kind_of,
)
def test_rows_that_would_change_or_are_none_are_refused(frame: Any, type_: IcebergType, message: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        fit_to_schema(frame, schema_of(type_))


@pytest.mark.parametrize(
    ("rows", "hint"),
    [
        (pd.Series([1]), "a Series is one column: pass a DataFrame"),
        (pl.LazyFrame({"v": [1]}), "collect() it first"),
        (
            pd.DataFrame(index=pd.Index([1], name="v")),
            "reset_index() makes it a column, reset_index(drop=True) drops it",
        ),
    ],
    ids=kind_of,
)
def test_what_is_nearly_right_has_a_hint(rows: Any, hint: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        fit_to_schema(rows, schema_of(LONG))
    assert caught.value.hints == (hint,)


@pytest.mark.parametrize(
    ("series", "type_", "expected"),
    [
        (pl.Series([1, None]), LONG, [1, None]),
        (pl.Series([1, None], dtype=pl.UInt8), INT, [1, None]),
        (pl.Series([1.5, math.inf, None]), DOUBLE, [1.5, math.inf, None]),
        (pl.Series(["a", None]), STRING, ["a", None]),
        (pl.Series(["a", None], dtype=pl.Categorical), STRING, ["a", None]),
        (pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"])), STRING, ["a", "b"]),
        (pl.Series([None, None]), DATE, [None, None]),
        (pl.Series([Decimal("1.5")]), DecimalType(9, 2), [Decimal("1.50")]),
        (pl.Series([[1], None]), ListType(2, LONG, False), [[1], None]),
        (pl.Series([{"x": 1, "y": "a"}, None]), POINT, [{"x": 1, "y": "a"}, None]),
        (pl.Series([b"a" * 16, None]), UUID, [uuid.UUID(bytes=b"a" * 16), None]),
    ],
    ids=kind_of,
)
def test_columns_of_polars_keep_their_values(series: pl.Series, type_: IcebergType, expected: list[Any]) -> None:
    assert fitted(pl.DataFrame({"v": series}), type_) == expected


def test_dictionaries_are_rows() -> None:
    assert fitted([{"v": 1}, {"v": None}], LONG) == [1, None]
    assert fitted(({"v": 1},), LONG) == [1]
    assert fitted([{"v": 0.1}], FLOAT) == [np.float32(0.1)]
    assert fitted([{"v": None}], FLOAT) == [None]
    assert fitted([{"v": math.inf}], FLOAT) == [math.inf]
    assert fitted([{"v": {"x": 1, "y": None}}], POINT) == [{"x": 1, "y": None}]
    assert fitted([{"v": {"a": 1}}, {"v": {}}], MapType(2, STRING, 3, LONG, False)) == [[("a", 1)], []]
    assert fit_to_schema([], schema_of(LONG, required=True)).num_rows == 0


def test_everything_that_streams_arrow_is_rows() -> None:
    class Streams:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table({"v": [1, 2]}).__arrow_c_stream__(requested_schema)

    assert fitted(Streams(), LONG) == [1, 2]
