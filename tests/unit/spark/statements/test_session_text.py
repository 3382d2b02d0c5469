"""`${name}` in a text."""

import pytest

from bergline.spark.statements.session_text import with_values

VALUES = {
    ("", "t"): "db.orders",
    ("spark", "t"): "db.orders",
    ("", "outer"): "${inner}.x",
    ("", "inner"): "db",
    ("", "self"): "${self}",
    ("", "a.b"): "dotted",
    ("", "dollar"): "$",
    ("env", "HOME"): r"C:\new",
}


def value_of(prefix: str, name: str) -> str | None:
    if name == "refused":
        raise LookupError(name)
    return VALUES.get((prefix, name))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("SELECT 1 FROM ${t}", "SELECT 1 FROM db.orders"),
        ("${spark:t} ${t}", "db.orders db.orders"),
        ("${outer}", "db.x"),
        ("${a.b} ${env:HOME}", r"dotted C:\new"),
        ("${unknown} ${nobody:t} ${} $t {t}", "${unknown} ${nobody:t} ${} $t {t}"),
        ("${a b}", "${a b}"),
        ("'${t}' -- ${t}", "'db.orders' -- db.orders"),
    ],
)
def test_values_stand_in_place_of_variables(text: str, read: str) -> None:
    assert with_values(text, value_of) == read


@pytest.mark.parametrize("text", ["${t} ${self}", "${dollar}{t}", "${t} ${refused}"])
def test_text_stays_where_it_would_not_be_the_same_when_it_is_read_again(text: str) -> None:
    assert with_values(text, value_of) == text
