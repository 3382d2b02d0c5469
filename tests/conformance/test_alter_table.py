"""The same chains of changes leave the same table as in Java and Spark, and the peers read what was changed between."""

import json
import pprint
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.datafiles.file.arrow_schema import schema_from_arrow
from bergline.errors import BerglineError, InvalidInputError
from bergline.format.encoding.wire import encode_json
from bergline.format.metadata.json import render_metadata
from bergline.format.metadata.table_metadata import BlobMetadata, PartitionStatisticsFile, StatisticsFile
from bergline.format.schema.name_mapping import NAME_MAPPING_PROPERTY, create_name_mapping, render_name_mapping
from support.fixtures.competing_writers import overtaken
from support.servers.peers import OfficialRuntime

Step = list[Any]
Sql = Callable[[str], list[tuple[Any, ...]]]

POINT = pa.struct([("x", pa.int32()), ("y", pa.float32())])
START = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("n", pa.int32()),
        ("region", pa.string()),
        ("ts", pa.timestamp("us")),
        ("p", POINT),
        ("ps", pa.list_(POINT)),
        ("price", pa.decimal128(9, 2)),
    ]
)
JAVA = """
import json
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
iceberg = jvm.org.apache.iceberg
expressions = iceberg.expressions.Expressions

CALLED = {"drop": "deleteColumn", "rename": "renameColumn", "optional": "makeColumnOptional",
          "doc": "updateColumnDoc", "first": "moveFirst", "after": "moveAfter", "before": "moveBefore"}

def type_of(text):
    wire = {"type": "struct", "fields": [{"id": 1, "name": "c", "required": False, "type": text}]}
    return iceberg.SchemaParser.fromJson(json.dumps(wire)).findField(1).type()

def names(texts):
    found = jvm.java.util.ArrayList()
    for text in texts:
        found.add(text)
    return found

def term(function, column, number):
    if function == "identity":
        return expressions.ref(column)
    return getattr(expressions, function)(column, *([] if number is None else [number]))

def schema(update, kind, *arguments):
    if kind == "add":
        parent, name, type_, doc = arguments
        update.addColumn(parent, name, type_of(type_), doc)
    elif kind == "type":
        update.updateColumn(arguments[0], type_of(arguments[1]))
    elif kind == "identify":
        update.setIdentifierFields(names(arguments[0]))
    elif kind == "union":
        update.unionByNameWith(iceberg.SchemaParser.fromJson(arguments[0]))
    else:
        getattr(update, CALLED[kind])(*arguments)

def spec(update, kind, *arguments):
    if kind == "add":
        update.addField(arguments[1], term(*arguments[0]))
    elif kind == "remove":
        update.removeField(arguments[0])
    else:
        update.renameField(*arguments)

def change(table, what, *arguments):
    if what == "schema":
        update = table.updateSchema()
        for step in arguments[0]:
            schema(update, *step)
    elif what == "spec":
        update = table.updateSpec()
        for step in arguments[0]:
            spec(update, *step)
    elif what == "sort":
        update = table.replaceSortOrder()
        for (function, column, number), direction, nulls in arguments[0]:
            order = iceberg.NullOrder.valueOf(f"NULLS_{nulls.upper()}")
            getattr(update, direction)(term(function, column, number), order)
    elif what == "properties":
        update = table.updateProperties()
        for key, value in arguments[0].items():
            update.set(key, value)
        for key in arguments[1]:
            update.remove(key)
    update.commit()

result = []
for name, steps in runs:
    table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    answers = []
    for step in steps:
        error = None
        try:
            change(table, *step)
        except (Py4JJavaError, PySparkException) as caught:
            error = str(caught)[:300]
            table.refresh()
        answers.append([error, json.loads(iceberg.TableMetadataParser.toJson(table.operations().current()))])
    result.append(answers)
"""
COLUMNS = ["id", "n", "region", "ts", "p", "p.x", "p.y", "ps.element.x", "ps.element.y", "price", "extra", "p.extra"]
TERMS: list[Any] = [
    *(["identity", c, None] for c in ("region", "n", "extra")),
    *([unit, "ts", None] for unit in ("day", "month")),
    *(["bucket", "id", 4], ["truncate", "region", 2]),
]
METRICS = "write.metadata.metrics.column."


def random_schema_step(chance: random.Random) -> Step:
    column = chance.choice(COLUMNS)
    parent = chance.choice([None, None, "p", "ps", "ps.element", "n"])
    return chance.choice(
        [
            ["add", parent, chance.choice(["extra", "more", "region"]), chance.choice(["int", "string"]), None],
            ["add", None, chance.choice(["extra", "more"]), "date", "when"],
            ["drop", column],
            ["rename", column, chance.choice(["extra", "region", "renamed"])],
            ["type", column, chance.choice(["long", "double", "decimal(12, 2)"])],
            ["optional", column],
            ["doc", column, chance.choice(["one", "two"])],
            ["first", column],
            ["after", "price", chance.choice(["id", "n", "region"])],
            ["before", "p.y", "p.x"],
            ["identify", chance.sample(["id", "n"], chance.randint(0, 1))],
        ]
    )


def random_step(chance: random.Random) -> Step:
    kind = chance.choice(["schema"] * 6 + ["spec"] * 2 + ["sort", "properties"])
    match kind:
        case "schema":
            return [kind, [random_schema_step(chance)]]
        case "spec":
            name = chance.choice(["region", "ts_day", "renamed"])
            fields: list[Step] = [
                ["add", chance.choice(TERMS), None],
                ["add", chance.choice(TERMS), chance.choice(["shard", "renamed"])],
                ["remove", name],
                ["rename", name, chance.choice(["renamed", "region"])],
            ]
            return [kind, [chance.choice(fields)]]
        case "sort":
            fields = [[t, chance.choice(["asc", "desc"]), chance.choice(["first", "last"])] for t in TERMS[:4]]
            return [kind, chance.sample(fields, chance.randint(0, 2))]
        case _:
            column = chance.choice(["n", "region", "extra", "renamed"])
            return [kind, {f"{METRICS}{column}": "full", "owner": chance.choice(["a", "b"])}, ["comment"]]


def term(function: str, column: str, number: int | None) -> str:
    return f"{function}({column})" if number is None else f"{function}({number}, {column})"


def change(table: Table, step: Step) -> None:
    match step:
        case ["schema", steps]:
            with table.update_schema() as schema:
                for kind, *arguments in steps:
                    match kind, arguments:
                        case "add", [parent, name, type_, doc]:
                            schema.add_column(f"{parent}.{name}" if parent else name, type_, doc=doc)
                        case "type", [column, type_]:
                            schema.set_type(column, type_)
                        case "identify", [columns]:
                            schema.set_identifier_fields(columns)
                        case "after" | "before", [column, other]:
                            schema.move_column(column, **{kind: other})
                        case "first", [column]:
                            schema.move_column(column, first=True)
                        case _:
                            names = {"drop": "drop_column", "rename": "rename_column", "optional": "make_optional"}
                            getattr(schema, names.get(kind, "set_doc"))(*arguments)
        case ["spec", steps]:
            with table.update_spec() as spec:
                for kind, *arguments in steps:
                    match kind, arguments:
                        case "add", [given, name]:
                            spec.add_field(term(*given), name=name)
                        case "remove", [name]:
                            # a name that no field has may be a term here, but not in Java
                            spec.remove_field(name if any(f.name == name for f in table.spec.fields) else "no such")
                        case _:
                            spec.rename_field(*arguments)
        case ["sort", fields]:
            table.replace_sort_order([f"{term(*t)} {direction} nulls {nulls}" for t, direction, nulls in fields])
        case ["properties", updates, removed]:
            table.set_properties(updates, remove=removed)


def layout(wire: dict[str, Any]) -> Any:
    """What the changes made, without times, ids of snapshots and the spelling of JSON."""
    kept = ["current-schema-id", "last-column-id", "default-spec-id", "last-partition-id", "default-sort-order-id"]
    properties = dict(wire["properties"])
    mapping = properties.pop(NAME_MAPPING_PROPERTY, "null")
    return {
        **{k: wire[k] for k in ["format-version", *kept, "partition-specs", "sort-orders"]},
        "schemas": [s | {"identifier-field-ids": sorted(s.get("identifier-field-ids", []))} for s in wire["schemas"]],
        "properties": properties,
        "mapping": names_sorted(json.loads(mapping)),
    }


def names_sorted(mapping: Any) -> Any:
    """A name mapping without the order of names, which is none in Java."""
    return [
        {k: names_sorted(v) if k == "fields" else sorted(v) if k == "names" else v for k, v in f.items()}
        for f in mapping or ()
    ]


def layout_of(table: Table) -> Any:
    return layout(json.loads(render_metadata(table.metadata)))


def create_pair(lake: Lake, number: int, version: int) -> Table:
    """Two tables that are the same, the second for Java."""
    ours, _ = (
        lake.create_table(
            f"db.{who}{number}",
            START,
            partition_by=["region", "day(ts)"],
            properties={"format-version": str(version), f"{METRICS}n": "counts"},
        )
        for who in ("ours", "theirs")
    )
    mapping = {NAME_MAPPING_PROPERTY: render_name_mapping(create_name_mapping(ours.schema))}
    lake.load_table(f"db.theirs{number}").set_properties(mapping)
    return ours.set_properties(mapping)


@pytest.mark.kinds(2)
@pytest.mark.official
@pytest.mark.parametrize("version", [1, 2, 3])
def test_chains_of_changes_leave_the_table_that_java_leaves(
    lake: Lake, official: Sql, official_runtime: OfficialRuntime, version: int
) -> None:
    chance = random.Random(version)  # noqa: S311
    chains = [[random_step(chance) for _ in range(12)] for _ in range(12)]
    tables = [create_pair(lake, number, version) for number in range(len(chains))]
    runs = [(f"db.theirs{number}", steps) for number, steps in enumerate(chains)]
    done, parted = 0, []
    for table, steps, answers in zip(tables, chains, official_runtime.python(JAVA, runs=runs), strict=True):
        for step, (refusal, wire) in zip(steps, answers, strict=True):
            try:
                change(table, step)
                error = None
            except BerglineError as caught:
                error = str(caught)
            done += error is None
            mine, theirs = layout_of(table), layout(wire)
            if mine != theirs:
                parted.append((step, refusal, error, {k: (v, theirs[k]) for k, v in mine.items() if v != theirs[k]}))
                break
    assert parted == [], pprint.pformat(parted, width=200)
    assert done > 50


BLOCKS: list[list[Step]] = [
    [["add", None, "a", "int", None], ["add", "p", "b", "string", "why"], ["first", "a"], ["after", "p.b", "p.x"]],
    [["drop", "region"], ["add", None, "region", "int", None]],
    [["rename", "n", "count"], ["drop", "ts"], ["add", "ps", "z", "long", None], ["before", "price", "id"]],
    [["type", "n", "long"], ["doc", "n", "how many"], ["optional", "id"], ["rename", "n", "m"]],
    [["identify", ["id"]], ["rename", "id", "key"]],
    [["rename", "p", "q"], ["add", None, "p", "int", None]],
]


@pytest.mark.official
def test_blocks_of_schema_changes_leave_the_table_that_java_leaves(
    lake: Lake, official: Sql, official_runtime: OfficialRuntime
) -> None:
    chains: list[list[Step]] = [[["spec", [["remove", "region"], ["remove", "ts_day"]]], ["schema", b]] for b in BLOCKS]
    tables = [create_pair(lake, number, 2) for number in range(len(chains))]
    runs = [(f"db.theirs{number}", steps) for number, steps in enumerate(chains)]
    refused = []
    for table, steps, answers in zip(tables, chains, official_runtime.python(JAVA, runs=runs), strict=True):
        for step, (refusal, wire) in zip(steps, answers, strict=True):
            if refusal is None:
                change(table, step)
                assert layout_of(table) == layout(wire), step
            else:
                refused.append(step[1])
    # Java takes names as they were before the block, and finds the new name of a renamed column taken
    assert refused == [BLOCKS[-1]]


@pytest.mark.official
def test_unions_leave_the_table_that_java_leaves(lake: Lake, official: Sql, official_runtime: OfficialRuntime) -> None:
    new = pa.struct([("z", pa.string()), ("x", pa.int64()), ("y", pa.float64())])
    unions = [
        pa.schema([("top", pa.list_(POINT)), ("n", pa.int64()), ("p", new), ("last", new), ("ps", pa.list_(new))]),
        pa.schema([("id", pa.int32()), ("price", pa.decimal128(12, 2)), ("n", pa.int32())]),
        pa.schema([("price", pa.decimal128(5, 2)), ("x", pa.map_(pa.string(), pa.date32()))]),
        START,
        pa.schema([("n", pa.string())]),
        pa.schema([("p", pa.int32())]),
    ]
    wires = [json.loads(encode_json(schema_from_arrow(u))) for u in unions]
    tables = [create_pair(lake, number, 2) for number in range(len(unions))]
    runs = [(f"db.theirs{n}", [["schema", [["union", json.dumps(wire)]]]]) for n, wire in enumerate(wires)]
    refused = []
    for table, union, ((refusal, wire),) in zip(tables, unions, official_runtime.python(JAVA, runs=runs), strict=True):
        try:
            with table.update_schema() as schema:
                schema.union_by_name(union)
        except InvalidInputError:
            refused.append(refusal)
        assert layout_of(table) == layout(wire), (union, refusal)
    assert len(refused) == 2
    assert all(refused)


def alter(lake: Lake, name: str) -> Table:
    """What SPARK says, in our words."""
    table = lake.load_table(name)
    with table.update_schema() as schema:
        schema.add_column("tags", "list<string>", doc="words", after="id").add_column("p.z", "int")
    with table.update_schema() as schema:
        schema.rename_column("n", "count")
    with table.update_schema() as schema:
        schema.set_type("count", "long")
    with table.update_schema() as schema:
        schema.set_doc("region", "where").move_column("region", first=True).drop_column("price")
    with table.update_schema() as schema:
        schema.set_identifier_fields(["id"])
    with table.update_spec() as spec:
        spec.add_field("bucket(4, id)", name="shard")
    with table.update_spec() as spec:
        spec.remove_field("region")
    with table.update_spec() as spec:
        spec.remove_field("day(ts)").add_field("month(ts)")
    table.replace_sort_order(["region desc nulls first", "id"])
    table.set_properties({"write.distribution-mode": "range", "team": "us"}, remove=["comment"])
    return table.upgrade_format(3)


SPARK = """
ALTER TABLE {} ADD COLUMNS (tags array<string> COMMENT 'words' AFTER id, p.z int)
ALTER TABLE {} RENAME COLUMN n TO count
ALTER TABLE {} ALTER COLUMN count TYPE bigint
ALTER TABLE {} ALTER COLUMN region COMMENT 'where'
ALTER TABLE {} ALTER COLUMN region FIRST
ALTER TABLE {} DROP COLUMN price
ALTER TABLE {} SET IDENTIFIER FIELDS id
ALTER TABLE {} ADD PARTITION FIELD bucket(4, id) AS shard
ALTER TABLE {} DROP PARTITION FIELD region
ALTER TABLE {} REPLACE PARTITION FIELD ts_day WITH months(ts)
ALTER TABLE {} WRITE ORDERED BY region DESC NULLS FIRST, id
ALTER TABLE {} SET TBLPROPERTIES ('team' = 'us')
ALTER TABLE {} UNSET TBLPROPERTIES ('comment')
ALTER TABLE {} SET TBLPROPERTIES ('format-version' = '3')
"""


@pytest.mark.official
@pytest.mark.parametrize("version", [1, 2])
def test_statements_of_spark_leave_the_same_table(lake: Lake, official: Sql, version: int) -> None:
    create_pair(lake, 0, version)
    for statement in SPARK.strip().splitlines():
        official(statement.format("db.theirs0"))
    ours, theirs = layout_of(alter(lake, "db.ours0")), layout_of(lake.load_table("db.theirs0"))
    # Spark makes one schema of two of our blocks' changes, and two of one
    assert ours.pop("schemas")[-1]["fields"] == theirs.pop("schemas")[-1]["fields"]
    assert {k for k in ours if ours[k] != theirs[k]} <= {"current-schema-id"}


def rows(*ids: int, **columns: Any) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), **columns})


def evolve_between_appends(table: Table) -> None:
    """Files of every kind: older than a column, its type, its name, its place and its partition."""
    table.append(rows(1, n=pa.array([1], pa.int32()), region=["eu"], p=pa.array([{"x": 1, "y": 0.5}], POINT)))
    with table.update_schema() as schema:
        schema.rename_column("n", "count").set_type("count", "long").add_column("p.z", "string")
        schema.add_column("tags", "list<string>", after="id")
    table.append(rows(2, count=[2**40], tags=[["a"]], region=["us"]))
    with table.update_spec() as spec:
        spec.remove_field("region").add_field("bucket(2, id)")
    table.replace_sort_order(["id"])
    point = pa.struct([("x", pa.int64()), ("z", pa.string()), ("w", pa.int32())])
    with table.update_schema() as schema:
        schema.drop_column("region").add_column("region", "int").move_column("p", first=True).drop_column("p.y")
        schema.set_type("p.x", "long").rename_column("p.x", "w").add_column("p.x", "long")
    table.append(rows(3, region=pa.array([7], pa.int32()), p=pa.array([{"x": 2**50, "z": "z", "w": 4}], point)))


EVOLVED = [
    {"id": 1, "count": 1, "tags": None, "region": None, "p": {"w": 1, "z": None, "x": None}},
    {"id": 2, "count": 2**40, "tags": ["a"], "region": None, "p": None},
    {"id": 3, "count": None, "tags": None, "region": 7, "p": {"w": 4, "z": "z", "x": 2**50}},
]


def sorted_rows(found: pa.Table) -> list[dict[str, Any]]:
    return sorted(found.select(list(EVOLVED[0])).to_pylist(), key=lambda r: r["id"])


@pytest.mark.official
@pytest.mark.parametrize("version", [1, 2, 3])
def test_java_reads_a_table_that_changed_between_appends(lake: Lake, official: Sql, version: int) -> None:
    table = lake.create_table(
        "db.t", START, partition_by=["region", "day(ts)"], properties={"format-version": str(version)}
    )
    evolve_between_appends(table)
    assert sorted_rows(table.scan().to_arrow()) == EVOLVED
    read = official("SELECT id, count, tags, region, p.w, p.z, p.x FROM db.t ORDER BY id")
    flat = [tuple(r[c] for c in ("id", "count", "tags", "region")) for r in EVOLVED]
    points = [tuple((r["p"] or {}).get(c) for c in ("w", "z", "x")) for r in EVOLVED]  # type: ignore[attr-defined]
    assert read == [a + b for a, b in zip(flat, points, strict=True)]
    if version == 1:
        return  # Java cannot write a v1 table any more once a column is dropped that it was partitioned by
    official("INSERT INTO db.t (id, count) VALUES (4, 4)")
    assert official("SELECT id FROM db.t WHERE count >= 4 ORDER BY id") == [(2,), (4,)]
    assert sorted(table.refresh().scan("count >= 4").to_arrow().column("id").to_pylist()) == [2, 4]


@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_reads_a_table_that_changed_between_appends(lake: Lake, pyiceberg: Any, version: int) -> None:
    table = lake.create_table(
        "db.t", START, partition_by=["region", "day(ts)"], properties={"format-version": str(version)}
    )
    evolve_between_appends(table)
    assert sorted_rows(pyiceberg.load_table("db.t").scan().to_arrow()) == EVOLVED


@pytest.mark.official
def test_upgraded_tables_go_on_in_both(lake: Lake, official: Sql) -> None:
    table = lake.create_table("db.t", START, partition_by=["region"], properties={"format-version": "1"})
    table.append(rows(1, region=["eu"])).upgrade_format(2).append(rows(2, region=["eu"]))
    official("INSERT INTO db.t (id, region) VALUES (3, 'us')")
    table.refresh().upgrade_format(3)
    official("INSERT INTO db.t (id, region) VALUES (4, 'us')")
    with table.refresh().update_schema() as schema:
        schema.add_column("since", "string", default="before", required=True)
    table.append(rows(5, since=["now"]))
    expected = [(n, "now" if n == 5 else "before") for n in range(1, 6)]
    assert official("SELECT id, since FROM db.t ORDER BY id") == expected
    mine = table.scan(columns=["id", "since", "_row_id"]).to_arrow().sort_by("id")
    assert list(zip(*(mine.column(c).to_pylist() for c in ("id", "since")), strict=True)) == expected
    row_ids = [r for (r,) in official("SELECT _row_id FROM db.t ORDER BY id")]
    assert mine.column("_row_id").to_pylist() == row_ids
    assert len(set(row_ids)) == 5


@pytest.mark.official
def test_java_finds_statistics_and_location(
    lake: Lake, official: Sql, official_runtime: OfficialRuntime, tmp_path: Path
) -> None:
    table = lake.create_table("db.t", START).append(rows(1))
    head = table.metadata.snapshots[0].snapshot_id
    blob = BlobMetadata("apache-datasketches-theta-v1", head, 1, (1,), {"ndv": "1"})
    table.set_statistics(StatisticsFile(head, f"{table.location}/metadata/s.puffin", 100, 40, (blob,)))
    table.set_statistics(PartitionStatisticsFile(head, f"{table.location}/metadata/p.parquet", 50))
    table.set_location(f"{tmp_path}/moved").append(rows(2))
    official("INSERT INTO db.t (id) VALUES (3)")
    found = official_runtime.python(
        """
table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "db.t")
file = table.statisticsFiles()[0]
partitions = table.partitionStatisticsFiles()[0]
ndv = file.blobMetadata()[0].properties()["ndv"]
result = [file.snapshotId(), file.path(), ndv, partitions.path(), table.location()]
"""
    )
    assert found[0] == head
    assert found[1].endswith("s.puffin")
    assert found[2:] == ["1", table.metadata.partition_statistics[0].statistics_path, f"file://{tmp_path}/moved"]
    assert sorted(table.refresh().scan().to_arrow().column("id").to_pylist()) == [1, 2, 3]
    assert sum(f"{tmp_path}/moved/data/" in f.file.file_path for f in table.scan().plan().files) == 2


@pytest.mark.official
def test_java_reads_appends_that_upgrades_overtook(lake: Lake, official: Sql) -> None:
    table = lake.create_table("db.t", START, properties={"format-version": "1"}).append(rows(1))
    late = overtaken(lake, lambda: table.upgrade_format(2), lambda: table.upgrade_format(3)).load_table("db.t")
    late.append(rows(2, 3)).append(rows(4))
    columns = ["id", "_row_id", "_last_updated_sequence_number"]
    mine = late.scan(columns=columns).to_arrow().sort_by("id")
    theirs = official(f"SELECT {', '.join(columns)} FROM db.t ORDER BY id")
    assert list(zip(*(mine.column(c).to_pylist() for c in columns), strict=True)) == theirs
    official("DELETE FROM db.t WHERE id = 2")
    assert sorted(late.refresh().scan().to_arrow().column("id").to_pylist()) == [1, 3, 4]
