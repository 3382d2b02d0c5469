"""What a query asks for."""

import pytest

from bergline.catalog.identifiers import TableName
from bergline.console.links import name_text
from bergline.console.page import asked_table
from bergline.errors import InvalidInputError


@pytest.mark.parametrize(
    "name", [TableName(("db",), "orders"), TableName(("a.b", "c"), "d"), TableName(("db",), '<b>&"')]
)
def test_a_table_is_found_by_its_name_in_the_query(name: TableName) -> None:
    assert asked_table({"name": name_text(name)}) == name


def test_a_query_without_a_table_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="expected the name of a table in the query"):
        asked_table({"ref": "main"})
