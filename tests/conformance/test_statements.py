"""The same statements through the official runtime and through bergline: the same answers, the same metadata."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import bergline
from bergline import Lake, Table
from support.fixtures.asked_statements import ASK, ask
from support.servers.peers import OfficialRuntime

pytestmark = [pytest.mark.official, pytest.mark.spark]


NAMESPACES = """
CREATE NAMESPACE IF NOT EXISTS db
CREATE NAMESPACE db
CREATE NAMESPACE other COMMENT 'words' LOCATION '/tmp/elsewhere' WITH PROPERTIES ('a' = 'b', c = 5)
CREATE NAMESPACE db.inner
SHOW NAMESPACES
SHOW DATABASES LIKE 'o*|x'
SHOW NAMESPACES IN db
SHOW NAMESPACES IN nope
ALTER NAMESPACE other SET PROPERTIES ('d' = 'e')
ALTER NAMESPACE other UNSET PROPERTIES ('a')
COMMENT ON NAMESPACE other IS 'it''s'
DESCRIBE NAMESPACE other
DESCRIBE NAMESPACE EXTENDED other
DESCRIBE NAMESPACE nope
DROP NAMESPACE db.inner
DROP NAMESPACE IF EXISTS nope
CREATE TABLE db.t (id INT)
DROP NAMESPACE db
SHOW TABLES IN db
USE db
SHOW TABLES
SHOW CURRENT NAMESPACE
SHOW TABLES LIKE 'T*'
SHOW TABLES 'x|y'
USE lake.other
SHOW CURRENT NAMESPACE
DROP NAMESPACE other
"""
CREATED = """
CREATE TABLE db.t (id BIGINT NOT NULL COMMENT 'the id', s STRING, ts TIMESTAMP, ntz TIMESTAMP_NTZ, p STRUCT<x: DOUBLE NOT NULL COMMENT 'xx', y: INT>, l ARRAY<STRUCT<a: INT>>, m MAP<STRING, DECIMAL(9,2)>, sm SMALLINT, vc VARCHAR(10), ch CHAR(3), bin BINARY, b BOOLEAN, d DATE, f FLOAT) USING iceberg PARTITIONED BY (days(ts), bucket(16, id), truncate(4, s), b) COMMENT 'a ''table''' TBLPROPERTIES ('k'='v', x.y = true)
CREATE TABLE IF NOT EXISTS db.t (other INT)
CREATE TABLE db.t (other INT)
DESCRIBE db.t
DESCRIBE TABLE EXTENDED db.t
DESCRIBE db.t id
DESCRIBE db.t s
DESCRIBE db.t nope
DESCRIBE db.t p.x
DESCRIBE db.nope
SHOW CREATE TABLE db.t
SHOW TBLPROPERTIES db.t
SHOW TBLPROPERTIES db.t ('k')
SHOW TBLPROPERTIES db.t ('nope')
SHOW COLUMNS IN db.t
SHOW COLUMNS FROM t FROM db
CREATE TABLE db.plain (`a b` INT, `select` STRING)
DESCRIBE EXTENDED db.plain
SHOW CREATE TABLE db.plain
CREATE TABLE db.hive (id INT) PARTITIONED BY (p STRING COMMENT 'pp')
DESCRIBE db.hive
CREATE TABLE db.times (y DATE, mo TIMESTAMP, h TIMESTAMP_NTZ) PARTITIONED BY (years(y), months(mo), hours(h))
SHOW CREATE TABLE db.times
CREATE TABLE db.clustered (id INT) CLUSTERED BY (id) INTO 4 BUCKETS
DESCRIBE db.clustered
CREATE TABLE db.three (id INT) TBLPROPERTIES ('format-version' = '3')
DESCRIBE EXTENDED db.three
CREATE TABLE db.one (id INT) TBLPROPERTIES ('format-version' = '1')
SHOW TBLPROPERTIES db.one
CREATE TABLE db.bad (id INT) PARTITIONED BY (nope)
CREATE TABLE db.bad (id INT) PARTITIONED BY (days(id))
CREATE TABLE db.bad (id INT, id STRING)
CREATE TABLE db.bad (id INT, t INTERVAL DAY)
CREATE TABLE db.bad (id FOO)
CREATE TABLE db.bad (id INT, g INT GENERATED ALWAYS AS (id + 1))
CREATE TABLE db.bad (id VOID)
CREATE TABLE db.bad (id INT) TBLPROPERTIES ('location' = '/x')
CREATE OR REPLACE TABLE db.hive (id BIGINT, q INT) PARTITIONED BY (q) TBLPROPERTIES ('new' = 'n')
REPLACE TABLE db.hive (id BIGINT, q INT, r STRING)
REPLACE TABLE db.nope (id INT)
SHOW CREATE TABLE db.hive
DROP TABLE db.nope
DROP TABLE IF EXISTS db.nope
DROP TABLE db.clustered
DROP TABLE db.one PURGE
SHOW TABLES IN db
"""  # noqa: E501  (a statement is a line)
COLUMNS = """
CREATE TABLE db.t (id BIGINT NOT NULL, s STRING, ts TIMESTAMP, p STRUCT<x: DOUBLE, y: INT>, l ARRAY<STRUCT<a: INT>>, m MAP<STRING, STRUCT<v: INT>>, i INT, f FLOAT, d DECIMAL(5,2)) PARTITIONED BY (s)
ALTER TABLE db.t ADD COLUMN c1 INT
ALTER TABLE db.t ADD COLUMNS (c2 STRING COMMENT 'cc' AFTER id, c3 ARRAY<INT> FIRST)
ALTER TABLE db.t ADD COLUMNS c5 INT, c6 STRUCT<a: INT NOT NULL, b: STRING>
ALTER TABLE db.t ADD COLUMN c4 INT NOT NULL
ALTER TABLE db.t ADD COLUMN p.z BIGINT AFTER x
ALTER TABLE db.t ADD COLUMN l.element.b STRING
ALTER TABLE db.t ADD COLUMN m.value.w STRING FIRST
ALTER TABLE db.t ADD COLUMN c1 INT
ALTER TABLE db.t ADD COLUMN C1 INT
ALTER TABLE db.t ADD COLUMN IF NOT EXISTS c1 INT
ALTER TABLE db.t ADD COLUMN c9 INT AFTER nope
ALTER TABLE db.t ADD COLUMN nope.c9 INT
ALTER TABLE db.t DROP COLUMN c3
ALTER TABLE db.t DROP COLUMNS (c2, p.z)
ALTER TABLE db.t DROP COLUMN nope
ALTER TABLE db.t DROP COLUMN IF EXISTS nope
ALTER TABLE db.t DROP COLUMN s
ALTER TABLE db.t RENAME COLUMN C1 TO c1b
ALTER TABLE db.t RENAME COLUMN p.x TO xx
ALTER TABLE db.t RENAME COLUMN nope TO xx
ALTER TABLE db.t RENAME COLUMN i TO ts
ALTER TABLE db.t ALTER COLUMN i TYPE BIGINT
ALTER TABLE db.t ALTER COLUMN i TYPE INT
ALTER TABLE db.t ALTER COLUMN f TYPE DOUBLE
ALTER TABLE db.t ALTER COLUMN d TYPE DECIMAL(9,2)
ALTER TABLE db.t ALTER COLUMN d TYPE DECIMAL(9,3)
ALTER TABLE db.t ALTER COLUMN i COMMENT 'words'
ALTER TABLE db.t ALTER COLUMN p.xx COMMENT 'words'
ALTER TABLE db.t ALTER COLUMN i FIRST
ALTER TABLE db.t ALTER COLUMN i AFTER id
ALTER TABLE db.t ALTER COLUMN p.y FIRST
ALTER TABLE db.t ALTER COLUMN id DROP NOT NULL
ALTER TABLE db.t ALTER COLUMN id SET NOT NULL
ALTER TABLE db.t ALTER COLUMN nope TYPE INT
ALTER TABLE db.t CHANGE COLUMN s s STRING COMMENT 'changed'
ALTER TABLE db.t CHANGE COLUMN s s2 STRING
ALTER TABLE db.t ALTER COLUMN s TYPE STRING, f COMMENT 'two'
ALTER TABLE db.t TYPO
ALTER TABLE db.nope ADD COLUMN x INT
DESCRIBE db.t
SHOW CREATE TABLE db.t
"""  # noqa: E501  (a statement is a line)
LAYOUT = """
CREATE TABLE db.t (id BIGINT NOT NULL, s STRING NOT NULL, ts TIMESTAMP, p STRUCT<x: DOUBLE, y: INT>)
ALTER TABLE db.t SET TBLPROPERTIES ('a'='1', 'b.c'='2')
ALTER TABLE db.t SET TBLPROPERTIES (d='1', e.f=true, g=5)
ALTER TABLE db.t UNSET TBLPROPERTIES ('a')
ALTER TABLE db.t UNSET TBLPROPERTIES IF EXISTS ('a', 'd')
ALTER TABLE db.t SET TBLPROPERTIES ('format-version'='1')
ALTER TABLE db.t SET TBLPROPERTIES ('comment'='hello')
COMMENT ON TABLE db.t IS 'bye'
ALTER TABLE db.t SET TBLPROPERTIES ('location'='/x')
SHOW TBLPROPERTIES db.t
ALTER TABLE db.t ADD PARTITION FIELD bucket(16, id)
ALTER TABLE db.t ADD PARTITION FIELD truncate(s, 4) AS shard
ALTER TABLE db.t ADD PARTITION FIELD days(ts)
ALTER TABLE db.t ADD PARTITION FIELD day(ts)
ALTER TABLE db.t ADD PARTITION FIELD p.y
ALTER TABLE db.t ADD PARTITION FIELD nope
ALTER TABLE db.t ADD PARTITION FIELD foo(id)
DESCRIBE EXTENDED db.t
ALTER TABLE db.t REPLACE PARTITION FIELD ts_day WITH hours(ts) AS h
ALTER TABLE db.t DROP PARTITION FIELD bucket(16, id)
ALTER TABLE db.t DROP PARTITION FIELD shard
ALTER TABLE db.t DROP PARTITION FIELD nope
DESCRIBE EXTENDED db.t
ALTER TABLE db.t DROP COLUMN ts
ALTER TABLE db.t WRITE ORDERED BY s, id DESC
SHOW TBLPROPERTIES db.t
ALTER TABLE db.t WRITE LOCALLY ORDERED BY s ASC NULLS LAST, bucket(4, id), truncate(2, s) DESC, days(ts), p.y
SHOW TBLPROPERTIES db.t
SHOW CREATE TABLE db.t
ALTER TABLE db.t WRITE DISTRIBUTED BY PARTITION
SHOW TBLPROPERTIES db.t
ALTER TABLE db.t WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id
ALTER TABLE db.t WRITE UNORDERED
SHOW TBLPROPERTIES db.t
ALTER TABLE db.t WRITE ORDERED BY nope
ALTER TABLE db.t SET IDENTIFIER FIELDS id
ALTER TABLE db.t SET IDENTIFIER FIELDS id, s
SHOW TBLPROPERTIES db.t
ALTER TABLE db.t DROP IDENTIFIER FIELDS id
ALTER TABLE db.t DROP IDENTIFIER FIELDS id
ALTER TABLE db.t DROP IDENTIFIER FIELDS nope
ALTER TABLE db.t SET IDENTIFIER FIELDS ts
ALTER TABLE db.t SET TBLPROPERTIES ('format-version'='3', 'up'='yes')
SHOW TBLPROPERTIES db.t
ALTER TABLE db.t RENAME TO db.t2
ALTER TABLE db.t2 RENAME TO t3
ALTER TABLE db.t2 RENAME TO db.t4
SHOW TABLES IN db
"""
FROM_QUERIES = """
CREATE TABLE db.t USING iceberg PARTITIONED BY (bucket(2, id)) TBLPROPERTIES ('q'='w') AS SELECT id, 'x' AS s, CAST(1.5 AS DECIMAL(9,2)) AS d, named_struct('a', 1, 'b', array(map('k', DATE '2026-01-01'))) AS n FROM VALUES (1), (2), (null) AS v(id)
DESCRIBE EXTENDED db.t
SELECT id, s, d, to_json(n) FROM db.t ORDER BY id
CREATE TABLE IF NOT EXISTS db.t AS SELECT 1 AS z
CREATE TABLE db.t AS SELECT 1 AS z
CREATE TABLE db.bad AS SELECT INTERVAL 1 DAY AS z
CREATE TABLE db.bad AS SELECT 1 AS a, 2 AS a
CREATE TABLE db.bad AS SELECT * FROM db.nope
CREATE TABLE db.bad (a INT) AS SELECT 1
REPLACE TABLE db.t USING iceberg AS SELECT id + 5 AS five FROM db.t WHERE id IS NOT NULL
SELECT * FROM db.t ORDER BY five
REPLACE TABLE db.nope USING iceberg AS SELECT 5 AS five
CREATE OR REPLACE TABLE db.t (a INT, b STRING) PARTITIONED BY (a)
SELECT * FROM db.t
SELECT count(*) FROM db.t.snapshots
CREATE OR REPLACE TABLE db.u AS WITH q AS (SELECT 1 AS a) SELECT * FROM q
SHOW CREATE TABLE db.u
SHOW TABLES IN db
"""  # noqa: E501  (a statement is a line)
SHOWN = """
CREATE TABLE db.t (id INT, s STRING, p STRUCT<x: INT, l: ARRAY<MAP<INT, BIGINT>>>)
SHOW TABLE EXTENDED IN db LIKE 't'
SHOW TABLE EXTENDED IN db LIKE 'nope*'
SHOW TABLE EXTENDED IN db LIKE 't' PARTITION (s = 'a')
SHOW CATALOGS LIKE 'l*'
SHOW VIEWS IN db
SHOW VIEWS IN db LIKE 'x*'
SELECT current_catalog(), current_schema(), concat(current_database(), 'x') AS x
USE db
SELECT current_catalog(), current_database(), count(*) FROM t
SELECT current_database() AS a, t.id FROM t UNION ALL SELECT current_catalog(), 5
TABLE t
SHOW COLUMNS FROM t
MSCK REPAIR TABLE db.t
"""
SAME_NAMES = """
CREATE NAMESPACE e
CREATE TABLE db.n (id INT, x STRING)
CREATE TABLE e.n (id INT, y STRUCT<z: INT>)
INSERT INTO db.n VALUES (1, 'a'), (2, 'b')
INSERT INTO e.n VALUES (2, named_struct('z', 5)), (3, null)
SELECT db.n.id, e.n.y.z, x FROM db.n JOIN e.n ON db.n.id = e.n.id
"""
REPLACED_COLUMNS = """
CREATE TABLE db.t (id INT, s STRING) PARTITIONED BY (s)
ALTER TABLE db.t REPLACE COLUMNS (id BIGINT, s STRING COMMENT 'x')
CREATE TABLE db.u (id INT, s STRING, p STRUCT<x: INT>)
INSERT INTO db.u VALUES (1, 'a', named_struct('x', 1)), (2, 'b', null)
ALTER TABLE db.u REPLACE COLUMNS (id BIGINT, z STRING COMMENT 'x')
ALTER TABLE db.u REPLACE COLUMNS (id INT NOT NULL, s STRING)
ALTER TABLE db.u REPLACE COLUMNS id INT
ALTER TABLE db.u REPLACE COLUMNS (id INT AFTER s, s STRING)
ALTER TABLE db.u REPLACE COLUMNS (id INT, id STRING)
DESCRIBE db.u
SELECT * FROM db.u
"""
PROCEDURES = """
CREATE TABLE db.t (id INT, s STRING) PARTITIONED BY (id)
CALL system.rewrite_manifests('db.t')
CALL system.ancestors_of('db.t')
INSERT INTO db.t VALUES (1, 'a')
INSERT INTO db.t VALUES (2, 'b')
CALL system.rewrite_manifests('db.t')
CALL system.rewrite_manifests(table => 'lake.db.t')
INSERT INTO db.t VALUES (3, 'c')
CALL lake.system.rewrite_manifests(table => 'db.t', use_caching => true, spec_id => 0, sort_by => array('id'))
CALL system.rewrite_manifests(table => 'db.t', spec_id => 7)
CALL system.rewrite_manifests(table => 'db.t', sort_by => array('nope'))
SELECT content, added_data_files_count, existing_data_files_count FROM db.t.manifests
ALTER TABLE db.t CREATE BRANCH b
INSERT INTO db.t.branch_b VALUES (4, 'd')
CALL system.fast_forward('db.t', 'main', 'b')
CALL system.fast_forward(table => 'db.t', branch => 'new', to => 'b')
CALL system.ancestors_of('db.t')
CALL system.set_current_snapshot(table => 'db.t', ref => 'b')
CALL system.set_current_snapshot('db.t')
CALL system.rollback_to_timestamp('db.t', TIMESTAMP '2001-01-01 00:00:00')
CALL system.rollback_to_snapshot('db.t', 1)
CALL system.cherrypick_snapshot('db.t', 1)
CALL system.publish_changes('db.t', 'nope')
CALL system.expire_snapshots(table => 'db.t', older_than => TIMESTAMP '2001-01-01 00:00:00')
CALL system.remove_orphan_files('db.t')
CALL system.register_table('db.t', '/tmp/nope.metadata.json')
CALL system.register_table('db.again', '/tmp/nope.metadata.json')
CALL system.register_table('db.again')
CALL system.nope('db.t')
SELECT id, s FROM db.t ORDER BY id
"""
QUERIES_BEHIND_WORDS = """
CREATE TABLE db.t (id INT, s STRING)
INSERT INTO db.t VALUES (1, 'a'), (2, 'b')
CREATE TEMP VIEW v AS SELECT id FROM db.t WHERE id > 1
CREATE TEMP VIEW v AS SELECT s FROM db.t
CREATE TEMPORARY VIEW IF NOT EXISTS v AS SELECT s FROM db.t
SELECT * FROM v
CREATE OR REPLACE TEMP VIEW v (a COMMENT 'first', b) COMMENT 'words' AS TABLE db.t
CREATE OR REPLACE TEMP VIEW v (a, b, c) AS TABLE db.t
CREATE OR REPLACE TEMP VIEW db.v AS TABLE db.t
CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM db.nope
DESCRIBE v
SELECT a, b FROM v ORDER BY a
DROP VIEW v
SELECT * FROM v
DESCRIBE QUERY SELECT id, s AS x, count(*) AS n FROM db.t WHERE id > 1 GROUP BY ALL
DESC QUERY TABLE db.t
DESC WITH q AS (SELECT * FROM db.t) SELECT * FROM q
DESCRIBE QUERY SELECT nope FROM db.t
REFRESH TABLE db.t
REFRESH TABLE db.nope
UNCACHE TABLE db.t
UNCACHE TABLE IF EXISTS db.nope
CACHE TABLE c AS SELECT id FROM db.t WHERE id > 1
CACHE TABLE c AS SELECT id FROM db.t
SELECT * FROM c
DROP VIEW c
SELECT * FROM IDENTIFIER('db.' || 't') ORDER BY id
INSERT INTO IDENTIFIER('db.t') VALUES (3, 'c')
EXECUTE IMMEDIATE 'SELECT s FROM db.t WHERE id = ?' USING 3
EXECUTE IMMEDIATE 'SELECT s FROM db.t WHERE id = :x' USING 2 AS x
FROM db.t INSERT INTO db.t SELECT id + 10, s WHERE id = 1
SELECT * FROM db.t ORDER BY id
"""
HISTORY = """
def numbered(rows, ids):
    return [[f"snapshot {ids.index(value)}" if value in ids else value for value in row] for row in rows]

def answers(steps):
    for text in steps:
        made = spark.catalog.tableExists("db.t")
        history = "SELECT snapshot_id, date_format(committed_at, 'yyyy-MM-dd HH:mm:ss.SSS') FROM db.t.snapshots"
        known = spark.sql(history + " ORDER BY committed_at").collect() if made else []
        latest = "SELECT file FROM db.{}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1"
        files = {
            name: spark.sql(latest.format(name)).collect()[0][0]
            for name in ("t", "e")
            if "{files[" + name + "]}" in text
        }
        ids, times = [row[0] for row in known], [row[1] for row in known]
        frame = spark.sql(text.format(ids=ids, times=times, files=files))
        rows = [list(row) for row in frame.collect()]
        now = [row[0] for row in spark.sql(history + " ORDER BY committed_at").collect()]
        columns = [f"{f.name} {f.dataType.simpleString()} {f.nullable}" for f in frame.schema.fields]
        yield [text, columns, numbered(rows, now)]

result = list(answers(steps))
"""
ROLLED_BACK_AND_PICKED = """
CREATE TABLE db.t (id INT) USING iceberg TBLPROPERTIES ('write.wap.enabled' = 'true')
CREATE TABLE db.e (id INT) USING iceberg
INSERT INTO db.t VALUES (1)
INSERT INTO db.t VALUES (2)
INSERT INTO db.t VALUES (3)
CALL system.rollback_to_snapshot('db.t', {ids[1]})
CALL system.rollback_to_snapshot(table => 'lake.db.t', snapshot_id => {ids[0]})
CALL system.cherrypick_snapshot('db.t', {ids[1]})
CALL system.rollback_to_snapshot('db.t', {ids[0]})
INSERT INTO db.t VALUES (4)
CALL system.cherrypick_snapshot(table => 'db.t', snapshot_id => {ids[2]})
SELECT * FROM db.t ORDER BY id
CALL system.rollback_to_timestamp('db.t', TIMESTAMP '{times[4]}')
CALL system.rollback_to_timestamp(table => 'db.t', timestamp => TIMESTAMP '{times[3]}')
CALL system.set_current_snapshot('db.t', {ids[4]})
SET spark.wap.id = audit
INSERT INTO db.t VALUES (5)
RESET spark.wap.id
SELECT * FROM db.t ORDER BY id
CALL system.publish_changes('db.t', 'audit')
SELECT * FROM db.t ORDER BY id
CALL system.register_table('db.again', '{files[t]}')
CALL system.register_table(table => 'db.nothing', metadata_file => '{files[e]}')
SELECT * FROM db.again ORDER BY id
"""
SCRIPTS = {
    "queries behind words": QUERIES_BEHIND_WORDS,
    "shown": SHOWN,
    "same names": SAME_NAMES,
    "replaced columns": REPLACED_COLUMNS,
    "procedures": PROCEDURES,
    "namespaces": NAMESPACES,
    "created": CREATED,
    "columns": COLUMNS,
    "layout": LAYOUT,
    "from queries": FROM_QUERIES,
}


@pytest.fixture
def theirs(official_runtime: OfficialRuntime, tmp_path: Path) -> Iterator[Lake]:
    """A catalog of the official runtime's own, which is in use there."""
    home = tmp_path / "theirs"
    home.mkdir()
    official_runtime.use_catalog(home / "catalog.db", home / "warehouse", "lake")
    with bergline.connect(f"sqlite:///{home}/catalog.db", warehouse=home / "warehouse", create=True) as lake:
        lake.create_namespace("db", {"owner": "root"})
        yield lake


def plain(answer: Any, home: Path) -> str:
    """An answer without what must differ: directories, and the ids of snapshots."""
    text = re.sub(r"(?:file:(?://)?)?" + re.escape(str(home)), "HOME", str(answer))
    text = text.replace("[s,id]", "[id,s]")  # a set, in Java's order
    # Spark takes this text of SHOW TABLE EXTENDED for a list of letters
    text = re.sub(r"Table Properties: \[(\[, .*?, \])\]", lambda found: f"Table Properties: {found[1][::3]}", text)
    return re.sub(r"file:(?://)?/", "/", re.sub(r"\d{12,}", "ID", text))


def shape(table: Table) -> dict[str, Any]:
    """What a table is, without what must differ."""
    metadata = table.metadata
    return {
        "version": metadata.format_version,
        "columns": [(f.id, n, f.required, str(f.type), f.doc) for n, f in metadata.schema.names.items()],
        "identifiers": sorted(metadata.schema.identifier_field_ids),
        "last column": metadata.last_column_id,
        "specs": [
            (s.spec_id, [(f.source_id, f.field_id, f.name, str(f.transform)) for f in s.fields])
            for s in metadata.partition_specs
        ],
        "spec": metadata.default_spec_id,
        "order": [(f.source_id, str(f.transform), f.direction, f.null_order) for f in metadata.sort_order.fields],
        "properties": metadata.properties,
        "operations": [s.summary.get("operation") for s in metadata.snapshots],
    }


@pytest.mark.parametrize("script", SCRIPTS)
def test_statements_answer_and_do_what_the_official_runtime_does(
    spark: SparkSession, official_runtime: OfficialRuntime, lake: Lake, theirs: Lake, tmp_path: Path, script: str
) -> None:
    statements = [line for line in SCRIPTS[script].splitlines() if line]
    expected = official_runtime.python(ASK, statements=statements)
    lake.update_namespace("db", {"owner": "root"})
    spark.sql("USE lake")
    for text, answer in zip(statements, expected, strict=True):
        found = ask(spark, text)
        assert (text, plain(found, tmp_path)) == (text, plain(answer, tmp_path / "theirs"))
    assert lake.list_tables("db") == theirs.list_tables("db")
    for name in lake.list_tables("db"):
        assert (name, shape(lake.load_table(name))) == (name, shape(theirs.load_table(name)))


def test_procedures_that_move_a_table_answer_as_the_official_runtimes_do(
    spark: SparkSession,
    official_runtime: OfficialRuntime,
    lake: Lake,
    theirs: Lake,
) -> None:
    steps = [line for line in ROLLED_BACK_AND_PICKED.splitlines() if line]
    expected = official_runtime.python(HISTORY, steps=steps)
    spark.sql("USE lake")
    names: dict[str, Any] = {"spark": spark, "steps": steps}
    exec(HISTORY, names)  # noqa: S102  (the same program on both sides)
    for found, answer in zip(names["result"], expected, strict=True):
        assert found == answer
