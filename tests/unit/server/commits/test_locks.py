"""Locks of tables: one at a time, in turn, waited for in the event loop."""

import asyncio

import pytest

from bergline.catalog.identifiers import TableName
from bergline.server.commits.locks import Release, TableLocks
from bergline.server.http.errors import RequestRefused

A, B = TableName(("db",), "a"), TableName(("db",), "b")


def test_lock_is_given_in_the_order_in_which_it_was_asked_for() -> None:
    locks, order = TableLocks(100, 1000), []

    async def hold(number: int) -> None:
        release = await locks.take([A])
        order.append(number)
        await asyncio.sleep(0)
        release()

    async def run() -> None:
        await asyncio.gather(*(hold(number) for number in range(20)))

    asyncio.run(run())
    assert order == list(range(20))


def test_locks_of_several_tables_never_wait_for_each_other() -> None:
    locks, held = TableLocks(100, 1000), set()

    async def hold(names: list[TableName]) -> None:
        for _ in range(20):
            release = await locks.take(names)
            assert held.isdisjoint(names)
            held.update(names)
            await asyncio.sleep(0)
            held.difference_update(names)
            release()

    async def run() -> None:
        await asyncio.wait_for(asyncio.gather(*(hold(n) for n in ([A, B], [B, A], [A], [B], [A, A]))), 60)

    asyncio.run(run())


def test_whoever_stops_waiting_leaves_the_lock_to_the_next() -> None:
    locks = TableLocks(100, 1000)

    async def run() -> None:
        release = await locks.take([A])
        waiting = [asyncio.create_task(locks.take([A])) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        release()
        waiting[1].cancel()  # it has its turn already, and does not know yet
        (await asyncio.wait_for(waiting[2], 60))()
        (await asyncio.wait_for(locks.take([A]), 60))()

    asyncio.run(run())


def test_too_many_that_wait_or_too_many_bytes_are_refused_and_hold_nothing() -> None:
    locks = TableLocks(2, 100)

    async def run() -> None:
        release = await locks.take([A], 1000)  # whoever works does not wait
        first = asyncio.create_task(locks.take([A], 80))
        await asyncio.sleep(0)
        with pytest.raises(RequestRefused) as too_large:
            await locks.take([A, B], 30)
        second = asyncio.create_task(locks.take([A], 10))
        await asyncio.sleep(0)
        with pytest.raises(RequestRefused, match=r"too many commits wait for `db\.a`"):
            await locks.take([B, A])
        assert too_large.value.response.status == 503
        (await locks.take([B]))()
        release()
        for task in (first, second):
            (await task)()

    asyncio.run(run())


def test_those_that_wait_next_to_each_other_start_together() -> None:
    locks, started = TableLocks(100, 1000), []

    def start(members: list[str], release: Release) -> None:
        started.append("".join(members))
        release()

    async def run() -> None:
        release = await locks.take([A])
        for member in "abc":
            locks.take_together(A, 1, member, start)
        between = asyncio.create_task(locks.take([A]))
        await asyncio.sleep(0)
        for member in "de":
            locks.take_together(A, 1, member, start)
        assert started == []
        release()
        assert started == ["abc"]
        (await between)()
        assert started == ["abc", "de"]
        locks.take_together(A, 1, "f", start)
        assert started == ["abc", "de", "f"]
        (await locks.take([A]))()

    asyncio.run(run())


def test_no_more_start_together_than_fit() -> None:
    locks, sizes = TableLocks(1000, 1 << 40), []

    def start(members: list[int], release: Release) -> None:
        sizes.append(len(members))
        release()

    async def run() -> None:
        release = await locks.take([A])
        for number in range(100):
            locks.take_together(A, 1, number, start)
        for number in range(3):
            locks.take_together(A, 10 << 20, number, start)
        release()

    asyncio.run(run())
    assert sizes == [64, 37, 1, 1]
