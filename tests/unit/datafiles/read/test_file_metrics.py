"""Metrics from footers alone: those that a writer of ours would collect from the rows, or none."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline.datafiles.file.arrow_schema import schema_from_arrow
from bergline.datafiles.file.schema import identified
from bergline.datafiles.read.file_metrics import FileMetrics, file_metrics
from bergline.datafiles.write.metrics_mode import COUNTS, FULL, NONE, MetricsModes
from bergline.format.schema.name_mapping import create_name_mapping
from bergline.format.types.single_values import decode_value


def metrics(path: Path, rows: pa.Table, modes: MetricsModes | None = None, **options: Any) -> FileMetrics:
    pq.write_table(rows, path / "a.parquet", **options)
    schema = schema_from_arrow(rows.schema)
    footer = pq.read_metadata(path / "a.parquet")
    columns = identified(pq.read_schema(path / "a.parquet"), create_name_mapping(schema))
    return file_metrics(footer, columns, schema, modes or MetricsModes())


@pytest.mark.parametrize(
    ("values", "type_", "lower", "upper"),
    [
        ([3, None, 1], pa.int32(), 1, 3),
        ([3, None, 1], pa.int64(), 1, 3),
        ([True, False], pa.bool_(), False, True),
        ([1.5, -1.5], pa.float32(), -1.5, 1.5),
        ([dt.date(1970, 1, 3)], pa.date32(), 2, 2),
        ([5, 7], pa.timestamp("us"), 5, 7),
        ([5, 7], pa.timestamp("ms"), 5000, 7000),
        ([5, 7], pa.time64("us"), 5, 7),
        (["x" * 20, "a"], pa.string(), "a", "x" * 15 + "y"),
        ([b"\xff" * 20, b"a"], pa.binary(), b"a", None),
        ([Decimal("1.28"), Decimal("-1.00")], pa.decimal128(9, 2), Decimal("-1.00"), Decimal("1.28")),
        ([Decimal("1.28")], pa.decimal128(38, 2), Decimal("1.28"), Decimal("1.28")),
        ([b"ab", b"cd"], pa.binary(2), b"ab", b"cd"),
    ],
)
def test_bounds_are_those_of_the_values(tmp_path: Path, values: list[Any], type_: Any, lower: Any, upper: Any) -> None:
    rows = pa.table({"a": pa.array(values, type_)})
    found = metrics(tmp_path, rows)
    iceberg = schema_from_arrow(rows.schema).fields[0].type
    assert found.value_counts == {1: len(values)}
    assert found.null_value_counts == {1: values.count(None)}
    assert decode_value(iceberg, found.lower_bounds[1]) == lower
    assert (decode_value(iceberg, found.upper_bounds[1]) if 1 in found.upper_bounds else None) == upper


def test_bounds_are_taken_over_row_groups(tmp_path: Path) -> None:
    found = metrics(tmp_path, pa.table({"a": [5, 6, 1, 2, None, None]}), row_group_size=2)
    assert (found.value_counts, found.null_value_counts) == ({1: 6}, {1: 2})
    assert found.lower_bounds[1] == (1).to_bytes(8, "little")
    assert found.upper_bounds[1] == (6).to_bytes(8, "little")


def test_zeros_have_both_signs(tmp_path: Path) -> None:
    found = metrics(tmp_path, pa.table({"a": [0.0]}))
    assert (found.lower_bounds[1], found.upper_bounds[1]) == (b"\0" * 7 + b"\x80", b"\0" * 8)


def test_columns_of_nulls_and_of_no_rows_have_no_bounds(tmp_path: Path) -> None:
    found = metrics(tmp_path, pa.table({"a": pa.array([None, None], pa.int64())}))
    assert (found.null_value_counts, found.lower_bounds) == ({1: 2}, {})
    assert not metrics(tmp_path, pa.table({"a": pa.array([], pa.int64())})).lower_bounds


def test_files_without_statistics_have_sizes_alone(tmp_path: Path) -> None:
    found = metrics(tmp_path, pa.table({"a": [1]}), write_statistics=False)
    assert found.column_sizes[1] > 0
    assert (found.value_counts, found.null_value_counts, found.lower_bounds) == ({}, {}, {})


def test_modes_of_the_table_count(tmp_path: Path) -> None:
    rows = pa.table({"a": ["x" * 20], "b": ["y"], "c": ["z"]})
    found = metrics(tmp_path, rows, MetricsModes(FULL, {2: COUNTS, 3: NONE}))
    assert found.upper_bounds == {1: b"x" * 20}
    assert (found.value_counts, found.column_sizes.keys()) == ({1: 1, 2: 1}, {1, 2})


def test_structs_are_counted_lists_and_maps_are_not(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "s": pa.array([{"x": 1}, None], pa.struct([("x", pa.int64())])),
            "l": pa.array([[1, 2], None], pa.list_(pa.int64())),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            "z": [7, 8],
        }
    )
    ids = {name: f.id for name, f in schema_from_arrow(rows.schema).names.items()}
    found = metrics(tmp_path, rows)
    assert found.value_counts == {ids["s.x"]: 2, ids["z"]: 2}
    assert found.column_sizes.keys() == {ids[n] for n in ("s.x", "l.element", "m.key", "m.value", "z")}
    assert found.lower_bounds[ids["z"]] == (7).to_bytes(8, "little")


def test_dates_of_another_calendar_have_no_bounds(tmp_path: Path) -> None:
    rows = pa.table({"a": [dt.date(1, 1, 1)], "b": [1]})
    marked = rows.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    assert metrics(tmp_path, rows, store_schema=False).lower_bounds.keys() == {1, 2}
    assert metrics(tmp_path, marked).lower_bounds.keys() == {2}
    assert metrics(
        tmp_path, rows.replace_schema_metadata({"org.apache.spark.version": "2.4.0"})
    ).lower_bounds.keys() == {2}
    assert metrics(
        tmp_path, rows.replace_schema_metadata({"org.apache.spark.version": "3.5.0"})
    ).lower_bounds.keys() == {1, 2}


def test_int96_has_sizes_alone(tmp_path: Path) -> None:
    rows = pa.table({"a": pa.array([1], pa.timestamp("us"))})
    found = metrics(tmp_path, rows, use_deprecated_int96_timestamps=True)
    assert (found.column_sizes.keys(), found.value_counts) == ({1}, {})
