"""The same changes of schemas and partition specs give what Java gives, and what Java refuses is refused."""

import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bergline.errors import BerglineError
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.evolution import columns as evolution
from bergline.format.evolution.partition_evolution import AddField, RemoveField, RenameField, SpecChange, evolve_spec
from bergline.format.partition.compatibility import check_for_version
from bergline.format.partition.spec import PartitionSpec, parse_partition_by
from bergline.format.partition.terms import parse_term
from bergline.format.schema.schema import Schema
from bergline.format.types.types import DecimalType, parse_type
from support.servers.peers import OfficialRuntime

pytestmark = pytest.mark.official

Step = list[Any]

JAVA = """
import json
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
parser = jvm.org.apache.iceberg.SchemaParser
specs = jvm.org.apache.iceberg.PartitionSpecParser
tables = jvm.org.apache.iceberg.hadoop.HadoopTables(spark.sparkContext._jsc.hadoopConfiguration())
lit = jvm.org.apache.iceberg.expressions.Expressions.lit

def create(location, version, schema, spec):
    properties = jvm.java.util.HashMap()
    properties.put("format-version", str(version))
    java_schema = parser.fromJson(schema)
    return tables.create(java_schema, specs.fromJson(java_schema, spec), properties, location)

def java_type(wire):
    text = json.dumps({"type": "struct", "fields": [{"id": 100, "name": "c", "required": False, "type": wire}]})
    return parser.fromJson(text).findField(100).type()

def change_schema(update, kind, *arguments):
    if kind in ("add", "add_required"):
        parent, name, wire, doc, default = arguments
        add = update.addColumn if kind == "add" else update.addRequiredColumn
        add(parent, name, java_type(wire), doc, None if default is None else lit(default))
    elif kind == "drop":
        update.deleteColumn(*arguments)
    elif kind == "rename":
        update.renameColumn(*arguments)
    elif kind == "widen":
        update.updateColumn(arguments[0], java_type(arguments[1]))
    elif kind == "optional":
        update.makeColumnOptional(*arguments)
    elif kind == "require":
        update.requireColumn(*arguments)
    elif kind == "doc":
        update.updateColumnDoc(*arguments)
    elif kind == "default":
        update.updateColumnDefault(arguments[0], lit(arguments[1]))
    elif kind == "first":
        update.moveFirst(*arguments)
    elif kind == "before":
        update.moveBefore(*arguments)
    elif kind == "after":
        update.moveAfter(*arguments)
    elif kind == "identify":
        names = jvm.java.util.ArrayList()
        for name in arguments[0]:
            names.add(name)
        update.setIdentifierFields(names)

def term_of(function, column, number):
    expressions = jvm.org.apache.iceberg.expressions.Expressions
    if function == "identity":
        return expressions.ref(column)
    if function in ("bucket", "truncate"):
        return getattr(expressions, function)(column, number)
    return getattr(expressions, function)(column)

def change_spec(update, kind, *arguments):
    if kind == "add":
        update.addField(arguments[1], term_of(*arguments[0]))
    elif kind == "remove":
        update.removeField(arguments[0])
    elif kind == "remove_term":
        update.removeField(term_of(*arguments[0]))
    elif kind == "rename":
        update.renameField(*arguments)
"""

RUN_SCHEMAS = """
result = []
for number, (version, start, steps) in enumerate(runs):
    table = create(f"{directory}/{number}", version, start, '{"spec-id":0,"fields":[]}')
    answers = [json.loads(parser.toJson(table.schema()))]
    for step in steps:
        try:
            update = table.updateSchema()
            change_schema(update, *step)
            update.commit()
            answers.append(json.loads(parser.toJson(table.schema())))
        except (Py4JJavaError, PySparkException) as error:
            answers.append(str(error)[:200])
    result.append([answers, table.operations().current().lastColumnId()])
"""

RUN_SPECS = """
result = []
for number, (version, schema, spec, steps) in enumerate(runs):
    table = create(f"{directory}/{number}", version, schema, spec)
    answers = [json.loads(specs.toJson(table.spec()))]
    for step in steps:
        try:
            update = table.updateSpec()
            for change in step:
                change_spec(update, *change)
            update.commit()
            answers.append(json.loads(specs.toJson(table.spec())))
        except (Py4JJavaError, PySparkException) as error:
            answers.append(str(error)[:200])
    result.append(answers)
"""

POINT = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "x", "required": True, "type": "float"},
        {"id": 2, "name": "y", "required": False, "type": "int", "doc": "up"},
    ],
}


def field(field_id: int, name: str, type_: Any, *, required: bool = False) -> dict[str, Any]:
    return {"id": field_id, "name": name, "required": required, "type": type_}


def list_of(field_id: int, element: Any, *, required: bool) -> dict[str, Any]:
    return {"type": "list", "element-id": field_id, "element": element, "element-required": required}


START = {
    "type": "struct",
    "schema-id": 0,
    "identifier-field-ids": [1],
    "fields": [
        field(1, "id", "long", required=True),
        field(2, "n", "int", required=True),
        field(3, "name", "string"),
        field(4, "price", "decimal(9, 2)"),
        field(5, "who", {"type": "struct", "fields": [field(9, "first", "string"), field(10, "ratio", "float")]}),
        field(
            6,
            "spots",
            list_of(11, {"type": "struct", "fields": [field(12, "x", "int"), field(13, "y", "int")]}, required=True),
        ),
        field(
            7,
            "by",
            {
                "type": "map",
                "key-id": 14,
                "key": {"type": "struct", "fields": [field(16, "k", "int"), field(17, "l", "int")]},
                "value-id": 15,
                "value": {"type": "struct", "fields": [field(18, "v", "float", required=True), field(19, "w", "int")]},
                "value-required": False,
            },
        ),
        field(8, "tags", list_of(20, "int", required=True)),
    ],
}
PATHS = [
    "id",
    "n",
    "name",
    "price",
    "who",
    "who.first",
    "who.ratio",
    "spots",
    "spots.element",
    "spots.element.x",
    "spots.y",
]
PATHS += [
    "by",
    "by.key",
    "by.key.k",
    "by.value",
    "by.value.v",
    "by.w",
    "tags",
    "tags.element",
    "extra",
    "who.extra",
    "nope",
]
PARENTS = [None, "who", "spots", "spots.element", "by", "by.value", "by.key", "tags", "n", "nope", "extra"]
NAMES = ["extra", "name", "first", "x", "v", "other"]
TYPES: list[Any] = [
    "int",
    "long",
    "double",
    "string",
    "decimal(12, 2)",
    "decimal(9, 3)",
    POINT,
    list_of(50, POINT, required=False),
]


def random_schema_step(chance: random.Random) -> Step:
    path = chance.choice(PATHS)
    return chance.choice(
        [
            [
                "add",
                chance.choice(PARENTS),
                chance.choice(NAMES),
                chance.choice(TYPES),
                chance.choice([None, "why"]),
                None,
            ],
            ["add_required", chance.choice(PARENTS), chance.choice(NAMES), "int", None, chance.choice([None, 7])],
            ["add", None, chance.choice(NAMES), "long", None, 7],
            ["drop", path],
            ["rename", path, chance.choice(NAMES)],
            ["widen", path, chance.choice(["int", "long", "double", "decimal(12, 2)", "string"])],
            ["optional", path],
            ["require", path],
            ["doc", path, "because"],
            ["default", path, 5],
            ["first", path],
            ["before", path, chance.choice(PATHS)],
            ["after", path, chance.choice(PATHS)],
            ["identify", chance.sample(["id", "n", "name", "who.first", "by.value.v", "price"], 2)],
        ]
    )


def apply_schema_step(schema: Schema, last: int, step: Step) -> tuple[Schema, int]:
    match step:
        case ["add" | "add_required" as kind, parent, name, wire, doc, default]:
            parts = (name,) if parent is None else (*parent.split("."), name)
            return evolution.add_column(
                schema, parts, parse_type(wire), last, doc=doc, required=kind == "add_required", default=default
            )
        case ["drop", path]:
            return evolution.drop_column(schema, path), last
        case ["rename", path, name]:
            return evolution.rename_column(schema, path, name), last
        case ["widen", path, wire]:
            return evolution.widen_column(schema, path, parse_type(wire), 2), last
        case ["optional", path]:
            return evolution.make_optional(schema, path), last
        case ["require", path]:
            return evolution.require_column(schema, path), last
        case ["doc", path, doc]:
            return evolution.set_doc(schema, path, doc), last
        case ["default", path, value]:
            decimal = isinstance(schema.find(path).type, DecimalType)
            return evolution.set_write_default(schema, path, Decimal(f"{value}.00") if decimal else value), last
        case ["first", path]:
            return evolution.move_column(schema, path, ("first",)), last
        case ["before" | "after" as where, path, other]:
            beside = schema.parents[schema.find(path).id] == schema.parents[schema.find(other).id]
            return evolution.move_column(schema, path, (where, schema.find(other).name if beside else other)), last
        case ["identify", names]:
            return evolution.set_identifier_fields(schema, names), last
    raise AssertionError(step)


def as_json(schema: Schema) -> Any:
    return comparable(json.loads(encode_json(schema)))


def comparable(wire: dict[str, Any]) -> Any:
    identifiers = sorted(wire.get("identifier-field-ids", []))
    return {"fields": wire["fields"], "identifier-field-ids": identifiers}


@pytest.mark.parametrize("version", [2, 3])
def test_schemas_evolve_as_in_java(official_runtime: OfficialRuntime, tmp_path: Path, version: int) -> None:
    chance = random.Random(version)  # noqa: S311
    start = decode_json(json.dumps(START).encode(), Schema, "x")
    runs = [(version, json.dumps(START), [random_schema_step(chance) for _ in range(8)]) for _ in range(30)]
    results = official_runtime.python(JAVA + RUN_SCHEMAS, runs=runs, directory=str(tmp_path))
    changed = 0
    for (_, _, steps), (answers, last_id) in zip(runs, results, strict=True):
        # Java gives the columns of a new table ids of its own
        schema, last = decode_json(json.dumps(answers[0]).encode(), Schema, "Java"), start.highest_id
        for step, answer in zip(steps, answers[1:], strict=True):
            try:
                evolved, next_last = apply_schema_step(schema, last, step)
                check_for_version(evolved, version)
                schema, last = evolved, next_last
                outcome: Any = as_json(schema)
                changed += 1
            except BerglineError as error:
                outcome = f"refused: {error}"
            if isinstance(answer, str):
                assert isinstance(outcome, str), (step, answer)
            elif isinstance(outcome, str):
                # names and words of elements, keys and values are written nowhere: Java changes nothing, silently
                assert step[0] in ("rename", "doc", "default"), (step, outcome)
                assert comparable(answer) == as_json(schema)
            else:
                assert outcome == comparable(answer), (step, outcome)
        assert last <= last_id
    assert changed > 40


SPEC_SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        field(1, "id", "long", required=True),
        field(2, "region", "string"),
        field(3, "ts", "timestamp"),
        field(4, "who", {"type": "struct", "fields": [field(5, "city", "string")]}),
    ],
}
TERMS: list[list[Any]] = [
    *(["identity", c, None] for c in ("id", "region", "ts", "who.city")),
    *([unit, "ts", None] for unit in ("year", "month", "day", "hour")),
    *(["bucket", "id", n] for n in (4, 16)),
    *(["truncate", "region", 2], ["bucket", "region", 4], ["day", "region", None]),
]
FIELD_NAMES = ["region", "ts_day", "id_bucket", "shard", "ts", "ts_hour", "id_bucket_4", "region_1000", "nope"]


def random_spec_change(chance: random.Random) -> Step:
    return chance.choice(
        [
            ["add", chance.choice(TERMS), None],
            ["add", chance.choice(TERMS), chance.choice(FIELD_NAMES)],
            ["remove", chance.choice(["region", "ts_day", "id_bucket", "shard"])],
            ["remove_term", chance.choice(TERMS)],
            ["rename", chance.choice(["region", "ts_day", "id_bucket"]), chance.choice(FIELD_NAMES)],
        ]
    )


def term_text(term: list[Any]) -> str:
    function, column, number = term
    return f"{function}({column})" if number is None else f"{function}({number}, {column})"


def our_change(change: Step, spec: PartitionSpec) -> SpecChange:
    match change:
        case ["add", term, name]:
            return AddField(term_text(term), name)
        case ["remove", name]:
            # a name that no field has may be a term here, but not in Java
            return RemoveField(name if any(f.name == name for f in spec.fields) else "no such field")
        case ["remove_term", term]:
            return RemoveField(term_text(term))
        case ["rename", name, new_name]:
            return RenameField(name, new_name)
    raise AssertionError(change)


def several_names(change: Step, schema: Schema, known: list[PartitionSpec]) -> bool:
    """Whether a field that comes back had several names: then Java takes any of them."""
    if change[0] != "add" or change[2] is not None:
        return False
    transform, column = parse_term(term_text(change[1]))
    source = schema.find(column).id
    return len({f.name for s in known for f in s.fields if (f.source_id, f.transform) == (source, transform)}) > 1


def spec_fields(wire: dict[str, Any]) -> Any:
    return wire["spec-id"], [(f["source-id"], f["field-id"], f["name"], f["transform"]) for f in wire["fields"]]


@pytest.mark.kinds(2)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_partition_specs_evolve_as_in_java(official_runtime: OfficialRuntime, tmp_path: Path, version: int) -> None:
    chance = random.Random(version)  # noqa: S311
    schema = decode_json(json.dumps(SPEC_SCHEMA).encode(), Schema, "x")
    first = parse_partition_by(["region", "day(ts)", "bucket(16, id)"], schema)
    runs = [
        (
            version,
            json.dumps(SPEC_SCHEMA),
            encode_json(first).decode(),
            [[random_spec_change(chance) for _ in range(chance.randint(1, 3))] for _ in range(8)],
        )
        for _ in range(30)
    ]
    results = official_runtime.python(JAVA + RUN_SPECS, runs=runs, directory=str(tmp_path))
    changed = 0
    for (*_, steps), answers in zip(runs, results, strict=True):
        spec, known, last = first, [first], first.highest_field_id
        for step, answer in zip(steps, answers[1:], strict=True):
            if any(several_names(change, schema, known) for change in step):
                break
            try:
                evolved, last = evolve_spec(
                    spec,
                    [our_change(c, spec) for c in step],
                    schema=schema,
                    format_version=version,
                    known=known,
                    last_partition_id=last,
                )
                spec = evolved
                changed += 1
                known += [] if any(k.spec_id == spec.spec_id for k in known) else [spec]
                spec = next(k for k in known if k.spec_id == spec.spec_id)
                outcome: Any = spec_fields(json.loads(encode_json(spec)))
            except BerglineError as error:
                outcome = f"refused: {error}"
            if isinstance(answer, str):
                assert isinstance(outcome, str), (step, answer, outcome)
            else:
                assert outcome == spec_fields(answer), (step, outcome)
    assert changed > 40
