"""Names of columns in requests."""

import pytest

from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, STRING, NestedField, StructType
from bergline.server.planning.fields import FieldNames

WHO = StructType((NestedField(id=3, name="Name", type=STRING, required=False),))
SCHEMA = Schema(
    fields=(
        NestedField(id=1, name="Id", type=LONG, required=True),
        NestedField(id=2, name="who", type=WHO, required=False),
    )
)


def test_names_are_found_in_their_case_or_in_any() -> None:
    assert FieldNames(SCHEMA).find("who.Name") == "who.Name"
    assert FieldNames(SCHEMA, case_sensitive=False).find("WHO.name") == "who.Name"
    with pytest.raises(NotFoundError) as missing:
        FieldNames(SCHEMA).find("id")
    assert missing.value.hints == ("there is `Id`",)


def test_ids_skip_metadata_columns_and_name_the_place_of_what_is_missing() -> None:
    assert FieldNames(SCHEMA).ids(["Id", "_file", "who.Name"], "$.select") == {1, 3}
    with pytest.raises(InvalidInputError, match=r"at \$\.select\[1\]"):
        FieldNames(SCHEMA).ids(["Id", "nothing"], "$.select")
