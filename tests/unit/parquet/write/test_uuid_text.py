"""Text that is a UUID goes into UUID columns, also inside others; other text is refused by name."""

import uuid
from typing import Any

import pyarrow as pa
import pytest

from bergline.errors import InvalidInputError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import STRING, UUID, IcebergType, ListType, MapType, NestedField, StructType
from bergline.parquet.write.fit import fit_to_schema

ONE, TWO = uuid.UUID(int=1), uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


def fit(array: pa.Array, type_: IcebergType) -> list[Any]:
    schema = Schema(fields=(NestedField(1, "c", False, type_),))
    return fit_to_schema(pa.table({"c": array}), schema).column("c").to_pylist()


STRUCT = StructType((NestedField(2, "u", False, UUID), NestedField(3, "s", False, STRING)))


LISTS = ListType(4, UUID, True)
NESTED = StructType((NestedField(2, "n", False, StructType((NestedField(3, "l", False, LISTS),))),))
HIDDEN = pa.StructArray.from_arrays([pa.array([["any text"], [str(ONE)]])], ["n"], mask=pa.array([True, False]))


@pytest.mark.parametrize(
    ("array", "type_", "expected"),
    [
        (pa.array([str(ONE), None, str(TWO).upper()]), UUID, [ONE, None, TWO]),
        (pa.array([str(ONE)], pa.large_string()), UUID, [ONE]),
        (pa.array(["x", str(ONE), None])[1:], UUID, [ONE, None]),
        (pa.array([], pa.string()), UUID, []),
        (pa.array([{"s": "a", "u": str(TWO)}, None]), STRUCT, [{"u": TWO, "s": "a"}, None]),
        (
            pa.array([{"u": str(ONE)}, None]),
            StructType((NestedField(2, "u", True, UUID),)),
            [{"u": ONE}, None],
        ),
        (pa.array([{"n": {"l": [str(ONE)]}}, {"n": None}, None]), NESTED, [{"n": {"l": [ONE]}}, {"n": None}, None]),
        (HIDDEN, StructType((NestedField(2, "n", True, LISTS),)), [None, {"n": [ONE]}]),
        (pa.array([[str(ONE), None], None, []])[0:], ListType(2, UUID, False), [[ONE, None], None, []]),
        (pa.array([["x"], [str(ONE)], None])[1:], ListType(2, UUID, False), [[ONE], None]),
        (
            pa.array([[(str(ONE), str(TWO))], None], pa.map_(pa.string(), pa.string())),
            MapType(2, UUID, 3, UUID, False),
            [[(ONE, TWO)], None],
        ),
    ],
    ids=str,
)
def test_text_becomes_uuids_wherever_they_stand(array: pa.Array, type_: IcebergType, expected: list[Any]) -> None:
    assert fit(array, type_) == expected


@pytest.mark.parametrize(
    "text", ["", "x", str(ONE)[:-1], ONE.hex, f"{{{ONE}}}", f"urn:uuid:{ONE}", f"{ONE}\n", "1-1-1-1-1"]
)
def test_other_text_is_refused_with_its_column(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"expected `uuid`, found .* in column `c`"):
        fit(pa.array([str(ONE), text]), UUID)
    with pytest.raises(InvalidInputError, match=r"in column `c\.element`"):
        fit(pa.array([[text]]), ListType(2, UUID, False))


def test_other_types_are_no_uuids() -> None:
    with pytest.raises(InvalidInputError, match="expected `uuid`, found `int64` in column `c`"):
        fit(pa.array([1]), UUID)
