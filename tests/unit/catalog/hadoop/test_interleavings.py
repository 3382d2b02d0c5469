"""Commits, drops and creates of version files in every order of their file operations, with a death at every step."""

import functools
import itertools
import json
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from bergline.catalog.hadoop import version_files
from bergline.catalog.hadoop.hadoop_store import HadoopPointerStore
from bergline.testing.pointer_store_suite import ORDERS
from support.models.interleavings import UNFINISHED, Call, Files, Log, Moment, Program, Steps, moments, run_alone

State = bytes | None
"""The version that is the table, which has the name of the table and of all its changes; None if there is no table."""

Action = Callable[["Writer"], None]


class Writer:
    """One run of a program on a store of its own."""

    def __init__(self, steps: Steps, log: Log) -> None:
        self.store = HadoopPointerStore(steps, steps, "file:///wh")
        self.name = ""
        self._steps = steps
        self.call = log.call

    def read(self) -> tuple[str | None, State]:
        """The pointer and what is there."""
        pointer = None

        def load() -> State:
            nonlocal pointer
            pointer = self.store.read(ORDERS)
            return self._steps.read(pointer) if pointer else None

        data = self.call("read", (), load)
        return pointer, data


def create(writer: Writer) -> None:
    data = json.dumps({"table-uuid": writer.name, "changes": []}).encode()
    writer.call("create", (data,), lambda: writer.store.create(ORDERS, writer.store.stage(ORDERS, None, data)))


def commit(writer: Writer) -> None:
    pointer, data = writer.read()
    if pointer is None or data is None:
        return
    before = json.loads(data)
    after = json.dumps({**before, "changes": [*before["changes"], writer.name]}).encode()
    new = writer.store.stage(ORDERS, pointer, after)
    writer.call("swap", (data, after), lambda: writer.store.swap(ORDERS, pointer, new))


def drop(writer: Writer) -> None:
    writer.call("drop", (None,), lambda: writer.store.drop(ORDERS))


def drop_as_read(writer: Writer) -> None:
    pointer, data = writer.read()
    if pointer is not None:
        writer.call("drop", (data,), lambda: writer.store.drop(ORDERS, pointer))


def program(name: str, *actions: Action) -> Program:
    def run(steps: Steps, log: Log) -> None:
        writer = Writer(steps, log)
        ids = (f"{name}-{number}" for number in itertools.count())
        with mock.patch.object(version_files, "uuid4", ids.__next__):
            for number, action in enumerate(actions):
                writer.name = f"{name}{number}"
                action(writer)

    return run


def answered(state: State, call: Call) -> tuple[Any, State]:
    """What the contract has a call answer, and the state after it."""
    match call.kind, call.arguments:
        case "read", ():
            return state, state
        case "create", (data,):
            return state is None, data if state is None else state
        case "swap", (expected, new):
            return state == expected, new if state == expected else state
        case "drop", (expected,):
            goes = state is not None and expected in {None, state}
            return goes, None if goes else state
    raise AssertionError(call)


def is_explained(moment: Moment, start: State, end: State) -> bool:
    """Whether the calls, one by one in an order that keeps to theirs, give every answer and the end.

    Calls without an answer may have been done or not.
    """
    calls = {(writer, n): call for writer, own in enumerate(moment.calls) for n, call in enumerate(own)}

    def explains(left: frozenset[tuple[int, int]], state: State) -> bool:
        if state == end and all(calls[key].answer == UNFINISHED for key in left):
            return True
        for key in left:
            answer, after = answered(state, calls[key])
            if (
                calls[key].answer in (UNFINISHED, answer)
                and not any((other, key) in moment.order for other in left)
                and explains(left - {key}, after)
            ):
                return True
        return False

    return explains(frozenset(calls), start)


@functools.cache
def table_in(files: Files) -> State:
    """What a new reader finds."""
    _, (call,) = run_alone(files, lambda steps, log: Writer(steps, log).read())
    return call.answer


NO_TABLE: tuple[Action, ...] = ()
NEW_TABLE = (create,)
TABLE = (create, commit)
DROPPED = (create, commit, drop)


@pytest.mark.parametrize(
    ("before", "first", "second"),
    [
        (NO_TABLE, (create,), (create,)),
        (DROPPED, (create,), (create,)),
        (TABLE, (commit,), (commit,)),
        (NEW_TABLE, (commit,), (drop,)),
        (TABLE, (commit,), (drop_as_read,)),
        (TABLE, (drop,), (drop,)),
        (TABLE, (drop,), (create,)),
        (TABLE, (commit,), (drop, create)),
    ],
    ids=lambda actions: "+".join(action.__name__ for action in actions) or "nothing",
)
def test_every_order_of_steps_is_explained_by_calls_one_by_one(
    before: tuple[Action, ...], first: tuple[Action, ...], second: tuple[Action, ...]
) -> None:
    files, _ = run_alone(frozenset(), program("z", *before))
    start = table_in(files)
    programs = (program("a", *first), program("b", *second))
    looked_at = set()
    for moment in moments(files, programs, never_written=".gz"):
        end = table_in(moment.files)
        if (moment.calls, moment.order, end) not in looked_at:
            looked_at.add((moment.calls, moment.order, end))
            assert is_explained(moment, start, end), f"from {start} to {end} by {moment.calls}"
