"""Every metadata table equals the official runtime's on the same table: columns, types, nullability and rows."""

import itertools
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline import Lake, Table
from bergline.datafiles.file.arrow_schema import FIELD_ID
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.format.schema.schema import Schema
from bergline.format.types.types import NestedField
from bergline.table.inspection.metadata_tables import METADATA_TABLES
from support.fixtures.add_deletes import add_deletes, deletion_vectors, equality_deletes, position_deletes
from support.fixtures.every_partition import SOURCES
from support.fixtures.every_type import every_type_rows, every_type_schema
from support.fixtures.metadata_table_rows import official_tables, our_tables
from support.fixtures.rows import ORDERS, order_rows
from support.servers.peers import OfficialError, OfficialRuntime

pytestmark = pytest.mark.official
Official = Callable[[str], list[tuple[Any, ...]]]
AT_SNAPSHOT = ["files", "data_files", "delete_files", "entries", "manifests", "partitions", "position_deletes"]
TABLE_WIDE = ["refs", "snapshots", "history", "metadata_log_entries"]
ALL = sorted(set(METADATA_TABLES) - {*AT_SNAPSHOT, *TABLE_WIDE})


@pytest.fixture
def check(official: Official, official_runtime: OfficialRuntime, lake: Lake) -> Callable[..., Table]:
    """Compares all metadata tables of `db.t`, or some of them, as they are now or at a version."""

    def compare(names: Sequence[str] = tuple(METADATA_TABLES), sql_version: str = "", **version: Any) -> Table:
        table = lake.load_table("db.t")
        ours = our_tables(table, names, **version)
        theirs = official_tables(official_runtime, "db.t", names, sql_version)
        for name in names:
            assert ours[name][0] == theirs[name][0], f"columns of {name}"
            mine, others = Counter(ours[name][1]), Counter(theirs[name][1])
            assert (mine - others, others - mine) == ({}, {}), f"rows of {name}"
        return table

    return compare


def test_a_table_without_snapshots(lake: Lake, check: Callable[..., Table]) -> None:
    lake.create_table("db.t", ORDERS, partition_by=["region", "bucket(4, id)"])
    check()


def test_a_table_with_a_branch_and_no_main(official: Official, check: Callable[..., Table]) -> None:
    official("CREATE TABLE db.t (id BIGINT) USING iceberg")
    official("ALTER TABLE db.t CREATE BRANCH dev")
    official("INSERT INTO db.t.branch_dev VALUES (1)")
    check()
    check(AT_SNAPSHOT, "VERSION AS OF 'dev'", ref="dev")


@pytest.mark.kinds(2)
@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_appends_overwrites_branches_tags_and_versions(
    version: str, lake: Lake, official: Official, check: Callable[..., Table]
) -> None:
    table = lake.create_table("db.t", ORDERS, properties={"format-version": version})
    table.append(order_rows(1, 2)).append(order_rows(3, region="us"))
    first = table.metadata.snapshots[0].snapshot_id
    table.refs.create_tag("v1", max_ref_age_ms=10**9)
    table.append(order_rows(4), branch="dev")
    official("DELETE FROM db.t WHERE id = 1")
    official("CALL system.rewrite_manifests('db.t')")
    official("INSERT INTO db.t VALUES (9, double('nan'), null)")
    official("CALL system.compute_table_stats('db.t')")
    check()
    check([*AT_SNAPSHOT, *TABLE_WIDE], "VERSION AS OF 'v1'", ref="v1")
    check(AT_SNAPSHOT, "VERSION AS OF 'dev'", ref="dev")
    check(AT_SNAPSHOT, f"VERSION AS OF {first}", snapshot_id=first)
    official("CALL system.expire_snapshots(table => 'db.t', older_than => now(), retain_last => 1)")
    check()


@pytest.mark.parametrize("version", ["1", "2"])
def test_partition_specs_and_columns_that_evolved(
    version: str, official: Official, check: Callable[..., Table]
) -> None:
    official(
        "CREATE TABLE db.t (id INT, ts TIMESTAMP, region STRING, old STRING, price DECIMAL(9, 2)) USING iceberg "
        f"PARTITIONED BY (region, old, days(ts), price) TBLPROPERTIES ('format-version' = '{version}')"
    )
    row = "TIMESTAMP '2026-01-02 03:04:05', 'eu', 'x', 1.5"
    official(f"INSERT INTO db.t VALUES (1, {row}), (2, null, null, null, null)")
    official("ALTER TABLE db.t DROP PARTITION FIELD old")
    official("ALTER TABLE db.t REPLACE PARTITION FIELD ts_day WITH hours(ts)")
    official("ALTER TABLE db.t ADD PARTITION FIELD bucket(4, id) AS shard")
    official(f"INSERT INTO db.t VALUES (3, {row}), (4, null, null, null, null)")
    official("ALTER TABLE db.t ALTER COLUMN id TYPE BIGINT")
    official("ALTER TABLE db.t ALTER COLUMN price TYPE DECIMAL(18, 2)")
    official("ALTER TABLE db.t RENAME COLUMN region TO place")
    official("ALTER TABLE db.t ADD COLUMN who STRUCT<name: STRING, tags: ARRAY<INT>>")
    official("ALTER TABLE db.t ADD PARTITION FIELD id")
    official(f"INSERT INTO db.t VALUES (5, {row}, named_struct('name', 'a', 'tags', array(1)))")
    check()
    for field in ("region", "price", "shard", "ts_hour", "id"):
        official(f"ALTER TABLE db.t DROP PARTITION FIELD {field}")
    official(f"INSERT INTO db.t VALUES (6, {row}, null)")
    check()
    if version == "2":
        official("ALTER TABLE db.t DROP COLUMN old")
        table = check(sorted(set(METADATA_TABLES) - {"manifests", "all_manifests"}))
        ((theirs,),) = official("SELECT partition_summaries FROM db.t.manifests WHERE partition_spec_id = 0")
        assert theirs[1] == [True, False, "null", "null"]
        (first,) = [m for m in table.inspect("manifests").to_pylist() if m["partition_spec_id"] == 0]
        assert first["partition_summaries"][1]["lower_bound"] == "x"


def test_a_partition_field_that_is_given_up_and_comes_back(official: Official, check: Callable[..., Table]) -> None:
    official("CREATE TABLE db.t (id INT, region STRING) USING iceberg PARTITIONED BY (region)")
    official("INSERT INTO db.t VALUES (1, 'eu'), (2, null)")
    official("ALTER TABLE db.t DROP PARTITION FIELD region")
    official("INSERT INTO db.t VALUES (3, 'eu'), (4, null)")
    official("ALTER TABLE db.t ADD PARTITION FIELD region")
    official("ALTER TABLE db.t ADD PARTITION FIELD truncate(2, region) AS cut")
    official("INSERT INTO db.t VALUES (5, 'eu'), (6, null)")
    check()


@pytest.mark.parametrize("partition_by", [[], ["region"]])
def test_deletes_of_every_kind(partition_by: list[str], lake: Lake, check: Callable[..., Table]) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=partition_by, properties={"format-version": "2"})
    table.append(order_rows(1, 2, 3)).append(order_rows(4, 5))
    (first,), (second,) = ([p.file.file_path for p in table.scan(f"id = {i}").plan().files] for i in (1, 4))
    partition = ("eu",) if partition_by else ()
    add_deletes(table, position_deletes(table, {first: [0, 1], second: [1]}))
    keys = pa.table({"id": pa.array([3], pa.int64())})
    add_deletes(table, equality_deletes(table, keys, [1], partition))
    add_deletes(table, _with_rows(table, first, partition))
    check()
    table.upgrade_format(3)
    check()
    third = table.append(order_rows(6, 7, 8)).append(order_rows(9, 10)).scan("id > 5").plan().files
    add_deletes(table, *deletion_vectors(table, {p.file.file_path: [1] for p in third}))
    check()
    table.delete("id = 6")
    table.compact()
    check()


def test_values_of_every_type(lake: Lake, check: Callable[..., Table]) -> None:
    """With times of day, nanoseconds or UUIDs the official runtime shows no table of files.

    A bound in the year 1 is too early for PySpark, so that timestamps with a zone have tests of their own.
    """
    without = frozenset({"time", "timestamp_ns", "timestamptz_ns", "uuid", "uuids", "timestamptz"})
    table = lake.create_table("db.t", every_type_schema(without=without))
    table.append(every_type_rows(without=without))
    check()


def test_partitions_of_every_type(lake: Lake, check: Callable[..., Table]) -> None:
    """Java cannot read partitions of type fixed as the specification has them, nor show those of type uuid."""
    columns = [c for c in SOURCES if not c.endswith("_ns") and c not in {"time", "fixed", "uuid"}]
    fields = tuple(NestedField(i, name, False, SOURCES[name][0]) for i, name in enumerate(columns, 1))
    terms = ["truncate(3, string)", "truncate(3, binary)", "bucket(7, int)", "year(date)", "month(timestamp)"]
    table = lake.create_table("db.t", Schema(fields=fields), partition_by=[*columns, *terms, "hour(timestamptz)"])
    cut = [["", "zür", None], [b"", b"a\xff\x00", None], [0, 6, None], [0, -1, 57], [0, -1, 680], [0, -1, 500_000]]
    values = {c: SOURCES[c][1] for c in columns} | {"timestamptz": [0, 1, -1, 1_700_000_000_000_001]}
    choices = [[None, *values[c]] for c in columns] + cut
    partitions = itertools.islice(zip(*(itertools.cycle(c) for c in choices), strict=True), 9)
    table.append_files([_file(table, partition, number) for number, partition in enumerate(partitions)])
    add_deletes(table, _file(table, tuple(c[1] for c in choices), 1, FileContent.POSITION_DELETES))
    check(sorted(set(METADATA_TABLES) - {"position_deletes"}))


def test_all_tables_refuse_a_version_on_both_sides(official: Official, lake: Lake) -> None:
    lake.create_table("db.t", ORDERS).append(order_rows(1)).refs.create_tag("v1")
    for name in ALL:
        with pytest.raises(Exception, match="Cannot select snapshot in table"):
            official(f"SELECT * FROM db.t.{name} VERSION AS OF 'v1'")
        with pytest.raises(Exception, match=f"expected no version for `{name}`"):
            lake.load_table("db.t").inspect(name, ref="v1")


def test_differences_are_still_there(official: Official, lake: Lake) -> None:
    """What docs/differences.md says of the official runtime."""
    official("CREATE TABLE db.t (id BIGINT) USING iceberg")
    official("ALTER TABLE db.t ADD PARTITION FIELD bucket(4, id)")
    official("INSERT INTO db.t VALUES (1)")
    official("INSERT INTO db.t VALUES (3)")
    official("CALL system.expire_snapshots(table => 'db.t', older_than => now(), retain_last => 1)")
    assert sorted(official("SELECT spec_id FROM db.t.partitions")) == [(0,), (1,)]
    assert lake.load_table("db.t").inspect("partitions").column("spec_id").to_pylist() == [1, 1]
    assert official("SELECT * FROM db.t.files VERSION AS OF 123") == []
    official("ALTER TABLE db.t DROP PARTITION FIELD id_bucket_4")
    official("ALTER TABLE db.t ADD PARTITION FIELD bucket(8, id) AS id_bucket_4")
    with pytest.raises(OfficialError, match=r"multiple fields for name partition\.id_bucket_4"):
        official("SELECT * FROM db.t.files")
    (file, *_) = lake.load_table("db.t").inspect("files").to_pylist()
    assert list(file["partition"]) == ["id_bucket_4_1000", "id_bucket_4"]
    uuids = pa.table({"u": pa.array([uuid.UUID(int=7).bytes], pa.uuid())})
    lake.create_table("db.u", uuids.schema).append(uuids)
    with pytest.raises(OfficialError, match=r"Cannot cast java\.util\.UUID"):
        official("SELECT * FROM db.u.files")


def _file(table: Table, partition: tuple[Any, ...], number: int, content: FileContent = FileContent.DATA) -> DataFile:
    path = f"{table.location}/data/{content}-{number}.parquet"
    table.io.create(path, b"encrypted")  # nobody can count the rows
    return DataFile(
        file_path=path,
        file_format="PARQUET",
        partition=partition,
        record_count=number,
        file_size_in_bytes=1000 + number,
        content=content,
        split_offsets=(4, 2000) if number % 2 else (4, 100),
        column_sizes={} if number % 2 else {1: 5},
        key_metadata=b"\x00\xff",
    )


def _with_rows(table: Table, path: str, partition: tuple[Any, ...]) -> DataFile:
    """A position delete file that keeps the deleted rows."""

    def field(name: str, type_: pa.DataType, field_id: int) -> pa.Field:
        return pa.field(name, type_, metadata={FIELD_ID: str(field_id)})

    row = pa.struct([field(f.name, f.type, i) for i, f in enumerate(ORDERS, 1)])
    schema = pa.schema(
        [
            field("file_path", pa.string(), 2147483546).with_nullable(False),
            field("pos", pa.int64(), 2147483545).with_nullable(False),
            field("row", row, 2147483544),
        ]
    )
    rows = [{"file_path": path, "pos": 2, "row": {"id": 3, "amount": 30.0, "region": "eu"}}]
    location = Path(f"{table.location.removeprefix('file://')}/data/{uuid.uuid4()}.parquet")
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), location)
    return DataFile(
        file_path=str(location),
        file_format="PARQUET",
        partition=partition,
        record_count=1,
        file_size_in_bytes=location.stat().st_size,
        content=FileContent.POSITION_DELETES,
    )
