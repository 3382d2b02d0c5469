"""Locks of tables: one at a time, in turn, waited for in the event loop."""

import asyncio
import random

import pytest

from bergline.catalog.identifiers import TableName
from bergline.server.commits.locks import Release, TableLocks
from bergline.server.http.errors import RequestRefused

A, B, C = (TableName(("db",), name) for name in "abc")


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
        assert waiting[0].cancelled()

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


async def waits(locks: TableLocks, *names: TableName) -> "asyncio.Task[Release]":
    """One that has to wait."""
    task = asyncio.create_task(locks.take(names))
    await asyncio.sleep(0)
    assert not task.done()
    return task


def test_who_waits_for_one_table_does_not_hold_up_the_others() -> None:
    locks = TableLocks(100, 1000)

    async def run() -> None:
        hot = await locks.take([B])
        before = await waits(locks, B)
        several = await waits(locks, A, B)
        for _ in range(3):
            (await locks.take([A]))()
        (await locks.take([C, A]))()
        passing = await locks.take([A])
        hot()
        (await before)()
        behind = [await waits(locks, A), await waits(locks, B), await waits(locks, B, C)]
        (await locks.take([C]))()
        passing()
        release = await several
        assert not any(task.done() for task in behind)
        release()
        for task in behind:
            (await task)()

    asyncio.run(run())


def test_tables_that_were_kept_for_one_that_gives_up_are_free_again() -> None:
    locks = TableLocks(100, 1000)

    async def run() -> None:
        hot = await locks.take([B])
        several = await waits(locks, A, B)
        passing = await locks.take([A])
        hot()
        behind, both = await waits(locks, B), await waits(locks, B, C)
        several.cancel()
        (await behind)()
        (await both)()
        passing()
        (await locks.take([A, B, C]))()
        assert several.cancelled()

    asyncio.run(run())


def test_those_that_wait_together_pass_one_that_waits_for_another_table() -> None:
    locks, started = TableLocks(100, 1000), []

    def start(members: list[str], release: Release) -> None:
        started.append("".join(members))
        release()

    async def run() -> None:
        slow, hot = await locks.take([B]), await locks.take([A])
        locks.take_together(A, 1, "a", start)
        several = await waits(locks, A, B)
        for member in "bc":
            locks.take_together(A, 1, member, start)
        hot()
        assert started == ["a", "bc"]
        locks.take_together(A, 1, "d", start)
        slow()
        locks.take_together(A, 1, "e", start)
        (await several)()
        assert started == ["a", "bc", "d", "e"]

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(30))
def test_everybody_has_a_turn_alone(seed: int) -> None:
    """Those that wait for one table only are never overtaken there by their like."""
    chance = random.Random(seed)  # noqa: S311  (no secret)
    names = [TableName(("db",), name) for name in "abcdef"]
    locks, held, finished = TableLocks(1000, 1 << 40), set[TableName](), list[int]()
    order: dict[TableName, list[int]] = {name: [] for name in names}

    async def hold(number: int, wanted: list[TableName]) -> None:
        task = asyncio.create_task(locks.take(wanted))
        if chance.random() < 0.1:
            await asyncio.sleep(0)
            if task.cancel():
                finished.append(number)
                return
        release = await task
        assert held.isdisjoint(wanted)
        held.update(wanted)
        if len(wanted) == 1:
            order[wanted[0]].append(number)
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        held.difference_update(wanted)
        finished.append(number)
        release()

    async def run() -> None:
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            for number in range(300):
                wanted = chance.sample(names, chance.choice((1, 1, 1, 2, 3, 6)))
                tasks.create_task(hold(number, wanted))
                if chance.random() < 0.3:
                    await asyncio.sleep(0)

    asyncio.run(run())
    assert sorted(finished) == list(range(300))
    assert all(numbers == sorted(numbers) for numbers in order.values())
    assert held == set()


def test_who_takes_several_gets_in_between_those_that_never_pause() -> None:
    locks, turns = TableLocks(100, 1000), 0

    async def again_and_again(name: TableName) -> None:
        nonlocal turns
        for _ in range(1000):
            release = await locks.take([name])
            turns += 1
            await asyncio.sleep(0)
            release()

    async def run() -> int:
        writers = [asyncio.create_task(again_and_again(name)) for name in (A, A, A, B, B, C)]
        await asyncio.sleep(0)
        (await locks.take([A, B, C]))()
        found = turns
        await asyncio.gather(*writers)
        return found

    assert asyncio.run(run()) < 50
    assert turns == 6000
