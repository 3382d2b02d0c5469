"""Names of namespaces and tables."""

import pytest

from bergline.catalog.identifiers import (
    MAX_NAME_LENGTH,
    TableName,
    check_lengths,
    parse_namespace,
    parse_table_name,
)
from bergline.errors import InvalidInputError


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("db.orders", TableName(("db",), "orders")),
        ("a.b.orders", TableName(("a", "b"), "orders")),
        (TableName(("a.b",), "c.d"), TableName(("a.b",), "c.d")),
    ],
)
def test_last_part_is_the_table(text: str | TableName, name: TableName) -> None:
    assert parse_table_name(text) == name


@pytest.mark.parametrize(("text", "namespace"), [("db", ("db",)), ("a.b", ("a", "b")), (("a.b", "c"), ("a.b", "c"))])
def test_namespace_is_text_or_levels(text: str | tuple[str, ...], namespace: tuple[str, ...]) -> None:
    assert parse_namespace(text) == namespace


@pytest.mark.parametrize("text", ["", "orders", "db.", ".orders", "db..orders", "db.a\0b", 5, None, "x" * 1_000_000])
def test_what_is_no_table_name_is_refused(text: object) -> None:
    with pytest.raises(InvalidInputError):
        parse_table_name(text)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "a..b", (), ("a", ""), ("a", 1), ("a",) * 1_000_000])
def test_what_is_no_namespace_is_refused(text: object) -> None:
    with pytest.raises(InvalidInputError):
        parse_namespace(text)  # type: ignore[arg-type]


def test_name_is_shown_with_dots_and_sorts_by_namespace() -> None:
    assert str(TableName(("a", "b"), "t")) == "a.b.t"
    assert TableName(("a",), "b") < TableName(("b",), "a")


def test_names_beyond_the_shared_layout_are_refused() -> None:
    check_lengths("x" * MAX_NAME_LENGTH)
    with pytest.raises(InvalidInputError, match=f"up to {MAX_NAME_LENGTH} characters, found {MAX_NAME_LENGTH + 1}"):
        check_lengths("a", "x" * (MAX_NAME_LENGTH + 1))
