"""Tables with data and delete files in ORC and Avro, written by the official runtime and read by both sides."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bergline import Lake, Table
from support.fixtures.asked_statements import ASK, ask
from support.fixtures.chosen_readers import groups_of
from support.fixtures.every_type import comparable, every_type_rows, every_type_schema
from support.servers.peers import OfficialRuntime

pytestmark = [pytest.mark.spark, pytest.mark.official]

Sql = Callable[[str], list[tuple[Any, ...]]]
FORMATS = ("orc", "avro")
STATEMENTS = (
    (
        "INSERT INTO {t} VALUES (1, 1.5, 1.25, 'g', DATE '2026-01-01', TIMESTAMP '2026-01-01 10:00:00.123456', X'01', "
        "named_struct('x', 1, 'y', 'why'), array(named_struct('n', 1, 'w', 'w1'), NULL), map('k', 9), "
        "map(1, array('a', NULL)), 'eu'), "
        "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, array(), map(), NULL, NULL), "
        "(3, -0.0, -9.99, '', DATE '1900-01-01', TIMESTAMP '1969-12-31 23:59:59.999999', X'', "
        "named_struct('x', NULL, 'y', NULL), NULL, map('n', NULL), map(), 'us')"
    ),
    "ALTER TABLE {t} SET TBLPROPERTIES ('write.format.default'='{later}')",
    (
        "INSERT INTO {t} SELECT id, id, id, concat('n', id), DATE '2026-02-01', "
        "NULL, NULL, NULL, NULL, NULL, NULL, 'eu' FROM range(10, 30, 1, 1)"
    ),
    "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
    "ALTER TABLE {t} ALTER COLUMN f TYPE DOUBLE",
    "ALTER TABLE {t} ALTER COLUMN price TYPE DECIMAL(18, 2)",
    "ALTER TABLE {t} RENAME COLUMN name TO title",
    "ALTER TABLE {t} ADD COLUMN name BIGINT FIRST",
    "ALTER TABLE {t} ADD COLUMN s.z STRING",
    "ALTER TABLE {t} RENAME COLUMN s.y TO why",
    "ALTER TABLE {t} RENAME COLUMN items.element.w TO word",
    "ALTER TABLE {t} DROP COLUMN data",
    "DELETE FROM {t} WHERE id IN (2, 12, 28)",
    (
        "INSERT INTO {t} VALUES (77, 40, 4.5, 4.5, 't', NULL, NULL, named_struct('x', 4, 'why', 'w', 'z', 'zed'), "
        "array(named_struct('n', 2, 'word', 'w2')), NULL, map(2, array()), 'eu')"
    ),
    "ALTER TABLE {t} SET TBLPROPERTIES ('write.format.default'='parquet')",
    "INSERT INTO {t} (id, title, region) VALUES (50, 'in parquet', 'us'), (51, 'deleted', 'us')",
    "DELETE FROM {t} WHERE id IN (15, 51)",
)
QUERIES = (
    "SELECT * FROM {t}",
    "SELECT id FROM {t} WHERE title >= 'n2' AND day > DATE '2026-01-01'",
    "SELECT id, s.x, s.why, s.z, items.word, m['k'], deep[1] FROM {t} WHERE region = 'eu' AND id < 20",
    "SELECT region, count(*), min(price), max(at) FROM {t} GROUP BY region",
    "SELECT id, _file, _pos, _spec_id, _partition, _deleted FROM {t}",
    "SELECT id FROM {t} WHERE region IS NULL OR f = 0.0",
    "SELECT count(*) FROM {t}",
)
EQUALITY_DELETES = """
iceberg = jvm.org.apache.iceberg
table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
schema = table.schema().select(["title", "day"])
ids = spark._sc._gateway.new_array(jvm.int, 2)
ids[0], ids[1] = schema.findField("title").fieldId(), schema.findField("day").fieldId()
builder = iceberg.data.GenericFileWriterFactory.Builder(table)
factory = builder.equalityDeleteRowSchema(schema).equalityFieldIds(ids).build()
partition = iceberg.PartitionData(table.spec().partitionType())
partition.set(0, "eu")
output = iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(table.io().newOutputFile(path))
writer = factory.newEqualityDeleteWriter(output, table.spec(), partition)
day = jvm.java.time.LocalDate.of(2026, 2, 1)
for title, day in (("n20", day), ("n21", None), ("t", None)):
    record = iceberg.data.GenericRecord.create(schema)
    record.setField("title", title)
    record.setField("day", day)
    writer.write(record)
writer.close()
table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()
"""
COPY = """
iceberg = jvm.org.apache.iceberg
table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
for file_format in formats:
    table.updateProperties().set("write.format.default", file_format).commit()
    output = iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(table.io().newOutputFile(path + file_format))
    writer = iceberg.data.GenericFileWriterFactory.Builder(table).build().newDataWriter(output, table.spec(), None)
    rows = iceberg.data.IcebergGenerics.read(table).useSnapshot(first).build()
    iterator = rows.iterator()
    while iterator.hasNext():
        writer.write(iterator.next())
    rows.close()
    writer.close()
    table.newAppend().appendFile(writer.toDataFile()).commit()
"""


class Both:
    """Asks an attached session and the official runtime the same queries."""

    def __init__(self, spark: SparkSession, official_runtime: OfficialRuntime) -> None:
        self._spark = spark
        self._official = official_runtime

    def assert_same(self, queries: Sequence[str]) -> list[Any]:
        """The rows of the first query."""
        ours = [_sorted(ask(self._spark, query)) for query in queries]
        theirs = [_sorted(answer) for answer in self._official.python(ASK, statements=list(queries))]
        pairs = zip(queries, ours, theirs, strict=True)
        assert {query: (mine, other) for query, mine, other in pairs if mine != other} == {}
        return list(ours[0][1])


def _sorted(answer: Any) -> tuple[list[str], list[Any]]:
    """Columns without whether they are nullable, and rows in any order."""
    assert answer != "refused"
    columns, rows = answer
    return [column.rpartition(" ")[0] for column in columns], sorted(rows, key=json.dumps)


def build(
    lake: Lake, official: Sql, official_runtime: OfficialRuntime, name: str, formats: tuple[str, str], version: int
) -> None:
    """A table whose first rows are in one format, later ones and deletes in another, and the last in Parquet."""
    first, later = formats
    properties = {
        "format-version": version,
        "write.format.default": first,
        "write.delete.format.default": later,
        "write.delete.mode": "merge-on-read",
    }
    told = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
    official(
        f"CREATE TABLE {name} (id INT, f FLOAT, price DECIMAL(9, 2), name STRING, day DATE, at TIMESTAMP, data BINARY, "
        "s STRUCT<x: INT, y: STRING>, items ARRAY<STRUCT<n: INT, w: STRING>>, m MAP<STRING, INT>, "
        f"deep MAP<INT, ARRAY<STRING>>, region STRING) USING iceberg PARTITIONED BY (region) TBLPROPERTIES ({told})"
    )
    for statement in STATEMENTS:
        official(statement.format(t=name, later=later))
    path = f"{lake.load_table(name).location}/data/keys.{later}"
    official_runtime.python(EQUALITY_DELETES, name=name, path=path)


def formats_of(table: Table) -> set[tuple[str, str]]:
    rows = table.inspect("files").select(["content", "file_format"]).to_pylist()
    return {("data" if row["content"] == 0 else "deletes", row["file_format"]) for row in rows}


@pytest.mark.parametrize(
    ("formats", "version"),
    [
        (("orc", "avro"), 2),
        pytest.param(("orc", "orc"), 2, marks=pytest.mark.thorough),
        pytest.param(("avro", "orc"), 3, marks=pytest.mark.thorough),
        pytest.param(("avro", "avro"), 3, marks=pytest.mark.thorough),
    ],
)
def test_tables_of_the_official_runtime_are_read_and_changed(
    spark: SparkSession,
    lake: Lake,
    official: Sql,
    official_runtime: OfficialRuntime,
    formats: tuple[str, str],
    version: int,
) -> None:
    both, name = Both(spark, official_runtime), "db.t"
    build(lake, official, official_runtime, name, formats, version)
    table = lake.load_table(name)
    deletes = {("deletes", formats[1].upper())} | ({("deletes", "PUFFIN")} if version == 3 else set())
    assert formats_of(table) == {("data", kind.upper()) for kind in (*formats, "parquet")} | deletes
    for group in groups_of(table.scan()):
        assert group.reader == "arrow" or all(p.file.file_format == "PARQUET" for p in group.files)
    queries = [query.format(t=name) for query in QUERIES]
    if version == 3:
        queries.append(f"SELECT id, _row_id, _last_updated_sequence_number FROM {name}")
    both.assert_same([*queries, f"SELECT file_path, pos FROM {name}.position_deletes"])
    ids = [1, 3, 10, 11, 13, 14, 16, 17, 18, 19, 21, 22, 23, 24, 25, 26, 27, 29, 50]
    assert sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == ids
    changed = table.metadata.snapshots[-1]
    spark.sql(f"UPDATE {name} SET title = 'updated' WHERE id = 11 OR region = 'us'")
    spark.sql(f"DELETE FROM {name} WHERE id = 13")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT 14 AS id UNION ALL SELECT 99 AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET title = 'merged' WHEN NOT MATCHED THEN INSERT (id, region) VALUES (s.id, 'eu')"
    )
    rows = both.assert_same([queries[0], *queries[-2:]])
    assert len(rows) == len(ids)
    changes = table.refresh().changes(changed.snapshot_id, net_changes=False).to_arrow()
    assert {(c["id"], c["_change_type"]) for c in changes.select(["id", "_change_type"]).to_pylist()} >= {
        (13, "DELETE"),
        (11, "INSERT"),
        (11, "DELETE"),
        (99, "INSERT"),
    }
    spark.sql(f"CALL system.compute_table_stats('{name}')")
    spark.sql(f"CALL system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    assert {kind for kind in formats_of(table.refresh()) if kind[0] == "data"} == {("data", "PARQUET")}
    assert both.assert_same(queries[:1]) == rows


def test_pyiceberg_and_the_official_runtime_read_what_is_appended_to_orc(
    spark: SparkSession, lake: Lake, official: Sql, pyiceberg: Any
) -> None:
    official(
        "CREATE TABLE db.orc USING iceberg TBLPROPERTIES ('write.format.default'='orc') AS "
        "SELECT id, concat('n', id) AS name, array(id, NULL) AS l FROM range(3)"
    )
    spark.sql("INSERT INTO db.orc VALUES (7, 'ours', array(7))")
    table = lake.load_table("db.orc")
    table.append(pa.table({"id": [8], "name": ["arrow"], "l": pa.array([None], pa.list_(pa.int64()))}))
    assert formats_of(table) == {("data", "ORC"), ("data", "PARQUET")}
    expected = [(n, f"n{n}", [n, None]) for n in range(3)] + [(7, "ours", [7]), (8, "arrow", None)]
    found = pyiceberg.load_table("db.orc").scan().to_arrow()
    for rows in (found, table.scan().to_arrow(), spark.table("db.orc").toArrow()):
        assert sorted(tuple(row.values()) for row in rows.to_pylist()) == expected
    assert [tuple(row) for row in official("SELECT * FROM db.orc ORDER BY id")] == expected


def test_every_type_of_files_that_java_wrote(lake: Lake, official_runtime: OfficialRuntime, official: Sql) -> None:
    rows = every_type_rows()
    # pyarrow reads timestamps of ORC in nanoseconds, and Java's ORC moves those of the second before 1970 behind it
    for name in ("timestamp", "timestamptz", "timestamptz_ns"):
        near = pa.array([None, 1, 2**52, -(2**52)], pa.int64()).cast(rows.schema.field(name).type)
        rows = rows.set_column(rows.column_names.index(name), name, near)
    table = lake.create_table("db.every", every_type_schema(), properties={"format-version": "3"})
    table.append(rows)
    first = table.metadata.snapshots[0].snapshot_id
    official("SELECT 1")
    path = f"{table.location}/data/of-java."
    official_runtime.python(COPY, name="db.every", formats=FORMATS, first=first, path=path)
    found = table.refresh().scan().to_arrow()
    assert formats_of(table) == {("data", "PARQUET"), ("data", "ORC"), ("data", "AVRO")}
    assert comparable(found) == sorted(comparable(rows) * 3)
