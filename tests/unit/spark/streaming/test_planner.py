"""The planner of a streaming read, as Spark asks it."""

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.errors import ConflictError, UnsupportedError
from bergline.spark.runtime.types import spark_schema
from bergline.spark.streaming.planner import StreamedTable, StreamPlanner
from bergline.spark.streaming.source import TableStreamReader, stream_source
from bergline.table.scans.stream_scan import StreamRules
from support.fixtures.rows import ids, order_rows


def planner(lake: Lake, table: Table, **rules: Any) -> StreamPlanner:
    streamed = StreamedTable(table.name, table.metadata.table_uuid, "main", table.schema, StreamRules(**rules), cores=2)
    return StreamPlanner(lake, streamed)


def rows(reader: TableStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    """What tasks read, on another machine."""
    elsewhere = pickle.loads(pickle.dumps(reader))  # noqa: S301
    found = [pa.Table.from_batches(elsewhere.read(p)) for p in reader.partitions(start, end)]
    assert all([field.nullable for field in part.schema] == [False, True, True] for part in found)
    return ids(pa.concat_tables(found)) if found else []


@pytest.fixture
def table(orders: Table) -> Table:
    """Three appends of a row each."""
    return orders.append(order_rows(1)).append(order_rows(2)).append(order_rows(3))


def reader(lake: Lake, table: Table, options: dict[str, str] | None = None, **rules: Any) -> TableStreamReader:
    source = stream_source("db.orders", planner(lake, table, **rules), is_limited=True)
    made = source(options or {}).streamReader(spark_schema(table.schema))
    assert isinstance(made, TableStreamReader)
    return made


def test_limited_batches_follow_each_other(lake: Lake, table: Table) -> None:
    query = reader(lake, table, max_files=2)
    start = query.initialOffset()
    first = query.latestOffset()
    assert rows(query, start, first) == [1, 2]
    query.commit(first)
    second = query.latestOffset()
    assert rows(query, first, second) == [3]
    assert query.latestOffset() == second
    table.append(order_rows(4))
    assert rows(query, second, query.latestOffset()) == [4]
    query.stop()


def test_restarted_query_goes_on_behind_its_checkpoint(lake: Lake, table: Table) -> None:
    query = reader(lake, table, max_files=1)
    query.initialOffset()
    logged = json.dumps(query.latestOffset())
    restarted = reader(lake, table, max_files=1)
    assert restarted.partitions(json.loads(logged), json.loads(logged)) == []  # as Spark tells a source where it is
    end = restarted.latestOffset()
    assert rows(restarted, json.loads(logged), end) == [2]
    done = reader(lake, table)
    done.initialOffset()
    last = json.dumps(done.latestOffset())
    again = reader(lake, table)
    again.partitions(json.loads(last), json.loads(last))
    assert json.dumps(again.latestOffset()) == last  # the same text: Spark runs no batch


@pytest.mark.parametrize("place", ["environment", "option"])
def test_limits_do_not_count_where_the_query_takes_all(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    told = {"BERGLINE_STREAM_TAKES_ALL": "true"}
    if place == "environment":
        monkeypatch.setenv(*next(iter(told.items())))
    query = reader(lake, table, told if place == "option" else {}, max_files=1)
    end = query.latestOffset()  # Spark asks for it first
    start = query.initialOffset()
    assert rows(query, start, end) == [1, 2, 3]
    assert query.latestOffset() == end


def test_first_batch_is_limited_too(lake: Lake, table: Table) -> None:
    query = reader(lake, table, max_rows=1)
    end = query.latestOffset()
    assert rows(query, query.initialOffset(), end) == [1]
    assert rows(query, end, query.latestOffset()) == [2]


def test_a_table_that_was_recreated_is_one_error(lake: Lake, table: Table) -> None:
    query = reader(lake, table)
    query.initialOffset()
    lake.drop_table("db.orders")
    lake.create_table("db.orders", table.schema)
    with pytest.raises(ConflictError, match="it was dropped and re-created"):
        query.latestOffset()


def test_the_same_read_has_the_same_name(lake: Lake, table: Table) -> None:
    one, same, other = (
        stream_source("db.Orders", planner(lake, table, max_files=n), is_limited=False) for n in (1, 1, 2)
    )
    assert one.name() == same.name() != other.name()
    assert one.name().startswith("bergline_db_orders_")


def test_lake_in_memory_cannot_be_streamed() -> None:
    with bergline.connect("memory:") as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.orders", order_rows(1).schema)
        with pytest.raises(UnsupportedError, match="expected a catalog that other processes can open"):
            stream_source("db.orders", planner(lake, table), is_limited=False)
