"""Several pointers in one step, with something going wrong at every single step of it."""

import contextlib
import datetime as dt
import itertools
import random
import time
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import obstore
import obstore.store
import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.object_store import commits as object_commits
from bergline.catalog.object_store.object_store import ObjectPointerStore
from bergline.catalog.pointer.pointer_store import PointerSwap
from bergline.errors import StorageError, UnavailableError
from bergline.io.conditional_objects import ConditionalObjects, StoredObject
from bergline.io.open_store import OpenStore
from support.fixtures.concurrency import run_for_each

A, B, C, NEW = (TableName(("db",), name) for name in ("a", "b", "c", "new"))
Values = dict[TableName, str | None]


class Trouble(Enum):
    """What happens to one of the requests that change something."""

    DIES_BEFORE = "the writer dies, and never sends it"
    DIES_AFTER = "the writer dies after it arrived"
    ANSWER_LOST = "it arrives, its answer does not"
    NEVER_ARRIVES = "it is lost on its way"
    ARRIVES_LATE = "the writer gives it up, and it arrives when everything is over"


class DeadError(BaseException):
    """The end of a process: nothing in it catches this."""


class TroubledObjects(ConditionalObjects):
    """Lets one request, counted from 0, run into trouble."""

    def __init__(self, objects: ConditionalObjects, step: int, trouble: Trouble) -> None:
        super().__init__(objects._store, objects.directory)
        self._left, self._trouble = step, trouble
        self._dead = False
        self.happened = False
        self.late: Callable[[], object] = lambda: None

    def read(self, name: str) -> StoredObject | None:
        self._check_alive()
        return super().read(name)

    def create(self, name: str, data: bytes) -> StoredObject | None:
        return self._step(lambda: super(TroubledObjects, self).create(name, data))

    def replace(self, name: str, found: StoredObject, data: bytes) -> StoredObject | None:
        return self._step(lambda: super(TroubledObjects, self).replace(name, found, data))

    def delete(self, name: str) -> None:
        return self._step(lambda: super(TroubledObjects, self).delete(name))

    def _check_alive(self) -> None:
        if self._dead:
            raise DeadError

    def _step(self, send: Callable[[], Any]) -> Any:
        self._check_alive()
        self._left -= 1
        if self._left != -1:
            return send()
        self.happened = True
        match self._trouble:
            case Trouble.DIES_BEFORE:
                self._dead = True
                raise DeadError
            case Trouble.DIES_AFTER:
                send()
                self._dead = True
                raise DeadError
            case Trouble.ANSWER_LOST:
                send()
            case Trouble.ARRIVES_LATE:
                self.late = send
        raise StorageError("the connection was lost")


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bergline.catalog.object_store.pointers._TIMEOUT_FOR_EACH_S", 0)
    monkeypatch.setattr("bergline.catalog.object_store.pointers._FIRST_WAIT_SECONDS", 0.00001)


def new_objects() -> ConditionalObjects:
    memory = obstore.store.MemoryStore()
    objects = ConditionalObjects(OpenStore(obstore, memory, memory), "memory://here/catalog")
    store = open_store(objects)
    for table in (A, B, C):
        store.create(table, "old")
    return objects


def open_store(objects: ConditionalObjects) -> ObjectPointerStore:
    return ObjectPointerStore(objects, pending_timeout_s=0)


def swap_three(store: ObjectPointerStore) -> bool:
    return store.swap_all([PointerSwap(table, "old", "new") for table in (C, A, B)])


def rename_one(store: ObjectPointerStore) -> bool:
    return store.rename(A, NEW)


OLD: Values = {A: "old", B: "old", C: "old", NEW: None}
OPERATIONS = [
    pytest.param(swap_three, {A: "new", B: "new", C: "new", NEW: None}, id="swap"),
    pytest.param(rename_one, {A: None, B: "old", C: "old", NEW: "old"}, id="rename"),
]


def values(store: ObjectPointerStore) -> Values:
    return {table: store.read(table) for table in OLD}


def troubles(trouble: Trouble) -> Iterator[tuple[ConditionalObjects, TroubledObjects, ObjectPointerStore]]:
    """A fresh catalog and a writer with trouble at step 0, 1, 2 … until the writer ends before its trouble begins."""
    for step in itertools.count():
        objects = new_objects()
        troubled = TroubledObjects(objects, step, trouble)
        yield objects, troubled, open_store(troubled)
        if not troubled.happened:
            assert step > 6
            return


def check_nothing_is_left(objects: ConditionalObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next commit of several tables clears away what others left."""
    with monkeypatch.context() as later:
        later.setattr(object_commits, "_LEFT_BEHIND", dt.timedelta(hours=-1))
        store = open_store(objects)
        swaps = [PointerSwap(t, found, f"{found}+") for t in (B, C) if (found := store.read(t))]
        assert store.swap_all(swaps)
    assert objects.names("commits") == []


@pytest.mark.parametrize("trouble", [Trouble.DIES_BEFORE, Trouble.DIES_AFTER])
@pytest.mark.parametrize(("operation", "after"), OPERATIONS)
def test_death_at_any_step_leaves_all_or_nothing_and_the_next_writer_goes_on(
    operation: Callable[[ObjectPointerStore], bool],
    after: Values,
    trouble: Trouble,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []
    for objects, troubled, store in troubles(trouble):
        try:
            assert operation(store)
        except DeadError:
            assert troubled.happened
        survivor = open_store(objects)
        found = values(survivor)
        assert found in (OLD, after)
        seen.append(found == after)
        names = [t for t, pointer in found.items() if pointer is not None]
        assert survivor.list_names(("db",)) == sorted(names)
        for table in names:
            assert survivor.swap(table, found[table] or "", "next")
        assert values(survivor) == {t: "next" if pointer else None for t, pointer in found.items()}
        check_nothing_is_left(objects, monkeypatch)
    assert seen == sorted(seen)  # once committed, it stays so at all later steps
    assert {*seen} == {False, True}


@pytest.mark.parametrize("trouble", [Trouble.ANSWER_LOST, Trouble.NEVER_ARRIVES, Trouble.ARRIVES_LATE])
@pytest.mark.parametrize(("operation", "after"), OPERATIONS)
def test_lost_request_or_answer_at_any_step_is_told_as_it_is(
    operation: Callable[[ObjectPointerStore], bool],
    after: Values,
    trouble: Trouble,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = set()
    for objects, troubled, store in troubles(trouble):
        try:
            answer: object = operation(store)
        except (StorageError, UnavailableError) as error:
            answer = type(error)
        answers.add(answer)
        reader = open_store(objects)
        allowed = {True: [after], UnavailableError: [OLD], StorageError: [OLD, after]}[answer]
        assert values(reader) in allowed
        troubled.late()
        now = values(reader)
        assert now in allowed
        check_nothing_is_left(objects, monkeypatch)
        assert values(reader)[A] == now[A]
    assert answers == {True, UnavailableError, StorageError}


@pytest.mark.parametrize(("operation", "after"), OPERATIONS)
def test_request_that_arrives_after_others_went_on_changes_nothing(
    operation: Callable[[ObjectPointerStore], bool], after: Values, monkeypatch: pytest.MonkeyPatch
) -> None:
    for objects, troubled, store in troubles(Trouble.ARRIVES_LATE):
        try:
            operation(store)
        except (StorageError, UnavailableError):
            assert troubled.happened
        others = open_store(objects)
        for table, pointer in values(others).items():
            assert others.swap(table, pointer, "next") if pointer else others.create(table, "created")
        check_nothing_is_left(objects, monkeypatch)
        found = values(others)
        troubled.late()
        assert values(others) == found
        assert None not in found.values()


def test_writer_that_was_taken_for_dead_starts_again() -> None:
    objects = new_objects()

    class Impatient(ConditionalObjects):
        def replace(self, name: str, found: StoredObject, data: bytes) -> StoredObject | None:
            if b'"committed"' in data and impatience:
                impatience.pop()
                assert open_store(objects).swap(B, "old", "old")  # meets the intent, and aborts its commit
            return super().replace(name, found, data)

    impatience = [1, 2, 3]
    assert swap_three(open_store(Impatient(objects._store, objects.directory)))
    assert not impatience
    assert values(open_store(objects)) == {A: "new", B: "new", C: "new", NEW: None}
    assert objects.names("commits") == []


def test_readers_do_not_change_anything() -> None:
    objects = new_objects()
    troubled = TroubledObjects(objects, 3, Trouble.DIES_AFTER)  # record, two intents
    with pytest.raises(DeadError):
        swap_three(open_store(troubled))
    before = {name: objects.read(name) for name in (*objects.names("pointers"), *objects.names("commits"))}
    assert values(open_store(objects)) == OLD
    assert {name: objects.read(name) for name in before} == before
    assert sum(b'"intent"' in stored.data for stored in before.values() if stored) == 3


class UnluckyObjects(ConditionalObjects):
    """Every request may be slow, and one that changes something may lose its answer, or be its writer's last."""

    def __init__(self, objects: ConditionalObjects, seed: int) -> None:
        super().__init__(objects._store, objects.directory)
        self._random = random.Random(seed)  # noqa: S311
        self._dead = False

    def read(self, name: str) -> StoredObject | None:
        self._meet_fate()
        return super().read(name)

    def create(self, name: str, data: bytes) -> StoredObject | None:
        return self._step(lambda: super(UnluckyObjects, self).create(name, data))

    def replace(self, name: str, found: StoredObject, data: bytes) -> StoredObject | None:
        return self._step(lambda: super(UnluckyObjects, self).replace(name, found, data))

    def delete(self, name: str) -> None:
        return self._step(lambda: super(UnluckyObjects, self).delete(name))

    def _meet_fate(self) -> None:
        if self._dead or self._random.random() < 0.003:
            self._dead = True
            raise DeadError
        time.sleep(self._random.choice((0, 0, 0.0005)))

    def _step(self, send: Callable[[], Any]) -> Any:
        self._meet_fate()
        if self._random.random() < 0.02:
            raise StorageError("the connection was lost")
        result = send()
        if self._random.random() < 0.02:
            raise StorageError("the connection was lost")
        self._meet_fate()
        return result


@pytest.mark.parametrize("seed", range(6))
def test_unlucky_writers_of_several_tables_leave_each_change_in_all_its_tables_once_or_in_none(seed: int) -> None:
    """Every pointer is the list of all changes to it, so what was lost, doubled or torn apart shows in the end."""
    objects = new_objects()
    tried: dict[str, list[TableName]] = {}
    done: list[str] = []
    refused: list[str] = []

    def work(writer: int) -> None:
        choose = random.Random(100 * seed + writer)  # noqa: S311
        with contextlib.suppress(DeadError):
            store = ObjectPointerStore(UnluckyObjects(objects, 1000 * seed + writer), pending_timeout_s=0.02)
            for number in range(12):
                tables, change = choose.sample((A, B, C), choose.randint(1, 3)), f"{writer}-{number}"
                tried[change] = sorted(tables)
                with contextlib.suppress(StorageError):
                    try:
                        found = {t: store.read(t) or "" for t in tables}
                        moved = store.swap_all([PointerSwap(t, found[t], f"{found[t]},{change}") for t in tables])
                        (done if moved else refused).append(change)
                    except UnavailableError:
                        refused.append(change)

    run_for_each(work, range(5))
    store = open_store(objects)
    lists = {t: (store.read(t) or "").split(",")[1:] for t in (A, B, C)}
    for changes in lists.values():
        assert len(set(changes)) == len(changes)
    for change, tables in tried.items():
        there = [t for t in (A, B, C) if change in lists[t]]
        assert there in ([tables] if change in done else [[]] if change in refused else [[], tables])
    assert done
