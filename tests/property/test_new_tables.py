"""Whatever `create_table` accepts can be loaded as it was, and takes rows."""

import contextlib
from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bergline
from bergline.errors import BerglineError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.metadata.json import parse_metadata
from bergline.format.types.types import UNKNOWN, StructType

plain = st.sampled_from(
    [
        *(
            pa.bool_(),
            pa.int8(),
            pa.uint16(),
            pa.uint64(),
            pa.int64(),
            pa.float16(),
            pa.float64(),
            pa.null(),
            pa.uuid(),
        ),
        *(pa.string(), pa.large_binary(), pa.date64(), pa.time32("s"), pa.timestamp("ns"), pa.timestamp("s", "UTC")),
        *(pa.dictionary(pa.int8(), pa.string()), pa.binary_view(), pa.duration("s"), pa.decimal256(50, 2)),
    ]
)
decimals = st.builds(pa.decimal128, st.integers(1, 38), st.integers(-3, 40))
fixed = st.integers(0, 5).map(pa.binary)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)


def nested(inside: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.builds(lambda n, t, nullable: pa.field(n, t, nullable or t == pa.null()), names, inside, st.booleans())
    return (
        st.lists(fields, max_size=3).map(pa.struct)
        | inside.map(pa.list_)
        | st.builds(pa.map_, plain.filter(lambda t: not pa.types.is_null(t)), inside)
    )


types = st.recursive(plain | decimals | fixed, nested, max_leaves=4)
schemas = st.lists(st.builds(pa.field, names, types), min_size=1, max_size=3).map(pa.schema)
terms = names | names.map(lambda n: f"bucket(4, {n})")
ROW = pa.table({"id": [1]})
texts = st.text(max_size=4)
properties = st.dictionaries(texts, texts, max_size=2) | st.just({5: "a"}) | st.just({"a": None})


@settings(max_examples=60)
@example(pa.schema([("c", pa.struct([]))]), [], {}, "2")
@example(pa.schema([("c", pa.binary(0))]), [], {}, "2")
@example(pa.schema([("c", pa.decimal128(3, 5))]), ["c"], {}, "2")
@example(pa.schema([("c", pa.decimal128(5, -2))]), ["c"], {}, "2")
@example(pa.schema([("", pa.int64())]), [], {}, "2")
@given(
    schemas, st.lists(names | names.map(lambda n: f"bucket(4, {n})"), max_size=2), properties, st.sampled_from("123")
)
def test_table_that_was_created_is_the_table_that_is_loaded(
    schema: pa.Schema, partition_by: list[str], given_properties: dict[Any, Any], version: str
) -> None:
    lake = bergline.connect("memory:")
    lake.create_namespace("db")
    try:
        table = lake.create_table(
            "db.t", schema, partition_by=partition_by, properties={**given_properties, "format-version": version}
        )
    except (InvalidInputError, UnsupportedError, NotFoundError):
        assert not lake.table_exists("db.t")
        return
    location = table.metadata_location
    assert parse_metadata(table.io.read(location), location) == table.metadata
    # of which files hold nothing
    if all(f.type not in (UNKNOWN, StructType(())) for f in table.schema.ids.values()):
        table.append(pa.table({f.name: pa.nulls(2) for f in schema}))
        assert table.scan().to_arrow().num_rows == 2


odd = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3) | st.just("\ud800")
odd_texts = st.dictionaries(odd, odd, max_size=2) | odd
changes = st.one_of(
    st.tuples(st.just("properties"), odd_texts),
    st.tuples(st.just("remove"), odd | st.lists(odd, max_size=2)),
    st.tuples(st.just("append"), odd_texts),
    st.tuples(st.just("overwrite"), odd_texts),
    st.tuples(st.just("branch"), odd),
    st.tuples(st.just("keep"), odd),
    st.tuples(st.just("age"), odd),
    st.tuples(st.just("tag"), odd),
)


@settings(max_examples=60)
@given(st.lists(changes, max_size=4))
def test_table_that_was_changed_is_the_table_that_is_loaded(made: list[tuple[str, Any]]) -> None:
    lake = bergline.connect("memory:")
    lake.create_namespace("db")
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())])).append(ROW)
    for what, value in made:
        with contextlib.suppress(BerglineError):
            _change(table, what, value)
        location = table.metadata_location
        assert parse_metadata(table.io.read(location), location) == table.metadata


def _change(table: Any, what: str, value: Any) -> None:
    match what:
        case "properties":
            table.set_properties(value)
        case "remove":
            table.set_properties(remove=value)
        case "append":
            table.append(ROW, summary=value)
        case "overwrite":
            table.overwrite(ROW, summary=value)
        case "branch":
            table.refs.create_branch(value)
        case "keep":
            table.refs.set_retention("main", min_snapshots_to_keep=value)
        case "age":
            table.refs.create_branch("b", at=value, max_ref_age_ms=value)
        case "tag":
            table.refs.create_tag("t", at=value)
