"""The ids of plans."""

import secrets

import msgspec
import pytest

from bergline.errors import NotFoundError
from bergline.server.planning.plan_ids import LONGEST_PLAN_ID, PlanRecipe, new_plan_id, read_plan_id
from bergline.server.planning.tasks import PlanTask, packed

TASK = PlanTask(table="t", schema=3, snapshot=7, filter={"type": "eq", "term": "id", "value": 1}, select=("id",))


def test_id_holds_the_request_and_no_two_are_the_same() -> None:
    first, second = new_plan_id(TASK, 5), new_plan_id(TASK, 5)
    assert first != second
    assert first
    assert second
    assert (read_plan_id(first).task, read_plan_id(second).rows) == (TASK, 5)


def test_request_that_is_too_long_has_no_id() -> None:
    long = msgspec.structs.replace(TASK, filter=secrets.token_urlsafe(LONGEST_PLAN_ID))
    assert new_plan_id(long, 5) is None


def test_id_that_unfolds_to_more_than_any_request_is_no_plan() -> None:
    text = packed(PlanRecipe(msgspec.structs.replace(TASK, filter=[1] * 1_000_000)))
    assert len(text) < LONGEST_PLAN_ID
    with pytest.raises(NotFoundError, match="no plan"):
        read_plan_id(text)


@pytest.mark.parametrize(
    "text", ["", "x", "é", packed(TASK), packed(PlanRecipe(TASK, -1)), "A" * (LONGEST_PLAN_ID + 4)]
)
def test_other_texts_are_no_plan(text: str) -> None:
    with pytest.raises(NotFoundError, match="no plan") as caught:
        read_plan_id(text)
    assert caught.value.kind == "plan"
