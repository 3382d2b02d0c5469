"""Types survive their JSON."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.schema.schema import Schema, assign_fresh_ids
from bergline.format.types.types import (
    PRIMITIVES,
    STRING,
    UNKNOWN,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

primitives: st.SearchStrategy[IcebergType] = st.one_of(
    st.sampled_from(list(PRIMITIVES.values())),
    st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: DecimalType(p, s))),
    st.integers(1, 1000).map(FixedType),
    st.sampled_from([GeometryType("OGC:CRS84"), GeometryType("srid:1"), GeographyType("srid:1", "karney")]),
)
ids = st.integers(1, 2**31 - 1)


def nested(children: st.SearchStrategy[IcebergType]) -> st.SearchStrategy[IcebergType]:
    fields = st.builds(NestedField, ids, st.text(max_size=8), st.booleans(), children, st.none() | st.text(max_size=5))
    return st.one_of(
        st.builds(ListType, ids, children, st.booleans()),
        st.builds(MapType, ids, children, ids, children, st.booleans()),
        st.lists(fields, min_size=1, max_size=3, unique_by=lambda f: f.name).map(lambda fs: StructType(tuple(fs))),
    )


types = st.recursive(primitives, nested, max_leaves=5)


@given(types)
def test_type_survives_its_json(type_: IcebergType) -> None:
    assert decode_json(encode_json(type_), IcebergType, "x") == type_


@given(st.lists(types, max_size=3))
def test_schema_with_fresh_ids_survives_its_json(columns: list[IcebergType]) -> None:
    struct = StructType(tuple(NestedField(n + 1, f"c{n}", False, t) for n, t in enumerate(columns)))
    fields = renumbered(struct.fields, iter(range(10_000)))
    schema = assign_fresh_ids(Schema(fields=fields))
    assert sorted(schema.ids) == list(range(1, len(schema.ids) + 1))
    assert decode_json(encode_json(schema), Schema, "x") == schema


def renumbered(fields: tuple[NestedField, ...], counter: Iterator[int]) -> tuple[NestedField, ...]:
    return tuple(
        NestedField(next(counter), f.name, may(f.required, f.type), renumber(f.type, counter), f.doc) for f in fields
    )


def may(required: bool, type_: IcebergType) -> bool:
    return required and type_ != UNKNOWN


def renumber(type_: IcebergType, counter: Iterator[int]) -> IcebergType:
    match type_:
        case StructType(fields):
            return StructType(renumbered(fields, counter))
        case ListType(_, element, required):
            return ListType(next(counter), renumber(element, counter), may(required, element))
        case MapType(_, key, _, value, required):
            key_type = STRING if key == UNKNOWN else renumber(key, counter)
            inner = renumber(value, counter)
            return MapType(next(counter), key_type, next(counter), inner, may(required, value))
    return type_
