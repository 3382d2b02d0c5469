"""The commit loop: retries reuse what they can, and every outcome is reported as what it is."""

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import bergline
from bergline import Lake, Table
from bergline.catalog.catalog import LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import CommitUnknownError, ConflictError, NotFoundError, RefusedError, UnavailableError
from bergline.scan.manifest_cache import forget_files
from bergline.table.commits.retry import Timing
from bergline.testing.faults import Fault
from support.fixtures.competing_writers import beaten, files, once, rival_lake
from support.fixtures.rows import ids, order_rows

pytestmark = pytest.mark.long


def test_loser_retries_with_the_very_manifest_it_wrote_first(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    seen: list[set[str]] = []

    def look_then_lose() -> None:
        seen.append(files(orders, "*-m0.avro"))
        if len(seen) <= 3:
            orders.append(order_rows(100 + len(seen)))

    loser, _ = rival_lake(lake, before_swap=look_then_lose)
    table = loser.load_table("db.orders").append(order_rows(2))
    own = table.current_snapshot
    assert own is not None
    assert ids(table.scan().to_arrow()) == [1, 2, 101, 102, 103]
    first_own_manifest = seen[0] - {m for m in seen[0] if m in files_of_others(orders)}
    assert len(first_own_manifest) == 1
    assert first_own_manifest <= files(orders, "*-m0.avro")
    assert own.manifest_list.split("/")[-1].startswith(f"snap-{own.snapshot_id}-4-")


def files_of_others(orders: Table) -> set[str]:
    """Manifests of the commits made through the table itself, by the commit ids in their names."""
    lists = [s.manifest_list for s in orders.metadata.snapshots]
    return {f"{'-'.join(x.removesuffix('.avro').split('-')[3:])}-m0.avro" for x in map(_name, lists)}


def _name(location: str) -> str:
    return location.rsplit("/", 1)[-1]


def test_each_lost_attempt_costs_one_list_and_none_is_left(lake: Lake, orders: Table) -> None:
    loser, waits = rival_lake(lake, before_swap=beaten(orders, 4))
    table = loser.load_table("db.orders").append(order_rows(2))
    assert len(table.metadata.snapshots) == 5
    assert len(files(orders, "*-m0.avro")) == 5
    assert len(files(orders, "snap-*.avro")) == 5
    assert len(waits) == 4
    assert len(files(orders, "*.metadata.json")) == 6


def test_waits_grow_and_stay_below_the_maximum(lake: Lake, orders: Table) -> None:
    orders.set_properties({"commit.retry.min-wait-ms": "10", "commit.retry.max-wait-ms": "35"})
    loser, waits = rival_lake(lake, before_swap=beaten(orders, 4))
    loser.load_table("db.orders").append(order_rows(2))
    assert waits == [0.01, 0.02, 0.035, 0.035]


def test_append_outlasts_more_losses_than_icebergs_default_of_four(lake: Lake, orders: Table) -> None:
    loser, _ = rival_lake(lake, before_swap=beaten(orders, 12))
    assert len(loser.load_table("db.orders").append(order_rows(2)).metadata.snapshots) == 13


def test_retries_that_the_table_sets_are_honoured_and_nothing_is_left(lake: Lake, orders: Table) -> None:
    orders.set_properties({"commit.retry.num-retries": "2"})
    loser, _ = rival_lake(lake, before_swap=beaten(orders, 3))
    with pytest.raises(ConflictError, match="gave up after 3 attempts"):
        loser.load_table("db.orders").append(order_rows(2))
    orders.refresh()
    assert ids(orders.scan().to_arrow()) == [100, 101, 102]
    assert len(files(orders, "*.parquet")) == 3
    assert len(files(orders, "*-m0.avro")) == 3
    assert len(files(orders, "snap-*.avro")) == 3


def test_overwrite_has_icebergs_default_retries(lake: Lake, orders: Table) -> None:
    loser, _ = rival_lake(lake, before_swap=beaten(orders, 5))
    with pytest.raises(ConflictError, match="gave up after 5 attempts"):
        loser.load_table("db.orders").overwrite(order_rows(2))


def test_overwrite_is_not_limited_by_commits_to_other_branches(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1), branch="own")
    loser, _ = rival_lake(lake, before_swap=beaten(orders, 12))
    table = loser.load_table("db.orders").overwrite(order_rows(2), branch="own")
    assert ids(table.scan(ref="own").to_arrow()) == [2]


def test_overwrite_is_not_limited_by_columns_and_partitions_that_others_change(lake: Lake, orders: Table) -> None:
    left = list(range(12))

    def rival() -> None:
        if left:
            number = left.pop()
            with orders.update_schema() as update:
                update.add_column(f"note_{number}", "string")
            with orders.update_spec() as update:
                update.add_field(f"note_{number}")

    loser, _ = rival_lake(lake, before_swap=rival)
    assert ids(loser.load_table("db.orders").overwrite(order_rows(2)).scan().to_arrow()) == [2]


def test_total_time_limits_retries(lake: Lake, orders: Table) -> None:
    orders.set_properties({"commit.retry.total-timeout-ms": "0"})
    loser, _ = rival_lake(lake, before_swap=beaten(orders, 3))
    ticks = iter(range(0, 10_000, 10))
    loser = Lake(loser.catalog, "lake", timing=Timing(clock_ms=lambda: next(ticks), sleep=lambda _: None))
    with pytest.raises(ConflictError, match="gave up after 1 attempts"):
        loser.load_table("db.orders").append(order_rows(2))


@pytest.mark.parametrize("fault", [Fault.LANDS_BUT_ANSWER_IS_LOST, Fault.NEVER_ARRIVES])
def test_lost_answer_adds_the_rows_once(lake: Lake, orders: Table, fault: Fault) -> None:
    shaky, _ = rival_lake(lake, fault)
    shaky.load_table("db.orders").append(order_rows(1, 2))
    assert ids(orders.refresh().scan().to_arrow()) == [1, 2]
    assert len(orders.metadata.snapshots) == 1


def test_unknown_outcome_is_said_and_deletes_nothing(lake: Lake, orders: Table) -> None:
    shaky, _ = rival_lake(lake, Fault.STORE_GOES_AWAY)
    with pytest.raises(CommitUnknownError, match="cannot find out whether the commit") as caught:
        shaky.load_table("db.orders").append(order_rows(1, 2))
    assert orders.refresh().metadata_location == caught.value.metadata_location
    assert ids(orders.scan().to_arrow()) == [1, 2]


def test_locked_store_is_asked_again(lake: Lake, orders: Table) -> None:
    shaky, waits = rival_lake(lake, *[Fault.REFUSED_AS_LOCKED] * 4)
    shaky.load_table("db.orders").append(order_rows(1))
    assert ids(orders.refresh().scan().to_arrow()) == [1]
    assert waits == [0.1, 0.2, 0.4, 0.8]
    assert len(files(orders, "snap-*.avro")) == 1
    assert len(files(orders, "*.metadata.json")) == 2


def test_store_that_stays_locked_is_an_error_and_leaves_no_file(lake: Lake, orders: Table) -> None:
    shaky, waits = rival_lake(lake, *[Fault.REFUSED_AS_LOCKED] * 5)
    before = files(orders, "*.*")
    with pytest.raises(UnavailableError, match="locked"):
        shaky.load_table("db.orders").append(order_rows(1))
    assert files(orders, "*.*") == before
    assert len(waits) == 4


def test_retries_that_the_table_sets_count_for_a_locked_store_too(lake: Lake, orders: Table) -> None:
    orders.set_properties({"commit.retry.num-retries": "0"})
    shaky, waits = rival_lake(lake, Fault.REFUSED_AS_LOCKED)
    with pytest.raises(UnavailableError, match="locked"):
        shaky.load_table("db.orders").append(order_rows(1))
    assert not waits


def test_second_writer_on_a_locked_database_gets_one_clear_error(tmp_path: Path, lake: Lake, orders: Table) -> None:
    catalog = lake.catalog
    assert isinstance(catalog, PointerCatalog)
    before = files(orders, "*.*")
    with (
        bergline.connect(f"sqlite:///{tmp_path}/catalog.db", busy_timeout=0.01) as second,
        catalog.store.database.writing(),  # type: ignore[attr-defined]
        pytest.raises(UnavailableError, match="is locked by another writer"),
    ):
        Lake(second.catalog, "lake", timing=Timing(sleep=lambda _: None)).load_table("db.orders").append(order_rows(1))
    assert files(orders, "*.*") == before
    assert orders.refresh().current_snapshot is None


def test_change_that_changes_nothing_writes_no_metadata_file(lake: Lake, orders: Table) -> None:
    orders.set_properties({"owner": "me"})
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    orders.refs.set_retention("main", min_snapshots_to_keep=2)
    before, pointer = files(orders, "*.*"), orders.metadata_location
    orders.set_properties({"owner": "me"}, remove=["not-set"])
    orders.refs.drop_branch("none", if_exists=True)
    orders.refs.create_tag("v1", if_not_exists=True)
    orders.refs.replace_tag("v1", at="main")
    orders.refs.set_retention("main", min_snapshots_to_keep=2)
    orders.expire()
    assert files(orders, "*.*") == before
    assert orders.metadata_location == lake.load_table("db.orders").metadata_location == pointer


def test_different_property_keys_do_not_conflict(lake: Lake, orders: Table) -> None:
    left = list(range(12))
    loser, _ = rival_lake(lake, before_swap=lambda: left and orders.set_properties({f"k{left.pop()}": "1"}) and None)
    table = loser.load_table("db.orders").set_properties({"mine": "1"})
    assert {"mine", *(f"k{n}" for n in range(12))} <= set(table.properties)


def test_of_two_values_of_one_property_the_last_one_wins(lake: Lake, orders: Table) -> None:
    loser, _ = rival_lake(lake, before_swap=once(lambda: orders.set_properties({"owner": "them"})))
    loser.load_table("db.orders").set_properties({"owner": "me"})
    assert orders.refresh().properties["owner"] == "me"


def test_same_property_set_to_the_same_value_meanwhile_is_done(lake: Lake, orders: Table) -> None:
    loser, _ = rival_lake(lake, before_swap=once(lambda: orders.set_properties({"owner": "me"})))
    table = loser.load_table("db.orders").set_properties({"owner": "me"})
    assert table.metadata_location == orders.metadata_location


@pytest.mark.parametrize("change", ["drop_branch", "replace_branch"])
def test_branch_that_grew_meanwhile_is_neither_dropped_nor_moved(lake: Lake, orders: Table, change: str) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("dev")
    orders.append(order_rows(2))
    loser, _ = rival_lake(lake, before_swap=once(lambda: orders.append(order_rows(3), branch="dev")))
    with pytest.raises(ConflictError, match=r"snapshot \d+ \(append on `dev`, 2.*\) came first"):
        getattr(loser.load_table("db.orders").refs, change)("dev")
    assert ids(orders.refresh().scan(ref="dev").to_arrow()) == [1, 3]


def test_other_refs_that_move_meanwhile_do_not_conflict(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("dev")
    orders.refs.create_branch("old")
    left = list(range(6))

    def move() -> None:
        if left:
            orders.append(order_rows(100 + left.pop()), branch="dev")

    loser, _ = rival_lake(lake, before_swap=move)
    loser.load_table("db.orders").refs.drop_branch("old")
    assert set(orders.refresh().refs) == {"main", "dev"}


def add_column(table: Table) -> None:
    with table.update_schema() as update:
        update.add_column("note", "string")


def add_partition(table: Table) -> None:
    with table.update_spec() as update:
        update.add_field("region")


CHANGES: dict[str, Callable[[Table], object]] = {
    "append": lambda t: t.append(order_rows(2)),
    "append to a branch": lambda t: t.append(order_rows(2), branch="dev"),
    "delete": lambda t: t.delete("region = 'us'"),
    "overwrite": lambda t: t.overwrite(order_rows(2, region="us"), "region = 'us'"),
    "compact": lambda t: t.compact(),
    "tag": lambda t: t.refs.create_tag("v1"),
    "branch": lambda t: t.refs.create_branch("dev"),
    "drop": lambda t: t.refs.drop_tag("old"),
    "retention": lambda t: t.refs.set_retention("main", min_snapshots_to_keep=3),
    "properties": lambda t: t.set_properties({"owner": "me"}),
    "columns": add_column,
    "partitions": add_partition,
    "sort order": lambda t: t.replace_sort_order(["id"]),
    "location": lambda t: t.set_location(f"{t.location}/elsewhere"),
    "version": lambda t: t.upgrade_format(3),
    "expiry": lambda t: t.expire(older_than=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_every_kind_of_change_outlasts_more_losses_than_icebergs_default_of_four(
    lake: Lake, orders: Table, kind: str
) -> None:
    orders.append(order_rows(0, region="us")).append(order_rows(1))
    orders.refs.create_tag("old")
    left = list(range(6))

    def rival() -> None:
        if left:
            left.pop()
            orders.append(order_rows(3), branch="other")

    loser, waits = rival_lake(lake, before_swap=rival)
    before = orders.metadata
    CHANGES[kind](loser.load_table("db.orders"))
    assert len(waits) == 6
    after = lake.load_table("db.orders").metadata
    assert len(after.metadata_log) == len(before.metadata_log) + 7
    assert ids(lake.load_table("db.orders").scan(ref="other").to_arrow()).count(3) == 6


def test_table_created_anew_under_its_name_is_not_written_to(lake: Lake, orders: Table) -> None:
    lake.drop_table("db.orders")
    again = lake.create_table("db.orders", orders.schema, location=f"{orders.location}2")
    with pytest.raises(ConflictError, match="dropped and re-created"):
        orders.append(order_rows(1))
    assert again.refresh().current_snapshot is None
    assert not files(orders, "*.parquet")


def test_tag_made_while_a_commit_runs_is_kept(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    once = [True]

    def tag_once() -> None:
        if once:
            once.pop()
            orders.refs.create_tag("meanwhile")

    loser, _ = rival_lake(lake, before_swap=tag_once)
    table = loser.load_table("db.orders").append(order_rows(2))
    assert set(table.metadata.refs) == {"main", "meanwhile"}


def test_branch_that_became_a_tag_meanwhile_refuses_the_write(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    once = [True]

    def tag_once() -> None:
        if once:
            once.pop()
            orders.refs.create_tag("x")

    loser, _ = rival_lake(lake, before_swap=tag_once)
    with pytest.raises(RefusedError, match="`x`: it is a tag"):
        loser.load_table("db.orders").append(order_rows(2), branch="x")
    assert len(files(orders, "*.parquet")) == 1


@pytest.mark.parametrize("write", ["append", "overwrite"])
def test_history_expired_under_an_attempt_is_a_conflict_not_an_error(lake: Lake, orders: Table, write: str) -> None:
    orders.append(order_rows(0))
    late = lake.load_table("db.orders")
    load, calls = lake.catalog.load_table, []

    def load_then_others_move_on(name: TableName) -> LoadedTable:
        loaded = load(name)
        calls.append(name)
        if len(calls) == 1:
            orders.append(order_rows(100)).append(order_rows(101))
            orders.expire(older_than=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1))
        return loaded

    lake.catalog.load_table = load_then_others_move_on  # type: ignore[method-assign]
    try:
        getattr(late, write)(order_rows(1))
    finally:
        lake.catalog.load_table = load  # type: ignore[method-assign]
    assert ids(orders.refresh().scan().to_arrow()) == ([0, 1, 100, 101] if write == "append" else [1])


def test_missing_file_of_a_table_that_did_not_move_is_an_error(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(0))
    assert orders.current_snapshot is not None
    Path(orders.current_snapshot.manifest_list.removeprefix("file://")).unlink()
    forget_files()
    with pytest.raises(NotFoundError, match="no file"):
        orders.append(order_rows(1))
    assert len(files(orders, "*.parquet")) == 1


def without_uuid(lake: Lake, orders: Table, path: Path) -> Table:
    """The table again, as an old writer of v1 would have left it."""
    metadata = json.loads(Path(orders.metadata_location.removeprefix("file://")).read_text()) | {"format-version": 1}
    del metadata["table-uuid"], metadata["last-sequence-number"]
    metadata["schema"] = metadata["schemas"][0]
    metadata["partition-spec"] = metadata["partition-specs"][0]["fields"]
    file = path / "00000-old.metadata.json"
    file.write_text(json.dumps(metadata))
    lake.drop_table(orders.name)
    return lake.register_table(orders.name, f"file://{file}")


def test_table_without_uuid_that_was_made_anew_under_its_writer_is_a_conflict(
    lake: Lake, orders: Table, tmp_path: Path
) -> None:
    old = without_uuid(lake, orders, tmp_path)
    lake.drop_table("db.orders")
    new = lake.create_table("db.orders", orders.schema)
    with pytest.raises(ConflictError, match="the table has no uuid, and may have been dropped and re-created"):
        old.append(order_rows(42))
    with pytest.raises(ConflictError), old.transaction():
        pytest.fail("nothing to write to")
    assert new.refresh().scan().to_arrow().num_rows == 0


def test_writers_of_a_table_without_uuid_find_it_again(lake: Lake, orders: Table, tmp_path: Path) -> None:
    first, second = without_uuid(lake, orders, tmp_path), lake.load_table("db.orders")
    assert first.metadata.table_uuid is None
    first.append(order_rows(1)).append(order_rows(2))
    assert ids(second.append(order_rows(3)).scan().to_arrow()) == [1, 2, 3]
