"""Checks on what a caller hands over."""

from typing import Any

import pytest

from bergline.arguments import check_list, check_text, check_texts, check_whole
from bergline.errors import InvalidInputError


def test_right_values_come_back() -> None:
    assert check_text("a", "text") == "a"
    assert check_texts({"a": "b"}, "property") == {"a": "b"}
    assert check_list(["a", "b"], "column") == ("a", "b")
    assert check_whole(-(2**63), "an id") == -(2**63)


def test_several_properties_are_spelt_right() -> None:
    with pytest.raises(InvalidInputError, match="expected a list of properties, found 5"):
        check_list(5, "property")


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (check_text, 5, "expected a thing, found 5"),
        (check_text, "\ud800", "expected text without lone surrogates"),
        (check_texts, [("a", "b")], "expected a mapping with text for each a thing"),
        (check_texts, {5: "a"}, "expected text for the name of a a thing, found 5"),
        (check_texts, {"a": 5}, "expected text for a thing `a`, found 5"),
        (check_list, "abc", "expected a list of a things, found the text `abc`"),
        (check_list, 5, "expected a list of a things, found 5"),
        (check_list, ["a", 5], "expected text for a a thing, found 5"),
        (check_whole, True, "expected a whole number for a thing, found True"),
        (check_whole, 1.0, r"found 1\.0"),
        (check_whole, 2**63, "found 9223372036854775808"),
        (check_text, ["x" * 200], r"found \['xxx.*\.\.\.$"),
    ],
)
def test_wrong_values_are_refused(check: Any, value: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check(value, "a thing")
