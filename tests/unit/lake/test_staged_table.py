"""Tables that come into being, or begin again, together with their first content."""

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)
from bergline.testing.faults import Fault
from support.fixtures.competing_writers import beaten, files, once, rival_lake
from support.fixtures.rows import ORDERS, ids, order_rows

NAMES = pa.schema([("name", pa.string()), ("id", pa.int64())])


def names(*values: str) -> pa.Table:
    return pa.table({"name": list(values), "id": list(range(len(values)))}, schema=NAMES)


def stage(lake: Lake, *order_ids: int, replace: bool = False, error: Exception | None = None) -> None:
    with lake.stage_table("db.new", ORDERS, replace=replace) as table:
        for order_id in order_ids:
            table.append(order_rows(order_id))
        if error is not None:
            raise error


def everything(lake: Lake) -> list[str]:
    return lake.catalog.io.list(lake.catalog.default_location(lake.load_table("db.orders").name).rsplit("/", 1)[0])


def test_table_comes_into_being_with_its_rows(lake: Lake) -> None:
    with lake.stage_table(
        "db.new", ORDERS, partition_by=["region"], properties={"owner": "me", "format-version": "3"}
    ) as table:
        table.append(order_rows(1))
        table.append(order_rows(2, region="us"))
        table.refs.create_tag("first")
        assert ids(table.scan().to_arrow()) == [1, 2]
        assert not lake.table_exists("db.new")
        assert not table.metadata_location
    created = lake.load_table("db.new")
    assert ids(created.scan(ref="first").to_arrow()) == [1, 2]
    assert created.properties["owner"] == "me"
    assert len(files(created, "*.metadata.json")) == 1
    assert [e.snapshot_id for e in created.metadata.snapshot_log] == [created.metadata.snapshots[1].snapshot_id]
    assert created.metadata.next_row_id == 2
    with pytest.raises(InvalidInputError, match="has ended"):
        table.append(order_rows(3))
    created.append(order_rows(3))
    assert ids(created.scan().to_arrow()) == [1, 2, 3]


def test_table_staged_without_rows_is_empty(lake: Lake) -> None:
    stage(lake)
    assert lake.load_table("db.new").current_snapshot is None


def test_exception_in_the_block_leaves_no_table_and_no_file(lake: Lake, orders: Table) -> None:
    before = everything(lake)
    with pytest.raises(RuntimeError):
        stage(lake, 1, 2, error=RuntimeError())
    assert not lake.table_exists("db.new")
    assert everything(lake) == before == [orders.metadata_location]


def test_name_that_is_taken_is_refused_at_once_or_at_the_end(lake: Lake, orders: Table) -> None:
    with (
        pytest.raises(AlreadyExistsError, match=r"table `db\.orders` exists already"),
        lake.stage_table("db.orders", ORDERS),
    ):
        pytest.fail("never gets here")

    def taken_meanwhile() -> None:
        with lake.stage_table("db.new", ORDERS) as table:
            table.append(order_rows(1))
            lake.create_table("db.new", ORDERS).append(order_rows(2))

    with pytest.raises(AlreadyExistsError, match=r"table `db\.new` exists already"):
        taken_meanwhile()
    other = lake.load_table("db.new")
    assert ids(other.scan().to_arrow()) == [2]
    assert len(files(other, "*.parquet")) == 1
    assert len(files(other, "*.avro")) == 2
    assert len(files(other, "*.metadata.json")) == 2
    assert orders.current_snapshot is None


def test_missing_namespace_is_said_before_anything_is_written(lake: Lake) -> None:
    with pytest.raises(NotFoundError, match="no namespace `none`"), lake.stage_table("none.new", ORDERS):
        pytest.fail("never gets here")


@pytest.mark.parametrize("fault", [Fault.LANDS_BUT_ANSWER_IS_LOST, Fault.NEVER_ARRIVES, Fault.REFUSED_AS_LOCKED])
def test_lost_answer_creates_the_table_once(lake: Lake, fault: Fault) -> None:
    shaky, _ = rival_lake(lake, fault)
    stage(shaky, 1, 2)
    assert ids(lake.load_table("db.new").scan().to_arrow()) == [1, 2]


def test_unknown_outcome_deletes_nothing(lake: Lake) -> None:
    shaky, _ = rival_lake(lake, Fault.STORE_GOES_AWAY)
    with pytest.raises(CommitUnknownError):
        stage(shaky, 1)
    assert ids(lake.load_table("db.new").scan().to_arrow()) == [1]


def test_store_that_stays_locked_leaves_no_file(lake: Lake, orders: Table) -> None:
    shaky, waits = rival_lake(lake, *[Fault.REFUSED_AS_LOCKED] * 5)
    with pytest.raises(UnavailableError):
        stage(shaky, 1)
    assert everything(lake) == [orders.metadata_location]
    assert len(waits) == 4


def test_replaced_table_keeps_its_history(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2))
    orders.refs.create_tag("before")
    orders.refs.create_branch("dev")
    orders.set_properties({"owner": "me"})
    with lake.stage_table("db.orders", NAMES, replace=True, properties={"team": "us"}) as table:
        assert table.scan().to_arrow().num_rows == 0
        table.append(names("a", "b"))
        assert ids(lake.load_table("db.orders").scan().to_arrow()) == [1, 2]
    replaced = lake.load_table("db.orders")
    assert replaced.scan().to_arrow() == names("a", "b")
    assert ids(replaced.scan(ref="before").to_arrow()) == [1, 2]
    assert set(replaced.refs) == {"main", "before", "dev"}
    assert replaced.metadata.table_uuid == orders.metadata.table_uuid
    assert replaced.location == orders.location
    assert {"owner": "me", "team": "us"}.items() <= replaced.properties.items()
    # a column with the name of an older one and a type that it can have keeps its id
    assert replaced.schema.names_by_id == {4: "name", 1: "id"}
    head = replaced.current_snapshot
    assert head is not None
    assert (head.parent_snapshot_id, head.sequence_number) == (None, 3)
    assert len(replaced.metadata.snapshot_log) == 3


def test_column_of_another_type_gets_an_id_of_its_own(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    texts = pa.schema([("id", pa.string()), ("region", pa.string())])
    with lake.stage_table("db.orders", texts, replace=True, partition_by=["region"]) as table:
        table.append(pa.table({"id": ["x"], "region": ["eu"]}, schema=texts))
    assert orders.refresh().schema.names_by_id == {4: "id", 3: "region"}
    assert orders.spec.spec_id == 1
    assert orders.scan("region = 'eu'").to_arrow().to_pylist() == [{"id": "x", "region": "eu"}]


def test_replacing_a_table_that_does_not_exist_creates_it(lake: Lake) -> None:
    stage(lake, 1, replace=True)
    stage(lake, 2, replace=True)
    assert ids(lake.load_table("db.new").scan().to_arrow()) == [2]


def test_failed_replacement_leaves_the_table_as_it_was(lake: Lake) -> None:
    stage(lake, 1)
    table = lake.load_table("db.new")
    before = files(table, "*.*")
    with pytest.raises(RuntimeError):
        stage(lake, 2, replace=True, error=RuntimeError())
    assert files(table, "*.*") == before
    assert ids(table.refresh().scan().to_arrow()) == [1]


def test_rows_that_others_add_meanwhile_are_replaced_too_and_stay_in_the_history(lake: Lake, orders: Table) -> None:
    loser, _ = rival_lake(lake, before_swap=beaten(orders, 2))
    with loser.stage_table("db.orders", NAMES, replace=True) as table:
        table.append(names("a"))
    replaced = lake.load_table("db.orders")
    assert replaced.scan().to_arrow() == names("a")
    assert [s.sequence_number for s in replaced.metadata.snapshots] == [1, 2, 3]
    assert [e.snapshot_id for e in replaced.metadata.snapshot_log] == [
        s.snapshot_id for s in replaced.metadata.snapshots
    ]


def test_columns_that_others_add_meanwhile_conflict_with_a_replacement(lake: Lake, orders: Table) -> None:
    def add_column() -> None:
        with orders.update_schema() as update:
            update.add_column("theirs", "string")

    loser, _ = rival_lake(lake, before_swap=once(add_column))

    def replace() -> None:
        with loser.stage_table("db.orders", NAMES, replace=True) as table:
            table.append(names("a"))

    with pytest.raises(ConflictError, match="column `name` would no longer have the id 4"):
        replace()
    assert "theirs" in orders.refresh().schema.names
    assert not files(orders, "*.parquet")


def test_format_version_never_goes_down_in_a_replacement(lake: Lake, orders: Table) -> None:
    with (
        pytest.raises(InvalidInputError, match="never goes down"),
        lake.stage_table("db.orders", NAMES, replace=True, properties={"format-version": "1"}),
    ):
        pytest.fail("never gets here")
    assert orders.refresh().metadata.format_version == 2


def test_partitioned_table_of_version_1_is_replaced_by_one_of_version_2(lake: Lake) -> None:
    old = lake.create_table("db.old", ORDERS, partition_by=["region"], properties={"format-version": "1"})
    old.append(order_rows(1))
    with (
        pytest.raises(UnsupportedError, match="the same partition fields"),
        lake.stage_table("db.old", NAMES, replace=True),
    ):
        pytest.fail("never gets here")
    with lake.stage_table("db.old", NAMES, replace=True, properties={"format-version": "2"}) as table:
        table.append(names("a"))
    assert old.refresh().scan().to_arrow() == names("a")
    assert ids(old.scan(snapshot_id=old.metadata.snapshots[0].snapshot_id).to_arrow()) == [1]


@pytest.mark.parametrize("replace", [False, True])
def test_name_of_a_view_is_refused_before_anything_is_written(lake: Lake, replace: bool) -> None:
    lake.create_view("db.new", "SELECT 1", NAMES)
    with pytest.raises(AlreadyExistsError, match=r"view `db\.new` exists already"):
        lake.stage_table("db.new", ORDERS, replace=replace).__enter__()
