"""The same reads through the official runtime and through an attached session."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from peers import OfficialRuntime
from pyspark.sql import SparkSession

from bergline import Lake

pytestmark = pytest.mark.spark

Sql = Callable[[str], list[tuple[Any, ...]]]

QUERIES = (
    "SELECT id, name, extra FROM db.t",
    "SELECT id FROM db.t WHERE day >= DATE '2026-01-02' AND id < 5",
    "SELECT name FROM db.t WHERE name LIKE 'n%' AND extra IS NULL",
    "SELECT a.id, b.id FROM db.t a LEFT JOIN db.t b ON a.id = b.id + 1 AND b.id > 2 WHERE a.day < '2026-01-03'",
    "WITH q AS (SELECT id, day FROM db.t) SELECT max(id), string(day) FROM q WHERE id > 1 GROUP BY day",
    "SELECT id, _pos, _spec_id, _deleted, string(_partition.day) FROM db.t",
    "SELECT id, regexp_replace(_file, '^.*/', '') FROM db.t WHERE _pos = 0",
    "SELECT * EXCEPT (day), _pos FROM db.t",
    "SELECT count(*), max(_pos) FROM db.t",
    "SELECT id, name FROM db.t VERSION AS OF 'v1'",
    "SELECT id, title FROM db.t.branch_dev",
    "SELECT id, name FROM db.t.tag_v1",
    "SELECT id, name FROM db.t TIMESTAMP AS OF '2099-01-01 00:00:00'",
    "SELECT content, record_count, spec_id FROM db.t.files",
    "SELECT content, record_count FROM db.t.files VERSION AS OF 'v1'",
)
LINEAGE = "SELECT id, _row_id, _last_updated_sequence_number FROM db.t"


def build(official: Sql, version: int) -> None:
    official(
        "CREATE TABLE db.t (id BIGINT, name STRING, day DATE) USING iceberg PARTITIONED BY (day) "
        f"TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='merge-on-read', "
        "'write.update.mode'='merge-on-read')"
    )
    official("INSERT INTO db.t SELECT id, concat('n', id), DATE '2026-01-01' FROM range(4)")
    official("INSERT INTO db.t VALUES (4, NULL, DATE '2026-01-02'), (5, 'x', NULL), (6, 'n6', DATE '2026-01-03')")
    official("ALTER TABLE db.t ADD COLUMN extra INT")
    official("INSERT INTO db.t VALUES (7, 'n7', DATE '2026-01-02', 70)")
    official("DELETE FROM db.t WHERE id IN (1, 6)")
    official("ALTER TABLE db.t CREATE TAG v1")
    official("UPDATE db.t SET extra = 1 WHERE id = 2")
    official("ALTER TABLE db.t CREATE BRANCH dev")
    official("INSERT INTO db.t.branch_dev VALUES (8, 'n8', DATE '2026-01-04', 80)")


def shown(rows: list[Any]) -> list[str]:
    return sorted(json.dumps([*row], default=str) for row in rows)


@pytest.mark.parametrize("version", [2, 3])
def test_queries_answer_as_in_the_official_runtime(
    spark: SparkSession, official: Sql, official_runtime: OfficialRuntime, lake: Lake, version: int
) -> None:
    build(official, version)
    queries = [q.replace("title", "name") for q in QUERIES] + ([LINEAGE] if version == 3 else [])
    wrong = {q: (a, b) for q in queries if (a := shown(spark.sql(q).collect())) != (b := shown(official(q)))}
    assert wrong == {}
    first, second = [s.snapshot_id for s in lake.load_table("db.t").metadata.snapshots][:2]
    for options in ({"start-snapshot-id": first}, {"start-snapshot-id": first, "end-snapshot-id": second}):
        theirs = official_runtime.python(
            "reader = spark.read\n"
            "for key, value in options.items(): reader = reader.option(key, value)\n"
            "result = sorted(r.id for r in reader.table('db.t').collect())",
            options={key: str(value) for key, value in options.items()},
        )
        ours = spark.read.options(**{key: str(value) for key, value in options.items()}).table("db.t")
        assert sorted(r.id for r in ours.collect()) == theirs
    official("ALTER TABLE db.t RENAME COLUMN name TO title")
    for query in ("SELECT * FROM db.t", "SELECT id, title FROM db.t WHERE title > 'n2'", QUERIES[10], QUERIES[11]):
        assert shown(spark.sql(query).collect()) == shown(official(query)), query
