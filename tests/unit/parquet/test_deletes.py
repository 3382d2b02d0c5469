"""Deletes applied to the rows of one file."""

import math

import pyarrow as pa
import pytest

from bergline.errors import FormatError
from bergline.format.manifest import DataFile, FileContent
from bergline.format.schema import Schema
from bergline.format.types import DOUBLE, LONG, NestedField
from bergline.parquet.deletes import rows_to_keep

KEYS = Schema(fields=(NestedField(1, "key-1", False, LONG), NestedField(2, "key-2", False, DOUBLE)))
DATA = pa.table({"key-1": [1, 2, None, 4, 5, 6], "key-2": [1.0, math.nan, None, 0.0, -0.0, 6.0]})


def delete(content: FileContent, *ids: int) -> DataFile:
    return DataFile("d", "PARQUET", (), 1, 1, content, equality_ids=ids or None)


def kept(deleted: pa.Table, *ids: int, rows: int = 6) -> list[int]:
    content = FileContent.EQUALITY_DELETES if ids else FileContent.POSITION_DELETES
    mask = rows_to_keep(
        rows,
        "a",
        [delete(content, *ids)],
        keys=lambda columns: DATA.select([f.name for f in columns.fields]),
        key_columns=KEYS,
        read=lambda _, __: deleted,
    )
    return [i for i, keep in enumerate(mask.to_pylist()) if keep]


def test_positions_of_this_file_are_deleted_and_others_stay() -> None:
    deleted = pa.table({"file_path": ["a", "b", "a", "a"], "pos": [0, 1, 5, 5]})
    assert kept(deleted) == [1, 2, 3, 4]


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 64])
def test_masks_of_every_length_are_right(rows: int) -> None:
    assert kept(pa.table({"file_path": ["a"], "pos": [rows - 1]}), rows=rows) == list(range(rows - 1))


@pytest.mark.parametrize("position", [6, -1])
def test_positions_outside_the_file_are_an_error(position: int) -> None:
    with pytest.raises(FormatError, match="expected positions below 6"):
        kept(pa.table({"file_path": ["a"], "pos": [position]}))


@pytest.mark.parametrize(
    ("keys", "left"),
    [
        ({"key-1": pa.array([2, None], pa.int64())}, [0, 3, 4, 5]),
        ({"key-2": [math.nan]}, [0, 2, 3, 4, 5]),
        ({"key-2": [0.0]}, [0, 1, 2, 4, 5]),
        ({"key-2": [-0.0]}, [0, 1, 2, 3, 5]),
        ({"key-2": pa.array([None], pa.float64())}, [0, 1, 3, 4, 5]),
        ({"key-1": [1, 6], "key-2": [1.0, 1.0]}, [1, 2, 3, 4, 5]),
    ],
)
def test_rows_equal_to_a_key_are_deleted(keys: dict[str, object], left: list[int]) -> None:
    assert kept(pa.table(keys), *(int(name[-1]) for name in keys)) == left


def test_equality_deletes_without_known_columns_are_an_error() -> None:
    with pytest.raises(FormatError, match="expected columns with ids"):
        kept(pa.table({"key-9": [1]}), 9)
    with pytest.raises(FormatError, match="expected equality ids"):
        rows_to_keep(
            1,
            "a",
            [delete(FileContent.EQUALITY_DELETES)],
            keys=lambda _: DATA,
            key_columns=KEYS,
            read=lambda _, __: DATA,
        )
