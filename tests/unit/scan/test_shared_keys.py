"""Which data files an equality delete file can be about, by metrics."""

from typing import Any

import pytest

from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.types.single_values import encode_value
from bergline.format.types.types import LONG, STRING
from bergline.scan.shared_keys import may_share_keys


def file(ids: Any = None, regions: Any = None, *, nulls: int | None = 0, rows: int = 10, **more: Any) -> DataFile:
    bounds = {
        name: {i: encode_value(t, v[place]) for i, t, v in ((1, LONG, ids), (2, STRING, regions)) if v}
        for place, name in enumerate(("lower_bounds", "upper_bounds"))
    }
    return DataFile(
        "f",
        "PARQUET",
        (),
        rows,
        1,
        value_counts={1: rows, 2: rows},
        null_value_counts=None if nulls is None else {1: 0, 2: nulls},
        **bounds,
        **more,
    )


def delete(*equality_ids: int, **columns: Any) -> DataFile:
    return file(content=FileContent.EQUALITY_DELETES, equality_ids=equality_ids, **columns)


@pytest.mark.parametrize(
    ("data", "keys", "expected"),
    [
        (file((1, 5)), delete(1, ids=(5, 9)), True),
        (file((1, 5)), delete(1, ids=(6, 9)), False),
        (file((6, 9)), delete(1, ids=(1, 5)), False),
        (file((1, 5)), delete(1), True),  # nothing is known
        (file(), delete(1, ids=(6, 9)), True),
        (file((1, 5), ("a", "c")), delete(1, 2, ids=(1, 1), regions=("d", "e")), False),
        (file((1, 5), ("a", "d")), delete(1, 2, ids=(1, 1), regions=("d", "e")), True),
        (file(regions=("a", "b"), nulls=1), delete(2, regions=("x", "y"), nulls=1), True),  # null equals null
        (file(regions=("a", "b"), nulls=1), delete(2, regions=("x", "y")), False),
        (file(nulls=10), delete(2, regions=("x", "y")), False),
        (file(regions=("a", "b")), delete(2, nulls=10), False),
        (file(regions=("a", "b"), nulls=None), delete(2, nulls=10), True),
        (file((1, 5)), delete(99, ids=(6, 9)), True),  # a column that nobody knows any more
    ],
)
def test_keys_are_shared_unless_metrics_rule_it_out(
    metadata: TableMetadata, data: DataFile, keys: DataFile, expected: bool
) -> None:
    assert may_share_keys(data, keys, metadata) is expected
