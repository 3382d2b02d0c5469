"""The same DELETE, UPDATE and TRUNCATE through the official runtime and through bergline.

Equal rows, row ids, and metadata as far as both promise the same; each reads what the other wrote.
"""

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bergline import Lake, Table
from support.fixtures.add_deletes import add_deletes, equality_deletes
from support.servers.peers import OfficialRuntime

pytestmark = pytest.mark.spark

COLUMNS = "id BIGINT, amount INT, region STRING, who STRUCT<name: STRING, age: INT>"
STATEMENTS = [
    "DELETE FROM {t} WHERE id IN (2, 7)",
    "DELETE FROM {t} o WHERE o.id % 5 = 4 OR o.region = 'nw'",
    "UPDATE {t} SET amount = amount * 2, who.name = upper(who.name) WHERE region = 'us'",
    "UPDATE {t} AS o SET region = 'eu', amount = (SELECT max(amount) FROM {t}) WHERE id IN (SELECT id + 1 FROM {t})",
    "UPDATE {t} SET who = named_struct('age', 9, 'name', 'x'), amount = DEFAULT WHERE id = 3",
    "DELETE FROM {t} WHERE region = 'us'",
]
NOTHING = [
    "DELETE FROM {t} WHERE id % 100 = 99",
    "DELETE FROM {t} WHERE id = 1000",
    "UPDATE {t} SET amount = 1 WHERE id = 1000",
    "MERGE INTO {t} USING (SELECT 1000 AS id) s ON {t}.id = s.id WHEN MATCHED THEN DELETE",
]
"""Statements that change no row, which is a snapshot there and none here (docs/differences.md)."""
ROWS = "result = sorted([repr(v) for v in row] for row in spark.sql(f'SELECT {columns} FROM {table}').collect())"
RUN = "for text in texts: spark.sql(text)"
SUMMARY = (
    "deleted-data-files",
    "added-records",
    "deleted-records",
    "added-position-deletes",
    "removed-position-deletes",
    "added-dvs",
    "removed-dvs",
)
METADATA = (
    "SELECT content, file_format, spec_id, record_count, equality_ids, first_row_id, file_path FROM {t}.files",
    "SELECT record_count, referenced_data_file, content_offset, content_size_in_bytes FROM {t}.delete_files",
    "SELECT status, sequence_number, file_sequence_number, data_file.content, data_file.file_path FROM {t}.entries",
    "SELECT file_path, pos, spec_id, delete_file_path FROM {t}.position_deletes",
)
"""What both engines must read of one table."""
QUERY = "result = sorted([repr(v) for v in row] for row in spark.sql(query).collect())"
CASES = [
    pytest.param((2, "copy-on-write", "serializable", "", False), marks=pytest.mark.thorough),
    pytest.param((2, "merge-on-read", "snapshot", "PARTITIONED BY (region)", True), marks=pytest.mark.thorough),
    pytest.param((3, "copy-on-write", "snapshot", "PARTITIONED BY (region)", True), marks=pytest.mark.thorough),
    (3, "merge-on-read", "serializable", "", True),
]


def create(spark: SparkSession, lake: Lake, name: str, case: tuple[int, str, str, str, bool]) -> Table:
    """Rows in several files; those of an evolved table have deletes of every kind, another spec and other columns."""
    version, mode, isolation, partitions, evolved = case
    properties = {"format-version": version, "write.wap.enabled": "true"}
    for command in ("delete", "update"):
        properties |= {f"write.{command}.mode": mode, f"write.{command}.isolation-level": isolation}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    spark.sql(f"CREATE TABLE {name} ({COLUMNS}) USING iceberg {partitions} TBLPROPERTIES ({listed})")
    rows = "id, CAST(id * 10 AS INT), {region}, named_struct('name', concat('n', id), 'age', CAST(id AS INT))"
    for first, region in ((0, "'eu'"), (6, "'us'"), (12, "IF(id % 2 = 0, 'eu', 'nw')")):
        spark.sql(f"INSERT INTO {name} SELECT {rows.format(region=region)} FROM range({first}, {first + 6}, 1, 1)")
    table = lake.load_table(name)
    if evolved:
        spark.sql(f"DELETE FROM {name} WHERE id = 0")
        partition = () if table.spec.is_unpartitioned else ("eu",)
        add_deletes(table.refresh(), equality_deletes(table, pa.table({"id": [5]}), [1], partition))
        spark.sql(f"ALTER TABLE {name} ADD COLUMN note STRING")
        spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(2, id)")
        spark.sql(f"INSERT INTO {name} SELECT {rows.format(region=repr('us'))}, 'new' FROM range(20, 24, 1, 1)")
    return table.refresh()


def check_same_snapshots(mine: Table, other: Table, *, numbered: bool) -> None:
    """The last commits say the same; where a file went as a whole here, rows that are gone are counted another way."""
    assert len(mine.metadata.snapshots) == len(other.metadata.snapshots)
    (operation, ours), (their_operation, theirs) = summary(mine), summary(other)
    assert operation == their_operation
    assert layout(mine, numbered=numbered) == layout(other, numbered=numbered)
    if not numbered:
        return
    if not ours["deleted-data-files"]:
        assert ours == theirs
    assert ours["added-records"] == theirs["added-records"]
    assert rows_gone(ours) == rows_gone(theirs)


def summary(table: Table) -> tuple[str, dict[str, int]]:
    assert table.current_snapshot is not None
    entries = table.current_snapshot.summary
    return entries["operation"], {key: int(entries.get(key, 0)) for key in SUMMARY}


def rows_gone(counts: dict[str, int]) -> int:
    return counts["deleted-records"] + counts["added-position-deletes"] - counts["removed-position-deletes"]


def layout(table: Table, *, numbered: bool) -> dict[str, Counter[Any]]:
    """Rows and deleted positions of data files that have live rows, by spec, partition and sequence number.

    docs/differences.md: where all rows of a file go it is removed, and copy-on-write leaves others alone, and puts
    changed rows into files of their own. So files without live rows do not count, nor do numbers after that.
    """
    live = Counter(table.scan(columns=["_file"]).to_arrow().column("_file").to_pylist())
    found: dict[str, Counter[Any]] = {"rows": Counter(), "deleted": Counter(), "vectors": Counter()}
    entries = [e for e in table.inspect("entries").to_pylist() if e["status"] < 2]
    places: dict[str, tuple[Any, ...]] = {}
    for entry in entries:
        file = entry["data_file"]
        place = file["spec_id"], repr(file.get("partition")), entry["sequence_number"] if numbered else None
        if file["content"] == 0 and live[file["file_path"]]:
            places[file["file_path"]] = place
            found["rows"][place] += file["record_count"] if numbered else live[file["file_path"]]
    for row in table.inspect("position_deletes").to_pylist():
        if numbered and row["file_path"] in places:
            found["deleted"][places[row["file_path"]]] += 1
    for entry in entries:
        file = entry["data_file"]
        if file["file_format"] == "PUFFIN" and numbered and file["referenced_data_file"] in places:
            found["vectors"][*places[file["referenced_data_file"]], entry["sequence_number"], file["record_count"]] += 1
    return found


def check_same_metadata(spark: SparkSession, official_runtime: OfficialRuntime, table: str) -> None:
    """Both engines read the same of one table's metadata, its delete files and vectors included."""
    for text in METADATA:
        found: dict[str, Any] = {"spark": spark, "query": text.format(t=table)}
        exec(QUERY, found)  # noqa: S102
        assert found["result"] == official_runtime.python(QUERY, query=text.format(t=table)), text


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"v{case[0]} {case[1]} {case[2]}")
def test_both_change_the_same_rows(
    spark: SparkSession,
    lake: Lake,
    official_runtime: OfficialRuntime,
    official: object,
    case: tuple[int, str, str, str, bool],
) -> None:
    for namespace in ("ours", "theirs"):
        lake.create_namespace(namespace)
    mine, other = (create(spark, lake, f"{namespace}.t", case) for namespace in ("ours", "theirs"))
    columns = "*, _row_id, _last_updated_sequence_number" if case[0] > 2 else "*"
    numbered = case[1] == "merge-on-read"
    for text in STATEMENTS:
        spark.sql(text.format(t="ours.t"))
        official_runtime.python(RUN, texts=[text.format(t="theirs.t")])
        found = {"spark": spark, "columns": columns, "table": "ours.t"}
        exec(ROWS, found)  # noqa: S102
        assert found["result"] == official_runtime.python(ROWS, columns=columns, table="theirs.t"), text
        mine.refresh()
        other.refresh()
        check_same_snapshots(mine, other, numbered=numbered)
    for text in NOTHING:
        before = [len(table.metadata.snapshots) for table in (mine, other)]
        spark.sql(text.format(t="ours.t"))
        official_runtime.python(RUN, texts=[text.format(t="theirs.t")])
        assert [len(table.refresh().metadata.snapshots) for table in (mine, other)] == [before[0], before[1] + 1], text
    for table in ("ours.t", "theirs.t"):
        found = {"spark": spark, "columns": columns, "table": table}
        exec(ROWS, found)  # noqa: S102
        assert found["result"] == official_runtime.python(ROWS, columns=columns, table=table)
    # each goes on with what the other left
    official_runtime.python(
        RUN, texts=["DELETE FROM ours.t WHERE id % 3 = 1", "UPDATE ours.t SET amount = 5 WHERE id > 12"]
    )
    spark.sql("DELETE FROM theirs.t WHERE id % 3 = 1")
    spark.sql("UPDATE theirs.t SET amount = 5 WHERE id > 12")
    results = []
    for table in ("ours.t", "theirs.t"):
        check_same_metadata(spark, official_runtime, table)
        found = {"spark": spark, "columns": columns.replace("_last_updated_sequence_number", "1"), "table": table}
        exec(ROWS, found)  # noqa: S102
        results.append(found["result"])
    assert results[0] == results[1]
    spark.sql("TRUNCATE TABLE theirs.t")
    official_runtime.python(RUN, texts=["TRUNCATE TABLE ours.t"])
    assert [t.refresh().scan().to_arrow().num_rows for t in (mine, other)] == [0, 0]


BRANCHES = """
spark.sql(f"INSERT INTO {t} SELECT id, CAST(id AS INT), 'eu', null FROM range(0, 6, 1, 1)")
spark.sql(f"ALTER TABLE {t} CREATE BRANCH dev")
spark.sql(f"DELETE FROM {t}.branch_dev WHERE id % 2 = 1")
spark.sql(f"UPDATE {t}.branch_dev SET amount = 7 WHERE id = 4")
spark.conf.set("spark.wap.branch", "audit")
try:
    spark.sql(f"UPDATE {t} SET amount = 8 WHERE id + 0 = 2")
    spark.sql(f"DELETE FROM {t} WHERE id = 0")
finally:
    spark.conf.unset("spark.wap.branch")
spark.conf.set("spark.wap.id", "w1")
try:
    spark.sql(f"UPDATE {t} SET amount = 9 WHERE id = 1")
finally:
    spark.conf.unset("spark.wap.id")
spark.sql(f"DELETE FROM {t} WHERE false")
"""


def test_both_change_rows_of_branches(
    spark: SparkSession, lake: Lake, official_runtime: OfficialRuntime, official: object
) -> None:
    for namespace in ("ours", "theirs"):
        lake.create_namespace(namespace)
    properties = (
        "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.wap.enabled' = 'true'"
    )
    for namespace in ("ours", "theirs"):
        spark.sql(f"CREATE TABLE {namespace}.t ({COLUMNS}) USING iceberg TBLPROPERTIES ({properties})")
    exec(BRANCHES, {"spark": spark, "t": "ours.t"})  # noqa: S102
    official_runtime.python(BRANCHES, t="theirs.t")
    mine, other = lake.load_table("ours.t"), lake.load_table("theirs.t")
    assert set(mine.refs) == set(other.refs)
    for ref in mine.refs:
        assert sorted(map(repr, mine.scan(ref=ref).to_arrow().to_pylist())) == sorted(
            map(repr, other.scan(ref=ref).to_arrow().to_pylist())
        )
    assert [s.summary.get("operation") for s in mine.metadata.snapshots] == [
        s.summary.get("operation") for s in other.metadata.snapshots
    ]
    assert [s.summary.get("wap.id") for s in mine.metadata.snapshots] == [
        s.summary.get("wap.id") for s in other.metadata.snapshots
    ]
