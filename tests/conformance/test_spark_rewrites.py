"""The same rewrites through the official runtime and through bergline: equal counts, rows, row ids, order in files."""

import datetime as dt
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from bergline import Lake, Table
from support.fixtures.twin_tables import KINDS, all_rows
from support.servers.peers import OfficialRuntime

pytestmark = [pytest.mark.spark, pytest.mark.engine]

CALL = """
frame = spark.sql(call)
result = [[f.name, f.dataType.simpleString(), f.nullable] for f in frame.schema], [list(row) for row in frame.collect()]
"""
NAMES = ("rewritten", "added", "bytes", "failed", "removed_deletes")


@pytest.fixture
def namespaces(spark: SparkSession, lake: Lake, official: object) -> tuple[str, str]:
    """Two namespaces of one lake: ours is rewritten by bergline, theirs by the official runtime."""
    for name in ("ours", "theirs"):
        lake.create_namespace(name)
    return "ours", "theirs"


def both_call(
    spark: SparkSession, official_runtime: OfficialRuntime, procedure: str, arguments: str
) -> tuple[list[Any], list[Any]]:
    """What a procedure returns, of our table and of theirs; the columns are the same."""
    frame = spark.sql(f"CALL system.{procedure}(table => 'ours.t'{arguments})")
    schema, rows = official_runtime.python(CALL, call=f"CALL system.{procedure}(table => 'theirs.t'{arguments})")
    assert [[f.name, f.dataType.simpleString(), f.nullable] for f in frame.schema] == schema
    return [list(row) for row in frame.collect()], rows


def options(**values: Any) -> str:
    pairs = ", ".join(f"'{k.replace('__', '.').replace('_', '-')}', '{v}'" for k, v in values.items())
    return f", options => map({pairs})"


CALLS = {
    "defaults": "",
    "two files": options(min_input_files=2),
    "all": options(rewrite_all="true"),
    "groups": options(rewrite_all="true", max_file_group_size_bytes=4000),
    "target size": options(target_file_size_bytes=4500, min_input_files=2),
    "sizes": options(target_file_size_bytes=1700, min_file_size_bytes=100, max_file_size_bytes=1710),
    "delete files": options(delete_file_threshold=1, min_input_files=100),
    "delete ratio": options(delete_ratio_threshold=0.3, min_input_files=100),
    "filter": ", where => 'id >= 8 AND id < 20'" + options(min_input_files=2),
    "filter on no row": ", where => 'id > 1000'" + options(rewrite_all="true"),
    "few files": options(rewrite_all="true", max_files_to_rewrite=3),
    "partial": options(
        rewrite_all="true",
        max_file_group_size_bytes=4000,
        partial_progress__enabled="true",
        partial_progress__max_commits=2,
    ),
    "new number": options(rewrite_all="true", use_starting_sequence_number="false"),
    "largest first": options(rewrite_all="true", rewrite_job_order="bytes-desc", max_concurrent_file_group_rewrites=1),
    "sort": ", strategy => 'sort', sort_order => 'amount DESC NULLS LAST, id'" + options(rewrite_all="true"),
    "zorder": ", sort_order => 'zorder(amount, id)'" + options(rewrite_all="true"),
}
"""By name: what follows the table."""
ONLY_VECTORS = ("v3 vectors", "v3 vectors, evolved")


@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        ("v2 copy", ["target size", "few files", "delete files"]),
        ("v2 copy, partitions", ["defaults", "filter"]),
        ("v2 copy, equality deletes", ["delete ratio", "new number"]),
        ("v3 vectors", ["partial", "sort", "zorder"]),
        ("v3 vectors over positions", ["all"]),
        *(
            pytest.param(kind, calls, marks=pytest.mark.thorough)
            for kind, calls in (
                ("v1", ["two files", "sort"]),
                ("v2 copy", [c for c in CALLS if c not in {"sort", "new number", "largest first"}]),
                ("v2 copy, partitions", ["two files", "sort", "zorder"]),
                ("v2 copy, equality deletes", ["two files", "delete files", "zorder"]),
                ("v2 positions by partition", ["delete files", "delete ratio", "all"]),
                ("v3 vectors", ["delete ratio", "delete files", "groups", "largest first"]),
                ("v3 vectors, evolved", ["all"]),
            )
        ),
    ],
)
def test_both_rewrite_the_same_files_and_keep_all_rows(
    spark: SparkSession,
    lake: Lake,
    official_runtime: OfficialRuntime,
    namespaces: tuple[str, str],
    kind: str,
    calls: list[str],
) -> None:
    differences = []
    for call in calls:
        mine, official = (KINDS[kind](lake, f"{namespace}.t") for namespace in namespaces)
        before = all_rows(mine)
        ours, theirs = both_call(spark, official_runtime, "rewrite_data_files", CALLS[call])
        mine.refresh()
        official.refresh()
        found, expected = (dict(zip(NAMES, rows[0], strict=True)) for rows in (ours, theirs))
        if kind not in ONLY_VECTORS:  # docs/differences.md: delete files of one data file go with it here
            assert found.pop("removed_deletes") >= expected.pop("removed_deletes")
        if call == "few files":  # which of them, is each engine's own
            found["bytes"] = expected["bytes"] = 0
        if found != expected:
            differences.append((call, "counts", found, expected))
        if all_rows(mine) != before:
            differences.append((call, "rows", before, all_rows(mine)))
        if all_rows(official) != before:
            differences.append((call, "official rows", before, all_rows(official)))
        if call != "few files" and layout(mine) != layout(official):
            differences.append((call, "layout", layout(mine), layout(official)))
        read_there = official_runtime.python(
            "result = sorted(row.id for row in spark.sql('SELECT id FROM ours.t').collect())"
        )
        if read_there != sorted(row[0] for row in before):
            differences.append((call, "read there", read_there, before))
        for table in (mine, official):
            lake.drop_table(table.name)
    assert differences == []


def layout(table: Table) -> list[tuple[Any, ...]]:
    """Partitions, sequence numbers and orders of the files, and how many rows are in all; and what deletes are left.

    Which of the small files are in one group depends on the order in which manifests are read. Files that moved to
    another partition spec have the commit's number here (docs/differences.md).
    """
    entries = table.inspect("entries").to_pylist()
    kept = {0} if table.metadata.format_version == 2 else {0, 1, 2}
    entries = [e for e in entries if e["status"] < 2 and e["data_file"]["content"] in kept]
    specs = {spec.spec_id for spec in table.metadata.partition_specs}
    files = [(e["sequence_number"] if len(specs) == 1 else None, e["data_file"]) for e in entries]
    rows = Counter[tuple[Any, ...]]()
    for _, file in files:
        rows[file["content"], file["spec_id"], repr(file.get("partition"))] += file["record_count"]
    return sorted(
        (f["content"], f["spec_id"], repr(f.get("partition")), number, f["sort_order_id"] or 0) for number, f in files
    ) + sorted(rows.items())


def in_order(table: Table) -> list[list[int]]:
    """The ids of each file, in the order of its rows."""
    paths = [planned.file.file_path.removeprefix("file:") for planned in table.scan().plan().files]
    return sorted(pq.read_table(path, columns=["id"]).column("id").to_pylist() for path in paths)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("v2 positions", marks=pytest.mark.thorough),
        "v2 positions by partition",
        "v3 vectors over positions",
    ],
)
def test_both_rewrite_the_same_position_delete_files(
    spark: SparkSession, lake: Lake, official_runtime: OfficialRuntime, namespaces: tuple[str, str], kind: str
) -> None:
    mine, official = (KINDS[kind](lake, f"{namespace}.t") for namespace in namespaces)
    before = all_rows(mine)
    for arguments in ("", options(rewrite_all="true")):
        ours, theirs = both_call(spark, official_runtime, "rewrite_position_delete_files", arguments)
        assert ours[0][:2] == theirs[0][:2]  # paths have other lengths, so files have other sizes
        assert all_rows(mine.refresh()) == all_rows(official.refresh()) == before
        assert delete_files(mine) == delete_files(official)
    assert ours[0][0] == 2
    read_there = official_runtime.python(
        "result = sorted(row.id for row in spark.sql('SELECT id FROM ours.t').collect())"
    )
    assert read_there == sorted(row[0] for row in before)


def delete_files(table: Table) -> list[tuple[Any, ...]]:
    """Kind, place, sequence number and positions of the delete files that are left."""
    entries = [e for e in table.inspect("entries").to_pylist() if e["status"] < 2 and e["data_file"]["content"] > 0]
    deleted = Counter(row["delete_file_path"] for row in table.inspect("position_deletes").to_pylist())
    files = [(e["sequence_number"], e["data_file"]) for e in entries]
    return sorted(
        (f["content"], f["file_format"], repr(f.get("partition")), number, f["record_count"], deleted[f["file_path"]])
        for number, f in files
    )


VALUES = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int32()),
        ("real", pa.float32()),
        ("exact", pa.float64()),
        ("word", pa.string()),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("flag", pa.bool_()),
    ]
)


def values(count: int) -> pa.Table:
    """Rows of every type that has a z-order; flags are never null, which the official runtime fails on."""
    chooser = random.Random(17)  # noqa: S311

    def some(value: Any) -> Any:
        return None if chooser.random() < 0.1 else value

    rows = []
    for i in range(count):
        seconds = dt.timedelta(microseconds=chooser.randrange(-(10**15), 10**15))
        rows.append(
            {
                "id": i * 7919 % count,
                "small": some(chooser.randrange(-1000, 1000)),
                "real": some(chooser.uniform(-5, 5)),
                "exact": some(chooser.choice([0.0, -1.5, 1e300, float("inf"), float("nan"), chooser.random()])),
                "word": some("".join(chooser.choices("abñ€ z", k=chooser.randrange(12)))),
                "raw": some(chooser.randbytes(chooser.randrange(10))),
                "day": some(dt.date(1970, 1, 1) + dt.timedelta(days=chooser.randrange(-9000, 9000))),
                "moment": some(dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + seconds),
                "local": some(dt.datetime(1970, 1, 1) + seconds),  # noqa: DTZ001
                "flag": chooser.random() < 0.5,
            }
        )
    return pa.Table.from_pylist(rows, schema=VALUES)


@pytest.mark.parametrize(
    "sort_order",
    [
        "zorder(flag, real, exact, id)",
        "zorder(day, moment, local, raw, id)",
        "zorder(SMALL, `word`), zorder(id)",
        "bucket(4, id), truncate(2, word) DESC NULLS LAST, id",
        *(
            pytest.param(order, marks=pytest.mark.thorough)
            for order in (
                "zorder(id, small)",
                "zorder(word, id)",
                "exact DESC NULLS FIRST, id",
                "word, id DESC",
                "days(moment) NULLS LAST, id",
            )
        ),
    ],
)
def test_rows_are_in_the_same_order_in_files(
    spark: SparkSession, lake: Lake, official_runtime: OfficialRuntime, namespaces: tuple[str, str], sort_order: str
) -> None:
    rows, tables = values(300), []
    for namespace in (*namespaces, "db"):
        table = lake.create_table(f"{namespace}.t", VALUES)
        tables.append(table.append(rows.slice(0, 150)).append(rows.slice(150)))
    wanted = f", sort_order => '{sort_order}'" + options(rewrite_all="true")
    ours, theirs = both_call(spark, official_runtime, "rewrite_data_files", wanted)
    assert ours[0][:2] == theirs[0][:2] == [2, 1]
    here, there, alone = tables
    assert in_order(here.refresh()) == in_order(there.refresh())
    alone.rewrite_data_files(sort_order=sort_order, options={"rewrite_all": True})  # in this process
    assert in_order(alone) == in_order(here)


def test_var_length_and_output_size_of_zorder_are_the_same(
    spark: SparkSession, lake: Lake, official_runtime: OfficialRuntime, namespaces: tuple[str, str]
) -> None:
    for sizes in ({"var_length_contribution": 3}, {"max_output_size": 5}):
        tables = [lake.create_table(f"{n}.t", VALUES).append(values(200)) for n in namespaces]
        wanted = ", sort_order => 'zorder(word, raw)'" + options(rewrite_all="true", **sizes)
        both_call(spark, official_runtime, "rewrite_data_files", wanted)
        here, there = (pq_columns(table.refresh(), "word", "raw") for table in tables)
        assert here == there
        for table in tables:
            lake.drop_table(table.name)


def pq_columns(table: Table, *names: str) -> list[Any]:
    (planned,) = table.scan().plan().files
    found = pq.read_table(planned.file.file_path.removeprefix("file:"), columns=list(names))
    return [[row[n] for n in names] for row in found.to_pylist()]


BAD = {
    "strategy": ", strategy => 'zip'",
    "binpack with order": ", strategy => 'binpack', sort_order => 'id'",
    "no order": ", strategy => 'sort'",
    "missing column": ", sort_order => 'nope'",
    "missing z column": ", sort_order => 'zorder(nope)'",
    "both orders": ", sort_order => 'id, zorder(amount)'",
    "only partition columns": ", sort_order => 'zorder(region)'",
    "unknown option": options(no_such_option=1),
    "sort option for binpack": options(compression_factor="1.0"),
    "z option for sort": ", sort_order => 'id'" + options(max_output_size=3),
    "target": options(target_file_size_bytes=0),
    "min above target": options(target_file_size_bytes=100, min_file_size_bytes=100),
    "max below target": options(target_file_size_bytes=100, max_file_size_bytes=100),
    "ratio": options(delete_ratio_threshold="1.5"),
    "number": options(min_input_files="many"),
    "job order": options(rewrite_job_order="random"),
    "spec": options(output_spec_id=77),
    "commits": options(partial_progress__enabled="true", partial_progress__max_commits=0),
    "concurrent": options(max_concurrent_file_group_rewrites=0),
    "files": options(max_files_to_rewrite=0),
    "branch": ", branch => 'nope'",
    "where": ", where => 'nope = 1'",
    "where text": ", where => 'id ='",
}


def test_both_refuse_the_same_requests(
    spark: SparkSession, lake: Lake, official_runtime: OfficialRuntime, namespaces: tuple[str, str]
) -> None:
    tables = [KINDS["v2 copy, partitions"](lake, f"{namespace}.t") for namespace in namespaces]
    before = [table.metadata_location for table in tables]
    tries = """
result = {}
for name, arguments in bad.items():
    try:
        spark.sql(f"CALL system.rewrite_data_files(table => '{t}'{arguments})").collect()
    except Exception as error:
        result[name] = str(error)[:200]
"""
    there = official_runtime.python(tries, bad=BAD, t="theirs.t")
    here: dict[str, Any] = {"spark": spark, "bad": BAD, "t": "ours.t"}
    exec(tries, here)  # noqa: S102
    assert here["result"].keys() == there.keys() == BAD.keys()
    assert [table.refresh().metadata_location for table in tables] == before
