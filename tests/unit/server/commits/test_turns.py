"""Turns that a server has heard of, and commits that wait for their end without a thread."""

import asyncio
import time

import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.turns import Turn
from bergline.errors import UnavailableError
from bergline.server.commits.turns import KnownTurns
from bergline.server.http.errors import RequestRefused

A, B = TableName(("db",), "a"), TableName(("db",), "b")


class Database:
    """Who has a turn, as the database says."""

    def __init__(self) -> None:
        self.turn: Turn | None = None
        self.looks = 0
        self.is_there = True

    def read(self, _: TableName) -> Turn | None:
        self.looks += 1
        if not self.is_there:
            raise UnavailableError("gone")
        return self.turn


def waited(turns: KnownTurns, *holders: str | None, table: TableName = A) -> float:
    """How long they all wait, at the same time."""

    async def look(name: TableName) -> None:
        turns.look(name)

    async def run() -> None:
        async with asyncio.timeout(60):
            await asyncio.gather(*(turns.wait(table, holder, look) for holder in holders))

    started = time.monotonic()
    asyncio.run(run())
    return time.monotonic() - started


def test_nobody_waits_for_a_turn_that_is_over_or_its_own_or_of_another_table() -> None:
    database = Database()
    turns = KnownTurns(database.read, 10)
    waited(turns, "you", None)
    turns.note(A, Turn("me", 60_000))
    waited(turns, "me")
    waited(turns, "you", table=B)
    assert database.looks == 0


def test_the_others_wait_until_it_ends_by_itself() -> None:
    database = Database()
    database.is_there = False
    turns = KnownTurns(database.read, 10)
    turns.note(A, Turn("me", 200))
    assert waited(turns, "you", None) >= 0.2
    assert not turns._turns
    assert not turns._waiting


def test_one_of_all_who_wait_sees_that_it_was_given_back_elsewhere() -> None:
    database = Database()
    turns = KnownTurns(database.read, 100)
    turns.note(A, Turn("me", 600_000))
    waited(turns, *[None] * 50)
    assert database.looks == 1


def test_more_than_may_wait_are_refused() -> None:
    turns = KnownTurns(Database().read, 1)
    turns.note(A, Turn("me", 600_000))
    with pytest.raises(RequestRefused) as caught:
        waited(turns, None, None)
    assert caught.value.response.status == 503
