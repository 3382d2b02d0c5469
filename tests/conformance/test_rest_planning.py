"""Scans that Java and PyIceberg have planned by `bergline serve`: their rows are ours."""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
import urllib3
from pyiceberg.catalog import load_catalog
from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    StartsWith,
)

import bergline
from bergline import Table
from bergline.lake.lake import Lake
from support.fixtures.add_deletes import add_deletes, equality_deletes
from support.servers.bergline_server import BerglineServer
from support.servers.peers import OfficialRuntime

COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("name", pa.string()),
        ("price", pa.decimal128(9, 2)),
        ("weight", pa.float64()),
        ("code", pa.binary()),
        ("ok", pa.bool_()),
        ("place", pa.struct([("city", pa.string()), ("at", pa.struct([("x", pa.int32())]))])),
        ("tags", pa.list_(pa.string())),
        ("facts", pa.map_(pa.string(), pa.int64())),
    ]
)
MIDNIGHT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
FILTERS = [
    "id <> 3",
    "id < 4 OR id >= 17",
    "NOT (id > 4 AND id <= 17)",
    "id IN (1, 2, 12)",
    "id NOT IN (1, 2, 12)",
    "id IS NULL",
    "day = DATE '2026-01-02'",
    "day IS NULL OR id = 2",
    "at >= TIMESTAMP '2026-01-03 00:00:00' AND at < TIMESTAMP '2026-01-05 12:00:00'",
    "name LIKE 'n1%'",
    "name NOT LIKE 'n1%'",
    "price = 3.50",
    "isnan(weight)",
    "code = X'0103'",
    "NOT ok",
    "place.city = 'c1'",
    "place.at.x > 15",
    "note IS NULL AND id > 15",
]
PEER_FILTERS: dict[str, BooleanExpression] = {
    "true": AlwaysTrue(),
    "id = 3": EqualTo("id", 3),
    "id <> 3": NotEqualTo("id", 3),
    "id < 4 OR id >= 17": Or(LessThan("id", 4), GreaterThanOrEqual("id", 17)),
    "NOT (id > 4 AND id <= 17)": Not(And(GreaterThan("id", 4), LessThanOrEqual("id", 17))),
    "id IN (1, 2, 12)": In("id", [1, 2, 12]),
    "id NOT IN (1, 2, 12)": NotIn("id", [1, 2, 12]),
    "id IS NULL": IsNull("id"),
    "id IS NOT NULL": NotNull("id"),
    "day = DATE '2026-01-02'": EqualTo("day", dt.date(2026, 1, 2)),
    "at >= TIMESTAMP '2026-01-03 00:00:00'": GreaterThanOrEqual("at", MIDNIGHT + dt.timedelta(days=2)),
    "name LIKE 'n1%'": StartsWith("name", "n1"),
    "name NOT LIKE 'n1%'": NotStartsWith("name", "n1"),
    "price = 3.50": EqualTo("price", Decimal("3.50")),
    "code = X'0103'": EqualTo("code", bytes([1, 3])),
    "ok": EqualTo("ok", True),
    "isnan(weight)": IsNaN("weight"),
    "NOT isnan(weight)": NotNaN("weight"),
    "place.city = 'c1'": EqualTo("place.city", "c1"),
}


def rows(start: int, stop: int, **more: Any) -> pa.Table:
    ids = range(start, stop)
    columns = {
        "id": list(ids),
        "day": [dt.date(2026, 1, 1 + i % 4) for i in ids],
        "at": [MIDNIGHT + dt.timedelta(hours=7 * i) for i in ids],
        "name": [f"n{i}" for i in ids],
        "price": [Decimal(i) / 2 for i in ids],
        "weight": [float("nan") if i == start else i / 8 for i in ids],
        "code": [bytes([1, i]) for i in ids],
        "ok": [i % 2 == 0 for i in ids],
        "place": [{"city": f"c{i % 3}", "at": {"x": i}} for i in ids],
        "tags": [[f"t{i}", None] for i in ids],
        "facts": [[(f"f{i}", i)] for i in ids],
    }
    return pa.table(columns | more, schema=more.pop("schema", COLUMNS))


@pytest.fixture(scope="module")
def planning_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BerglineServer]:
    """A server that names few files at once, and tells Java to ask again for every plan."""
    options = "--files-per-plan", "3", "--planning-wait", "0"
    with BerglineServer(tmp_path_factory.mktemp("planning"), *options) as server:
        yield server


@pytest.fixture(scope="module")
def planned_lake(planning_server: BerglineServer) -> Iterator[Lake]:
    with bergline.connect(planning_server.uri) as lake:
        lake.create_namespace("db")
        yield lake


@pytest.fixture(scope="module")
def evolved(planned_lake: Lake) -> Table:
    """Files of four partition specs and two schemas, with deletes of both kinds, and nulls."""
    table = planned_lake.create_table("db.evolved", COLUMNS, partition_by=["day"])
    table.set_properties({"write.delete.mode": "merge-on-read", "write.delete.granularity": "partition"})
    table.append(rows(0, 8))
    with table.update_spec() as spec:
        spec.add_field("bucket(4, id)").remove_field("day")
    table.append(rows(8, 12))
    with table.update_spec() as spec:
        spec.add_field("truncate(name, 2)").add_field("hours(at)")
    table.append(rows(12, 14))
    with table.update_spec() as spec:
        spec.remove_field("bucket(4, id)").remove_field("truncate(name, 2)").remove_field("hours(at)")
    table.append(pa.Table.from_pylist([{}, {"id": 18}], schema=COLUMNS))
    table.delete("id IN (1, 9)")
    add_deletes(table, equality_deletes(table, pa.table({"id": [2, 13]}), [1]))
    with table.update_schema() as schema:
        schema.add_column("note", "string")
    with_note = pa.schema([*COLUMNS, ("note", pa.string())])
    table.append(rows(19, 21, note=["late", None], schema=with_note))
    return table.refresh()


@pytest.fixture(scope="module")
def vectors(planned_lake: Lake) -> Table:
    """A table with deletion vectors, a renamed column, and without a column that its files are partitioned by."""
    columns = pa.schema([("id", pa.int64()), ("old", pa.string()), ("gone", pa.string())])
    table = planned_lake.create_table("db.vectors", columns, partition_by=["gone"])
    table.upgrade_format(3).set_properties({"write.delete.mode": "merge-on-read"})
    for start in (0, 10):
        ids = list(range(start, start + 10))
        table.append(pa.table({"id": ids, "old": [f"o{i}" for i in ids], "gone": ["g"] * 10}, schema=columns))
    with table.update_spec() as spec:
        spec.remove_field("gone")
    with table.update_schema() as schema:
        schema.rename_column("old", "new").drop_column("gone")
    table.delete("id IN (3, 13, 14)")
    return table.refresh()


@pytest.fixture(scope="module")
def scattered(planned_lake: Lake) -> Table:
    """Twelve manifests of files whose ids all lie between the same bounds, so that no file rules a value out."""
    columns = pa.schema([("id", pa.int64()), ("part", pa.int32())])
    table = planned_lake.create_table("db.scattered", columns, partition_by=["part"])
    table.set_properties({"commit.manifest-merge.enabled": "false"})
    for first in range(12):
        ids = [0, *range(1 + first, 1200, 12), 1200]
        table.append(pa.table({"id": ids, "part": [first % 4] * len(ids)}, schema=columns))
    return table.refresh()


WANTED = list(range(5, 1200, 3))


def plans(server: BerglineServer, operation: str = "plan_table_scan") -> int:
    """How many scans the server has planned, or how often it was asked for something else."""
    lines = urllib3.request("GET", f"{server.uri}/metrics").data.decode().splitlines()
    return sum(int(line.split()[-1]) for line in lines if f'requests_total{{operation="{operation}"' in line)


_JAVA = """
name = "spark.sql.catalog.planned"
options = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "rest", ".uri": uri, ".scan-planning-mode": "server"}
for key, value in options.items():
    spark.conf.set(name + key, value)
result = [[[str(value) for value in row] for row in spark.sql(query).collect()] for query in queries]
"""


@pytest.mark.official
def test_java_reads_the_same_rows_by_plans_of_the_server(
    evolved: Table, planning_server: BerglineServer, official_runtime: OfficialRuntime
) -> None:
    before = plans(planning_server)
    queries = [f"SELECT id FROM planned.db.evolved WHERE {text}" for text in FILTERS]
    found = official_runtime.python(_JAVA, uri=planning_server.uri, queries=queries)
    for text, theirs in zip(FILTERS, found, strict=True):
        ours = sorted(map(str, evolved.scan(row_filter=text).to_arrow()["id"].to_pylist()))
        assert sorted(i for (i,) in theirs) == ours, text
    assert plans(planning_server) - before >= len(FILTERS)
    assert plans(planning_server, "fetch_planning_result") >= len(FILTERS)
    assert plans(planning_server, "cancel_planning") >= len(FILTERS)  # Java does so with every plan, at its end


@pytest.mark.official
def test_java_reads_columns_of_every_kind_by_plans_of_the_server(
    evolved: Table, vectors: Table, planning_server: BerglineServer, official_runtime: OfficialRuntime
) -> None:
    first = vectors.metadata.snapshots[0].snapshot_id
    queries = {
        "SELECT count(*) FROM planned.db.evolved": [["14"]],
        "SELECT count(*) FROM (SELECT * FROM planned.db.evolved LIMIT 3)": [["3"]],
        "SELECT place.at.x, tags[0], facts['f5'] FROM planned.db.evolved WHERE id = 5": [["5", "t5", "5"]],
        "SELECT _pos, _spec_id, _partition.day FROM planned.db.evolved WHERE ID = 4": [["1", "0", "2026-01-01"]],
        "SELECT count(*), max(new) FROM planned.db.vectors": [["17", "o9"]],
        "SELECT id, _row_id FROM planned.db.vectors WHERE new IN ('o13', 'o15')": [["15", "15"]],
        f"SELECT count(*), min(id), max(old) FROM planned.db.vectors VERSION AS OF {first}": [["10", "0", "o9"]],
        f"SELECT id FROM planned.db.vectors VERSION AS OF {first} WHERE id = 3": [["3"]],
    }
    found = official_runtime.python(_JAVA, uri=planning_server.uri, queries=list(queries))
    assert dict(zip(queries, found, strict=True)) == queries


def test_pyiceberg_reads_the_same_rows_by_plans_of_the_server(
    planned_lake: Lake, planning_server: BerglineServer
) -> None:
    table = planned_lake.create_table("db.plain", COLUMNS, partition_by=["day"])
    table.set_properties({"write.delete.mode": "merge-on-read"})
    table.append(rows(0, 20))
    table.delete("id IN (1, 9)")
    options = {"uri": planning_server.uri, "scan-planning-mode": "server"}
    peer = load_catalog("served", type="rest", **options)
    before = plans(planning_server)
    for text, theirs in PEER_FILTERS.items():
        ours = sorted(table.scan(row_filter=text).to_arrow()["id"].to_pylist())
        found = peer.load_table("db.plain").scan(row_filter=theirs).to_arrow()["id"].to_pylist()
        assert sorted(found) == ours, text
    assert peer.load_table("db.plain").scan(row_filter="day = '2026-01-01'").count() == 5
    assert plans(planning_server) - before == len(PEER_FILTERS) + 1
    peer.close()


def test_pyiceberg_counts_and_reads_by_a_long_list_over_many_tasks(
    scattered: Table, planning_server: BerglineServer
) -> None:
    """It counts the rows of a file as they are where nothing is left of the filter."""
    peer = load_catalog("served", type="rest", **{"uri": planning_server.uri, "scan-planning-mode": "server"})
    theirs = peer.load_table("db.scattered")
    chosen: BooleanExpression = In("id", WANTED)
    assert theirs.scan(row_filter=chosen).count() == len(WANTED)
    assert sorted(theirs.scan(row_filter=chosen).to_arrow()["id"].to_pylist()) == WANTED
    outside = And(NotIn("id", WANTED), EqualTo("part", 1))
    ours = scattered.scan("part = 1").to_arrow()["id"].to_pylist()
    assert theirs.scan(row_filter=outside).count() == len([i for i in ours if i not in set(WANTED)])
    peer.close()


_GENERIC = """
jvm = spark._jvm
table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "planned.db.scattered")
values = jvm.java.util.ArrayList()
for value in wanted:
    values.add(jvm.java.lang.Long(value))
chosen = getattr(jvm.org.apache.iceberg.expressions.Expressions, "in")("id", values)
rows = jvm.org.apache.iceberg.data.IcebergGenerics.read(table).where(chosen).build().iterator()
result = []
while rows.hasNext():
    result.append(rows.next().getField("id"))
queried = spark.sql(f"SELECT id FROM planned.db.scattered WHERE id IN ({', '.join(map(str, wanted))})").collect()
result = [sorted(result), sorted(row.id for row in queried)]
"""


@pytest.mark.official
def test_java_reads_by_a_long_list_over_many_tasks(
    scattered: Table, planning_server: BerglineServer, official_runtime: OfficialRuntime
) -> None:
    """Its generic readers filter by what the server says is left, and by nothing else."""
    script = _JAVA + _GENERIC
    found = official_runtime.python(script, uri=planning_server.uri, queries=[], wanted=WANTED)
    assert found == [WANTED, WANTED]
