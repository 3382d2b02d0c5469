"""Update, upsert and merge from Python: rows, counts, row ids, and what is refused."""

import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.datafiles.file.arrow_schema import schema_from_arrow
from bergline.errors import (
    BerglineError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnsupportedError,
)
from bergline.expressions.predicate import Comparison, columns_of
from bergline.table.row_expressions.parse import Names
from bergline.table.row_merges.bind import bind_merge, bind_update_request
from bergline.table.row_merges.clauses import MergeClause, RowCounts, RowMergeRequest, UpdateRequest
from bergline.table.row_merges.source import source_rows
from support.fixtures.competing_writers import once, rival_lake
from support.fixtures.rows import ORDERS, order_rows
from support.fixtures.twin_tables import KINDS, all_rows

pytestmark = pytest.mark.long

MODES = ("copy-on-write", "merge-on-read")


def create(lake: Lake, version: str = "2", mode: str = "merge-on-read", **properties: str) -> Table:
    modes = {f"write.{command}.mode": mode for command in ("delete", "update", "merge")}
    table = lake.create_table("db.t", ORDERS, properties={"format-version": version} | modes | properties)
    return table.append(order_rows(1, 2, 3)).append(order_rows(4, 5, region="us"))


def rows(table: Table, **options: Any) -> dict[int, tuple[Any, ...]]:
    found = table.scan(columns=["id", "amount", "region"], **options).to_arrow().to_pylist()
    return {row["id"]: (row["amount"], row["region"]) for row in found}


@pytest.fixture
def memory_lake() -> Any:
    with bergline.connect("memory:") as opened:
        opened.create_namespace("db")
        yield opened


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_changes_by_update_and_merge(lake: Lake, kind: str) -> None:
    table = KINDS[kind](lake, "db.t")
    mode = table.properties.get("write.delete.mode", MODES[0])
    table.set_properties({"write.update.mode": mode, "write.merge.mode": mode})
    lineage = table.metadata.format_version > 2
    names = [f.name for f in table.schema.fields]
    place = names.index("amount")

    def changed(before: list[tuple[Any, ...]], amounts: dict[int, float], gone: tuple[int, ...] = ()) -> list[Any]:
        number = table.metadata.last_sequence_number
        expected = []
        for row in before:
            new = list(row)
            if row[0] in amounts:
                new[place] = amounts[row[0]]
                new[-1] = number if lineage else new[-1]
            if row[0] not in gone:
                expected.append(tuple(new))
        return expected

    before = all_rows(table)
    live = {row[0] for row in before}
    assert {3, 9, 20} <= live
    counts = table.update({"amount": "amount + id / 2"}, where="id IN (3, 9) OR id % 20 = 0 AND id > 0")
    wanted = {i: 10.0 * i + i / 2 for i in (3, 9, 20, 40) if i in live}
    assert counts == RowCounts(rows_updated=len(wanted))
    assert all_rows(table) == changed(before, wanted)

    before = all_rows(table)
    source = [{"id": 3, "x": 1.0, "op": "U"}, {"id": 21, "x": 0.0, "op": "D"}, {"id": 77, "x": 5.0, "op": "I"}]
    counts = (
        table.merge(source, on="target.id = source.id")
        .when_matched_delete("op = 'D'")
        .when_matched_update({"amount": "x"}, "op = 'U'")
        .when_not_matched_insert({"id": "id", "amount": "x"})
        .execute()
    )
    assert counts == RowCounts(rows_updated=1, rows_inserted=1, rows_deleted=1)
    after = all_rows(table)
    new = [row for row in after if row[0] == 77]
    assert [row[place] for row in new] == [5.0]
    assert [row for row in after if row[0] != 77] == changed(before, {3: 1.0}, gone=(21,))
    if lineage:
        assert len({row[-2] for row in after}) == len(after)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_upsert_updates_what_differs_and_inserts_the_rest(memory_lake: Lake, version: str, mode: str) -> None:
    table = create(memory_lake, version, mode)
    source = [
        {"id": 1, "amount": 10.0, "region": "eu"},
        {"id": 4, "amount": 0.5, "region": None},
        {"id": 9, "amount": 9.0, "region": "us"},
    ]
    before = len(table.metadata.snapshots)
    assert table.upsert(source, keys=["id"]) == RowCounts(rows_updated=1, rows_inserted=1)
    expected = {1: (10.0, "eu"), 2: (20.0, "eu"), 3: (30.0, "eu"), 4: (0.5, None), 5: (50.0, "us"), 9: (9.0, "us")}
    assert rows(table) == expected
    assert len(table.metadata.snapshots) == before + 1
    assert table.upsert(source, keys=["id"]) == RowCounts()
    assert len(table.metadata.snapshots) == before + 1


def test_upsert_finds_rows_by_identifier_fields_and_keeps_columns_that_are_not_given(memory_lake: Lake) -> None:
    table = create(memory_lake)
    with pytest.raises(InvalidInputError, match="expected keys, found none, and no identifier fields"):
        table.upsert([{"id": 1}])
    with table.update_schema() as schema:
        schema.set_identifier_fields(["id"])
    assert table.upsert([{"id": 2, "amount": 1.0}, {"id": 8, "amount": 8.0}]) == RowCounts(1, 1)
    assert rows(table)[2] == (1.0, "eu")
    assert rows(table)[8] == (8.0, None)


@pytest.mark.parametrize(
    ("options", "counts"),
    [
        ({"when_matched_update_all": False}, RowCounts(rows_inserted=1)),
        ({"when_not_matched_insert_all": False}, RowCounts(rows_updated=1)),
    ],
)
def test_upsert_does_only_what_is_asked_for(memory_lake: Lake, options: dict[str, bool], counts: RowCounts) -> None:
    source = [{"id": 1, "amount": 0.0}, {"id": 9, "amount": 0.0}]
    assert create(memory_lake).upsert(source, keys=["id"], **options) == counts


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ([{"id": 1}, {"id": 1}], {}, "expected each key (`id`) once in the source, found several rows with"),
        ([{"id": None}], {}, "expected values in the required column `id`"),
        (
            [{"id": 7, "region": None}],
            {"keys": ["region"]},
            "expected a key in every row of the source, found null in column `region`",
        ),
        ([{"id": 1, "amont": 1.0}], {}, "expected columns `id`, `amount`, `region`, found `amont`"),
        ([{"amount": 1.0}], {}, "expected the key `id` in the rows, found no column `id`"),
        ([{"id": 1}], {"keys": []}, "expected at least one key, found none"),
        ([{"id": 1}], {"keys": ["id", "id"]}, "expected each key once"),
        ([{"id": 1}], {"keys": "id"}, "expected a list of columns, found the text `id`"),
        ([{"id": 1}], {"when_matched_update_all": False, "when_not_matched_insert_all": False}, "found neither"),
        ([{"region": "eu"}], {"keys": ["region"]}, "expected a value for the required column `id`, found none"),
        ([{"id": "1"}], {}, "expected `long`, found `string` in column `id`"),
        (7, {}, "expected rows as Arrow data"),
    ],
)
def test_upsert_refuses_bad_rows_and_changes_nothing(
    memory_lake: Lake, source: Any, options: dict[str, Any], message: str
) -> None:
    table = create(memory_lake)
    before, location = sorted(table.io.list(table.location)), table.metadata_location
    with pytest.raises(InvalidInputError) as refused:
        table.upsert(source, **{"keys": ["id"]} | options)
    assert message in str(refused.value)
    assert table.refresh().metadata_location == location
    assert sorted(table.io.list(table.location)) == before


FORMS: dict[str, Callable[[], Any]] = {
    "arrow": lambda: pa.table({"id": [2, 7], "amount": [0.0, 7.0]}),
    "batch": lambda: pa.RecordBatch.from_pydict({"id": [2, 7], "amount": [0.0, 7.0]}),
    "reader": lambda: pa.table({"id": [2, 7], "amount": [0.0, 7.0]}).to_reader(),
    "pandas": lambda: pd.DataFrame({"id": [2, 7], "amount": [0.0, 7.0]}),
    "polars": lambda: pl.DataFrame({"id": [2, 7], "amount": [0.0, 7.0]}),
    "narrow types": lambda: pa.table({"id": pa.array([2, 7], pa.int16()), "amount": pa.array([0, 7], pa.float32())}),
}


@pytest.mark.parametrize("form", FORMS)
def test_sources_are_whatever_rows_are(memory_lake: Lake, form: str) -> None:
    table = create(memory_lake)
    merge = table.merge(FORMS[form](), on=["id"])
    counts = merge.when_matched_update({"amount": "source.amount"}).when_not_matched_insert(
        {"id": "id", "amount": "amount", "region": "'new'"}
    )
    assert counts.execute() == RowCounts(rows_updated=1, rows_inserted=1)
    assert rows(table)[2] == (0.0, "eu")
    assert rows(table)[7] == (7.0, "new")


def test_a_scan_is_a_source(memory_lake: Lake) -> None:
    table = create(memory_lake)
    table.update({"amount": 0}, where="id <= 2", branch="fix")
    counts = table.merge(table.scan("id <= 3", ref="fix"), on=["id"]).when_matched_update_all().execute()
    assert counts == RowCounts(rows_updated=3)
    assert [rows(table)[i][0] for i in (1, 2, 3, 4)] == [0.0, 0.0, 30.0, 40.0]


def test_a_source_that_was_read_from_the_branch_conflicts_with_what_others_changed_since(memory_lake: Lake) -> None:
    table = create(memory_lake)
    read = table.scan("id = 1")
    memory_lake.load_table("db.t").update({"amount": 99.0}, where="id = 1")
    merge = table.merge(read, on=["id"]).when_matched_update_all()
    with pytest.raises(ConflictError):
        merge.execute()
    assert rows(table.refresh())[1] == (99.0, "eu")
    counts = table.merge(read, on=["id"], isolation="none").when_matched_update_all().execute()
    assert counts == RowCounts(rows_updated=1)


def test_clauses_are_tried_in_order_on_all_sides(memory_lake: Lake) -> None:
    table = create(memory_lake)
    source = pa.table({"k": [1, 2, 3, 10, 11], "v": [5.0, None, 7.0, 1.0, -1.0]})
    counts = (
        table.merge(source, on="t.id = s.k AND t.region = 'eu'", target_alias="t", source_alias="s")
        .when_matched_delete("v > 6")
        .when_matched_update({"amount": "coalesce(v, amount) + 1"}, "v IS NULL OR id = 1")
        .when_not_matched_insert({"id": "k", "amount": "v"}, "v > 0")
        .when_not_matched_insert({"id": "k + 100", "region": "'low'"})
        .when_not_matched_by_source_update({"region": "upper(region)"}, "id = 4")
        .when_not_matched_by_source_delete()
        .execute()
    )
    assert counts == RowCounts(rows_updated=3, rows_inserted=2, rows_deleted=2)
    assert rows(table) == {
        1: (6.0, "eu"),
        2: (21.0, "eu"),
        4: (40.0, "US"),
        10: (1.0, None),
        111: (None, "low"),
    }


@pytest.mark.parametrize("on", ["target.id < source.k", "target.id <=> source.k", "target.id + 0 = source.k"])
def test_any_condition_matches_rows(memory_lake: Lake, on: str) -> None:
    table = create(memory_lake)
    counts = table.merge([{"k": 2}], on=on).when_matched_update({"amount": -1}).execute()
    assert counts == RowCounts(rows_updated=1)
    assert [i for i, row in rows(table).items() if row[0] == -1] == [1 if "<" in on and "<=>" not in on else 2]


def test_two_source_rows_for_one_target_row_are_an_error(memory_lake: Lake) -> None:
    table = create(memory_lake)
    before = sorted(table.io.list(table.location))
    source = [{"id": 1, "amount": 1.0}, {"id": 1, "amount": 2.0}]
    merge = table.merge(source, on=["id"])
    with pytest.raises(InvalidInputError, match=r"at most one source row for each target row, found 2 .*= 1"):
        merge.when_matched_update({"amount": "source.amount"}, "source.amount > 1").execute()
    assert sorted(table.io.list(table.location)) == before
    assert merge.when_not_matched_insert({"id": "id"}).when_matched_delete().execute() == RowCounts(rows_deleted=1)


def test_null_keys_match_nothing(memory_lake: Lake) -> None:
    table = create(memory_lake)
    table.update({"region": None}, where="id = 1")
    merge = table.merge([{"region": None, "id": 50}], on=["region"]).when_matched_delete()
    assert merge.when_not_matched_insert({"id": "id"}).execute() == RowCounts(rows_inserted=1)


def test_values_of_every_form_are_assigned(memory_lake: Lake) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int32(), nullable=False),
            ("price", pa.decimal128(10, 2)),
            ("seen", pa.timestamp("us", tz="UTC")),
            ("day", pa.date32()),
            ("tags", pa.list_(pa.string())),
            ("at", pa.struct([("city", pa.string()), ("zip", pa.struct([("a", pa.int32()), ("b", pa.int32())]))])),
            ("name", pa.string()),
        ]
    )
    table = memory_lake.create_table("db.v", schema)
    table.append(pa.table({"id": pa.array([1, 2], pa.int32()), "at": [{"city": "x", "zip": {"a": 1, "b": 2}}, None]}))
    now = dt.datetime(2024, 5, 6, 7, 8, tzinfo=dt.UTC)
    table.update(
        {
            "price": decimal.Decimal("1.50"),
            "seen": now,
            "day": "CAST('2024-05-06' AS DATE)",
            "tags": ["a", None],
            "at.city": "'y'",
            "target.at.zip.b": 7,
            "name": pa.scalar("it's"),
        }
    )
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [
        {
            "id": number,
            "price": decimal.Decimal("1.50"),
            "seen": now,
            "day": dt.date(2024, 5, 6),
            "tags": ["a", None],
            "at": {"city": "y", "zip": {"a": first, "b": 7}},
            "name": "it's",
        }
        for number, first in ((1, 1), (2, None))
    ]
    table.update({"price": "price * 2.005", "id": "id + 1"})
    assert table.scan().to_arrow().sort_by("id")["price"].to_pylist() == [decimal.Decimal("3.01")] * 2


def test_defaults_are_for_columns_without_a_value(memory_lake: Lake) -> None:
    table = create(memory_lake, "3")
    with table.update_schema() as schema:
        schema.add_column("kind", "string", default="plain")
        schema.add_column("size", "int", default=7)
    table.merge([{"id": 9}], on=["id"]).when_not_matched_insert({"id": "id", "size": 1}).execute()
    table.update({"size": "size + 1"}, where="id = 1")
    table.update({"size": "DEFAULT", "kind": "'x'"}, where="id = 2")
    found = table.scan("id IN (1, 2, 9)", columns=["id", "kind", "size"]).to_arrow().sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in found] == [(1, "plain", 8), (2, "x", 7), (9, "plain", 1)]


@pytest.mark.parametrize(
    ("values", "where", "error", "message"),
    [
        ({}, None, InvalidInputError, "expected a value for at least one column, found {}"),
        ([("amount", 1)], None, InvalidInputError, "expected a value for at least one column"),
        ({"amont": "1"}, None, NotFoundError, "no column `amont`"),
        ({"amount": "'x'"}, None, InvalidInputError, "expected `double` for column `amount`, found `string` of `'x'`"),
        ({"amount": [1]}, None, InvalidInputError, "expected `double` for column `amount`, found [1]"),
        ({"amount": 1, "AMOUNT": 2}, None, InvalidInputError, "expected one value for column `AMOUNT`"),
        ({"id": "NULL"}, None, InvalidInputError, "expected values in the required column `id`, found "),
        ({"id": "id * 9223372036854775807"}, None, InvalidInputError, "found an overflow"),
        ({"amount": "source.x"}, None, NotFoundError, "no column `source.x`"),
        ({"amount": "max(amount)"}, None, UnsupportedError, "found `MAX(amount)`"),
        ({"amount": 1}, "id = ", BerglineError, "cannot read"),
        ({"amount": 1}, "id % 2", InvalidInputError, "expected a condition, found `id % 2`"),
        ({"amount": 1}, "rand() > 0.5", UnsupportedError, "found `RAND()`"),
        ({"amount": 1}, "region = 5 + 1", InvalidInputError, "expected values of one type, found `string` and `int`"),
        ({"amount": 1}, 7, InvalidInputError, "expected a filter as SQL text, found 7"),
    ],
)
def test_update_refuses_bad_input_and_changes_nothing(
    memory_lake: Lake, values: Any, where: Any, error: type[BerglineError], message: str
) -> None:
    table = create(memory_lake)
    before, location = sorted(table.io.list(table.location)), table.metadata_location
    with pytest.raises(error) as refused:
        table.update(values, where)
    assert message in str(refused.value)
    assert table.refresh().metadata_location == location
    assert sorted(table.io.list(table.location)) == before


def test_merge_refuses_bad_input(memory_lake: Lake) -> None:
    table = create(memory_lake)
    source = [{"id": 1, "x": 1.0}]
    bad: list[tuple[Callable[[], Any], str]] = [
        (lambda: table.merge(source, on=""), "expected a condition or columns to match rows on"),
        (lambda: table.merge(source, on=["id"]).execute(), "expected at least one clause"),
        (lambda: table.merge(source, on=["id"], source_alias="TARGET"), "expected two aliases"),
        (lambda: table.merge(source, on=["no"]).when_matched_delete().execute(), "no column `no`"),
        (
            lambda: table.merge(source, on="id = 1").when_matched_delete().execute(),
            "may be `target.id` and `source.id`",
        ),
        (lambda: table.merge(source, on="target.region = x").when_matched_delete().execute(), "of one type"),
        (
            lambda: table.merge(source, on=["id"]).when_matched_update_all().execute(),
            "expected the source to have column `amount` for WHEN MATCHED THEN UPDATE of all columns",
        ),
        (
            lambda: table.merge(source, on=["id"]).when_matched_delete().when_matched_delete("x > 1").execute(),
            "expected a condition for every clause WHEN MATCHED but the last",
        ),
        (
            lambda: table.merge(source, on=["id"]).when_not_matched_insert({"id": "target.id"}).execute(),
            "no column `target.id`",
        ),
        (
            lambda: table.merge(source, on=["id"]).when_not_matched_by_source_delete("x > 1").execute(),
            "no column `x`",
        ),
        (
            lambda: table.merge(source, on=["id"]).when_not_matched_insert({"amount": "x"}).execute(),
            "expected a value for the required column `id`",
        ),
        (lambda: table.merge(pa.table([[1], [2]], names=["a", "A"]), on=["id"]), "expected each column once"),
        (lambda: table.merge(source, on=["id"]).when_matched_delete(True), "expected a condition as SQL text"),  # type: ignore[arg-type]
        (lambda: table.merge(source, on=["id"], engine=7).when_matched_delete().execute(), "expected a row engine"),  # type: ignore[arg-type]
        (lambda: table.update({"amount": 1}, isolation="strong"), "expected serializable, snapshot or none"),
    ]
    for call, message in bad:
        with pytest.raises(BerglineError) as refused:
            call()
        assert message in str(refused.value)
    table.refs.create_tag("v1")
    with pytest.raises(RefusedError, match="it is a tag"):
        table.update({"amount": 1}, branch="v1")


def test_writes_go_to_branches_and_are_staged(memory_lake: Lake) -> None:
    table = create(memory_lake)
    table.update({"amount": 0}, where="id = 1", branch="fix", summary={"team": "a"})
    assert (rows(table)[1][0], rows(table, ref="fix")[1][0]) == (10.0, 0.0)
    assert table.metadata.head("fix").summary["team"] == "a"  # type: ignore[union-attr]
    table.upsert([{"id": 1, "amount": 5.0}], keys=["id"], wap_id="w1")
    assert rows(table)[1][0] == 10.0
    table.refs.publish("w1")
    assert rows(table)[1][0] == 5.0


def test_a_transaction_sees_its_own_changes(memory_lake: Lake) -> None:
    table = create(memory_lake)
    with table.transaction() as inside:
        inside.append(order_rows(6))
        assert inside.update({"amount": "amount + 1"}, where="id >= 5") == RowCounts(rows_updated=2)
        assert inside.upsert([{"id": 6, "amount": 0.0}], keys=["id"]) == RowCounts(rows_updated=1)
    assert (rows(table)[5][0], rows(table)[6][0]) == (51.0, 0.0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", ["2", "3"])
def test_others_that_change_the_same_rows_conflict_and_leave_no_files(lake: Lake, version: str, mode: str) -> None:
    create(lake, version, mode)
    other = lake.load_table("db.t")
    rival, _ = rival_lake(lake, before_swap=once(lambda: other.update({"amount": 1.0}, where="id = 2")))
    table = rival.load_table("db.t")
    with pytest.raises(ConflictError):
        table.update({"amount": 2.0}, where="id = 2")
    other.refresh()
    assert rows(other)[2][0] == 1.0
    referenced = {row["file_path"].rpartition("/")[2] for row in other.inspect("all_files").to_pylist()}
    written = {str(path).rpartition("/")[2] for path in other.io.list(other.location) if "/data/" in str(path)}
    assert written
    assert written <= referenced


def test_rows_that_others_add_conflict_only_if_serializable_and_in_reach(lake: Lake) -> None:
    create(lake)
    for level, new_id, conflicts in (("serializable", 7, True), ("snapshot", 8, False), ("serializable", 999, False)):
        other = lake.load_table("db.t")
        rival, _ = rival_lake(
            lake, before_swap=once(lambda new_id=new_id, other=other: other.append(order_rows(new_id)))
        )
        table = rival.load_table("db.t")
        source = [{"id": i, "amount": -1.0} for i in (2, new_id if conflicts else 500)]
        if conflicts:
            with pytest.raises(ConflictError):
                table.upsert(source, keys=["id"], isolation=level)
        else:
            table.upsert(source, keys=["id"], isolation=level)


def test_a_lost_race_with_an_unrelated_write_is_retried(lake: Lake) -> None:
    create(lake)
    other = lake.load_table("db.t")
    rival, _ = rival_lake(lake, before_swap=once(lambda: other.append(order_rows(100))))
    counts = rival.load_table("db.t").update({"amount": "-amount"}, where="id = 2")
    assert counts == RowCounts(rows_updated=1)
    assert (rows(other.refresh())[2][0], rows(other)[100][0]) == (-20.0, 1000.0)


def test_a_predicate_is_a_condition(memory_lake: Lake) -> None:
    table = create(memory_lake)
    assert table.update({"amount": 0}, where=Comparison("id", "<", 3)) == RowCounts(rows_updated=2)
    assert table.update({"amount": "amount / 2"}) == RowCounts(rows_updated=5)
    assert table.update({"amount": 0}, where="id = 1000") == RowCounts()


def test_only_files_that_may_hold_the_keys_are_read(memory_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(memory_lake)
    paths: list[str] = []
    from bergline.datafiles.read import reader  # noqa: PLC0415

    original = reader.read_file

    def read_file(io: Any, planned: Any, *args: Any) -> Any:
        paths.append(planned.file.file_path)
        return original(io, planned, *args)

    monkeypatch.setattr("bergline.table.row_merges.find_changes.read_file", read_file)
    table.merge([{"id": 5, "amount": 1.0}], on=["id"]).when_matched_update({"amount": 1}).execute()
    table.upsert([{"id": i, "amount": 0.0} for i in range(1000, 1500)], keys=["id"])
    assert len(set(paths)) == 1


def test_rows_move_to_the_partition_that_they_belong_to(memory_lake: Lake) -> None:
    table = memory_lake.create_table("db.p", ORDERS, partition_by=["region"])
    table.append(order_rows(1, 2)).append(order_rows(3, region="us"))
    table.update({"region": "'us'"}, where="id = 2")
    found = {r["partition"]["region"]: r["record_count"] for r in table.inspect("partitions").to_pylist()}
    assert found == {"eu": 1, "us": 2}


def test_columns_that_others_rename_conflict_and_new_ones_do_not(lake: Lake) -> None:
    table = create(lake)
    with lake.load_table("db.t").update_schema() as schema:
        schema.add_column("note", "string")
    assert table.update({"amount": 1}, where="id = 1") == RowCounts(rows_updated=1)
    stale = lake.load_table("db.t")
    with table.refresh().update_schema() as schema:
        schema.rename_column("amount", "price").rename_column("region", "amount")
    with pytest.raises(ConflictError, match="expected `amount`, found it renamed to `price`"):
        stale.update({"amount": 2}, where="id = 1")


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_rows_that_a_transaction_added_and_updated_never_share_ids_with_others(
    memory_lake: Lake, mode: str, whole: bool
) -> None:
    table = create(memory_lake, "3", mode)

    def transaction() -> None:
        with table.transaction() as inside:
            inside.append(order_rows(6, 7))
            inside.update({"amount": 0}, where="id IN (6, 7)" if whole else "id = 6")
            memory_lake.load_table("db.t").append(order_rows(8, 9))

    with pytest.raises(ConflictError, match="would have other ids"):
        transaction()
    assert sorted(rows(table.refresh())) == [1, 2, 3, 4, 5, 8, 9]


DAY, TIME = dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 10, 30)  # noqa: DTZ001
TIMES = pa.schema(
    [
        ("id", pa.int64()),
        ("d", pa.date32()),
        ("c", pa.time64("us")),
        ("t", pa.timestamp("us")),
        ("z", pa.timestamp("us", "UTC")),
        ("v", pa.int64()),
    ]
)
TIME_ROW = {"d": DAY, "c": TIME.time(), "t": TIME, "z": TIME.replace(tzinfo=dt.UTC)}


@pytest.mark.parametrize(
    "where",
    [
        "d = DATE '2024-01-01'",
        "d = '2024-01-01' AND v % 2 = 1",
        "c = TIME '10:30:00'",
        "t IN (TIMESTAMP '2024-01-01 10:30:00')",
        "z > '2024-01-01T10:29:00Z' AND v < 2",
    ],
)
def test_dates_and_times_are_conditions(memory_lake: Lake, where: str) -> None:
    table = memory_lake.create_table("db.times", TIMES)
    table.append([{"id": 1, **TIME_ROW, "v": 1}, {"id": 2, **dict.fromkeys(TIME_ROW), "v": 1}])
    assert table.update({"v": "v + 1"}, where) == RowCounts(rows_updated=1)
    if "%" not in where and "v <" not in where:
        merge = table.merge([{"id": 1}, {"id": 2}], on=f"target.id = source.id AND target.{where}")
        assert merge.when_matched_update({"v": 7}).execute() == RowCounts(rows_updated=1)


@pytest.mark.parametrize("key", list(TIME_ROW))
@pytest.mark.parametrize("count", [1, 300])
def test_dates_and_times_are_keys(memory_lake: Lake, key: str, count: int) -> None:
    table = memory_lake.create_table("db.times", TIMES)
    given = pa.array(range(count), pa.int32() if key == "d" else pa.int64()).cast(TIMES.field(key).type)
    table.append(pa.table({key: given, "v": pa.nulls(count, pa.int64())}))
    assert table.upsert(pa.table({key: given, "v": range(count)}), [key]) == RowCounts(rows_updated=count)
    merge = table.merge(pa.table({key: given, "v": range(count)}), on=f"target.{key} = source.{key}")
    assert merge.when_matched_delete().execute() == RowCounts(rows_deleted=count)


@pytest.mark.parametrize(
    ("where", "filtered"),
    [
        ("d = DATE '2024-01-01' AND t > '2024-01-01'", {"d"}),
        ("id = 5 AND z > TIMESTAMP '2024-01-01 00:00:00'", {"id"}),
        ("d > TIMESTAMP '2024-01-01 00:00:00Z' AND v = 1", {"v"}),
        ("id = 5 OR z > DATE '2024-01-01'", set()),
    ],
)
def test_what_depends_on_an_engines_time_zone_is_no_filter_of_its_scan(where: str, filtered: set[str]) -> None:
    schema = schema_from_arrow(TIMES)
    now = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    names = Names({"target": schema}, now)
    bound = bind_update_request(UpdateRequest({"v": 1}, where), schema, names, by_engine=True)
    assert columns_of(bound.scan_filter) == filtered
    source = source_rows(pa.table({"e": [DAY]}), schema)
    keys = "target.d = source.e AND z = source.e AND t = CAST(source.e AS TIMESTAMP_NTZ)"
    request = RowMergeRequest(f"{keys} AND ({where})", (MergeClause("matched", "delete"),))
    names = Names({"target": schema, "source": source.schema}, now)
    assert columns_of(bind_merge(request, schema, source, names, by_engine=True).scan_filter) == filtered | {"d"}


def test_decimals_and_doubles_are_equal_as_the_nearest_doubles(memory_lake: Lake) -> None:
    prices = [decimal.Decimal(n).scaleb(-2) for n in range(0, 100_000, 7)]
    table = memory_lake.create_table("db.prices", pa.schema([("k", pa.float64()), ("v", pa.int64())]))
    table.append(pa.table({"k": [float(price) for price in prices], "v": range(len(prices))}))
    source = pa.table({"k": pa.array(prices, pa.decimal128(10, 2))})
    assert table.merge(source, on=["k"]).when_matched_delete().execute() == RowCounts(rows_deleted=len(prices))


@pytest.mark.parametrize("count", [2, 300])
def test_uuids_are_keys(memory_lake: Lake, count: int) -> None:
    table = memory_lake.create_table("db.u", pa.schema([("u", pa.uuid()), ("v", pa.int64())]))
    keys = pa.array([number.to_bytes(16) for number in range(count + 1)], pa.uuid())
    table.append(pa.table({"u": keys.slice(0, count), "v": pa.nulls(count, pa.int64())}))
    source = pa.table({"u": keys.slice(1), "v": range(count)})
    assert table.upsert(source, ["u"]) == RowCounts(rows_updated=count - 1, rows_inserted=1)
    text = pa.table({"u": [str(key) for key in keys.to_pylist()]})
    assert table.merge(text, on=["u"]).when_matched_delete().execute() == RowCounts(rows_deleted=count + 1)


PLACE = pa.struct([("city", pa.string()), ("zip", pa.struct([("a", pa.int32()), ("b", pa.int32())]))])
WHOLE_PLACE = {"city": "x", "zip": {"a": 1, "b": 2}}


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        (lambda t: t.update({"at": {"city": "k"}}), "at.zip"),
        (lambda t: t.update({"at": pa.scalar({"city": "k"})}), "at.zip"),
        (lambda t: t.update({"at": {"city": "k", "zip": {"a": 1}}}), "at.zip.b"),
        (lambda t: t.update({"at.zip": {"b": 1}}), "at.zip.a"),
        (lambda t: t.upsert([{"id": 1, "at": {"city": "k"}}], ["id"]), "at.zip"),
        (lambda t: t.upsert([{"id": 1, "at": WHOLE_PLACE}, {"id": 2, "at": {"city": "k"}}], ["id"]), "at.zip"),
        (lambda t: t.upsert(pa.table({"id": [1], "at": [{"city": "k", "zip": {"b": 1}}]}), ["id"]), "at.zip.a"),
        (
            lambda t: t.merge([{"id": 1, "at": {"city": "k"}}], on=["id"]).when_matched_update_all().execute(),
            "at.zip",
        ),
        (
            lambda t: t.merge([{"id": 1, "p": {"city": "k"}}], on=["id"]).when_matched_update({"at": "p"}).execute(),
            "at.zip",
        ),
    ],
)
def test_structs_are_given_whole(memory_lake: Lake, change: Callable[[Table], object], missing: str) -> None:
    table = memory_lake.create_table("db.s", pa.schema([("id", pa.int64()), ("at", PLACE)]))
    table.append([{"id": 1, "at": WHOLE_PLACE}])
    before = table.metadata_location
    with pytest.raises(InvalidInputError) as refused:
        change(table)
    assert f"expected all fields of the struct, found no `{missing}`" in str(refused.value)
    assert table.refresh().metadata_location == before


def test_structs_may_be_null_as_a_whole(memory_lake: Lake) -> None:
    table = memory_lake.create_table("db.s", pa.schema([("id", pa.int64()), ("at", PLACE)]))
    table.append([{"id": 1, "at": WHOLE_PLACE}, {"id": 2, "at": WHOLE_PLACE}])
    inner = {"city": "y", "zip": None}
    assert table.upsert([{"id": 1, "at": None}, {"id": 2, "at": inner}], ["id"]) == RowCounts(rows_updated=2)
    assert table.update({"at": None}, "id = 2") == RowCounts(rows_updated=1)
    partial = pa.table({"id": [1], "at": pa.nulls(1, pa.struct([("city", pa.string())]))})
    assert table.merge(partial, on=["id"]).when_matched_update_all().execute() == RowCounts(rows_updated=1)
    assert table.scan().to_arrow()["at"].to_pylist() == [None, None]
