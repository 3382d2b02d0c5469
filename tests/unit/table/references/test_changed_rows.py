"""The rows that came and went between two states of a table."""

import datetime as dt
import math

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long


@pytest.fixture(params=[("2", "copy-on-write"), ("2", "merge-on-read"), ("3", "merge-on-read")], ids="-".join)
def orders_by_region(lake: Lake, request: pytest.FixtureRequest) -> Table:
    """Orders 1 to 3 in `eu` and 4 in `us`, and a tag `start` there."""
    version, mode = request.param
    properties = {"format-version": version, "write.delete.mode": mode}
    table = lake.create_table("db.regions", ORDERS, partition_by=["region"], properties=properties)
    table.append(order_rows(1, 2, 3)).append(order_rows(4, region="us"))
    table.refs.create_tag("start")
    return table


def test_nothing_changes_between_a_state_and_itself(orders_by_region: Table) -> None:
    changes = orders_by_region.changes("start", "main")
    assert (changes.added.num_rows, changes.removed.num_rows) == (0, 0)
    assert changes.added.schema == orders_by_region.scan().to_arrow().schema


def test_rows_that_came_and_went(orders_by_region: Table) -> None:
    table = orders_by_region
    table.delete("id = 2").append(order_rows(5)).overwrite(order_rows(40, region="us"), "id = 4")
    changes = table.changes("start")
    assert (ids(changes.added), ids(changes.removed)) == ([5, 40], [2, 4])
    back = table.changes("main", "start")
    assert (ids(back.added), ids(back.removed)) == ([2, 4], [5, 40])
    found = {(row["id"], row["_change_type"]) for row in changes.to_arrow().to_pylist()}
    assert found == {(2, "DELETE"), (4, "DELETE"), (5, "INSERT"), (40, "INSERT")}


def test_rows_that_only_moved_are_no_change(orders_by_region: Table) -> None:
    table = orders_by_region
    table.append(order_rows(5)).delete("id = 5")
    table.compact()
    changes = table.changes("start", "main")
    assert (changes.added.num_rows, changes.removed.num_rows) == (0, 0)


def test_deletes_after_deletes_give_only_the_newer_ones(orders_by_region: Table) -> None:
    table = orders_by_region
    table.delete("id = 1")
    between = table.refs["main"].snapshot_id
    table.delete("id = 3")
    changes = table.changes(between, "main")
    assert (ids(changes.added), ids(changes.removed)) == ([], [3])


def test_equal_rows_are_counted(lake: Lake) -> None:
    schema = pa.schema([("x", pa.float64()), ("tags", pa.list_(pa.string()))])
    table = lake.create_table("db.equal", schema)
    twice = pa.table({"x": [math.nan, math.nan, None], "tags": [["a"], ["a"], None]}, schema)
    table.append(twice)
    table.refs.create_tag("start")
    table.overwrite(twice.slice(1))
    changes = table.changes("start")
    assert changes.added.num_rows == 0
    assert str(changes.removed.to_pylist()) == "[{'x': nan, 'tags': ['a']}]"


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        (pa.date32(), 4_000_000, 4_000_001),
        (pa.timestamp("us"), 400_000_000_000_000_000, 400_000_000_000_000_001),
        (pa.timestamp("us", "UTC"), -400_000_000_000_000_000, -400_000_000_000_000_001),
        (pa.timestamp("ns"), 1_001, 1_002),
        (pa.time64("us"), 1, 2),
    ],
    ids=str,
)
def test_dates_and_times_that_python_does_not_have_are_compared(
    lake: Lake, kind: pa.DataType, first: int, second: int
) -> None:
    def rows(value: int) -> pa.Table:
        one = pa.array([value], kind)
        names = pa.array([b"0123456789abcdef"], pa.binary(16)).cast(pa.uuid())
        return pa.table(
            {
                "x": one,
                "xs": pa.ListArray.from_arrays([0, 1], one),
                "by_name": pa.MapArray.from_arrays([0, 1], ["a"], one),
                "inside": pa.StructArray.from_arrays([one, names], ["x", "name"]),
                "name": names,
            }
        )

    table = lake.create_table("db.far", rows(first).schema, properties={"format-version": "3"})
    table.append(rows(first)).append(rows(first))
    table.refs.create_tag("start")
    table.overwrite(pa.concat_tables([rows(first), rows(second)]))
    changes = table.changes("start")
    found = [
        side.column("x").cast(pa.int32() if pa.types.is_date(kind) else pa.int64())
        for side in (changes.removed, changes.added)
    ]
    assert [f.to_pylist() for f in found] == [[first], [second]]


def test_rows_are_read_with_the_columns_of_the_later_state(lake: Lake) -> None:
    table = lake.create_table("db.columns", ORDERS).append(order_rows(1))
    table.refs.create_tag("start")
    with table.update_schema() as schema:
        schema.add_column("note", "string")
        schema.drop_column("amount")
    table.delete("id = 1")
    assert table.changes("start").removed.to_pylist() == [{"id": 1, "region": "eu", "note": None}]


def test_branches_are_states_too(orders_by_region: Table) -> None:
    table = orders_by_region
    table.append(order_rows(7), branch="staging").append(order_rows(8))
    changes = table.changes("main", "staging")
    assert (ids(changes.added), ids(changes.removed)) == ([7], [8])


def test_states_that_are_none(orders_by_region: Table) -> None:
    with pytest.raises(NotFoundError):
        orders_by_region.changes("nope")
    with pytest.raises(NotFoundError):
        orders_by_region.changes(7)
    with pytest.raises(InvalidInputError):
        orders_by_region.changes(1.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError):
        orders_by_region.changes(True)


def test_changes_of_every_snapshot_have_ordinals_and_snapshots(orders_by_region: Table) -> None:
    table = orders_by_region
    table.delete("id = 2").append(order_rows(2)).compact()
    table.overwrite(order_rows(40, region="us"), "id = 4")
    made = [s.snapshot_id for s in table.metadata.snapshots[2:] if s.operation != "replace"]
    rows = table.changes("start", net_changes=False).to_arrow()
    found = [(r["_change_ordinal"], r["_change_type"], r["id"]) for r in rows.to_pylist()]
    assert sorted(found) == [(0, "DELETE", 2), (1, "INSERT", 2), (2, "DELETE", 4), (2, "INSERT", 40)]
    assert [found[0] for found in found] == sorted(found[0] for found in found)
    assert {(r["_change_ordinal"], r["_commit_snapshot_id"]) for r in rows.to_pylist()} == set(enumerate(made))
    assert rows.schema == table.changes("start", net_changes=False).to_arrow_batch_reader().schema


def test_net_changes_name_the_snapshots_that_made_them(orders_by_region: Table) -> None:
    table = orders_by_region
    table.delete("id = 2").append(order_rows(5)).append(order_rows(6)).delete("id = 5")
    found = [(r["id"], r["_change_type"], r["_change_ordinal"]) for r in table.changes("start").to_arrow().to_pylist()]
    assert sorted(found) == [(2, "DELETE", 0), (6, "INSERT", 2)]


def test_update_images_by_identifier_columns(orders_by_region: Table) -> None:
    table = orders_by_region
    changed = order_rows(2).set_column(1, "amount", pa.array([7.0]))
    table.overwrite(changed, "id = 2").overwrite(changed.set_column(1, "amount", pa.array([8.0])), "id = 2")

    def images(**options: bool) -> list[tuple[str, float]]:
        rows = table.changes("start", identifier_columns=["id"], **options).to_arrow().to_pylist()
        return [(r["_change_type"], r["amount"]) for r in rows]

    assert images() == [("UPDATE_BEFORE", 20), ("UPDATE_AFTER", 7), ("UPDATE_BEFORE", 7), ("UPDATE_AFTER", 8)]
    assert images(net_changes=True) == [("UPDATE_BEFORE", 20), ("UPDATE_AFTER", 8)]
    assert [word for word, _ in images(compute_updates=False, net_changes=True)] == ["DELETE", "INSERT"]


def test_changes_of_every_snapshot_need_one_line_of_history(orders_by_region: Table) -> None:
    table = orders_by_region
    table.append(order_rows(7), branch="staging").append(order_rows(8))
    with pytest.raises(InvalidInputError, match="expected a snapshot that descends from"):
        table.changes("main", "staging", net_changes=False)
    rows = table.changes("main", "staging").to_arrow().to_pylist()
    assert {(r["_change_type"], r["id"], r["_change_ordinal"]) for r in rows} == {
        ("INSERT", 7, None),
        ("DELETE", 8, None),
    }


def test_states_may_be_times_or_the_beginning(orders_by_region: Table) -> None:
    table = orders_by_region
    start = dt.datetime.fromtimestamp(table.metadata.snapshots[0].timestamp_ms / 1000, dt.UTC)
    table.append(order_rows(5))
    assert ids(table.changes(start).added) == [4, 5]
    assert ids(table.changes(None).added) == [1, 2, 3, 4, 5]
    assert ids(table.changes(None, "start").to_arrow()) == [1, 2, 3, 4]
