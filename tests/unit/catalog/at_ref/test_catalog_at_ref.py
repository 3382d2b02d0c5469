"""The whole lake at a branch, a tag or a time: what is seen there, and where commits land."""

import datetime as dt
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.catalog.at_ref.lake_ref import LAKE_MAIN
from bergline.catalog.catalog import LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnsupportedError,
)
from bergline.format.metadata.invariants import check_invariants
from bergline.format.metadata.refs import CREATED_ON, MAIN
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.table.evolution.schema_update import SchemaUpdate
from support.fixtures.rows import ORDERS, ids, order_rows


def rows(lake: Lake, table: str = "db.orders", **scan: Any) -> list[int]:
    return ids(lake.load_table(table).scan(**scan).to_arrow())


@pytest.fixture
def staging(lake: Lake, orders: Table) -> Lake:
    """The lake at a branch that `db.orders` has, two rows ahead of no other."""
    orders.append(order_rows(1, 2)).refs.create_branch("staging")
    lake.branches.create("staging")
    return lake.at("staging")


def evolving(change: Callable[[SchemaUpdate], object]) -> Callable[[Table], None]:
    """A change of the schema."""

    def run(table: Table) -> None:
        with table.update_schema() as update:
            change(update)

    return run


class TestSeen:
    def test_main_is_the_branch_for_reads_and_writes(self, lake: Lake, staging: Lake) -> None:
        table = staging.load_table("db.orders")
        table.append(order_rows(3))
        table.delete("id = 1")
        table.update({"amount": "0.0"}, "id = 2")
        assert rows(staging) == [2, 3]
        assert rows(lake) == [1, 2]
        assert rows(lake, ref="staging") == [2, 3]
        assert rows(staging, ref=LAKE_MAIN) == [1, 2]

    def test_metadata_is_consistent_with_what_is_seen(self, lake: Lake, staging: Lake) -> None:
        orders = lake.load_table("db.orders")
        orders.append(order_rows(3))
        orders.append(order_rows(4), branch="staging")
        seen = staging.load_table("db.orders").metadata
        check_invariants(seen)
        assert seen.current_snapshot == seen.head("staging") == seen.head(MAIN)
        assert [e.snapshot_id for e in seen.snapshot_log][-1] == seen.current_snapshot_id
        assert {e.snapshot_id for e in seen.snapshot_log} == {
            s.snapshot_id for s in seen.ancestors(seen.current_snapshot_id)
        }
        assert seen.refs[LAKE_MAIN] == orders.refresh().metadata.refs[MAIN]
        assert seen.snapshots == orders.metadata.snapshots

    def test_table_without_the_branch_is_as_on_main_until_it_is_written(self, lake: Lake, staging: Lake) -> None:
        other = lake.create_table("db.other", ORDERS)
        other.append(order_rows(1))
        assert rows(staging, "db.other") == [1]
        other.append(order_rows(2))
        assert rows(staging, "db.other") == [1, 2]
        staging.load_table("db.other").append(order_rows(3))
        other.append(order_rows(4))
        assert rows(staging, "db.other") == [1, 2, 3]
        assert rows(lake, "db.other") == [1, 2, 4]

    def test_first_commit_to_an_empty_table_leaves_main_empty(self, lake: Lake, staging: Lake) -> None:
        lake.create_table("db.other", ORDERS)
        staging.load_table("db.other").append(order_rows(1))
        assert rows(staging, "db.other") == [1]
        assert MAIN not in lake.load_table("db.other").metadata.refs

    def test_branch_keeps_its_own_retention(self, lake: Lake, orders: Table) -> None:
        orders.append(order_rows(1)).refs.set_retention(MAIN, min_snapshots_to_keep=7)
        orders.refs.create_branch("staging", min_snapshots_to_keep=3)
        lake.branches.create("staging")
        lake.at("staging").load_table("db.orders").append(order_rows(2))
        lake.create_table("db.other", ORDERS).append(order_rows(1)).refs.set_retention(MAIN, min_snapshots_to_keep=7)
        lake.at("staging").load_table("db.other").append(order_rows(2))
        kept = [lake.load_table(t).metadata.refs["staging"].min_snapshots_to_keep for t in ("db.orders", "db.other")]
        assert kept == [3, None]

    def test_tag_is_read_with_its_own_columns(self, lake: Lake, orders: Table) -> None:
        orders.append(order_rows(1)).refs.create_tag("v1")
        with orders.update_schema() as change:
            change.add_column("note", "string")
        orders.append(pa.table({"id": [2], "amount": [1.0], "region": ["eu"], "note": ["x"]}))
        frozen = lake.at("v1").load_table("db.orders")
        check_invariants(frozen.metadata)
        assert frozen.schema.names.keys() == {"id", "amount", "region"}
        assert rows(lake.at("v1")) == [1]

    def test_table_without_the_tag_is_not_part_of_it(self, lake: Lake, orders: Table) -> None:
        orders.append(order_rows(1)).refs.create_tag("v1")
        lake.create_table("db.other", ORDERS)
        with pytest.raises(NotFoundError, match=r"no table `db.other` at tag `v1`: it has no such tag"):
            lake.at("v1").load_table("db.other")

    def test_time_shows_what_main_was(self, lake: Lake, orders: Table) -> None:
        orders.append(order_rows(1))
        time.sleep(0.005)
        moment = dt.datetime.now(dt.UTC).isoformat()
        time.sleep(0.005)
        orders.append(order_rows(2))
        lake.create_table("db.other", ORDERS).append(order_rows(1))
        assert rows(lake.at(moment)) == [1]
        assert rows(lake.at(moment), "db.other") == []
        assert rows(lake.at("2020-01-01T00:00:00Z")) == []

    @pytest.mark.parametrize("publishes", [True, False])
    def test_time_shows_a_transaction_whole_or_not_at_all(self, lake: Lake, orders: Table, publishes: bool) -> None:
        for name in ("db.b", "db.c"):
            lake.create_table(name, ORDERS)
        with lake.transaction() as tx:
            for name in ("db.orders", "db.b", "db.c"):
                tx.load_table(name).append(order_rows(1), branch="staging" if publishes else "main")
        if publishes:
            lake.publish("staging")
        logs = [lake.load_table(name).metadata.snapshot_log for name in ("db.orders", "db.b", "db.c")]
        (moment,) = {log[-1].timestamp_ms for log in logs}
        for ms, expected in ((moment - 1, []), (moment, [1])):
            then = lake.at(dt.datetime.fromtimestamp(ms / 1000, dt.UTC).isoformat(timespec="milliseconds"))
            assert [rows(then, name) for name in ("db.orders", "db.b", "db.c")] == [expected] * 3

    def test_time_before_the_history_that_is_kept_is_not_guessed(self, lake: Lake, orders: Table) -> None:
        orders.append(order_rows(1)).append(order_rows(2))
        orders.expire(older_than=dt.datetime.now(dt.UTC), retain_last=1)
        with pytest.raises(NotFoundError, match="no snapshot at or before 2020"):
            lake.at("2020-01-01T00:00:00Z").load_table("db.orders")

    def test_time_before_an_expired_replacement_is_not_guessed(self, lake: Lake, orders: Table) -> None:
        """The oldest snapshot that is kept has no parent, and `main` had rows before it."""
        orders.append(order_rows(1))
        time.sleep(0.005)
        moment = dt.datetime.now(dt.UTC).isoformat()
        with lake.stage_table("db.orders", ORDERS, replace=True) as staged:
            staged.append(order_rows(2))
        assert rows(lake.at(moment)) == [1]
        orders.refresh().expire(older_than=dt.datetime.now(dt.UTC), retain_last=1)
        assert [s.parent_snapshot_id for s in orders.refresh().metadata.snapshots] == [None]
        with pytest.raises(NotFoundError, match="no snapshot at or before"):
            lake.at(moment).load_table("db.orders")

    def test_table_was_empty_before_a_longer_branch_was_published(self, lake: Lake, staging: Lake) -> None:
        lake.create_table("db.other", ORDERS)
        staging.load_table("db.other").append(order_rows(1)).append(order_rows(2))
        time.sleep(0.005)
        moment = dt.datetime.now(dt.UTC).isoformat()
        time.sleep(0.005)
        lake.publish("staging")
        assert rows(lake.at(moment), "db.other") == []
        assert rows(lake, "db.other") == [1, 2]

    def test_main_is_the_lake_itself(self, lake: Lake, staging: Lake) -> None:
        staging.load_table("db.orders").append(order_rows(3))
        assert rows(staging.at("main")) == rows(lake) == [1, 2]
        assert rows(lake.at("main").at("staging")) == [1, 2, 3]


class TestLanding:
    def test_first_commit_creates_the_branch_where_main_was_read(self, lake: Lake, staging: Lake) -> None:
        other = lake.create_table("db.other", ORDERS)
        other.append(order_rows(1))
        with staging.load_table("db.other").transaction() as tx:
            tx.append(order_rows(2))
            other.append(order_rows(3))
        assert rows(staging, "db.other") in ([1, 2], [1, 2, 3])  # a retry reads again

    def test_branch_that_was_dropped_is_not_created_anew_at_its_own_rows(self, lake: Lake, staging: Lake) -> None:
        table = staging.load_table("db.orders")
        table.append(order_rows(3))
        lake.drop_ref("staging")
        table.append(order_rows(4))
        assert rows(staging) == [1, 2, 4]

    def test_main_that_was_rolled_back_is_read_again(self, lake: Lake, staging: Lake) -> None:
        other = lake.create_table("db.other", ORDERS)
        first = other.append(order_rows(1)).metadata.snapshots[-1].snapshot_id
        other.append(order_rows(2))
        seen = staging.load_table("db.other")
        other.refs.rollback(to=first)
        seen.append(order_rows(3))
        assert rows(staging, "db.other") == [1, 3]

    def test_publish_brings_the_same_snapshots_to_main(self, lake: Lake, staging: Lake) -> None:
        staging.load_table("db.orders").append(order_rows(3))
        lake.create_table("db.other", ORDERS)
        staging.load_table("db.other").append(order_rows(1))
        heads = [staging.load_table(t).metadata.current_snapshot_id for t in ("db.orders", "db.other")]
        lake.publish("staging")
        assert [lake.load_table(t).metadata.current_snapshot_id for t in ("db.orders", "db.other")] == heads

    def test_transaction_of_several_tables_lands_on_the_branch(self, lake: Lake, staging: Lake) -> None:
        lake.create_table("db.other", ORDERS)
        with staging.transaction() as tx:
            tx.load_table("db.orders").append(order_rows(3))
            tx.load_table("db.other").append(order_rows(1))
        assert (rows(staging), rows(staging, "db.other")) == ([1, 2, 3], [1])
        assert rows(lake, "db.other") == []

    @pytest.mark.parametrize(
        ("change", "what"),
        [
            (evolving(lambda s: s.drop_column("region")), "drop column `region`"),
            (evolving(lambda s: s.rename_column("region", "place")), "rename column `region`"),
            (evolving(lambda s: s.move_column("region", first=True)), "move column `id`"),
            (evolving(lambda s: s.make_optional("id")), "make column `id` optional"),
            (lambda t: t.upgrade_format(3), "upgrade the format version"),
            (lambda t: t.set_location("memory://elsewhere"), "set the location"),
            (lambda t: t.expire(older_than=dt.datetime.now(dt.UTC), retain_last=1), "expire snapshots"),
            (lambda t: t.refs.drop_branch(LAKE_MAIN), "move the real `main`"),
        ],
    )
    def test_what_belongs_to_the_whole_table_is_refused(
        self, lake: Lake, staging: Lake, change: Callable[[Table], object], what: str
    ) -> None:
        table = staging.load_table("db.orders")
        table.append(order_rows(3)).append(order_rows(4))
        lake.load_table("db.orders").append(order_rows(5)).append(order_rows(6))
        before = lake.load_table("db.orders").metadata_location
        with pytest.raises(RefusedError, match=f"a commit to `db.orders` at branch `staging` cannot {what}"):
            change(staging.load_table("db.orders"))
        assert lake.load_table("db.orders").metadata_location == before

    def test_columns_are_added_for_all(self, lake: Lake, staging: Lake) -> None:
        with staging.load_table("db.orders").update_schema() as change:
            change.add_column("note", "string")
        assert "note" in lake.load_table("db.orders").schema.names
        assert rows(lake) == rows(staging) == [1, 2]

    @pytest.mark.parametrize("ref", ["v1", "2026-01-01T00:00:00Z"])
    def test_nothing_is_written_at_a_tag_or_a_time(self, lake: Lake, orders: Table, ref: str) -> None:
        orders.append(order_rows(1)).refs.create_tag("v1")
        location = orders.refresh().metadata_location
        with pytest.raises(RefusedError, match=r"where nothing can be written"):
            lake.at(ref).load_table("db.orders").append(order_rows(2))
        assert orders.refresh().metadata_location == location

    def test_table_where_the_name_is_a_tag_is_read_there(self, lake: Lake, staging: Lake) -> None:
        other = lake.create_table("db.other", ORDERS)
        other.append(order_rows(1)).refs.create_tag("staging")
        other.append(order_rows(2))
        assert rows(staging, "db.other") == [1]
        with pytest.raises(RefusedError, match=r"the table is read at `staging`, where"):
            staging.load_table("db.other").append(order_rows(3))

    @pytest.mark.parametrize(
        "change",
        [
            lambda lake: lake.drop_table("db.orders"),
            lambda lake: lake.unregister_table("db.orders"),
            lambda lake: lake.rename_table("db.orders", "db.new"),
            lambda lake: lake.drop_namespace("db"),
            lambda lake: lake.create_view("db.v", "SELECT 1 AS one", pa.schema([("one", pa.int32())])),
        ],
    )
    def test_names_on_main_are_the_same_at_all_refs(
        self, lake: Lake, staging: Lake, change: Callable[[Lake], object]
    ) -> None:
        with pytest.raises(RefusedError, match=r"at branch `staging` of the lake: names and views that are on `main`"):
            change(staging)
        assert lake.list_tables() == ["db.orders"]
        assert lake.list_namespaces() == ["db"]

    def test_protected_branch_stays_protected(self, lake: Lake, staging: Lake) -> None:
        lake.load_table("db.orders").refs.protect("staging", no_drop=True)
        with pytest.raises(RefusedError, match="staging"):
            staging.load_table("db.orders").refs.drop_branch("staging")


class TestTablesOfABranch:
    def test_table_is_on_its_branch_alone_until_it_is_published(self, lake: Lake, staging: Lake) -> None:
        lake.load_table("db.orders").refs.create_branch("other")
        staging.create_table("db.new", ORDERS).append(order_rows(1))
        assert staging.list_tables() == ["db.new", "db.orders"]
        assert lake.list_tables() == lake.at("other").list_tables() == ["db.orders"]
        assert (rows(staging, "db.new"), rows(lake, "db.new")) == ([1], [])
        lake.publish("staging")
        assert lake.list_tables() == ["db.new", "db.orders"]
        assert rows(lake, "db.new") == [1]
        assert CREATED_ON not in lake.load_table("db.new").metadata.properties

    def test_table_that_is_created_with_its_rows(self, lake: Lake, staging: Lake) -> None:
        with staging.stage_table("db.new", ORDERS) as new:
            new.append(order_rows(1))
        assert (rows(staging, "db.new"), lake.list_tables()) == ([1], ["db.orders"])

    def test_table_is_listed_with_the_commit_that_gives_it_a_main(self, lake: Lake, staging: Lake) -> None:
        staging.create_table("db.new", ORDERS).append(order_rows(1))
        lake.load_table("db.new").refs.fast_forward("main", to="staging")
        assert "db.new" in lake.list_tables()

    def test_pull_request_publishes_it(self, lake: Lake, staging: Lake) -> None:
        staging.load_table("db.orders").append(order_rows(3))
        staging.create_table("db.new", ORDERS).append(order_rows(1))
        request = lake.pull_requests.open("staging")
        assert {str(table.name) for table in request.record.tables} == {"db.orders", "db.new"}
        request.publish()
        assert lake.list_tables() == ["db.new", "db.orders"]
        assert (rows(lake), rows(lake, "db.new")) == ([1, 2, 3], [1])

    def test_name_is_taken_for_all(self, lake: Lake, staging: Lake) -> None:
        staging.create_table("db.new", ORDERS)
        for other in (lake, staging):
            with pytest.raises(AlreadyExistsError, match=r"db.new"):
                other.create_table("db.new", ORDERS)

    def test_table_can_be_renamed_and_dropped_on_its_branch(self, lake: Lake, staging: Lake) -> None:
        staging.create_table("db.new", ORDERS)
        staging.rename_table("db.new", "db.newer")
        assert (staging.list_tables(), lake.list_tables()) == (["db.newer", "db.orders"], ["db.orders"])
        lake.load_table("db.orders").refs.create_branch("other")
        with pytest.raises(RefusedError, match=r"cannot drop table `db.newer` at branch `other`"):
            lake.at("other").drop_table("db.newer")
        staging.drop_table("db.newer")
        assert staging.list_tables() == ["db.orders"]

    def test_table_that_is_published_meanwhile_is_not_dropped(
        self, lake: Lake, staging: Lake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        staging.create_table("db.new", ORDERS).append(order_rows(1))
        inner = lake.catalog
        drop = inner.drop_table

        def publish_first(*arguments: Any) -> None:
            monkeypatch.undo()
            lake.publish("staging", keep_branch=True)
            drop(*arguments)

        monkeypatch.setattr(inner, "drop_table", publish_first)
        with pytest.raises(RefusedError, match=r"cannot drop table `db.new`"):
            staging.drop_table("db.new")
        assert rows(lake, "db.new") == [1]

    def test_replacing_it_keeps_it_on_its_branch(self, lake: Lake, staging: Lake) -> None:
        staging.create_table("db.new", ORDERS).append(order_rows(1))
        with staging.stage_table("db.new", ORDERS, replace=True) as new:
            new.append(order_rows(2))
        assert (rows(staging, "db.new"), lake.list_tables()) == ([2], ["db.orders"])

    def test_table_on_main_is_replaced_on_the_branch_alone(self, lake: Lake, staging: Lake) -> None:
        with staging.stage_table("db.orders", ORDERS, replace=True) as new:
            new.append(order_rows(5))
        assert (rows(staging), rows(lake)) == ([5], [1, 2])

    @pytest.mark.parametrize("drops_late", [False, True])
    def test_none_is_left_by_a_branch_that_is_dropped_meanwhile(
        self, lake: Lake, staging: Lake, monkeypatch: pytest.MonkeyPatch, drops_late: bool
    ) -> None:
        inner, kept = staging.catalog.inner, lake.branches._kept  # type: ignore[attr-defined]
        create, remove = inner.create_table, kept.remove

        def create_late(name: TableName, metadata: TableMetadata) -> LoadedTable:
            made: LoadedTable = create(name, metadata)
            remove("staging")
            return made

        def remove_late(name: str) -> None:
            monkeypatch.undo()
            staging.create_table("db.new", ORDERS)
            remove(name)

        if drops_late:
            branches = lake.branches
            monkeypatch.setattr(branches._kept, "remove", remove_late)
            branches.drop("staging")
        else:
            monkeypatch.setattr(inner, "create_table", create_late)
            with pytest.raises(NotFoundError, match="the lake has no such branch, or it was dropped"):
                staging.create_table("db.new", ORDERS)
        assert not lake.table_exists("db.new")

    def test_it_is_published_into_main_alone(self, lake: Lake, staging: Lake) -> None:
        lake.branches.create("other")
        new = staging.create_table("db.new", ORDERS).append(order_rows(1))
        new.refs.create_branch("other")
        with pytest.raises(RefusedError, match=r"into `other`: table `db.new` was created on `staging`"):
            lake.branches.publish("staging", into="other")
        assert rows(staging, "db.new") == [1]

    def test_its_columns_are_its_own(self, staging: Lake) -> None:
        staging.create_table("db.new", ORDERS)
        with staging.load_table("db.new").update_schema() as change:
            change.drop_column("region")
        assert staging.load_table("db.new").schema.names.keys() == {"id", "amount"}

    def test_all_that_look_at_every_table_find_it(self, lake: Lake, staging: Lake) -> None:
        staging.create_table("db.new", ORDERS).append(order_rows(1))
        assert set(lake.tables_with_ref("staging")) == {"db.new", "db.orders"}

    def test_nobody_says_that_a_table_is_of_a_branch(self, lake: Lake, staging: Lake) -> None:
        lake.create_table("db.empty", ORDERS)
        for table in (lake.load_table("db.empty"), staging.load_table("db.orders")):
            with pytest.raises(InvalidInputError, match=rf"expected no change of property `{CREATED_ON}`"):
                table.set_properties({CREATED_ON: "staging"})

    def test_namespace_of_it_is_there_for_all(self, lake: Lake, staging: Lake) -> None:
        staging.create_namespace("extra")
        staging.create_table("extra.new", ORDERS)
        assert (lake.list_namespaces(), lake.list_tables("extra")) == (["db", "extra"], [])

    def test_catalog_that_lists_every_table_refuses_it(self, tmp_path: Path) -> None:
        with bergline.connect(f"file://{tmp_path}", create=True) as lake:
            lake.create_namespace("db")
            lake.create_table("db.orders", ORDERS).append(order_rows(1)).refs.create_branch("staging")
            with pytest.raises(UnsupportedError, match=r"cannot create a table on a branch of the lake"):
                lake.at("staging").create_table("db.new", ORDERS)
            assert lake.list_tables() == ["db.orders"]


class TestFound:
    def test_ref_that_is_nowhere_has_near_names(self, lake: Lake, staging: Lake) -> None:
        with pytest.raises(NotFoundError, match="no branch or tag `stagin` of the lake") as refused:
            lake.at("stagin")
        assert any("`staging`" in hint for hint in refused.value.hints)

    def test_time_that_has_not_come_is_refused(self, lake: Lake) -> None:
        with pytest.raises(InvalidInputError, match=r"expected a time that has passed, found 2999-01-01T00:00:00.000Z"):
            lake.at("2999-01-01T00:00:00Z")

    def test_lake_at_a_ref_opens_there_in_another_process(self, staging: Lake, lake: Lake) -> None:
        staging.load_table("db.orders").append(order_rows(3))
        with pickle.loads(pickle.dumps(staging)) as copy:  # noqa: S301  (made one line above)
            assert rows(copy) == [1, 2, 3]

    def test_connect_takes_a_ref(self, lake: Lake, staging: Lake, tmp_path: Any) -> None:
        staging.load_table("db.orders").append(order_rows(3))
        with bergline.connect(f"sqlite:///{tmp_path}/catalog.db", ref="staging") as opened:
            assert rows(opened) == [1, 2, 3]
        with pytest.raises(NotFoundError, match="no branch or tag `nope`"):
            bergline.connect(f"sqlite:///{tmp_path}/catalog.db", ref="nope")

    def test_closing_it_leaves_the_lake_open(self, lake: Lake, staging: Lake) -> None:
        staging.close()
        assert rows(lake) == [1, 2]


def test_delete_that_read_an_older_head_of_the_branch_conflicts(lake: Lake, staging: Lake) -> None:
    def delete() -> None:
        with staging.load_table("db.orders").transaction() as tx:
            tx.delete("id = 1")
            lake.load_table("db.orders").overwrite(order_rows(9), branch="staging")

    with pytest.raises(ConflictError):
        delete()
    assert rows(staging) == [9]
