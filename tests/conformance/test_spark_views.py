"""Views on a REST catalog, served by us: the official runtime and bergline create, read and change each other's."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from bergline import Lake
from support.fixtures.asked_statements import ASK, ask
from support.servers.bergline_server import BerglineServer
from support.servers.peers import OfficialRuntime

pytestmark = [pytest.mark.official, pytest.mark.spark]

STATEMENTS = """
CREATE NAMESPACE db
CREATE TABLE db.t (id INT NOT NULL COMMENT 'the id', s STRING, p STRUCT<x: INT>)
INSERT INTO db.t VALUES (1, 'a', named_struct('x', 1)), (2, 'b', null)
CREATE VIEW db.v1 AS SELECT id, s FROM db.t
CREATE VIEW db.v1 AS SELECT id FROM db.t
CREATE VIEW IF NOT EXISTS db.v1 AS SELECT id FROM db.t
CREATE VIEW db.t AS SELECT 1 AS x
CREATE VIEW db.v2 (a COMMENT 'first', b) COMMENT 'words' TBLPROPERTIES ('k' = 'v', x.y = true) AS SELECT id + 1, upper(s) FROM db.t WHERE id > 1
SELECT * FROM db.v1 ORDER BY id
SELECT db.v2.b, v1.id FROM db.v2 JOIN db.v1 ON a = id + 1
DESCRIBE db.v2
DESCRIBE EXTENDED db.v1
SHOW CREATE TABLE db.v2
SHOW TBLPROPERTIES db.v2
SHOW TBLPROPERTIES db.v2 ('k')
SHOW TBLPROPERTIES db.v2 ('nope')
SHOW VIEWS IN db LIKE '*2'
SHOW TABLES IN db
ALTER VIEW db.v2 SET TBLPROPERTIES ('k' = 'w', 'n' = 'm', 'comment' = 'new words')
ALTER VIEW db.v2 SET TBLPROPERTIES ('location' = '/tmp/x')
ALTER VIEW db.v2 SET TBLPROPERTIES ('spark.query-column-names' = 'x')
ALTER VIEW db.v2 UNSET TBLPROPERTIES ('n')
ALTER VIEW db.v2 UNSET TBLPROPERTIES ('n')
ALTER VIEW db.v2 UNSET TBLPROPERTIES IF EXISTS ('n', 'x.y')
DESCRIBE EXTENDED db.v2
CREATE OR REPLACE VIEW db.v2 AS SELECT p.x AS x, count(*) AS n FROM db.t GROUP BY ALL
SELECT * FROM db.v2 ORDER BY n, x
SHOW CREATE TABLE db.v2
ALTER VIEW db.v1 RENAME TO db.v3
ALTER VIEW db.v3 RENAME TO db.t
ALTER VIEW db.nope RENAME TO db.v9
DROP VIEW db.nope
DROP VIEW IF EXISTS db.nope
DROP VIEW db.t
DROP TABLE db.v2
SELECT * FROM db.v2 VERSION AS OF 5
SELECT * FROM db.v2 TIMESTAMP AS OF '2026-01-01'
SELECT * FROM db.v2.files
INSERT INTO db.v2 VALUES (1)
ALTER TABLE db.v2 ADD COLUMN x INT
CREATE VIEW db.bad AS SELECT nope FROM db.t
CREATE VIEW db.bad AS SELECT * FROM db.nope
CREATE VIEW db.bad AS SELECT 1 AS a, 2 AS a
CREATE VIEW db.bad (a, b, c) AS SELECT 1, 2
CREATE VIEW db.bad AS SELECT INTERVAL 1 DAY AS i
USE db
CREATE VIEW star AS SELECT * FROM t
ALTER TABLE t ADD COLUMN extra INT
SELECT * FROM star ORDER BY id
USE default_namespace
SELECT * FROM db.star ORDER BY id
ALTER TABLE db.t ALTER COLUMN id TYPE BIGINT
SELECT * FROM db.star
SHOW VIEWS IN db
"""  # noqa: E501  (a statement is a line)


@pytest.fixture
def served(spark_session: SparkSession, bergline_server: BerglineServer) -> Iterator[Lake]:
    with bergline.connect(bergline_server.uri, name="lake") as lake:
        bergline.spark.attach(spark_session, lake)
        spark_session.sql("USE lake")
        yield lake
        bergline.spark.detach(spark_session)


@pytest.fixture
def theirs(official_runtime: OfficialRuntime, bergline_server: BerglineServer) -> OfficialRuntime:
    options = {"type": "rest", "uri": bergline_server.uri, "cache-enabled": "false"}
    official_runtime.open_catalog("lake", options)
    return official_runtime


def in_namespace(text: str, name: str) -> str:
    return re.sub(r"\bdb\b", name, text).replace("USE default_namespace", "USE lake")


def plain(text: str, answer: Any, name: str) -> str:
    """An answer without what must differ: the namespace, what is nullable, and the order of properties, Java's map."""
    if isinstance(answer, list):
        answer = [[column.rpartition(" ")[0] for column in answer[0]], answer[1]]
    if text.startswith("SHOW TBLPROPERTIES") and answer != "refused":
        answer[1].sort()
    return str(answer).replace(name, "db")


def test_the_same_statements_give_the_same(spark_session: SparkSession, served: Lake, theirs: OfficialRuntime) -> None:
    texts = STATEMENTS.strip().split("\n")
    answers = theirs.python(ASK, statements=[in_namespace(text, "view_theirs") for text in texts])
    different = []
    for text, answer in zip(texts, answers, strict=True):
        ours = ask(spark_session, in_namespace(text, "view_ours"))
        if plain(text, ours, "view_ours") != plain(text, answer, "view_theirs"):
            different.append((text, ours, answer))
    assert different == []
    for name in ("v2", "v3", "star"):
        ours, others = served.load_view(f"view_ours.{name}"), served.load_view(f"view_theirs.{name}")
        assert ours.properties == others.properties
        assert [(f.name, f.type, f.doc) for f in ours.schema.fields if not str(f.type).startswith("struct")] == [
            (f.name, f.type, f.doc) for f in others.schema.fields if not str(f.type).startswith("struct")
        ]
        mine, other = ours.metadata.current_version, others.metadata.current_version
        assert mine.default_catalog == other.default_catalog
        assert plain("", mine.default_namespace, "view_ours") == plain("", other.default_namespace, "view_theirs")


def test_each_reads_and_changes_the_others_views(
    spark_session: SparkSession, served: Lake, theirs: OfficialRuntime
) -> None:
    spark = spark_session
    served.create_namespace("view_shared")
    spark.sql("CREATE TABLE view_shared.t AS SELECT 1 AS id, 'a' AS s UNION ALL SELECT 2, 'b'")
    theirs.sql("USE view_shared")
    theirs.sql("CREATE VIEW by_them (a COMMENT 'x', `b c`) COMMENT 'words' AS SELECT id + 1, s FROM t WHERE id > 1")
    spark.sql("USE view_shared")
    spark.sql("CREATE VIEW by_us (a COMMENT 'x', `b c`) COMMENT 'words' AS SELECT id + 1, s FROM t WHERE id > 1")
    theirs.sql("USE lake.view_shared")
    for name in ("by_us", "by_them"):
        for text in (f"SELECT * FROM view_shared.{name}", f"DESCRIBE EXTENDED view_shared.{name}"):
            assert theirs.sql(text) == [tuple(row) for row in spark.sql(text).collect()]
    spark.sql("CREATE OR REPLACE VIEW by_them AS SELECT * FROM by_us")
    theirs.sql("CREATE OR REPLACE VIEW by_us AS SELECT s, id FROM t")
    theirs.sql("ALTER VIEW by_them SET TBLPROPERTIES ('k' = 'v')")
    spark.sql("ALTER VIEW by_us RENAME TO renamed")
    assert sorted(theirs.sql("SELECT * FROM renamed")) == [("a", 1), ("b", 2)]
    assert sorted(map(tuple, spark.sql("SELECT * FROM renamed").collect())) == [("a", 1), ("b", 2)]
    assert served.load_view("view_shared.by_them").properties["k"] == "v"
    spark.sql("DROP VIEW by_them")
    theirs.sql("DROP VIEW renamed")
    assert served.list_views("view_shared") == []
