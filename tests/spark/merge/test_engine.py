"""Update, upsert and merge from Python on executors: what they do in this process, without opening a data file here."""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from bergline import Lake, Table
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.expressions.predicate import Comparison
from bergline.io.local import LocalFileIO
from bergline.table.engine.row_engine import RowEngine
from bergline.table.row_merges.clauses import RowCounts
from support.fixtures.rows import ORDERS, order_rows
from support.fixtures.twin_tables import KINDS, all_rows
from support.fixtures.ways_of_changing import WAYS, change_rows_by

pytestmark = pytest.mark.spark

SOURCE = [
    {"id": 3, "amount": 1.0, "region": "eu", "op": "U"},
    {"id": 9, "amount": 90.0, "region": "eu", "op": "U"},
    {"id": 21, "amount": 0.0, "region": "eu", "op": "D"},
    {"id": 77, "amount": 5.0, "region": "us", "op": "I"},
]


@pytest.fixture
def engine(spark: SparkSession) -> RowEngine:
    return bergline.spark.row_engine(spark)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The data files that this process reads or writes; executors are other processes.

    Delete files are another matter: a native read gets their positions from the driver.
    """
    found: list[str] = []
    for method in ("read", "read_range", "open_input", "create", "create_output"):
        original = getattr(LocalFileIO, method)

        def noted(io: LocalFileIO, location: str, *args: Any, original: Any = original) -> Any:
            if "/data/" in location and location.endswith(".parquet") and not location.endswith("-deletes.parquet"):
                found.append(location)
            return original(io, location, *args)

        monkeypatch.setattr(LocalFileIO, method, noted)
    return found


def change(table: Table, engine: RowEngine | None) -> list[RowCounts]:
    rows = pa.Table.from_pylist(SOURCE)
    own = rows.drop_columns(["op"])
    return [
        table.update({"amount": "amount + id / 2"}, where="id IN (3, 9) OR id % 20 = 0 AND id > 0", engine=engine),
        table.upsert(own, keys=["id"], engine=engine),
        table.upsert(own, keys=["id"], engine=engine),
        table.merge(rows, on="target.id = source.id", engine=engine)
        .when_matched_delete("op = 'D'")
        .when_matched_update({"amount": "source.amount * 2", "region": pa.scalar("it's")}, "op = 'U'")
        .when_not_matched_insert({"id": "id + 1", "amount": 7}, "amount > 100")
        .when_not_matched_by_source_update({"region": "NULL"}, "id = 5")
        .when_not_matched_by_source_delete("id > 22 AND id < 24")
        .execute(),
    ]


@pytest.mark.kinds(2)
@pytest.mark.parametrize(
    "kind", ["v1", "v2 copy, evolved", "v2 positions, equality deletes", "v3 copy", "v3 vectors, evolved"]
)
@pytest.mark.parametrize("way", WAYS)
def test_executors_do_what_this_process_does(
    lake: Lake, engine: RowEngine, opened: list[str], monkeypatch: pytest.MonkeyPatch, kind: str, way: str
) -> None:
    change_rows_by(way, monkeypatch)
    mine, theirs = (KINDS[kind](lake, name) for name in ("db.mine", "db.theirs"))
    for table in (mine, theirs):
        mode = table.properties.get("write.delete.mode", "copy-on-write")
        table.set_properties({"write.update.mode": mode, "write.merge.mode": mode})
    expected = change(mine, None)
    opened.clear()
    assert change(theirs, engine) == expected
    assert way == "here" or opened == []
    width = len(mine.schema.fields)
    assert [row[:width] for row in all_rows(theirs)] == [row[:width] for row in all_rows(mine)]
    if mine.metadata.format_version > 2:
        kept = {row[0]: row[width] for row in all_rows(mine) if row[0] < 70}
        assert {row[0]: row[width] for row in all_rows(theirs) if row[0] < 70} == kept


def test_bad_input_is_refused_and_leaves_nothing(lake: Lake, engine: RowEngine) -> None:
    table = lake.create_table("db.t", ORDERS).append(order_rows(1, 2))
    before = sorted(map(str, table.io.list(table.location)))
    twice = [{"id": 1, "amount": 1.0}, {"id": 1, "amount": 2.0}]
    with pytest.raises(
        InvalidInputError, match=r"at most one source row for each row .* found several for the row with id = 1\b"
    ):
        table.merge(twice, on=["id"], engine=engine).when_matched_update({"amount": "source.amount"}).execute()
    with pytest.raises(InvalidInputError, match="once in the source"):
        table.upsert(twice, keys=["id"], engine=engine)
    with pytest.raises(UnsupportedError, match="a condition as SQL text with an engine"):
        table.update({"amount": 1}, where=Comparison("id", "=", 1), engine=engine)
    with pytest.raises(UnsupportedError, match="found `RAND"):
        table.update({"amount": "rand()"}, engine=engine)
    assert sorted(map(str, table.io.list(table.location))) == before


def test_every_column_type_is_upserted(lake: Lake, engine: RowEngine) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int32(), nullable=False),
            ("price", pa.decimal128(10, 2)),
            ("u", pa.uuid()),
            ("m", pa.map_(pa.string(), pa.int32())),
            ("st", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])),
        ]
    )
    table = lake.create_table("db.wide", schema)

    def row(number: int, price: str) -> dict[str, Any]:
        return {
            "id": number,
            "price": Decimal(price),
            "u": "00000000-0000-0000-0000-000000000001",
            "m": [("k", number)],
            "st": {"a": number, "b": ["x", None]},
        }

    columns = pa.schema([f if f.name != "u" else pa.field("u", pa.string()) for f in schema])
    table.append(pa.Table.from_pylist([row(1, "1.50"), row(2, "2.50")], columns))
    source = pa.Table.from_pylist([row(1, "1.50"), row(2, "9.99"), row(3, "3.00")], columns)
    assert table.upsert(source, keys=["id"], engine=engine) == RowCounts(rows_updated=1, rows_inserted=1)
    found = table.scan(columns=["id", "price", "m", "st"]).to_arrow().sort_by("id").to_pylist()
    assert [(r["price"], r["m"], r["st"]["a"]) for r in found] == [
        (Decimal("1.50"), [("k", 1)], 1),
        (Decimal("9.99"), [("k", 2)], 2),
        (Decimal("3.00"), [("k", 3)], 3),
    ]
    table.update({"st.a": 5, "price": "DEFAULT"}, where="id = 1", engine=engine)
    assert table.scan("id = 1").to_arrow().to_pylist()[0]["st"] == {"a": 5, "b": ["x", None]}


def test_times_are_those_of_the_sessions_zone(lake: Lake, engine: RowEngine, spark: SparkSession) -> None:
    schema = pa.schema([("id", pa.int64()), ("d", pa.date32()), ("z", pa.timestamp("us", "UTC")), ("v", pa.int64())])
    table = lake.create_table("db.times", schema)
    midnight = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    hours = [0, 6]  # midnight in New York is at 5 o'clock
    rows = [{"id": n, "d": midnight.date(), "z": midnight + dt.timedelta(hours=n), "v": 0} for n in hours]
    table.append(rows)
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        where = "d = DATE '2024-01-01' AND z < TIMESTAMP '2024-01-01 00:00:00'"
        assert table.update({"v": 1}, where, engine=engine) == RowCounts(rows_updated=1)
        on = "d = source.e AND z < DATE '2024-01-01'"
        merge = table.merge([{"e": midnight.date()}], on=on, engine=engine)
        assert merge.when_matched_update({"v": 3}).execute() == RowCounts(rows_updated=1)
        assert table.upsert([{**row, "v": 3} for row in rows], ["d", "z"], engine=engine) == RowCounts(rows_updated=1)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert len(table.scan("v = 3").to_arrow()) == len(hours)


def test_times_are_stored_as_given_in_any_session_zone(spark: SparkSession, lake: Lake, engine: RowEngine) -> None:
    schema = pa.schema([("n", pa.timestamp("us")), ("z", pa.timestamp("us", "UTC")), ("d", pa.date32())])
    table = lake.create_table("db.times", schema).append(pa.Table.from_pylist([{}], schema))
    naive, day = dt.datetime(2024, 6, 1, 12, 0, 0, 7), dt.date(1, 2, 3)  # noqa: DTZ001  (the column has no zone)
    aware = dt.datetime(1500, 1, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        table.update({"n": naive, "z": pa.scalar(aware), "d": day}, engine=engine)
        assert table.scan().to_arrow().to_pylist() == [{"n": naive, "z": aware, "d": day}]
        for column, value in (("n", aware), ("z", naive), ("d", naive), ("n", day)):
            with pytest.raises(InvalidInputError, match=f"for column `{column}`, found datetime"):
                table.update({column: value}, engine=engine)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
