"""The same MERGE statements through the official runtime and through bergline: equal rows, ids and summaries."""

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bergline import Lake, Table
from bergline.errors import BerglineError, InvalidInputError
from support.fixtures.twin_tables import KINDS, LINEAGE
from support.servers.peers import OfficialError, OfficialRuntime

pytestmark = pytest.mark.spark

SOURCE = (
    "(SELECT CAST(id AS BIGINT) AS id, CAST(amount AS DOUBLE) AS amount, region FROM VALUES "
    "(2, 100, 'eu'), (5, 200, 'us'), (9, NULL, 'us'), (50, 1, 'eu'), (51, 2, NULL), (NULL, 3, 'us') "
    "AS v(id, amount, region))"
)
STATEMENTS = [
    (
        f"MERGE INTO {{t}} AS t USING {SOURCE} AS s ON t.id = s.id "
        "WHEN MATCHED AND s.amount IS NULL THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET t.amount = t.amount + s.amount, region = s.region "
        "WHEN NOT MATCHED AND id = 51 THEN INSERT (id, amount) VALUES (id + 1, amount) "
        "WHEN NOT MATCHED THEN INSERT (id, amount, region) VALUES (coalesce(id, 98), amount, region) "
        "WHEN NOT MATCHED BY SOURCE AND id = 6 THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE AND id IN (7, 20) THEN UPDATE SET amount = -1"
    ),
    (
        "MERGE INTO {t} AS t USING (SELECT id, max(amount) AS top FROM {t} WHERE id < 12 GROUP BY id) AS s "
        "ON t.id = s.id + 1 AND t.region = 'eu' WHEN MATCHED THEN UPDATE SET amount = top, region = "
        "(SELECT max(region) FROM {t})"
    ),
    (
        "MERGE INTO {t} AS t USING (SELECT * FROM VALUES (3L), (3L), (21L), (99L) AS v(id)) AS s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE"
    ),
    (
        "MERGE INTO {t} AS t USING (SELECT * FROM VALUES (16L), (17L), (18L), (19L), (60L) AS v(id)) AS s "
        "ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    ),
    (
        "MERGE INTO {t} AS t USING (SELECT 70L AS id UNION ALL SELECT 2L) AS s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (region, id) VALUES ('new', id)"
    ),
]
NOTHING = "MERGE INTO {t} AS t USING (SELECT 777L AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET amount = 0"
"""Changes no row, which is a snapshot there and none here (docs/differences.md)."""
COPIED = ("added-records", "spark.merge-into.num-target-rows-copied")
"""Copy-on-write leaves files alone of which no row changes; the official runtime rewrites all that it looked at."""


def summary(table: Table, mode: str) -> dict[str, str]:
    """What the newest snapshot says of rows; files are each engine's own, also whole ones that bergline drops."""
    snapshot = table.refresh().current_snapshot
    assert snapshot is not None
    compared = {
        name: value
        for name, value in snapshot.summary.items()
        if name in ("operation", "added-records") or "merge-into" in name
    }
    if mode == "copy-on-write":
        return {name: value for name, value in compared.items() if name not in COPIED}
    counts = [int(snapshot.summary[name]) for name in ("total-records", "total-position-deletes")]
    return {**compared, "rows that positions leave": str(counts[0] - counts[1])}


def rows(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Rows with their ids, which only old rows have in common: new ones are numbered as files happen to be written."""
    plain = [
        tuple((name, value) for name, value in row.items() if name != "_row_id" or (row["id"] or 99) < 50)
        for row in found
    ]
    return sorted(plain, key=repr)


def read(table: Table) -> list[dict[str, Any]]:
    lineage = LINEAGE if table.metadata.format_version > 2 else ()
    return table.refresh().scan(columns=[*(f.name for f in table.schema.fields), *lineage]).to_arrow().to_pylist()


@pytest.mark.kinds(2)
@pytest.mark.parametrize(
    ("kind", "isolation"),
    [
        pytest.param("v2 copy", "serializable", marks=pytest.mark.thorough),
        ("v2 copy, evolved", "snapshot"),
        pytest.param("v2 positions", "snapshot", marks=pytest.mark.thorough),
        ("v2 positions, equality deletes", "serializable"),
        pytest.param("v2 positions, evolved", "serializable", marks=pytest.mark.thorough),
        ("v3 copy", "snapshot"),
        pytest.param("v3 vectors, evolved", "snapshot", marks=pytest.mark.thorough),
        ("v3 vectors over positions", "serializable"),
    ],
)
def test_both_merge_the_same(
    spark: SparkSession, lake: Lake, official: Any, official_runtime: OfficialRuntime, kind: str, isolation: str
) -> None:
    mode = "copy-on-write" if "copy" in kind else "merge-on-read"
    tables = []
    for namespace in ("ours", "theirs"):
        lake.create_namespace(namespace)
        table = KINDS[kind](lake, f"{namespace}.t")
        table.set_properties({"write.merge.mode": mode, "write.merge.isolation-level": isolation})
        tables.append(table)
    ours, theirs = tables
    for statement in STATEMENTS:
        spark.sql(statement.format(t="ours.t"))
        official_runtime.sql(statement.format(t="theirs.t"))
        assert rows(read(ours)) == rows(read(theirs)), statement
        assert summary(ours, mode) == summary(theirs, mode), statement
    before = len(ours.metadata.snapshots)
    spark.sql(NOTHING.format(t="ours.t"))
    official_runtime.sql(NOTHING.format(t="theirs.t"))
    assert len(ours.refresh().metadata.snapshots) == before
    assert rows(read(ours)) == rows(read(theirs))
    columns = ", ".join(f.name for f in ours.schema.fields)
    query = f"SELECT {columns} FROM {{}} ORDER BY ALL"
    found = [
        [tuple(row) for row in spark.sql(query.format("theirs.t")).collect()],
        [tuple(row) for row in official_runtime.sql(query.format("ours.t"))],
    ]
    assert [len(part) for part in found] == [len(read(ours))] * 2
    assert sorted(map(repr, found[0])) == sorted(map(repr, found[1]))


EVOLUTIONS = [
    ("(SELECT 1L AS id, 5 AS a, 7L AS more)", "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"),
    ("(SELECT 1L AS id, 5L AS a)", "WHEN MATCHED THEN UPDATE SET *"),
    ("(SELECT 1L AS id, 5L AS a)", "WHEN MATCHED THEN UPDATE SET a = s.a"),
    ("(SELECT 1L AS id, 5 AS a, 'x' AS more)", "WHEN MATCHED THEN UPDATE SET a = s.a"),
    ("(SELECT 1L AS id, 5 AS a, 'x' AS more)", "WHEN MATCHED THEN UPDATE SET more = s.more"),
    ("(SELECT 1L AS id, 'x' AS more)", "WHEN MATCHED THEN UPDATE SET more = 'y'"),
    ("(SELECT 1L AS id, named_struct('x', 1, 'y', 2, 'z', 3) AS st)", "WHEN MATCHED THEN UPDATE SET *"),
    ("(SELECT 9L AS id, named_struct('x', 1) AS st)", "WHEN NOT MATCHED THEN INSERT *"),
    ("(SELECT 9L AS id, 'text' AS a)", "WHEN NOT MATCHED THEN INSERT *"),
    ("(SELECT 9L AS id, 5 AS more)", "WHEN NOT MATCHED THEN INSERT (id, more) VALUES (s.id, s.more)"),
    ("(SELECT 77L AS id, 5 AS more)", "WHEN MATCHED THEN UPDATE SET *"),
]


def test_both_evolve_the_schema_the_same(
    spark: SparkSession, lake: Lake, official: Any, official_runtime: OfficialRuntime
) -> None:
    for number, (source, clauses) in enumerate(EVOLUTIONS):
        found = []
        for namespace, sql in (("ours", spark.sql), ("theirs", official_runtime.sql)):
            if not number:
                lake.create_namespace(namespace)
            name = f"{namespace}.e{number}"
            spark.sql(f"CREATE TABLE {name} (id BIGINT, a INT, st STRUCT<x: INT, y: INT>) USING iceberg")
            spark.sql(f"INSERT INTO {name} VALUES (1, 10, named_struct('x', 1, 'y', 2)), (2, 20, NULL)")
            failed = False
            try:
                sql(f"MERGE WITH SCHEMA EVOLUTION INTO {name} AS t USING {source} AS s ON t.id = s.id {clauses}")
            except (OfficialError, BerglineError):
                failed = True
            table = lake.load_table(name)
            found.append((failed, [(f.name, str(f.type)) for f in table.schema.fields], rows(read(table))))
        assert found[0] == found[1], (source, clauses)


REFUSED = [
    "WHEN MATCHED AND rand() < 2 THEN DELETE",
    "WHEN MATCHED AND amount > 1 THEN DELETE",
    "WHEN MATCHED THEN UPDATE SET nope = 1",
    "WHEN MATCHED THEN UPDATE SET amount = 'x'",
    "WHEN MATCHED THEN UPDATE SET amount = 1, t.amount = 2",
    "WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE",
    "WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id)",
    "WHEN NOT MATCHED THEN INSERT (id, id) VALUES (1, 2)",
    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET amount = s.amount",
    "",
]


def test_both_refuse_the_same(
    spark: SparkSession, lake: Lake, official: Any, official_runtime: OfficialRuntime
) -> None:
    table = KINDS["v2 positions"](lake, "db.t")
    before = table.refresh().metadata_location
    for clause in REFUSED:
        statement = f"MERGE INTO db.t AS t USING {SOURCE} AS s ON t.id = s.id {clause}"
        with pytest.raises(OfficialError):
            official_runtime.sql(statement)
        with pytest.raises((BerglineError, PySparkException)):
            spark.sql(statement)
    twice = (
        "MERGE INTO db.t AS t USING (SELECT 2L AS id UNION ALL SELECT 2L) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET amount = 1"
    )
    with pytest.raises(OfficialError, match="MERGE_CARDINALITY_VIOLATION"):
        official_runtime.sql(twice)
    with pytest.raises(InvalidInputError, match="expected at most one source row"):
        spark.sql(twice)
    assert table.refresh().metadata_location == before
