from typing import Any

from bergline import Table
from bergline.console.actions.registry import ACTIONS
from bergline.console.pages.actions import form_page
from bergline.errors import InvalidInputError


def test_form_offers_refs_of_the_right_kind_with_what_was_given(story: Table) -> None:
    fields: list[dict[str, Any]] = form_page(story, ACTIONS["merge"], {"branch": "v1"}).values["fields"]
    assert [f["choices"] for f in fields] == [["main", "audit", "fork", "v1"], ["main", "audit", "fork"], []]
    assert fields[0]["value"] == "v1"


def test_problem_stands_in_the_form(story: Table) -> None:
    problem = InvalidInputError("expected more", hints=["say more"])
    page = form_page(story, ACTIONS["expire"], {}, problem)
    assert page.values["problem"] == {"message": "expected more", "hints": ["say more"]}
