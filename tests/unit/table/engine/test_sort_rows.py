"""Rows of a group sorted in this process: the order of files, ranges, and what an error leaves."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.partition.sort_order import parse_sort_by
from bergline.table.engine.sort_rows import sorted_places
from support.fixtures.rows import ORDERS, order_rows

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, 6], pa.int64()),
        "n": pa.array([3, None, 1, 3, None, 2], pa.int64()),
        "x": pa.array([1.0, float("nan"), None, -1.0, 0.5, float("inf")]),
        "s": pa.array(["b", "a", "é", None, "ab", "B"]),
    }
)


def new_table(lake: Lake, **options: Any) -> Table:
    table = lake.create_table("db.s", ROWS.schema, **options)
    return table.append(ROWS.slice(0, 3)).append(ROWS.slice(3))


def in_files(table: Table) -> list[list[int]]:
    """The ids of each file in the order of its rows, the files by their first row."""
    files = [planned.file.file_path.removeprefix("file://") for planned in table.scan().plan().files]
    return [pq.read_table(path).column("id").to_pylist() for path in sorted(files)]


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        (["n"], [2, 5, 3, 6, 1, 4]),
        (["n desc"], [1, 4, 6, 3, 2, 5]),
        (["n nulls last", "id desc"], [3, 6, 4, 1, 5, 2]),
        (["n desc nulls first", "id"], [2, 5, 1, 4, 6, 3]),
        (["x"], [3, 4, 5, 1, 6, 2]),
        (["s"], [4, 6, 2, 5, 1, 3]),
        (["truncate(1, s) desc", "id desc"], [3, 1, 5, 2, 6, 4]),
        (["bucket(1, n)", "id desc"], [5, 2, 6, 4, 3, 1]),
    ],
)
def test_rows_are_sorted_as_spark_sorts_them(lake: Lake, terms: list[str], expected: list[int]) -> None:
    table = new_table(lake)
    places = sorted_places(table.scan().to_arrow().sort_by("id"), parse_sort_by(terms, table.schema), table.schema)
    assert [place + 1 for place in places.to_pylist()] == expected


def test_a_group_becomes_ranges_of_the_order(lake: Lake) -> None:
    table = new_table(lake)
    size = sum(planned.file.file_size_in_bytes for planned in table.scan().plan().files)
    options = {"rewrite_all": True, "target_file_size_bytes": size // 2}
    done = table.compact(sort_order="n desc nulls last, id", options=options)
    assert (done.rewritten_data_files, done.added_data_files) == (2, 2)
    assert in_files(table) == [[1, 4, 6], [3, 2, 5]]


def test_files_say_the_order_of_the_table_if_it_is_theirs(lake: Lake) -> None:
    table = new_table(lake)
    table.replace_sort_order(["n desc", "id"])
    table.compact(strategy="sort")
    assert [planned.file.sort_order_id for planned in table.scan().plan().files] == [1]
    assert in_files(table) == [[1, 4, 6, 3, 2, 5]]
    table.compact(sort_order="id desc", options={"rewrite_all": True})
    assert [planned.file.sort_order_id for planned in table.scan().plan().files] == [0]
    assert in_files(table) == [[6, 5, 4, 3, 2, 1]]


def test_partitions_stay_apart_and_rows_keep_their_ids(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["region"], properties={"format-version": "3"})
    table.append(order_rows(3, 1)).append(order_rows(2)).append(order_rows(9, 7, region="us"))
    columns = ["id", "region", "_row_id", "_last_updated_sequence_number"]
    before = table.scan(columns=columns).to_arrow().sort_by("id")
    table.compact(sort_order=["zorder(id)"], options={"rewrite-all": True})
    assert table.scan(columns=columns).to_arrow().sort_by("id") == before
    assert sorted(in_files(table)) == [[1, 2, 3], [7, 9]]


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        ({"strategy": "zip"}, InvalidInputError, "expected the strategy binpack or sort, found 'zip'"),
        ({"strategy": 7}, InvalidInputError, "expected the strategy binpack or sort, found 7"),
        ({"strategy": "binpack", "sort_order": "id"}, InvalidInputError, "expected no sort order"),
        ({"strategy": "sort"}, InvalidInputError, "expected a sort order, found none"),
        ({"sort_order": ""}, InvalidInputError, "expected columns to sort by"),
        ({"sort_order": "nope"}, NotFoundError, "no column `nope`"),
        ({"sort_order": "id, "}, InvalidInputError, "expected a term"),
        ({"sort_order": "id up"}, NotFoundError, "no column `id up`"),
        ({"sort_order": "zorder(id"}, InvalidInputError, "closed brackets"),
        ({"sort_order": "zorder()"}, InvalidInputError, "expected columns in zorder"),
        ({"sort_order": "zorder(nope)"}, NotFoundError, "no column `nope`"),
        ({"sort_order": "id, zorder(n)"}, InvalidInputError, "found both"),
        ({"sort_order": "zorder(d)"}, UnsupportedError, r"cannot use column `d` of type `decimal\(9, 2\)`"),
        ({"sort_order": "zorder(p)"}, InvalidInputError, "differs inside partitions"),
        ({"sort_order": 3}, InvalidInputError, "expected a list of sort terms"),
    ],
)
def test_orders_that_cannot_be_are_refused(lake: Lake, wanted: Any, error: type[Exception], message: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("d", pa.decimal128(9, 2)), ("p", pa.string())])
    table = lake.create_table("db.t", schema, partition_by=["p"])
    with pytest.raises(error, match=message):
        table.compact(**wanted)


def test_an_error_while_writing_leaves_no_file(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(lake)
    before, written = set(table.io.list(table.location)), []
    create = type(table.io).create_output

    def failing(io: Any, location: str) -> Any:
        if written:
            raise OSError("no space left")
        written.append(location)
        return create(io, location)

    monkeypatch.setattr(type(table.io), "create_output", failing)
    size = sum(planned.file.file_size_in_bytes for planned in table.scan().plan().files)
    with pytest.raises(OSError, match="no space left"):
        table.compact(sort_order="id", options={"rewrite_all": True, "target_file_size_bytes": size // 2})
    assert written
    assert set(table.io.list(table.location)) == before
