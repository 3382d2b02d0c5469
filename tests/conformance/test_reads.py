"""Rows that depend on more than their file, next to the official runtime: deletes, row ids, defaults, name mappings."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline import Lake, Table
from bergline.datafiles.write.delete_writer import write_equality_deletes, write_position_deletes
from bergline.datafiles.write.write_spec import delete_write_spec
from bergline.format.deletes.deletion_vector import deletion_vector_file
from bergline.format.deletes.position_set import position_set
from bergline.format.manifest.manifest import DataFile
from support.fixtures.rows import ORDERS, ids, order_rows
from support.servers.peers import OfficialRuntime

pytestmark = pytest.mark.official
Sql = Callable[[str], list[tuple[Any, ...]]]

COMMIT_DELETES = """
iceberg = jvm.org.apache.iceberg
table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
delta = table.newRowDelta()
for file in files:
    builder = iceberg.FileMetadata.deleteFileBuilder(table.spec())
    builder = builder.withPath(file["path"]).withFileSizeInBytes(file["size"]).withFormat(file["format"])
    if file["equality_ids"]:
        array = spark.sparkContext._gateway.new_array(jvm.int, len(file["equality_ids"]))
        for position, field_id in enumerate(file["equality_ids"]):
            array[position] = field_id
        builder = builder.ofEqualityDeletes(array)
    else:
        builder = builder.ofPositionDeletes()
    if file["offset"] is not None:
        builder = builder.withContentOffset(file["offset"]).withContentSizeInBytes(file["length"])
        builder = builder.withReferencedDataFile(file["data_file"])
    delta.addDeletes(builder.withRecordCount(file["records"]).build())
delta.commit()
"""


def commit_deletes(runtime: OfficialRuntime, *files: DataFile) -> None:
    described = [
        {
            "path": f.file_path,
            "size": f.file_size_in_bytes,
            "format": f.file_format,
            "equality_ids": list(f.equality_ids or ()),
            "offset": f.content_offset,
            "length": f.content_size_in_bytes,
            "data_file": f.referenced_data_file,
            "records": f.record_count,
        }
        for f in files
    ]
    runtime.python(COMMIT_DELETES, name="db.t", files=described)


def insert(official: Sql, numbers: range, region: str = "eu") -> None:
    chosen = f"range({numbers.start}, {numbers.stop}, 1, 1)"
    official(f"INSERT INTO db.t SELECT id, CAST(id * 10 AS DOUBLE), '{region}' FROM {chosen}")


def data_file(table: Table) -> DataFile:
    (planned,) = table.scan().plan().files
    return planned.file


def test_our_delete_files_are_honoured_by_both(lake: Lake, official: Sql, official_runtime: OfficialRuntime) -> None:
    table = lake.create_table("db.t", ORDERS)
    table.append(order_rows(*range(10)))
    data, spec, where = data_file(table), delete_write_spec(table.metadata), f"{table.location}/data"
    positions = write_position_deletes(table.io, spec, f"{where}/p.parquet", {data.file_path: [0, 9]})
    keys = pa.table({"id": [3, 4], "region": ["eu", "us"]})
    equal = write_equality_deletes(table.io, spec, f"{where}/e.parquet", keys, [1, 3])
    commit_deletes(official_runtime, positions, equal)
    expected = [1, 2, 4, 5, 6, 7, 8]
    assert ids(table.refresh().scan().to_arrow()) == expected
    assert [i for (i,) in official("SELECT id FROM db.t ORDER BY id")] == expected


def test_our_deletion_vector_is_honoured_by_both(lake: Lake, official: Sql, official_runtime: OfficialRuntime) -> None:
    table = lake.create_table("db.t", ORDERS, properties={"format-version": "3"})
    insert(official, range(10))
    table.refresh()
    path = f"{table.location}/data/d.puffin"
    content, vectors = deletion_vector_file(path, [(data_file(table), position_set([0, 5]))], "bergline")
    table.io.create(path, content)
    commit_deletes(official_runtime, *vectors)
    expected = [1, 2, 3, 4, 6, 7, 8, 9]
    assert ids(table.refresh().scan().to_arrow()) == expected
    assert [i for (i,) in official("SELECT id FROM db.t ORDER BY id")] == expected


@pytest.mark.parametrize("version", ["2", "3"])
def test_rows_that_spark_deleted_and_updated_are_read(lake: Lake, official: Sql, version: str) -> None:
    modes = {f"write.{kind}.mode": "merge-on-read" for kind in ("delete", "update", "merge")}
    table = lake.create_table("db.t", ORDERS, partition_by=["region"], properties={"format-version": version, **modes})
    insert(official, range(20))
    insert(official, range(20, 40), region="us")
    official("DELETE FROM db.t WHERE id IN (3, 4, 25)")
    official("UPDATE db.t SET amount = -1 WHERE id IN (5, 26)")
    official("DELETE FROM db.t WHERE id = 6")
    columns = ["id", "amount", "_pos", "_spec_id", "_file", "_partition"]
    if version == "3":
        columns += ["_row_id", "_last_updated_sequence_number"]
    found = table.refresh().scan(columns=columns).to_arrow().sort_by("id").to_pylist()
    rows = official(f"SELECT {', '.join(columns)} FROM db.t ORDER BY id")
    assert [[list(v.values()) if isinstance(v, dict) else v for v in row.values()] for row in found] == [
        [str(v) if isinstance(v, str) else v for v in row] for row in rows
    ]
    assert len(found) == 36


def test_defaults_of_columns_are_read(lake: Lake, official: Sql, official_runtime: OfficialRuntime) -> None:
    table = lake.create_table("db.t", ORDERS, properties={"format-version": "3"})
    insert(official, range(1, 2))
    code = """
iceberg = jvm.org.apache.iceberg
table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "db.t")
types, literal = iceberg.types.Types, iceberg.expressions.Literal
update = table.updateSchema()
update.addColumn("n", types.IntegerType.get(), literal.of(7))
update.addColumn("s", types.StringType.get(), literal.of("x"))
update.addRequiredColumn("d", types.DateType.get(), literal.of("2020-01-01").to(types.DateType.get()))
update.commit()
"""
    official_runtime.python(code)
    official("INSERT INTO db.t (id, amount, region, n) VALUES (2, 1, 'eu', 8)")
    found = table.refresh().scan(columns=["id", "n", "s", "d"]).to_arrow().sort_by("id")
    rows = official("SELECT id, n, s, CAST(d AS STRING) FROM db.t ORDER BY id")
    assert [(r["id"], r["n"], r["s"], str(r["d"])) for r in found.to_pylist()] == rows
    assert [row[1] for row in rows] == [7, 8]


def test_files_that_were_added_are_read_by_name_and_partition(lake: Lake, official: Sql, tmp_path: Path) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["region"])
    for region in ("eu", "us"):
        where = tmp_path / "plain" / f"region={region}"
        where.mkdir(parents=True)
        pq.write_table(order_rows(1, 2, region=region).drop_columns(["region"]), where / "f.parquet")
    official(f"CALL system.add_files(table => 'db.t', source_table => '`parquet`.`{tmp_path}/plain`')")
    official("ALTER TABLE db.t RENAME COLUMN amount TO price")
    found = table.refresh().scan().to_arrow().sort_by([("region", "ascending"), ("id", "ascending")])
    assert [tuple(r.values()) for r in found.to_pylist()] == official("SELECT * FROM db.t ORDER BY region, id")
    assert found.num_rows == 4
    assert found.column("price").to_pylist() == [10.0, 20.0, 10.0, 20.0]


def test_variants_are_read_as_their_two_parts(lake: Lake, official: Sql) -> None:
    official("CREATE TABLE db.v (id BIGINT, v VARIANT) TBLPROPERTIES ('format-version' = '3')")
    official("INSERT INTO db.v SELECT 1, parse_json('{\"a\": 7}') UNION ALL SELECT 2, NULL")
    found = lake.load_table("db.v").scan().to_arrow().sort_by("id").to_pylist()
    assert found[0]["v"].keys() == {"metadata", "value"}
    assert b"a" in found[0]["v"]["metadata"]
    assert found[1] == {"id": 2, "v": None}
