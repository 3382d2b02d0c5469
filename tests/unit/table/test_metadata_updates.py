"""Properties, location, sort order, format version and statistics: each one commit, merged with what others change."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.errors import BerglineError, ConflictError, InvalidInputError, NotFoundError
from bergline.format.metadata.table_metadata import PartitionStatisticsFile, StatisticsFile
from bergline.testing.faults import Fault
from support.fixtures.competing_writers import overtaken, rival_lake
from support.fixtures.concurrency import run_for_each
from support.fixtures.rows import ids, order_rows


@pytest.fixture
def lake() -> Iterator[Lake]:
    with bergline.connect("memory:") as opened:
        opened.create_namespace("db")
        yield opened


def order(table: Table) -> list[tuple[int, str, str, str]]:
    return [(f.source_id, str(f.transform), f.direction, f.null_order) for f in table.metadata.sort_order.fields]


def test_sort_order_is_replaced_and_an_old_one_keeps_its_id(orders: Table) -> None:
    orders.replace_sort_order(["region desc", "bucket(4, id) nulls last"])
    assert order(orders) == [(3, "identity", "desc", "nulls-last"), (1, "bucket[4]", "asc", "nulls-last")]
    assert orders.metadata.default_sort_order_id == 1
    orders.replace_sort_order(["id"])
    assert orders.metadata.default_sort_order_id == 2
    orders.replace_sort_order([])
    assert (orders.metadata.default_sort_order_id, order(orders)) == (0, [])
    orders.replace_sort_order(["id"])
    assert orders.metadata.default_sort_order_id == 2
    before = orders.metadata_location
    assert orders.replace_sort_order(["id asc nulls first"]).metadata_location == before


def test_new_files_that_are_not_sorted_claim_no_order(orders: Table) -> None:
    orders.replace_sort_order(["id"]).append(order_rows(2, 1))
    (planned,) = orders.scan().plan().files
    assert not planned.file.sort_order_id


@pytest.mark.parametrize("terms", ["id", None, [3], ["nope"], ["id sideways"], ["day(id)"]])
def test_sort_orders_that_make_no_sense_are_refused(orders: Table, terms: Any) -> None:
    with pytest.raises((InvalidInputError, NotFoundError)):
        orders.replace_sort_order(terms)
    assert len(orders.metadata.sort_orders) == 1


def test_last_sort_order_wins_and_others_changes_stay(lake: Lake, orders: Table) -> None:
    def rename() -> None:
        with orders.refresh().update_schema() as schema:
            schema.add_column("x", "int", first=True)

    late = overtaken(lake, lambda: orders.replace_sort_order(["region"]), rename).load_table("db.orders")
    late.replace_sort_order(["id desc"])
    assert order(late) == [(1, "identity", "desc", "nulls-last")]
    assert late.schema.fields[0].name == "x"


def test_sort_order_by_a_column_that_is_gone_is_a_conflict(lake: Lake, orders: Table) -> None:
    def drop() -> None:
        with orders.update_schema() as schema:
            schema.drop_column("region")

    def replace() -> None:
        with orders.refresh().update_schema() as schema:
            schema.drop_column("amount").add_column("amount", "int")

    late = overtaken(lake, drop).load_table("db.orders")
    with pytest.raises(ConflictError, match="no column `region`; its schema changed first"):
        late.replace_sort_order(["region"])
    late = overtaken(lake, replace).load_table("db.orders")
    with pytest.raises(ConflictError, match="the column of `amount` is a different one now"):
        late.replace_sort_order(["amount"])


def test_different_properties_merge_and_the_last_value_of_one_wins(lake: Lake, orders: Table) -> None:
    late = overtaken(
        lake,
        lambda: orders.set_properties({"a": "theirs", "b": "theirs"}),
        lambda: orders.set_properties({"gone": "x"}),
        lambda: orders.append(order_rows(1)),
    ).load_table("db.orders")
    late.set_properties({"a": "mine", "c": "mine"}, remove=["gone", "never there"])
    assert {k: v for k, v in late.properties.items() if len(k) < 5} == {"a": "mine", "b": "theirs", "c": "mine"}
    assert late.current_snapshot is not None


def test_eight_writers_of_one_property_and_their_own_all_succeed(lake: Lake, orders: Table) -> None:
    def write(writer: int) -> None:
        table = lake.load_table("db.orders")
        for number in range(5):
            table.set_properties({"last": str(writer), f"w{writer}.{number}": "x"})

    run_for_each(write, range(8))
    assert sum(k.startswith("w") and k[1].isdigit() for k in orders.refresh().properties) == 40


def test_new_files_go_to_the_new_location_and_old_ones_stay(tmp_path: Path) -> None:
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db", create=True) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", order_rows().schema).append(order_rows(1))
        old = table.location
        table.set_location(f"{tmp_path}/elsewhere/").append(order_rows(2))
        assert table.location == f"file://{tmp_path}/elsewhere"
        assert table.metadata_location.startswith(f"file://{tmp_path}/elsewhere/metadata/")
        places = sorted(f.file.file_path.rsplit("/data/", 1)[0] for f in table.scan().plan().files)
        assert places == sorted([old, table.location])
        assert ids(lake.load_table("db.t").scan().to_arrow()) == [1, 2]
        before = table.metadata_location
        assert table.set_location(f"{tmp_path}/elsewhere").metadata_location == before


@pytest.mark.parametrize("location", ["", None, 3, "\ud800"])
def test_locations_are_texts(orders: Table, location: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"location|surrogates"):
        orders.set_location(location)


def test_format_version_only_rises(lake: Lake) -> None:
    table = lake.create_table("db.t", order_rows().schema, properties={"format-version": "1"})
    table.append(order_rows(1)).upgrade_format(2).append(order_rows(2)).upgrade_format(3).append(order_rows(3))
    assert table.metadata.format_version == 3
    assert ids(table.scan().to_arrow()) == [1, 2, 3]
    rows = table.scan(columns=["id", "_row_id"]).to_arrow().to_pylist()
    assert len({r["_row_id"] for r in rows}) == 3
    assert [s.sequence_number for s in table.metadata.snapshots] == [0, 1, 2]
    assert table.metadata.next_row_id == 3
    before = table.metadata_location
    assert table.upgrade_format(3).metadata_location == before
    with pytest.raises(InvalidInputError, match="never goes down"):
        table.upgrade_format(2)
    for wrong in (0, 4, "3", True):
        with pytest.raises(BerglineError, match="format version"):
            table.upgrade_format(wrong)  # type: ignore[arg-type]


def test_upgrade_that_another_one_went_beyond_is_done(lake: Lake) -> None:
    table = lake.create_table("db.t", order_rows().schema, properties={"format-version": "1"})
    late = overtaken(lake, lambda: table.upgrade_format(3)).load_table("db.t")
    assert late.upgrade_format(2).metadata.format_version == 3


def test_statistics_are_set_replaced_and_removed(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    head = orders.metadata.snapshots[0].snapshot_id
    first, second = (StatisticsFile(head, f"memory://x/{n}.puffin", 10, 5, ()) for n in range(2))
    partitions = PartitionStatisticsFile(head, "memory://x/p.parquet", 7)
    late = overtaken(lake, lambda: orders.append(order_rows(2)), lambda: orders.set_properties({"a": "b"}))
    table = late.load_table("db.orders").set_statistics(first).set_statistics(partitions).set_statistics(second)
    assert table.metadata.statistics == (second,)
    assert table.metadata.partition_statistics == (partitions,)
    before = table.metadata_location
    assert table.set_statistics(second).remove_statistics(5).metadata_location == before
    assert table.remove_statistics(head).metadata.statistics == ()
    assert table.remove_partition_statistics(head).metadata.partition_statistics == ()
    with pytest.raises(NotFoundError, match="no snapshot with id 5"):
        table.set_statistics(StatisticsFile(5, "memory://x/y.puffin", 10, 5, ()))
    with pytest.raises(InvalidInputError, match="expected a StatisticsFile"):
        table.set_statistics("x")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="a snapshot id"):
        table.remove_statistics("x")  # type: ignore[arg-type]


def test_types_of_new_columns_need_the_upgrade_first(orders: Table) -> None:
    orders.append(order_rows(1)).upgrade_format(3)
    with orders.update_schema() as schema:
        schema.add_column("ns", pa.timestamp("ns"), default=0)
    assert orders.scan().to_arrow().column("ns").cast(pa.int64()).to_pylist() == [0]


def drop_and_split(table: Table) -> None:
    with table.update_schema() as schema:
        schema.drop_column("amount").rename_column("region", "area").add_column("x", "int")
    with table.update_spec() as spec:
        spec.add_field("bucket(2, id)")
    table.set_location("memory://elsewhere/t")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_changes_of_a_table_are_not_in_the_way_of_an_append(lake: Lake, version: int) -> None:
    table = lake.create_table("db.t", order_rows().schema, properties={"format-version": str(version)})
    late = overtaken(lake, lambda: drop_and_split(table)).load_table("db.t")
    late.append(order_rows(1))
    table.refresh().append(pa.table({"id": [2], "x": pa.array([5], pa.int32())}))
    rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda r: r["id"])
    assert rows == [{"id": 1, "area": "eu", "x": None}, {"id": 2, "area": None, "x": 5}]
    assert {f.file.spec_id for f in table.scan().plan().files} == {0, 1}


def test_append_that_an_upgrade_overtakes_gets_row_ids(lake: Lake) -> None:
    table = lake.create_table("db.t", order_rows().schema, properties={"format-version": "1"})
    table.append(order_rows(1))
    late = overtaken(lake, lambda: table.upgrade_format(2), lambda: table.upgrade_format(3)).load_table("db.t")
    late.append(order_rows(2, 3)).append(order_rows(4))
    found = late.scan(columns=["id", "_row_id", "_last_updated_sequence_number"]).to_arrow().sort_by("id")
    assert sorted(found.column("_row_id").to_pylist()) == [0, 1, 2, 3]
    assert found.column("_last_updated_sequence_number").to_pylist()[1:] == [1, 1, 2]
    assert late.metadata.next_row_id == 4


@pytest.mark.parametrize("fault", [Fault.LANDS_BUT_ANSWER_IS_LOST, Fault.NEVER_ARRIVES, Fault.REFUSED_AS_LOCKED])
def test_change_whose_answer_is_lost_is_made_once(lake: Lake, orders: Table, fault: Fault) -> None:
    shaky, _ = rival_lake(lake, *[fault] * 2)
    table = shaky.load_table("db.orders")
    with table.update_schema() as schema:
        schema.add_column("x", "int").rename_column("region", "area")
    with table.update_spec() as spec:
        spec.add_field("bucket(2, id)")
    assert list(orders.refresh().schema.names) == ["id", "amount", "area", "x"]
    assert (orders.metadata.last_column_id, len(orders.metadata.schemas)) == (4, 2)
    assert len(orders.metadata.partition_specs) == 2
    assert table.metadata_location == orders.metadata_location
