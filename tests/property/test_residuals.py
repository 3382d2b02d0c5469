"""What a server leaves of a filter for a file keeps the very rows that the whole filter keeps."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bergline.expressions.evaluate import evaluate
from bergline.format.manifest.manifest import DataFile
from bergline.format.metadata.new_table import new_metadata
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.transforms import parse_transform
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, STRING, NestedField
from bergline.server.planning.fields import FieldNames
from bergline.server.planning.filters import file_filter, read_filter
from bergline.server.planning.residuals import Residuals

SCHEMA = Schema((NestedField(1, "n", False, LONG), NestedField(2, "s", False, STRING)), 0)
SPEC = PartitionSpec(
    0,
    tuple(
        PartitionField(name=f"f{i}", transform=parse_transform(text), source_id=source, field_id=1000 + i)
        for i, (source, text) in enumerate([(1, "bucket[3]"), (1, "truncate[4]"), (2, "truncate[1]")])
    ),
)
METADATA = new_metadata(
    schema=SCHEMA,
    spec=SPEC,
    location="file:///t",
    properties={},
    table_uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1",
    now_ms=0,
)
NUMBERS = st.integers(-6, 6)
TEXTS = st.text("ab", max_size=3)
ROWS = st.tuples(st.none() | NUMBERS, st.none() | TEXTS)
EMPTY = ("is-null", "not-null")
COMPARED = ("eq", "not-eq", "lt", "lt-eq", "gt", "gt-eq")


def column_tests(column: str, values: st.SearchStrategy[Any], *more: str) -> st.SearchStrategy[Any]:
    kinds = st.sampled_from([*COMPARED, *more])
    return (
        st.fixed_dictionaries({"type": kinds, "term": st.just(column), "value": values})
        | st.fixed_dictionaries({"type": st.sampled_from(EMPTY), "term": st.just(column)})
        | st.fixed_dictionaries(
            {"type": st.sampled_from(["in", "not-in"]), "term": st.just(column), "values": st.lists(values, max_size=3)}
        )
    )


FILTERS = st.recursive(
    st.booleans() | column_tests("n", NUMBERS) | column_tests("s", TEXTS, "starts-with", "not-starts-with"),
    lambda inside: (
        st.fixed_dictionaries({"type": st.sampled_from(["and", "or"]), "left": inside, "right": inside})
        | st.fixed_dictionaries({"type": st.just("not"), "child": inside})
    ),
    max_leaves=6,
)


OPPOSITE = {"lt": "gt-eq", "gt": "lt-eq", "eq": "not-eq", "in": "not-in", "is-null": "not-null", "and": "or"}
OPPOSITE |= {"starts-with": "not-starts-with"}
OPPOSITE |= {b: a for a, b in OPPOSITE.items()}


def holds(wire: Any, row: dict[str, Any]) -> bool:
    """Iceberg's filters by their definition: `not` goes down to the columns, where each test has its opposite."""
    if isinstance(wire, bool):
        return wire
    match wire["type"]:
        case "not":
            child = wire["child"]
            if isinstance(child, bool):
                return not child
            if child["type"] == "not":
                return holds(child["child"], row)
            sides = {k: {"type": "not", "child": child[k]} for k in ("left", "right") if k in child}
            return holds({**child, **sides, "type": OPPOSITE[child["type"]]}, row)
        case "and":
            return holds(wire["left"], row) and holds(wire["right"], row)
        case "or":
            return holds(wire["left"], row) or holds(wire["right"], row)
    value = row[wire["term"]]
    match wire["type"]:
        case "is-null":
            return value is None
        case "not-null":
            return value is not None
        case "not-eq" | "not-in" | "not-starts-with" as kind:
            return not holds({**wire, "type": OPPOSITE[kind]}, row)
        case "in":
            return value in wire["values"]
        case "eq":
            return bool(value == wire["value"])
    if value is None:
        return False
    if wire["type"] == "starts-with":
        return bool(value.startswith(wire["value"]))
    other = wire["value"]
    compared = {"lt": value < other, "lt-eq": value <= other, "gt": value > other, "gt-eq": value >= other}
    return compared[wire["type"]]


@settings(max_examples=100)
@given(FILTERS, st.lists(ROWS, min_size=1, max_size=5))
def test_what_is_left_keeps_the_rows_of_the_whole(filter_: Any, rows: list[tuple[Any, Any]]) -> None:
    names = FieldNames(SCHEMA)
    read = read_filter(filter_, names)
    residuals = Residuals(read, METADATA, SCHEMA)
    chosen = file_filter(read, names).predicate
    for n, s in rows:
        row = {"n": n, "s": s}
        values = (n, n, s)
        partition = tuple(
            None if v is None else f.transform.apply(SCHEMA.ids[f.source_id].type, v)
            for f, v in zip(SPEC.fields, values, strict=True)
        )
        left = json.loads(bytes(residuals.of(DataFile("f", "PARQUET", partition, 1, 1))))
        assert holds(left, row) is holds(filter_, row)
        assert (evaluate(chosen, row.__getitem__) is True) is holds(filter_, row)
