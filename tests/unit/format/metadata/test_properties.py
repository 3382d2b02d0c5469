"""Properties: reserved ones, and those that are numbers."""

import pytest

from bergline.errors import InvalidInputError
from bergline.format.metadata.properties import (
    RESERVED_PROPERTIES,
    asked_format_version,
    stored_properties,
    whole_number,
)


def test_reserved_properties_are_not_stored() -> None:
    assert stored_properties(dict.fromkeys(RESERVED_PROPERTIES, "1") | {"owner": "ann"}) == {"owner": "ann"}
    assert len(RESERVED_PROPERTIES) == 9


def test_format_version_is_asked_for_by_a_property() -> None:
    assert asked_format_version({}, 2) == 2
    assert asked_format_version({"format-version": "3"}, 2) == 3


@pytest.mark.parametrize("text", ["-1", "1.5", "", "three", "\u00b2", "9" * 5000, "9" * 19])
def test_number_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="whole number"):
        whole_number({"p": text}, "p", 7)
