"""What a commit does that finds somebody else's turn."""

import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.turns import (
    LONGEST_TURN_MS,
    Turn,
    TurnManners,
    TurnTaken,
    holding_turn,
    meeting_turns,
    turn_holder,
    wait_for_turn,
)

T = TableName(("db",), "t")
YOURS = Turn("you", 500)


def test_waits_until_the_turn_is_over() -> None:
    turns: list[Turn | None] = [YOURS, YOURS, None]
    waits: list[float] = []
    assert wait_for_turn(T, YOURS, lambda: turns.pop(0), waits.append)
    assert len(waits) == 3
    assert not turns


def test_own_turn_is_not_waited_for() -> None:
    with holding_turn("you"):
        assert turn_holder() == "you"
        assert not wait_for_turn(T, YOURS, lambda: YOURS, lambda _: pytest.fail("waited"))
    assert turn_holder() is None


def test_nobody_is_waited_for_longer_than_a_turn_may_last() -> None:
    waits: list[float] = []
    assert wait_for_turn(T, YOURS, lambda: YOURS, waits.append)
    assert LONGEST_TURN_MS <= 1000 * sum(waits) < LONGEST_TURN_MS + 100


def test_turn_is_raised_or_ignored_where_a_block_says_so() -> None:
    with meeting_turns(TurnManners.RAISE), pytest.raises(TurnTaken) as caught:
        wait_for_turn(T, YOURS, lambda: YOURS, lambda _: pytest.fail("waited"))
    assert (caught.value.table, caught.value.turn) == (T, YOURS)
    with meeting_turns(TurnManners.IGNORE):
        assert not wait_for_turn(T, YOURS, lambda: YOURS, lambda _: pytest.fail("waited"))
