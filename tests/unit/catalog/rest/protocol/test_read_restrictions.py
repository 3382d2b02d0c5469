from typing import Any

import pytest

from bergline.catalog.rest.protocol.read_restrictions import read_restrictions


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        {"required-column-projections": []},
        {"required-column-projections": None, "required-row-filter": None},
        {"of-tomorrow": None},
    ],
)
def test_only_what_is_certainly_empty_restricts_nothing(content: Any) -> None:
    assert read_restrictions("db.t", content) is None


@pytest.mark.parametrize(
    ("content", "demands"),
    [
        ({"required-row-filter": {"type": "eq"}}, ("a row filter",)),
        ({"required-row-filter": {}}, ("a row filter",)),
        ({"required-row-filter": False}, ("a row filter",)),
        ({"required-column-projections": [{"field-id": 1}]}, ("column masks",)),
        ({"required-column-projections": {}}, ("column masks",)),
        ({"required-row-filter": 1, "required-column-projections": "x"}, ("a row filter", "column masks")),
        ({"of-tomorrow": []}, ("`of-tomorrow`",)),
        ([], ("restrictions of an unknown kind",)),
        (False, ("restrictions of an unknown kind",)),
        ("", ("restrictions of an unknown kind",)),
    ],
)
def test_anything_else_restricts_reads(content: Any, demands: tuple[str, ...]) -> None:
    found = read_restrictions("db.t", content)
    assert found is not None
    assert (found.table, found.demands) == ("db.t", demands)
