"""One field changed at any depth."""

import msgspec
import pytest

from bergline.errors import InvalidInputError
from bergline.format.evolution.columns import change_field
from bergline.format.types.types import INT, LONG, STRING, ListType, MapType, NestedField, StructType

KEY = StructType((NestedField(6, "k", False, INT),))
COLUMN = NestedField(
    1,
    "c",
    False,
    StructType(
        (
            NestedField(2, "l", False, ListType(3, INT, True)),
            NestedField(4, "m", False, MapType(5, KEY, 7, StructType((NestedField(8, "v", False, INT),)), False)),
        )
    ),
)


def widened(field: NestedField) -> NestedField:
    return msgspec.structs.replace(field, type=LONG)


def test_field_of_the_id_changes_and_all_others_stay() -> None:
    changed = change_field(COLUMN, 8, widened)
    assert changed.type == StructType(
        (
            NestedField(2, "l", False, ListType(3, INT, True)),
            NestedField(4, "m", False, MapType(5, KEY, 7, StructType((NestedField(8, "v", False, LONG),)), False)),
        )
    )


def test_element_changes_its_type_and_whether_it_may_be_null() -> None:
    changed = change_field(COLUMN, 3, lambda f: msgspec.structs.replace(f, type=LONG, required=False))
    assert isinstance(changed.type, StructType)
    assert changed.type.fields[0].type == ListType(3, LONG, False)


@pytest.mark.parametrize("field_id", [5, 6])
def test_keys_of_maps_stay(field_id: int) -> None:
    with pytest.raises(InvalidInputError, match="outside the keys of maps"):
        change_field(COLUMN, field_id, lambda f: msgspec.structs.replace(f, type=STRING))


@pytest.mark.parametrize("field_id", [6, 8, 99])
def test_nothing_changed_is_the_same_field(field_id: int) -> None:
    assert change_field(COLUMN, field_id, lambda f: f) is COLUMN
