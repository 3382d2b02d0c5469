"""Trino on `bergline serve`, by the lines that it prints, with bergline writing next to it; `make trino` runs it."""

import datetime as dt
import threading
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import bergline
import bergline.spark
from bergline import Lake
from bergline.cli.main import app
from support.fixtures.changed_rows import CHANGES, Row, RowChange, create, in_order, rows_of
from support.servers.bergline_server import BerglineServer
from support.servers.glue_server import REGION, GlueServer
from support.servers.s3_server import ACCESS_KEY, SECRET_KEY, S3Server
from support.servers.trino_server import TrinoError, TrinoServer, needs_trino

pytestmark = needs_trino

COLUMNS = pa.schema([("id", pa.int64()), ("who", pa.string())])
SOON = "iceberg.expire-snapshots.min-retention=0s\niceberg.remove-orphan-files.min-retention=0s"


@pytest.fixture(scope="module")
def trino(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrinoServer]:
    with TrinoServer(tmp_path_factory.mktemp("trino")) as server:
        yield server


@pytest.fixture(scope="module")
def served(trino: TrinoServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BerglineServer]:
    """A server that Trino has as catalog `lake`."""
    with BerglineServer(tmp_path_factory.mktemp("served")) as server:
        trino.add_catalog("lake", f"{server.connection_examples['Trino']}\n{SOON}")
        yield server


@pytest.fixture
def lake(served: BerglineServer) -> Iterator[Lake]:
    with bergline.connect(served.uri) as opened:
        yield opened


@pytest.fixture
def spark(spark_session: SparkSession, lake: Lake) -> Iterator[SparkSession]:
    bergline.spark.attach(spark_session, lake, name="served")
    yield spark_session
    bergline.spark.detach(spark_session)


@pytest.fixture
def db(trino: TrinoServer, served: BerglineServer) -> str:
    """A schema of the test's own."""
    name = f"db_{uuid.uuid4().hex[:8]}"
    trino.sql(f"CREATE SCHEMA lake.{name}")
    return name


def test_trino_writes_every_kind_of_change(trino: TrinoServer, lake: Lake, db: str) -> None:
    trino.sql(f"CREATE TABLE lake.{db}.t (id bigint, who varchar)")
    trino.sql(f"INSERT INTO lake.{db}.t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')")
    trino.sql(f"UPDATE lake.{db}.t SET who = 'z' WHERE id = 2")
    trino.sql(f"DELETE FROM lake.{db}.t WHERE id = 3")
    trino.sql(
        f"MERGE INTO lake.{db}.t t USING (VALUES (1, 'm'), (4, ''), (9, 'n')) AS v(id, who) ON t.id = v.id "
        "WHEN MATCHED AND v.who = '' THEN DELETE WHEN MATCHED THEN UPDATE SET who = v.who "
        "WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.who)"
    )
    assert of_trino(trino, f"{db}.t") == of_bergline(lake, f"{db}.t") == [(1, "m"), (2, "z"), (9, "n")]
    trino.sql(f"CREATE TABLE lake.{db}.copy WITH (partitioning = ARRAY['who']) AS SELECT * FROM lake.{db}.t")
    trino.sql(f"CREATE OR REPLACE TABLE lake.{db}.copy AS SELECT id + 100 AS id, who FROM lake.{db}.copy")
    assert of_bergline(lake, f"{db}.copy") == [(101, "m"), (102, "z"), (109, "n")]
    trino.sql(f"TRUNCATE TABLE lake.{db}.copy")
    assert of_bergline(lake, f"{db}.copy") == []
    trino.sql(f"ALTER TABLE lake.{db}.copy RENAME TO lake.{db}.moved")
    trino.sql(f"DROP TABLE lake.{db}.moved")
    assert lake.list_tables(db) == [f"{db}.t"]


def test_values_of_every_type_arrive(trino: TrinoServer, lake: Lake, db: str) -> None:
    trino.sql(
        f"CREATE TABLE lake.{db}.t (i integer, n decimal(10, 2), ok boolean, f real, d double, day date, "
        "at timestamp(6), tz timestamp(6) with time zone, u uuid, b varbinary, "
        "l array(bigint), m map(varchar, bigint), r row(a bigint, b varchar)) "
        "WITH (partitioning = ARRAY['bucket(i, 4)', 'month(day)', 'hour(tz)', 'truncate(n, 5)'])"
    )
    value = uuid.UUID("12151fd2-7586-11e9-8f9e-2a86e4085a59")
    trino.sql(
        f"INSERT INTO lake.{db}.t VALUES (1, DECIMAL '1.25', true, REAL '0.5', 1.5, DATE '2024-01-02', "
        "TIMESTAMP '2024-01-02 03:04:05.678901', TIMESTAMP '2024-01-02 03:04:05.678901 UTC', "
        f"UUID '{value}', X'00FF', ARRAY[1, NULL], MAP(ARRAY['a'], ARRAY[1]), ROW(1, 'x'))"
    )
    table = lake.load_table(f"{db}.t")
    (row,) = table.scan().to_arrow().to_pylist()
    at = dt.datetime(2024, 1, 2, 3, 4, 5, 678901)  # noqa: DTZ001
    assert row == {
        "i": 1,
        "n": Decimal("1.25"),
        "ok": True,
        "f": 0.5,
        "d": 1.5,
        "day": dt.date(2024, 1, 2),
        "at": at,
        "tz": at.replace(tzinfo=dt.UTC),
        "u": value,
        "b": b"\x00\xff",
        "l": [1, None],
        "m": [("a", 1)],
        "r": {"a": 1, "b": "x"},
    }
    table.append(table.scan().to_arrow())
    one, other = trino.sql(f"SELECT * FROM lake.{db}.t")
    assert one == other
    chosen = "i = 1 AND day = DATE '2024-01-02' AND tz < TIMESTAMP '2024-01-02 04:00:00 UTC' AND n < 2"
    assert trino.sql(f"SELECT count(*) FROM lake.{db}.t WHERE {chosen}") == [(2,)]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_trino_reads_what_bergline_deleted_and_changed(trino: TrinoServer, lake: Lake, db: str, mode: str) -> None:
    table = lake.create_table(f"{db}.t", COLUMNS, properties={"write.delete.mode": mode, "format-version": "2"})
    table.append(rows("bergline", *range(6)))
    table.delete("id = 4")
    table.overwrite(rows("again", 5), "id = 5")
    trino.sql(f"UPDATE lake.{db}.t SET who = 'trino' WHERE id < 2")
    table.refresh().delete("id in (1, 2)")
    expected = [(0, "trino"), (3, "bergline"), (5, "again")]
    assert of_trino(trino, f"{db}.t") == of_bergline(lake, f"{db}.t") == expected


def test_protected_main_moves_only_by_publishing(trino: TrinoServer, lake: Lake, db: str) -> None:
    table = lake.create_table(f"{db}.t", COLUMNS, properties={"format-version": "2"})
    table.append(rows("bergline", 1))
    table.refs.protect("main", only_publish=True)
    for statement in (
        f"INSERT INTO lake.{db}.t VALUES (2, 'trino')",
        f"UPDATE lake.{db}.t SET who = 'trino' WHERE id = 1",
        f"DELETE FROM lake.{db}.t WHERE id = 1",
        f"CREATE OR REPLACE TABLE lake.{db}.t AS SELECT BIGINT '2' AS id, 'trino' AS who",
    ):
        with pytest.raises(TrinoError, match="is protected by the rule `main`"):
            trino.sql(statement)
    for statement, said in (  # Trino does not pass on why
        (f"DROP TABLE lake.{db}.t", "Failed to drop table"),
        (f"ALTER TABLE lake.{db}.t RENAME TO lake.{db}.u", "Failed to rename table"),
    ):
        with pytest.raises(TrinoError, match=said):
            trino.sql(statement)
    assert of_trino(trino, f"{db}.t") == of_bergline(lake, f"{db}.t") == [(1, "bergline")]
    table.refresh().append(rows("bergline", 2), branch=db)
    lake.publish(db)
    assert of_trino(trino, f"{db}.t") == of_bergline(lake, f"{db}.t") == [(1, "bergline"), (2, "bergline")]
    table.refresh().refs.unprotect("main")
    trino.sql(f"INSERT INTO lake.{db}.t VALUES (3, 'trino')")
    assert of_bergline(lake, f"{db}.t")[-1] == (3, "trino")


def test_trino_reads_branches_tags_and_earlier_snapshots(trino: TrinoServer, lake: Lake, db: str) -> None:
    table = lake.create_table(f"{db}.t", COLUMNS, properties={"format-version": "2"})
    table.append(rows("bergline", 1))
    (first,) = table.metadata.snapshots
    trino.sql(f"INSERT INTO lake.{db}.t VALUES (2, 'trino')")
    table.refresh().refs.create_tag("v1")
    table.append(rows("bergline", 3), branch="dev")
    table.append(rows("bergline", 4))
    found = {
        version: [n for (n,) in trino.sql(f"SELECT id FROM lake.{db}.t FOR VERSION AS OF {version} ORDER BY id")]
        for version in ("'dev'", "'v1'", "'main'", str(first.snapshot_id))
    }
    assert found == {"'dev'": [1, 2, 3], "'v1'": [1, 2], "'main'": [1, 2, 4], str(first.snapshot_id): [1]}
    moment = dt.datetime.fromtimestamp(first.timestamp_ms / 1000, dt.UTC).isoformat(" ", "milliseconds")
    then = f"FOR TIMESTAMP AS OF TIMESTAMP '{moment.removesuffix('+00:00')} UTC'"
    assert trino.sql(f"SELECT id FROM lake.{db}.t {then}") == [(1,)]
    refs = {(name, kind) for name, kind, *_ in trino.sql(f'SELECT * FROM lake.{db}."t$refs"')}
    assert refs == {("main", "BRANCH"), ("dev", "BRANCH"), ("v1", "TAG")}
    with pytest.raises(TrinoError, match="Cannot find snapshot with reference name: none"):
        trino.sql(f"SELECT id FROM lake.{db}.t FOR VERSION AS OF 'none'")
    trino.sql(f"ALTER TABLE lake.{db}.t EXECUTE rollback_to_snapshot({first.snapshot_id})")
    assert of_bergline(lake, f"{db}.t") == [(1, "bergline")]


def test_columns_and_partitions_that_trino_changes_are_ours_too(trino: TrinoServer, lake: Lake, db: str) -> None:
    table = lake.create_table(f"{db}.t", COLUMNS, properties={"format-version": "2"})
    table.append(rows("bergline", 1))
    for change in (
        "ADD COLUMN extra bigint",
        "ADD COLUMN n integer",
        "ALTER COLUMN n SET DATA TYPE bigint",
        "DROP COLUMN extra",
        "RENAME COLUMN who TO name",
        "SET PROPERTIES partitioning = ARRAY['name']",
        "SET PROPERTIES max_commit_retry = 7",
    ):
        trino.sql(f"ALTER TABLE lake.{db}.t {change}")
    trino.sql(f"COMMENT ON TABLE lake.{db}.t IS 'ours'")
    trino.sql(f"COMMENT ON COLUMN lake.{db}.t.name IS 'who'")
    trino.sql(f"INSERT INTO lake.{db}.t VALUES (2, 'trino', 3)")
    table.refresh().append(pa.table({"id": [3], "name": ["bergline"], "n": [4]}))
    expected = [(1, "bergline", None), (2, "trino", 3), (3, "bergline", 4)]
    assert of_trino(trino, f"{db}.t") == of_bergline(lake, f"{db}.t") == expected
    metadata = table.refresh().metadata
    assert (metadata.properties["comment"], metadata.properties["commit.retry.num-retries"]) == ("ours", "7")
    assert [(f.name, f.doc) for f in metadata.schema.fields] == [("id", None), ("name", "who"), ("n", None)]
    assert len(table.scan("name = 'trino'").plan().files) == 1


def test_trino_maintains_a_table_that_bergline_branched(trino: TrinoServer, lake: Lake, db: str) -> None:
    table = lake.create_table(f"{db}.t", COLUMNS, properties={"format-version": "2"})
    for n in range(4):
        table.append(rows("bergline", n))
    table.append(rows("bergline", 9), branch="dev")
    trino.sql(f"DELETE FROM lake.{db}.t WHERE id = 2")
    trino.sql(f"ALTER TABLE lake.{db}.t EXECUTE optimize")
    trino.sql(f"ALTER TABLE lake.{db}.t EXECUTE optimize_manifests")
    before = len(table.refresh().metadata.snapshots)
    trino.sql(f"ALTER TABLE lake.{db}.t EXECUTE expire_snapshots(retention_threshold => '0s')")
    trino.sql(f"ALTER TABLE lake.{db}.t EXECUTE remove_orphan_files(retention_threshold => '0s')")
    trino.sql(f"ANALYZE lake.{db}.t")
    assert len(table.refresh().metadata.snapshots) < before
    assert [n for n, _ in of_bergline(lake, f"{db}.t")] == [0, 1, 3]
    assert sorted(table.scan(ref="dev").to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 9]
    table.expire(older_than=dt.datetime.now(dt.UTC))
    assert [n for n, _ in of_trino(trino, f"{db}.t")] == [0, 1, 3]
    assert trino.sql(f"SELECT count(*) FROM lake.{db}.t FOR VERSION AS OF 'dev'") == [(5,)]


def test_views_of_trino_are_there_for_all(trino: TrinoServer, lake: Lake, db: str) -> None:
    lake.create_table(f"{db}.t", COLUMNS, properties={"format-version": "2"}).append(rows("bergline", 1, 2))
    trino.sql(f"CREATE VIEW lake.{db}.v AS SELECT id FROM lake.{db}.t")
    trino.sql(f"CREATE OR REPLACE VIEW lake.{db}.v COMMENT 'few' AS SELECT id, who FROM lake.{db}.t WHERE id < 2")
    assert trino.sql(f"SELECT * FROM lake.{db}.v") == [(1, "bergline")]
    assert "id < 2" in str(lake.load_view(f"{db}.v").sql("trino"))
    assert (lake.list_views(db), lake.list_tables(db)) == ([f"{db}.v"], [f"{db}.t"])
    lake.create_view(f"{db}.own", {"trino": f"SELECT id, who FROM lake.{db}.t", "spark": "SELECT 1, ''"}, COLUMNS)
    assert sorted(trino.sql(f"SELECT * FROM lake.{db}.own")) == [(1, "bergline"), (2, "bergline")]
    trino.sql(f"ALTER VIEW lake.{db}.v RENAME TO lake.{db}.w")
    trino.sql(f"DROP VIEW lake.{db}.w")
    assert lake.list_views(db) == [f"{db}.own"]


def test_rows_of_writers_at_once_are_there_once(
    trino: TrinoServer, served: BerglineServer, lake: Lake, db: str
) -> None:
    trino.sql(f"CREATE TABLE lake.{db}.t (id bigint, who varchar) WITH (max_commit_retry = 50)")
    failures: list[Exception] = []

    def write_trino(writer: int) -> None:
        for n in range(4):
            trino.sql(f"INSERT INTO lake.{db}.t VALUES ({writer * 100 + n}, 'trino')")

    def write_bergline(writer: int) -> None:
        with bergline.connect(served.uri) as own:
            for n in range(4):
                own.load_table(f"{db}.t").append(rows("bergline", writer * 100 + n))

    def run(write: Callable[[int], None], writer: int) -> None:
        try:
            write(writer)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    jobs = [write_trino, write_bergline, write_trino, write_bergline]
    writers = [threading.Thread(target=run, args=(write, number)) for number, write in enumerate(jobs)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    expected = [number * 100 + n for number in range(len(jobs)) for n in range(4)]
    assert [n for n, _ in of_trino(trino, f"{db}.t")] == [n for n, _ in of_bergline(lake, f"{db}.t")] == expected


def test_bergline_on_spark_and_trino_take_turns(trino: TrinoServer, db: str, spark: SparkSession) -> None:
    spark.sql(
        f"CREATE TABLE served.{db}.t (id BIGINT, who STRING) USING iceberg PARTITIONED BY (bucket(2, id)) "
        "TBLPROPERTIES ('format-version'='2')"
    )
    spark.sql(f"INSERT INTO served.{db}.t VALUES (1, 'spark'), (2, 'spark'), (3, 'spark')")
    trino.sql(f"UPDATE lake.{db}.t SET who = 'trino' WHERE id = 1")
    spark.sql(f"INSERT INTO served.{db}.t SELECT id + 10, who FROM served.{db}.t WHERE who = 'trino'")
    trino.sql(f"DELETE FROM lake.{db}.t WHERE id = 2")
    expected = [(1, "trino"), (3, "spark"), (11, "trino")]
    assert of_trino(trino, f"{db}.t") == expected
    assert sorted(tuple(row) for row in spark.sql(f"SELECT * FROM served.{db}.t").collect()) == expected


@pytest.mark.parametrize("kind", ["v2 copy-on-write", "v2 position deletes", "v3 copy-on-write"])
def test_trino_reads_the_rows_that_each_change_on_spark_leaves(
    trino: TrinoServer, lake: Lake, db: str, spark: SparkSession, kind: str
) -> None:
    """Tables with deletion vectors are below: Trino 476 refuses them."""
    table, expected = create(lake, f"{db}.t", kind)
    history = {}
    for statement, apply in CHANGES:
        spark.sql(statement.format(t=f"served.{db}.t")).collect()
        expected = in_order(apply(expected))
        assert changed_rows(trino, f"{db}.t") == rows_of(table.refresh().scan().to_arrow()) == expected, statement
        few = [row for row in expected if row.id > 5 and row.region == "eu"]
        assert changed_rows(trino, f"{db}.t WHERE id > 5 AND region = 'eu'") == few, statement
        head = table.metadata.current_snapshot
        assert head
        history[head.snapshot_id] = expected
    for snapshot_id, earlier in history.items():
        assert changed_rows(trino, f"{db}.t FOR VERSION AS OF {snapshot_id}") == earlier


def test_trino_and_bergline_on_spark_change_rows_in_turn(
    trino: TrinoServer, lake: Lake, db: str, spark: SparkSession
) -> None:
    _, expected = create(lake, f"{db}.t", "v2 position deletes")
    delete, granularity, update, merge, partition, *_, compact, _ = CHANGES
    for engine, (statement, apply) in [
        ("spark", delete),
        ("trino", RowChange("DELETE FROM {t} WHERE id % 7 = 0", lambda rows: [r for r in rows if r.id % 7])),
        ("spark", granularity),
        ("spark", update),
        ("trino", RowChange("UPDATE {t} SET amount = 1, note = 't' WHERE id IN (1, 2, 23)", update_by_trino)),
        ("trino", TRINO_MERGE),
        ("spark", merge),
        ("trino", RowChange("DELETE FROM {t} WHERE id IN (6, 12)", lambda rows: [r for r in rows if r.id != 12])),
        ("trino", partition),
        ("spark", compact),
        ("trino", RowChange("UPDATE {t} SET amount = 1, note = 't' WHERE id IN (1, 2, 23)", update_by_trino)),
        ("spark", RowChange("DELETE FROM {t} WHERE id = 23", lambda rows: [r for r in rows if r.id != 23])),
    ]:
        if engine == "spark":
            spark.sql(statement.format(t=f"served.{db}.t")).collect()
        else:
            trino.sql(statement.format(t=f"lake.{db}.t"))
        expected = in_order(apply(expected))
        on_spark = spark.sql(f"SELECT * FROM served.{db}.t").toArrow()
        assert changed_rows(trino, f"{db}.t") == rows_of(on_spark) == expected, (engine, statement)


def update_by_trino(rows: list[Row]) -> list[Row]:
    return [row._replace(amount=1, note="t") if row.id in (1, 2, 23) else row for row in rows]


def merge_by_trino(rows: list[Row]) -> list[Row]:
    kept = [row._replace(note="x") if row.id == 2 else row for row in rows if row.id != 3]
    return [*kept, Row(51, 1, "nw", None, "z")]


TRINO_MERGE = RowChange(
    "MERGE INTO {t} t USING (VALUES (2, 'x'), (3, 'y'), (51, 'z')) AS s(id, note) ON t.id = s.id "
    "WHEN MATCHED AND s.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET note = s.note "
    "WHEN NOT MATCHED THEN INSERT (id, amount, region, note) VALUES (s.id, 1, 'nw', s.note)",
    merge_by_trino,
)


def test_trino_reads_and_adds_to_tables_of_version_three_without_deletes(
    trino: TrinoServer, lake: Lake, db: str
) -> None:
    """Trino 476 knows no more of version 3, and says so; docs/guides/serving.md has it."""
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    table = lake.create_table(f"{db}.t", COLUMNS, properties=properties)
    table.append(rows("bergline", 1, 2))
    trino.sql(f"INSERT INTO lake.{db}.t VALUES (3, 'trino')")
    expected = [(1, "bergline"), (2, "bergline"), (3, "trino")]
    assert of_trino(trino, f"{db}.t") == of_bergline(lake, f"{db}.t") == expected
    assert table.refresh().metadata.next_row_id == len(expected)
    with table.update_schema() as schema:
        schema.add_column("kind", "string", default="new")
    assert trino.sql(f"SELECT DISTINCT kind FROM lake.{db}.t") == [(None,)]
    assert {kind for *_, kind in of_bergline(lake, f"{db}.t")} == {"new"}
    with pytest.raises(TrinoError, match="Must use DVs"):
        trino.sql(f"DELETE FROM lake.{db}.t WHERE id = 2")
    table.delete("id = 2")
    with pytest.raises(TrinoError, match="Unexpected PUFFIN file format"):
        of_trino(trino, f"{db}.t")


def test_trino_finds_inner_namespaces_and_capital_letters_if_it_is_told_to(
    trino: TrinoServer, served: BerglineServer, lake: Lake, db: str
) -> None:
    names = "iceberg.rest-catalog."
    more = f"{names}nested-namespace-enabled=true\n{names}case-insensitive-name-matching=true"
    trino.add_catalog("all_names", f"{served.connection_examples['Trino']}\n{more}")
    lake.create_namespace(f"{db}.Inner")
    lake.create_table(f"{db}.Inner.Orders", COLUMNS).append(rows("bergline", 1))
    assert trino.sql(f'SELECT id FROM all_names."{db}.inner".orders') == [(1,)]
    trino.sql(f'CREATE TABLE all_names."{db}.inner".copy AS SELECT * FROM all_names."{db}.inner".orders')
    assert of_bergline(lake, f"{db}.Inner.copy") == [(1, "bergline")]


def test_token_is_needed_and_taken(trino: TrinoServer, tmp_path: Path) -> None:
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    bergline.connect(catalog, create=True).close()
    made = CliRunner().invoke(app, ["token", "create", "trino", "--catalog", catalog], catch_exceptions=False)
    with BerglineServer(tmp_path) as server:
        trino.add_catalog("guarded", server.connection_examples["Trino"], TOKEN=made.stdout.strip())
        trino.sql("CREATE SCHEMA guarded.db")
        trino.sql("CREATE TABLE guarded.db.t AS SELECT 1 AS id")
        assert trino.sql("SELECT * FROM guarded.db.t") == [(1,)]
        trino.add_catalog("refused", server.connection_examples["Trino"], TOKEN="bl_wrong")  # noqa: S106
        with pytest.raises(TrinoError, match=r"(?i)authoriz"):
            trino.sql("SHOW SCHEMAS FROM refused")


def test_tables_lie_in_a_bucket(trino: TrinoServer, tmp_path: Path, s3_server: S3Server, bucket: str) -> None:
    properties = [f"--property={key}={value}" for key, value in s3_server.properties.items()]
    with BerglineServer(tmp_path, "--warehouse", f"{bucket}/warehouse", *properties) as server:
        trino.add_catalog("bucket", server.connection_examples["Trino"], KEY=ACCESS_KEY, SECRET=SECRET_KEY)
        trino.sql("CREATE SCHEMA bucket.db")
        trino.sql("CREATE TABLE bucket.db.t AS SELECT BIGINT '1' AS id, 'trino' AS who")
        with bergline.connect(server.uri, properties=s3_server.properties) as own:
            own.load_table("db.t").append(rows("bergline", 2))
            assert of_bergline(own, "db.t") == [(1, "trino"), (2, "bergline")]
        trino.sql("DELETE FROM bucket.db.t WHERE id = 1")
        assert trino.sql("SELECT * FROM bucket.db.t") == [(2, "bergline")]


def test_trino_works_with_keys_of_a_role_that_the_server_lends(
    trino: TrinoServer, tmp_path: Path, glue_server: GlueServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trino has no keys of its own, and without any it asks nothing of a bucket."""
    aws = f"http://127.0.0.1:{glue_server.port}"
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", aws)
    glue_server.request("PUT", "/lent", b"", {})
    properties = {"s3.endpoint": aws, "s3.region": REGION, "s3.access-key-id": "a", "s3.secret-access-key": "b"}
    options = [f"--property={key}={value}" for key, value in properties.items()]
    role = ("--assume-role", "arn:aws:iam::123456789012:role/tables")
    with BerglineServer(tmp_path, "--warehouse", "s3://lent/warehouse", *role, *options) as server:
        trino.add_catalog("lent", server.connection_examples["Trino"])
        trino.sql("CREATE SCHEMA lent.db")
        trino.sql("CREATE TABLE lent.db.t AS SELECT BIGINT '1' AS id, 'trino' AS who")
        with bergline.connect(server.uri) as own:
            own.load_table("db.t").append(rows("bergline", 2))
        assert sorted(trino.sql("SELECT * FROM lent.db.t")) == [(1, "trino"), (2, "bergline")]


def rows(who: str, *ids: int) -> pa.Table:
    return pa.table({"id": ids, "who": [who] * len(ids)}, schema=COLUMNS)


def of_trino(trino: TrinoServer, name: str) -> list[tuple[Any, ...]]:
    return trino.sql(f"SELECT * FROM lake.{name} ORDER BY 1")


def of_bergline(lake: Lake, name: str) -> list[tuple[Any, ...]]:
    found = lake.load_table(name).scan().to_arrow()
    return sorted(tuple(row.values()) for row in found.to_pylist())


def changed_rows(trino: TrinoServer, source: str) -> list[Row]:
    found = trino.sql(f"SELECT id, amount, region, who, note FROM lake.{source}")
    return in_order(Row(n, amount, region, who and tuple(who), note) for n, amount, region, who, note in found)
