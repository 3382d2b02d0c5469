"""Rows deleted or replaced by a filter: which files go, which are written again, which stay."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError
from bergline.format.manifest.manifest import DataFile, is_deletion_vector
from support.fixtures.add_deletes import add_deletes, deletion_vectors, equality_deletes, position_deletes
from support.fixtures.competing_writers import once, overtaken, rival_lake
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

VERSIONS = ("1", "2", "3")
MODES = ("copy-on-write", "merge-on-read")


def create(lake: Lake, version: str = "2", **options: Any) -> Table:
    properties = {"format-version": version} | options.pop("properties", {})
    return lake.create_table("db.t", options.pop("schema", ORDERS), properties=properties, **options)


def files(table: Table, **at: str) -> list[DataFile]:
    return [p.file for p in table.scan(**at).plan().files]


def paths(table: Table) -> set[str]:
    return {f.file_path for f in files(table)}


def summary(table: Table) -> Mapping[str, str]:
    assert table.current_snapshot is not None
    return table.current_snapshot.summary


@pytest.mark.parametrize("mode", MODES)
def test_rows_are_deleted_by_days_and_moments(lake: Lake, mode: str) -> None:
    columns = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("at", pa.timestamp("us", tz="UTC"))])
    table = create(lake, schema=columns, properties={"write.delete.mode": mode})
    days = [dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in (1, 2, 3)]
    table.append(pa.Table.from_pylist([{"id": d.day, "day": d.date(), "at": d} for d in days], columns))
    table.delete("day = DATE '2026-01-02'")
    assert ids(table.scan().to_arrow()) == [1, 3]
    table.delete("at >= TIMESTAMP '2026-01-02 12:00:00'")
    assert ids(table.scan().to_arrow()) == [1]


@pytest.mark.parametrize("version", VERSIONS)
def test_files_that_match_wholly_go_by_their_metadata_alone(
    lake: Lake, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(lake, version, partition_by=["region"])
    table.append(order_rows(1, 2)).append(order_rows(3, 4, region="us")).append(order_rows(5))
    kept = paths(table) - {f.file_path for f in files(table) if f.partition == ("us",)}
    monkeypatch.setattr("bergline.table.engine.rewrite_rows.read_file", None)
    table.delete("region = 'us' OR id > 100")
    assert paths(table) == kept
    assert ids(table.scan().to_arrow()) == [1, 2, 5]
    assert {"operation": "delete", "deleted-data-files": "1", "deleted-records": "2"}.items() <= summary(table).items()
    table.delete("id >= 5")
    assert ids(table.scan().to_arrow()) == [1, 2]


@pytest.mark.parametrize("version", VERSIONS)
def test_files_that_match_partly_are_written_again_and_the_others_stay(lake: Lake, version: str) -> None:
    table = create(lake, version).append(order_rows(1, 2, 3)).append(order_rows(4, 5)).append(order_rows(6, 7))
    before = paths(table)
    table.delete("id IN (2, 6)")
    assert ids(table.scan().to_arrow()) == [1, 3, 4, 5, 7]
    assert len(before & paths(table)) == 1
    expected = {"operation": "overwrite", "deleted-data-files": "2", "added-data-files": "1", "total-records": "5"}
    assert expected.items() <= summary(table).items()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("row_filter", ["id = 99", "id > 2 AND id < 3", "amount IS NULL", "false"])
def test_nothing_is_committed_where_nothing_matches(lake: Lake, mode: str, row_filter: str) -> None:
    table = create(lake, properties={"write.delete.mode": mode}).append(order_rows(1, 2, 3, 100))
    before = table.metadata_location, table.io.list(table.location)
    table.delete(row_filter)
    assert (table.refresh().metadata_location, table.io.list(table.location)) == before


def test_delete_on_an_empty_table_does_nothing(orders: Table) -> None:
    orders.delete("id = 1")
    assert orders.current_snapshot is None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("row_filter", "left"),
    [
        ("x > 1", [1, 2, 4, 5]),
        ("NOT (x > 1)", [2, 3]),
        ("x IS NULL", [1, 3, 4, 5]),
        ("x = 1 OR id = 2", [3, 4]),
        ("x IN (1, NULL)", [2, 3, 4]),
        ("isnan(d)", [1, 2, 3, 5]),
        ("d > 100", [1, 2, 3, 5]),
        ("s.a = 'p'", [2, 3, 4, 5]),
        ("true", []),
    ],
)
def test_rows_for_which_the_filter_is_unknown_stay(lake: Lake, mode: str, row_filter: str, left: list[int]) -> None:
    rows = [
        {"id": 1, "x": 1, "d": 0.0, "s": {"a": "p"}},
        {"id": 2, "x": None, "d": None, "s": None},
        {"id": 3, "x": 3, "d": 1.0, "s": {"a": None}},
        {"id": 4, "x": 0, "d": float("nan"), "s": {"a": "q"}},
        {"id": 5, "x": 1, "d": -0.0, "s": {"a": "r"}},
    ]
    struct = pa.struct([("a", pa.string())])
    schema = pa.schema([("id", pa.int64()), ("x", pa.int32()), ("d", pa.float64()), ("s", struct)])
    table = create(lake, schema=schema, properties={"write.delete.mode": mode})
    table.append(pa.Table.from_pylist(rows, schema=schema))
    table.delete(row_filter)
    assert ids(table.scan().to_arrow()) == left
    assert bool(summary(table).get("added-position-deletes")) == (mode == MODES[1] and left != [])


def test_rows_of_v3_keep_their_ids_and_numbers_when_their_file_is_written_again(lake: Lake) -> None:
    columns = ["id", "_row_id", "_last_updated_sequence_number"]
    table = create(lake, "3").append(order_rows(1, 2, 3)).append(order_rows(4, 5))
    before = {r["id"]: r for r in table.scan(columns=columns).to_arrow().to_pylist()}
    table.delete("id IN (1, 5)")
    table.overwrite(order_rows(8), "id = 2")
    after = {r["id"]: r for r in table.scan(columns=columns).to_arrow().to_pylist()}
    new = after.pop(8)
    assert after == {i: before[i] for i in (3, 4)}
    assert new["_last_updated_sequence_number"] == 4
    assert new["_row_id"] >= 5
    assert len({new["_row_id"], *(r["_row_id"] for r in after.values())}) == 3


@pytest.mark.parametrize("kind", ["positions", "equality", "vectors"])
@pytest.mark.parametrize("mode", MODES)
def test_deleted_rows_do_not_come_back(lake: Lake, kind: str, mode: str) -> None:
    version = "3" if kind == "vectors" else "2"
    table = create(lake, version, properties={"write.delete.mode": mode}).append(order_rows(1, 2, 3, 4))
    table.append(order_rows(5, 6))
    path = files(table)[-1].file_path
    deletes = {
        "positions": lambda: [position_deletes(table, {path: [0, 3]})],
        "equality": lambda: [equality_deletes(table, pa.table({"id": [1, 4]}), [1])],
        "vectors": lambda: deletion_vectors(table, {path: [0, 3]}),
    }[kind]()
    add_deletes(table, *deletes)
    table.delete("id = 2")
    assert ids(table.scan().to_arrow()) == [3, 5, 6]
    table.delete("id <= 2")
    assert ids(table.scan().to_arrow()) == [3, 5, 6]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("row_filter", ["id = 5", "id = 5 OR id = 8"])
def test_rows_that_an_equality_delete_took_stay_deleted_when_others_of_the_same_key_go(
    lake: Lake, version: str, mode: str, row_filter: str
) -> None:
    table = create(lake, version, properties={"write.delete.mode": mode}).append(order_rows(5, 6))
    add_deletes(table, equality_deletes(table, pa.table({"id": [5]}), [1]))
    table.refresh().overwrite(order_rows(5, region="us"), row_filter)
    assert ids(table.scan().to_arrow()) == [5, 6], "nothing matched: only the new row came in"
    table.append(order_rows(5, 7)).append(order_rows(8))
    table.delete(row_filter)
    assert ids(table.scan().to_arrow()) == [6, 7, *([] if "8" in row_filter else [8])]


def test_equality_deletes_of_rows_that_others_added_stay_when_a_transaction_is_worked_out_again(lake: Lake) -> None:
    table = create(lake).append(order_rows(1))
    with table.transaction() as transaction:
        transaction.append(order_rows(5)).append(order_rows(8))
        transaction.delete("id = 5", isolation="snapshot")
        rival = lake.load_table("db.t").append(order_rows(5, 6))
        add_deletes(rival, equality_deletes(rival, pa.table({"id": [5]}), [1]))
    assert ids(table.refresh().scan().to_arrow()) == [1, 6, 8]


def test_full_overwrite_of_a_branch_with_deletes(lake: Lake) -> None:
    table = create(lake).append(order_rows(1, 2))
    add_deletes(table, position_deletes(table, {files(table)[0].file_path: [0]}), branch="dev")
    table.refresh().overwrite(order_rows(7), branch="dev")
    assert ids(table.scan(ref="dev").to_arrow()) == [7]
    assert ids(table.scan().to_arrow()) == [1, 2]
    assert not table.scan(ref="dev").plan().files[0].deletes


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", VERSIONS)
def test_overwrite_replaces_the_matching_rows_of_a_branch(lake: Lake, version: str, mode: str) -> None:
    table = create(lake, version, properties={"write.delete.mode": mode})
    table.append(order_rows(1, 2, 3)).append(order_rows(4, 5))
    table.refs.create_branch("dev")
    table.overwrite(order_rows(20, 21), "id = 2 OR id > 3", branch="dev")
    assert ids(table.scan(ref="dev").to_arrow()) == [1, 3, 20, 21]
    assert ids(table.scan().to_arrow()) == [1, 2, 3, 4, 5]
    head = table.metadata.head("dev")
    assert head is not None
    assert head.operation == "overwrite"


def test_overwrite_where_nothing_matches_only_adds(orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2), "id = 9")
    assert ids(orders.scan().to_arrow()) == [1, 2]
    assert summary(orders)["operation"] == "overwrite"


def test_overwrite_takes_rows_that_do_not_match_the_filter(orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2), "id = 1")
    assert ids(orders.scan().to_arrow()) == [2]


def test_merge_on_read_keeps_the_data_files(lake: Lake) -> None:
    for version, vectors in (("2", False), ("3", True)):
        table = lake.create_table(
            f"db.v{version}", ORDERS, properties={"format-version": version, "write.delete.mode": "merge-on-read"}
        ).append(order_rows(1, 2, 3))
        before = paths(table)
        table.delete("id = 2").delete("id = 3")
        assert paths(table) == before
        assert ids(table.scan().to_arrow()) == [1]
        (planned,) = table.scan().plan().files
        assert [is_deletion_vector(d) for d in planned.deletes] == [vectors]
        table.delete("id = 1")
        assert table.scan().to_arrow().num_rows == 0


def test_delete_files_that_only_concern_removed_partitions_go_too(lake: Lake) -> None:
    table = create(lake, partition_by=["region"]).append(order_rows(1, 2)).append(order_rows(3, 4, region="us"))
    add_deletes(table, *(position_deletes(table, {f.file_path: [0]}) for f in files(table)))
    table.overwrite(order_rows(9), "region = 'eu'")
    assert ids(table.scan().to_arrow()) == [4, 9]
    assert summary(table)["total-delete-files"] == "1"


def test_rows_go_to_the_partitions_of_the_current_spec(lake: Lake) -> None:
    table = create(lake, partition_by=["region"]).append(order_rows(1, 2, 3))
    with table.update_spec() as spec:
        spec.remove_field("region").add_field("bucket(2, id)")
    table.delete("id = 2")
    assert ids(table.scan().to_arrow()) == [1, 3]
    assert {f.spec_id for f in files(table)} == {table.metadata.default_spec_id}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.delete(None), "expected a filter, found none"),
        (lambda t: t.delete("colour = 1"), "colour"),
        (lambda t: t.delete(5), "expected a filter as SQL text"),
        (lambda t: t.delete("id = 1", isolation="loose"), "expected serializable, snapshot or none"),
        (lambda t: t.overwrite(order_rows(1), "id = 'x'"), "id"),
        (lambda t: t.overwrite(order_rows(1), isolation=["x"]), "expected serializable, snapshot or none"),
        (lambda t: t.overwrite_partitions(order_rows(1), isolation="x"), "expected serializable, snapshot or none"),
    ],
)
def test_bad_calls_are_refused_before_anything_is_written(orders: Table, call: Any, message: str) -> None:
    orders.append(order_rows(1))
    before = orders.io.list(orders.location)
    with pytest.raises((InvalidInputError, NotFoundError), match=message):
        call(orders)
    assert orders.io.list(orders.location) == before


def test_tag_refuses_deletes(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    with pytest.raises(RefusedError, match="tags do not move"):
        orders.delete("id = 1", branch="v1")


@pytest.mark.parametrize("mode", MODES)
def test_rows_that_others_added_meanwhile_are_a_conflict_only_if_they_may_match(lake: Lake, mode: str) -> None:
    table = create(lake, properties={"write.delete.mode": mode}).append(order_rows(1, 2, 3))
    for added, isolation, conflicts in [(50, None, False), (2, None, True), (2, "snapshot", False)]:
        table.overwrite(order_rows(1, 2, 3), "id <= 3")
        loser, _ = rival_lake(lake, before_swap=once(lambda added=added: table.append(order_rows(added))))
        before = set(table.io.list(table.location))
        if conflicts:
            with pytest.raises(ConflictError, match=r"snapshot [0-9]+ \(append on `main`, .*\) came first and"):
                loser.load_table("db.t").delete("id = 2", isolation=isolation)
            left = {f for f in set(table.io.list(table.location)) - before if "metadata.json" not in f}
            assert len(left) == 3, "the other's data file, manifest and list"
        else:
            loser.load_table("db.t").delete("id = 2", isolation=isolation)
        table.refresh()
    assert ids(table.scan().to_arrow()) == [1, 2, 3, 50], "the last one was added while order 2 was deleted"


@pytest.mark.parametrize("mode", MODES)
def test_rows_that_others_deleted_from_the_same_file_are_never_brought_back(lake: Lake, mode: str) -> None:
    table = create(lake, properties={"write.delete.mode": "merge-on-read"}).append(order_rows(1, 2, 3, 4))
    table.set_properties({"write.delete.mode": mode})

    def other() -> None:
        add_deletes(table.refresh(), equality_deletes(table, pa.table({"id": [4]}), [1]))

    loser, _ = rival_lake(lake, before_swap=once(other))
    mine = loser.load_table("db.t")
    if mode == "copy-on-write":
        with pytest.raises(ConflictError, match=r"deleted rows of .*, which this one replaces"):
            mine.delete("id = 2", isolation="none")
        mine.refresh().delete("id = 2")
    else:
        mine.delete("id = 2")
    assert ids(table.refresh().scan().to_arrow()) == [1, 3]


def test_deletes_of_rows_that_others_added_meanwhile_stay(lake: Lake) -> None:
    table = create(lake, partition_by=["region"]).append(order_rows(1))

    def other() -> None:
        table.append(order_rows(2, 3))
        (added,) = [f for f in files(table) if f.record_count == 2]
        add_deletes(table, position_deletes(table, {added.file_path: [0]}))

    loser, _ = rival_lake(lake, before_swap=once(other))
    loser.load_table("db.t").overwrite(order_rows(9), "region = 'eu'", isolation="snapshot")
    assert ids(table.refresh().scan().to_arrow()) == [3, 9]


def test_file_that_others_replaced_is_a_conflict(lake: Lake) -> None:
    table = create(lake).append(order_rows(1, 2))
    loser, _ = rival_lake(lake, before_swap=once(lambda: table.delete("id = 1")))
    with pytest.raises(ConflictError, match=r"overwrite on `main`, .* came first and removed"):
        loser.load_table("db.t").delete("id = 2", isolation="none")
    assert ids(table.refresh().scan().to_arrow()) == [2]


def test_overwrite_of_rows_that_changed_since_the_table_was_loaded_is_a_conflict(lake: Lake) -> None:
    create(lake).append(order_rows(1, 2))
    mine, theirs = lake.load_table("db.t"), lake.load_table("db.t")
    theirs.overwrite(order_rows(1), "id = 1")
    before = mine.io.list(mine.location)
    with pytest.raises(ConflictError, match="overwrite on `main`"):
        mine.overwrite(order_rows(1), "id = 1")
    assert mine.io.list(mine.location) == before
    mine.delete("id = 1")
    assert ids(mine.scan().to_arrow()) == [2]


def swap_names(lake: Lake, one: str = "id", other: str = "old") -> None:
    with lake.load_table("db.t").update_schema() as schema:
        schema.rename_column(one, "between").rename_column(other, one).rename_column("between", other)


NUMBERS = pa.schema([("id", pa.int64()), ("old", pa.int64())])


def numbers(*rows: tuple[int, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(NUMBERS.names, row, strict=True)) for row in rows], NUMBERS)


def pairs(lake: Lake) -> list[tuple[int, ...]]:
    return sorted(tuple(row.values()) for row in lake.load_table("db.t").scan().to_arrow().to_pylist())


def test_filter_of_an_overwrite_looks_at_the_columns_that_the_handle_knows(lake: Lake) -> None:
    mine = create(lake, schema=NUMBERS).append(numbers((5, 1), (1, 5)))
    swap_names(lake)
    mine.overwrite(numbers((5, 100)), "id = 5")
    assert pairs(lake) == [(1, 5), (5, 100)]


@pytest.mark.parametrize("mode", MODES)
def test_columns_of_a_filter_that_others_rename_meanwhile_are_still_the_same(lake: Lake, mode: str) -> None:
    create(lake, schema=NUMBERS, properties={"write.delete.mode": mode}).append(numbers((5, 7), (8, 8), (1, 5)))
    overtaken(lake, lambda: swap_names(lake)).load_table("db.t").delete("id = 5")
    assert pairs(lake) == [(1, 5), (8, 8)]


@pytest.mark.parametrize("mode", MODES)
def test_conflicts_are_looked_for_in_the_columns_that_the_filter_was_about(lake: Lake, mode: str) -> None:
    table = create(lake, schema=NUMBERS, properties={"write.delete.mode": mode}).append(numbers((5, 100), (6, 101)))
    table.append(numbers((7, 102)))

    def others() -> None:
        lake.load_table("db.t").compact()
        swap_names(lake)

    with pytest.raises(ConflictError, match="came first and removed"):
        overtaken(lake, others).load_table("db.t").delete("id = 5")


def test_filter_on_a_column_that_was_dropped_or_has_another_type_by_now_is_a_conflict(lake: Lake) -> None:
    schema = pa.schema([("id", pa.int32()), ("old", pa.int32())])
    mine = create(lake, schema=schema).append(numbers((1, 2)).cast(schema))
    with lake.load_table("db.t").update_schema() as update:
        update.set_type("id", "long").drop_column("old")
    with pytest.raises(ConflictError, match="expected column `id` of type `int`, found `long`"):
        mine.delete("id = 1")
    with pytest.raises(ConflictError, match="expected column `old`, found it dropped"):
        mine.delete("old = 1")
    mine.refresh().delete("id = 1")
    assert pairs(lake) == []


@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
@pytest.mark.parametrize(("version", "mode"), [("2", MODES[0]), ("2", MODES[1]), ("3", MODES[1])])
@pytest.mark.parametrize("row_filter", ["id = 1", "id > 0"])
@pytest.mark.parametrize("first", [lambda t: t.overwrite(order_rows(50), "id = 1"), lambda t: t.delete("id = 1")])
def test_rows_that_are_overwritten_must_not_have_been_changed_by_others(
    lake: Lake, isolation: str, version: str, mode: str, row_filter: str, first: Any
) -> None:
    create(lake, version, properties={"write.delete.mode": mode}).append(order_rows(1, 2))
    mine = lake.load_table("db.t")
    first(lake.load_table("db.t"))
    with pytest.raises(ConflictError, match="came first and"):
        mine.overwrite(order_rows(51), row_filter, isolation=isolation)


def test_two_deletes_of_one_row_do_no_harm(lake: Lake) -> None:
    create(lake, properties={"write.delete.mode": "merge-on-read"}).append(order_rows(1, 2))
    overtaken(lake, lambda: lake.load_table("db.t").delete("id = 1")).load_table("db.t").delete("id = 1")
    assert ids(lake.load_table("db.t").scan().to_arrow()) == [2]


@pytest.mark.parametrize(("isolation", "left"), [("serializable", [1, 4, 7]), ("snapshot", [1, 4, 5, 7])])
def test_delete_that_found_nothing_in_a_transaction_looks_again(lake: Lake, isolation: str, left: list[int]) -> None:
    table = create(lake).append(order_rows(1))

    def transact(other: int) -> None:
        with table.refresh().transaction() as transaction:
            transaction.delete("id = 5", isolation=isolation).append(order_rows(7))
            lake.load_table("db.t").append(order_rows(other))

    transact(4)
    table.refresh().delete("id = 7")
    if isolation == "serializable":
        with pytest.raises(ConflictError, match="came first and added"):
            transact(5)
        table.refresh().overwrite(order_rows(7), "id = 5")
    else:
        transact(5)
    assert ids(table.refresh().scan().to_arrow()) == left


def test_upgrade_during_a_delete_that_writes_delete_files_is_a_conflict(lake: Lake) -> None:
    create(lake, properties={"write.delete.mode": "merge-on-read"}).append(order_rows(1, 2))
    rival = overtaken(lake, lambda: lake.load_table("db.t").upgrade_format(3))
    with pytest.raises(ConflictError, match="upgraded the table to format version 3 meanwhile"):
        rival.load_table("db.t").delete("id = 1")
    rival.load_table("db.t").delete("id = 1")
    assert ids(lake.load_table("db.t").scan().to_arrow()) == [2]


def test_overwrite_in_a_transaction_sees_what_came_before_in_it(lake: Lake) -> None:
    table = create(lake).append(order_rows(1, 2))
    loser, _ = rival_lake(lake, before_swap=once(lambda: table.append(order_rows(50))))
    with loser.load_table("db.t").transaction() as mine:
        mine.append(order_rows(3, 4))
        mine.delete("id = 3")
        mine.overwrite(order_rows(10), "id = 1")
    assert ids(table.refresh().scan().to_arrow()) == [2, 4, 10, 50]


def test_transaction_fails_if_others_added_rows_that_its_delete_looked_for(lake: Lake) -> None:
    table = create(lake).append(order_rows(1, 2))
    loser, _ = rival_lake(lake, before_swap=once(lambda: table.append(order_rows(3))))
    before = set(table.io.list(table.location))
    transaction = loser.load_table("db.t").transaction()
    mine = transaction.__enter__()
    mine.append(order_rows(3, 4)).delete("id = 3")
    with pytest.raises(ConflictError, match="came first"):
        transaction.__exit__(None, None, None)
    assert ids(table.refresh().scan().to_arrow()) == [1, 2, 3]
    left = {f for f in set(table.io.list(table.location)) - before if "metadata.json" not in f}
    assert len(left) == 3, "the other's data file, manifest and list"


@pytest.mark.parametrize(("isolation", "conflicts"), [(None, False), ("snapshot", False), ("serializable", True)])
def test_full_overwrite_looks_for_conflicts_only_when_asked(lake: Lake, isolation: str, conflicts: bool) -> None:
    create(lake).append(order_rows(1))
    mine = lake.load_table("db.t")
    lake.load_table("db.t").append(order_rows(2))
    if conflicts:
        with pytest.raises(ConflictError, match="append on `main`"):
            mine.overwrite(order_rows(3), isolation=isolation)
    else:
        mine.overwrite(order_rows(3), isolation=isolation)
        assert ids(mine.scan().to_arrow()) == [3]


@pytest.mark.parametrize("stale", [True, False])
@pytest.mark.parametrize("swapped", [True, False])
def test_a_filter_column_that_another_renamed_is_still_the_one_meant(lake: Lake, stale: bool, swapped: bool) -> None:
    table = create(lake).append(order_rows(1, 2))

    def rename() -> None:
        with lake.load_table("db.t").update_schema() as schema:
            schema.rename_column("id", "number")
        if swapped:
            with lake.load_table("db.t").update_schema() as schema:
                schema.rename_column("amount", "id")

    if stale:
        rename()
    else:
        losing, _ = rival_lake(lake, before_swap=once(rename))
        table = losing.load_table("db.t")
    table.delete("id = 1")
    assert lake.load_table("db.t").scan().to_arrow()["number"].to_pylist() == [2]
