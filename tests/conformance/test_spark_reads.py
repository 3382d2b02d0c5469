"""The same queries through the official runtime and through an attached session, on tables that each side wrote."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from bergline import Lake
from bergline.table.inspection.metadata_tables import METADATA_TABLES
from support.fixtures.add_deletes import add_deletes, equality_deletes
from support.fixtures.chosen_readers import native_refusal
from support.servers.peers import OfficialRuntime

pytestmark = [pytest.mark.spark, pytest.mark.official]

Sql = Callable[[str], list[tuple[Any, ...]]]
Answers = dict[str, list[Any]]
Read = Callable[[Sequence[str]], tuple[Answers, Answers]]
"""What both sides answer to queries: ours and theirs."""

_ASK = """
result = {}
for query in queries:
    try:
        frame = spark.sql(query)
        types = [[f.name, f.dataType.simpleString()] for f in frame.schema]
        result[query] = [types, sorted(repr(tuple(row)) for row in frame.collect())]
    except Exception as error:
        result[query] = [["failed"], [str(error)[:300]]]
"""
_LOAD = """
result = []
for options in all_options:
    reader = spark.read
    for key, value in options.items():
        reader = reader.option(key, value)
    result.append(sorted(repr(tuple(row)) for row in reader.table(table).collect()))
"""


class Script(msgspec.Struct, frozen=True):
    """Statements on `{t}` that both sides run, each on a table of its own, and queries that both ask of both tables."""

    columns: str
    statements: tuple[str, ...]
    queries: tuple[str, ...]
    partitioned_by: str = ""


ROWS = Script(
    "id BIGINT, name STRING, day DATE",
    (
        "INSERT INTO {t} SELECT id, concat('n', id), DATE '2026-01-01' FROM range(0, 4, 1, 1)",
        "INSERT INTO {t} VALUES (4, NULL, DATE '2026-01-02'), (5, 'x', NULL), (6, 'n6', DATE '2026-01-03')",
        "ALTER TABLE {t} ADD COLUMN extra INT",
        "INSERT INTO {t} VALUES (7, 'n7', DATE '2026-01-02', 70)",
        "DELETE FROM {t} WHERE id IN (1, 6)",
        "ALTER TABLE {t} CREATE TAG v1",
        "DELETE FROM {t} WHERE name = 'n2'",
        "ALTER TABLE {t} CREATE BRANCH dev",
        "INSERT INTO {t}.branch_dev VALUES (8, 'n8', DATE '2026-01-04', 80)",
    ),
    (
        "SELECT * FROM {t}",
        "SELECT id FROM {t} WHERE day >= DATE '2026-01-02' AND id < 5 OR day IS NULL",
        "SELECT name FROM {t} WHERE name LIKE 'n%' AND extra IS NULL",
        "SELECT a.id, b.id FROM {t} a LEFT JOIN {t} b ON a.id = b.id + 1 AND b.id > 2 WHERE a.day < '2026-01-03'",
        "WITH q AS (SELECT id, day FROM {t}) SELECT max(id), string(day) FROM q WHERE id > 1 GROUP BY day",
        "SELECT id, _pos, _spec_id, _deleted, _partition, _file FROM {t}",
        "SELECT count(*), max(id) FROM {t}",
        "SELECT * EXCEPT (day), _pos FROM {t} WHERE _pos = 0",
        "SELECT * FROM {t} VERSION AS OF 'v1'",
        "SELECT * FROM {t}.branch_dev WHERE id > 3",
        "SELECT id, name FROM {t}.tag_v1 UNION ALL SELECT id, 'now' FROM {t}",
    ),
    "PARTITIONED BY (day)",
)
COLUMNS = Script(
    "a INT, b FLOAT, gone STRING, price DECIMAL(9, 2), s STRUCT<x: INT, y: STRING>, "
    "items ARRAY<STRUCT<n: INT, w: STRING>>, m MAP<STRING, STRUCT<v: INT>>",
    (
        (
            "INSERT INTO {t} VALUES (1, 1.5, 'g', 1.25, named_struct('x', 1, 'y', 'why'), "
            "array(named_struct('n', 1, 'w', 'w1'), NULL), map('k', named_struct('v', 9))), "
            "(2, NULL, NULL, NULL, NULL, array(), map('none', NULL))"
        ),
        "ALTER TABLE {t} CREATE TAG before",
        "ALTER TABLE {t} ALTER COLUMN a TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN b TYPE DOUBLE",
        "ALTER TABLE {t} ALTER COLUMN price TYPE DECIMAL(18, 2)",
        "ALTER TABLE {t} ALTER COLUMN s.x TYPE BIGINT",
        "ALTER TABLE {t} RENAME COLUMN s.y TO z",
        "ALTER TABLE {t} ADD COLUMN s.y INT",
        "ALTER TABLE {t} RENAME COLUMN items.element.w TO word",
        "ALTER TABLE {t} ADD COLUMN items.element.w STRING",
        "ALTER TABLE {t} ADD COLUMN m.value.u STRING",
        "ALTER TABLE {t} DROP COLUMN gone",
        "ALTER TABLE {t} ADD COLUMN gone BIGINT FIRST",
        "ALTER TABLE {t} RENAME COLUMN a TO tmp",
        "ALTER TABLE {t} RENAME COLUMN b TO a",
        "ALTER TABLE {t} RENAME COLUMN tmp TO b",
        "ALTER TABLE {t} ALTER COLUMN price AFTER s",
        (
            "INSERT INTO {t} VALUES (7, 3000000000, 2.5, named_struct('x', 4000000000, 'z', 'zed', 'y', 5), "
            "9999999999999.75, array(named_struct('n', 2, 'word', 'w2', 'w', 'new')), "
            "map('k2', named_struct('v', 8, 'u', 'you')))"
        ),
    ),
    (
        "SELECT * FROM {t}",
        "SELECT * FROM {t} WHERE a > 1 OR b = 2",
        "SELECT s.x, s.y, s.z FROM {t} WHERE s.z >= 'why' AND gone IS NULL",
        "SELECT items.word, items.w, m['k'].u, m['k2'] FROM {t}",
        "SELECT price FROM {t} WHERE price < 9999999999999.75",
        "SELECT * FROM {t} VERSION AS OF 'before' WHERE a > 0 AND gone = 'g'",
    ),
)
PARTITIONS = Script(
    "id BIGINT, region STRING, at TIMESTAMP, data BINARY",
    (
        "INSERT INTO {t} VALUES (1, 'eu', TIMESTAMP '2026-01-01 10:00:00', X'01')",
        "ALTER TABLE {t} ADD PARTITION FIELD region",
        (
            "INSERT INTO {t} VALUES (2, 'eu', TIMESTAMP '2026-01-01 11:00:00', X'02'), (3, NULL, NULL, NULL), "
            "(4, 'a/b c=%20', TIMESTAMP '1969-12-31 23:59:59', X'')"
        ),
        "ALTER TABLE {t} ADD PARTITION FIELD days(at)",
        "ALTER TABLE {t} ADD PARTITION FIELD bucket(4, id) AS shard",
        "INSERT INTO {t} VALUES (5, 'eu', TIMESTAMP '2026-01-02 00:00:00', X'05'), (6, 'us', NULL, X'06')",
        "ALTER TABLE {t} DROP PARTITION FIELD region",
        "ALTER TABLE {t} REPLACE PARTITION FIELD days(at) WITH hours(at)",
        "INSERT INTO {t} VALUES (7, 'eu', TIMESTAMP '2026-01-02 07:00:00', X'07')",
        "DELETE FROM {t} WHERE id = 5 OR region = 'us'",
    ),
    (
        "SELECT * FROM {t}",
        "SELECT id, _spec_id, _partition FROM {t}",
        "SELECT id FROM {t} WHERE region = 'eu' AND at >= TIMESTAMP '2026-01-01 11:00:00'",
        "SELECT id FROM {t} WHERE at < TIMESTAMP '1970-01-01' OR id IN (2, 7)",
    ),
)
LINEAGE = ("SELECT id, _row_id, _last_updated_sequence_number FROM {t}",)
OURS, THEIRS = "ours.t", "theirs.t"


@pytest.fixture
def read(spark: SparkSession, lake: Lake, official: Sql, official_runtime: OfficialRuntime) -> Read:
    """Asks both sides the same queries."""
    for name in ("ours", "theirs"):
        lake.create_namespace(name)

    def ask(queries: Sequence[str]) -> tuple[Answers, Answers]:
        names = {"spark": spark, "queries": queries}
        exec(_ASK, names)  # noqa: S102  (the same text runs on the other side)
        return json.loads(json.dumps(names["result"])), official_runtime.python(_ASK, queries=list(queries))

    return ask


def assert_same(read: Read, tables: Iterable[str], queries: Iterable[str]) -> None:
    """Both sides answer the same, with columns of the same names and types."""
    ours, theirs = read([query.format(t=table) for table in tables for query in queries])
    assert {q: (a, theirs[q]) for q, a in ours.items() if a != theirs[q] or a[0] == ["failed"]} == {}
    assert any(rows for _, rows in ours.values())


def build(lake: Lake, spark: SparkSession, official: Sql, script: Script, version: int) -> None:
    """The table of a script, once written by each side."""
    mode = "copy-on-write" if version == 1 else "merge-on-read"
    properties = f"'format-version'='{version}', 'write.delete.mode'='{mode}'"
    create = f"CREATE TABLE {{t}} ({script.columns}) USING iceberg {script.partitioned_by} TBLPROPERTIES ({properties})"
    for statement in (create, *script.statements):
        official(statement.format(t=THEIRS))
        if condition := re.match(r"DELETE FROM \S+ WHERE (.*)", statement):
            lake.load_table(OURS).delete(condition[1])  # DELETE on Spark comes with a later issue
        else:
            spark.sql(statement.format(t=OURS))


@pytest.mark.parametrize(
    ("script", "version"),
    [*((script, version) for script in (ROWS, COLUMNS) for version in (1, 2, 3)), (PARTITIONS, 2)],
    ids=[*(f"{name}-{version}" for name in ("rows", "columns") for version in (1, 2, 3)), "partitions"],
)
def test_both_read_what_each_wrote(
    spark: SparkSession, lake: Lake, official: Sql, read: Read, script: Script, version: int
) -> None:
    build(lake, spark, official, script, version)
    lineage = LINEAGE if version == 3 and script is not COLUMNS else ()
    assert_same(read, [OURS, THEIRS], [*script.queries, *lineage])


def test_equality_deletes_are_honoured_by_both_in_tables_of_both(
    spark: SparkSession, lake: Lake, official: Sql, read: Read
) -> None:
    """Only Flink and the like write them; keys may be null, and rows that came after them stay."""
    keys = Script(
        "id BIGINT, k STRING, d DATE",
        ("INSERT INTO {t} VALUES (1, 'x', NULL), (2, NULL, NULL), (3, NULL, DATE '2026-01-01'), (4, 'y', NULL)",),
        (),
    )
    build(lake, spark, official, keys, 2)
    for name in (OURS, THEIRS):
        table = lake.load_table(name)
        schema = pa.schema([("k", pa.string()), ("d", pa.date32())])
        add_deletes(table, equality_deletes(table, pa.Table.from_pylist([{"k": None, "d": None}], schema), [2, 3]))
        add_deletes(table, equality_deletes(table, pa.table({"id": [4]}), [1]))
        assert native_refusal(table.refresh().scan()) is None
    official(f"INSERT INTO {OURS} VALUES (4, NULL, NULL)")
    spark.sql(f"INSERT INTO {THEIRS} VALUES (4, NULL, NULL)")
    assert_same(read, [OURS, THEIRS], ["SELECT * FROM {t}", "SELECT id FROM {t} WHERE k IS NULL", "SELECT d FROM {t}"])
    assert sorted(r.id for r in spark.table(OURS).collect()) == [1, 3, 4]


ADD_DEFAULTS = """
iceberg = jvm.org.apache.iceberg
table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "theirs.t")
types, literal = iceberg.types.Types, iceberg.expressions.Literal
date = types.DateType.get()
table.updateSchema().addColumn("n", types.IntegerType.get(), literal.of(7)).addColumn(
    "d", date, literal.of("2026-01-01").to(date)).commit()
"""


def test_defaults_stand_in_rows_from_before_the_column(
    spark: SparkSession, lake: Lake, official: Sql, official_runtime: OfficialRuntime, read: Read
) -> None:
    build(lake, spark, official, Script("id BIGINT", ("INSERT INTO {t} VALUES (1), (2)",), ()), 3)
    official_runtime.python(ADD_DEFAULTS)  # docs/differences.md: its SQL has no defaults
    spark.sql(f"ALTER TABLE {OURS} ADD COLUMNS n INT DEFAULT 7, d DATE DEFAULT DATE '2026-01-01'")
    for name in (OURS, THEIRS):
        official(f"INSERT INTO {name} VALUES (3, NULL, NULL)")
        spark.sql(f"INSERT INTO {name} (id) VALUES (4)")
    queries = ["SELECT * FROM {t}", "SELECT id FROM {t} WHERE n = 7", "SELECT id FROM {t} WHERE d IS NULL OR id = 2"]
    assert_same(read, [OURS, THEIRS], queries)


IMPORTED = pa.schema(
    [("amount", pa.float64()), ("id", pa.int64()), ("other", pa.int64()), ("s", pa.struct([("x", pa.int32())]))]
)


def test_imported_files_are_read_by_name(
    spark: SparkSession, lake: Lake, official: Sql, read: Read, tmp_path: Path
) -> None:
    official(
        f"CREATE TABLE {THEIRS} (id BIGINT, s STRUCT<x: INT>, amount DOUBLE, region STRING) "
        "USING iceberg PARTITIONED BY (region)"
    )
    for number, region in enumerate(["eu", "a b"]):
        where = tmp_path / "plain" / f"region={region}"
        where.mkdir(parents=True)
        rows = [{"amount": 1.5, "id": number, "other": 1, "s": {"x": 2}}, {"amount": None, "id": 9, "s": None}]
        pq.write_table(pa.Table.from_pylist(rows, IMPORTED), where / "f.parquet")
    official(f"CALL system.add_files(table => '{THEIRS}', source_table => '`parquet`.`{tmp_path}/plain`')")
    imported = ["SELECT * FROM {t}", "SELECT id, _pos, _partition FROM {t} WHERE region = 'a b'"]
    assert_same(read, [THEIRS], imported)
    official(f"ALTER TABLE {THEIRS} RENAME COLUMN amount TO price")
    official(f"ALTER TABLE {THEIRS} RENAME COLUMN s.x TO z")
    official(f"ALTER TABLE {THEIRS} ADD COLUMN amount STRING")
    official(f"ALTER TABLE {THEIRS} ADD COLUMN other BIGINT")
    # files have doubles in what is called `amount` now: no reader makes text of them, but nobody asks for it here
    asked = [imported[1], "SELECT id, s.z, price, other FROM {t}", "SELECT count(*) FROM {t} WHERE region = 'eu'"]
    assert_same(read, [THEIRS], asked)


AT_A_STATE = ["files", "data_files", "delete_files", "entries", "manifests", "partitions", "position_deletes"]


@pytest.mark.parametrize("version", [pytest.param(2, marks=pytest.mark.thorough), 3])
def test_metadata_tables_and_versions_answer_the_same(
    spark: SparkSession, lake: Lake, official: Sql, official_runtime: OfficialRuntime, read: Read, version: int
) -> None:
    build(lake, spark, official, ROWS, version)
    tables = [OURS, THEIRS]
    queries = [f"SELECT * FROM {{t}}.{name}" for name in METADATA_TABLES]
    queries += [f"SELECT * FROM {{t}}.{name} VERSION AS OF '{ref}'" for name in AT_A_STATE for ref in ("dev", "v1")]
    assert_same(read, tables, queries)
    for table in tables:
        snapshots = lake.load_table(table).metadata.snapshots
        first, second = snapshots[0], snapshots[1]
        moment = f"timestamp_millis({first.timestamp_ms})"
        assert_same(
            read,
            [table],
            [
                f"SELECT * FROM {{t}} VERSION AS OF {first.snapshot_id}",
                f"SELECT * FROM {{t}}.snapshot_id_{second.snapshot_id}",
                f"SELECT * FROM {{t}}.at_timestamp_{second.timestamp_ms}",
                f"SELECT * FROM {{t}} TIMESTAMP AS OF {moment}",
                "SELECT * FROM {t} TIMESTAMP AS OF '2099-01-01 00:00:00'",
                f"SELECT content, record_count FROM {{t}}.files TIMESTAMP AS OF {moment}",
            ],
        )
        start = {"start-snapshot-id": str(first.snapshot_id)}
        options = [
            start,
            start | {"end-snapshot-id": str(second.snapshot_id)},
            {"versionAsOf": "v1"},
            {"versionAsOf": str(second.snapshot_id)},
            {"timestampAsOf": "2099-01-01"},
            {"branch": "dev"},
        ]
        names: dict[str, Any] = {"spark": spark, "all_options": options, "table": table}
        exec(_LOAD, names)  # noqa: S102  (the same text runs on the other side)
        theirs = official_runtime.python(_LOAD, all_options=options, table=table)
        for told, ours, other in zip(options, names["result"], theirs, strict=True):
            assert ours == other, told
            assert ours, told


def test_metadata_tables_under_wap_are_those_at_the_branch(
    spark: SparkSession, lake: Lake, official: Sql, official_runtime: OfficialRuntime, read: Read
) -> None:
    """docs/differences.md: in the official runtime they stay at `main`; rows are those of the branch on both sides."""
    build(lake, spark, official, ROWS, 2)
    at_branch = {name: f"SELECT * FROM {OURS}.{name} VERSION AS OF 'dev'" for name in AT_A_STATE}
    _, theirs = read([*at_branch.values(), f"SELECT * FROM {OURS}.branch_dev"])
    spark.conf.set("spark.wap.branch", "dev")
    for name, query in at_branch.items():
        found = spark.sql(f"SELECT * FROM {OURS}.{name}").collect()
        assert sorted(repr(tuple(row)) for row in found) == theirs[query][1], name
    found = spark.sql(f"SELECT * FROM {OURS}").collect()
    assert sorted(repr(tuple(row)) for row in found) == theirs[f"SELECT * FROM {OURS}.branch_dev"][1]
