"""Several writers, some of them behind, in every kind of trouble, against a plain value: what is read is what was done.

`BERGLINE_EXAMPLES=200 pytest tests/stateful/test_lake_model.py` runs longer, with other examples each time.
"""

import os
from collections.abc import Callable
from typing import ClassVar

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from bergline import Lake, Table
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import BerglineError, CommitUnknownError, ConflictError, RefusedError
from bergline.table.commits.retry import Timing
from bergline.testing.crashes import Crash, CrashingFileIO, Steps
from bergline.testing.faults import Fault, FaultyStore
from support.fixtures.catalog_backends import CatalogBackend, MemoryBackend, PostgresBackend, SqliteBackend
from support.fixtures.rows import ORDERS, ids, order_rows
from support.models.lake_model import (
    Act,
    ChangeColumn,
    CreateRef,
    Delete,
    DropRef,
    FastForward,
    Maintain,
    RefModel,
    ReplaceRef,
    SetProperty,
    TableModel,
    Together,
    World,
    Write,
    error_due,
    same_to_readers,
    worlds_after,
)
from support.models.table_invariants import Entries, check_nothing_is_missing

TABLES = {
    "db.orders": {"format-version": "2", "write.delete.mode": "copy-on-write"},
    "db.items": {"format-version": "3", "write.delete.mode": "merge-on-read"},
}
WRITERS = 3
Pick = int | str


class Trouble(msgspec.Struct, frozen=True):
    """What goes wrong during one act."""

    faults: tuple[Fault, ...] = ()
    late_after: int | None = None
    crash_at: int | None = None
    crash_after_swap: int | None = None
    rival: Act | None = None

    @property
    def loses_the_store(self) -> bool:
        return bool({Fault.STORE_GOES_AWAY, Fault.STORE_WENT_AWAY} & set(self.faults))


class Process:
    """A writer: a lake of its own, and its handles as it last saw the tables."""

    def __init__(self, place: CatalogBackend, world: World) -> None:
        self.steps = Steps()
        self.store = FaultyStore(place.store(), before_swap=self._before_swap, step=self.steps.take)
        self.at_first_swap: Callable[[], None] = lambda: None
        self.io = io = CrashingFileIO(place.io(), self.steps)
        self.lake = _lake(PointerCatalog(self.store, io, place.warehouse, sleep=lambda _: None))
        self.tables: dict[str, Table] = {}
        self.seen: World = {}
        for name in TABLES:
            self.look_again(name, world)

    def look_again(self, name: str, world: World) -> None:
        self.tables[name] = self.lake.load_table(name)
        self.seen[name] = world[name]

    def _before_swap(self) -> None:
        now, self.at_first_swap = self.at_first_swap, lambda: None
        now()


def _lake(catalog: PointerCatalog) -> Lake:
    return Lake(catalog, "lake", timing=Timing(sleep=lambda _: None))


NAMES = st.sampled_from(["main", "dev", "audit", "v1", "v2"])
PICKS = st.one_of(st.integers(0, 4), st.integers(0, 4), NAMES)  # a number stands for one of the refs that there are
KINDS = st.sampled_from([None, None, None, True, False])  # None stands for what would be right
TABLE = st.sampled_from(sorted(TABLES))
KEYS = st.sampled_from(["k1", "k2"])
COLUMNS = st.sampled_from(["c1", "c2"])
RIVALS = st.one_of(
    st.builds(Write, TABLE, NAMES, st.just((0,)), st.booleans()),
    st.builds(Delete, TABLE, NAMES, st.lists(st.integers(-2, 9), min_size=1, max_size=4).map(tuple)),
    st.builds(CreateRef, TABLE, NAMES, NAMES, st.booleans()),
    st.builds(ReplaceRef, TABLE, NAMES, NAMES, st.booleans()),
    st.builds(DropRef, TABLE, NAMES, st.booleans()),
    st.builds(SetProperty, TABLE, KEYS, st.sampled_from(["rival", None])),
    st.builds(ChangeColumn, TABLE, COLUMNS, st.booleans()),
    st.builds(Maintain, TABLE, st.sampled_from(["expire", "compact"]), st.just("main")),
)
LOST = st.sampled_from([Fault.LANDS_BUT_ANSWER_IS_LOST, Fault.NEVER_ARRIVES, Fault.ARRIVES_LATE])
GONE = st.sampled_from([Fault.STORE_GOES_AWAY, Fault.STORE_WENT_AWAY])
LATE = st.sampled_from([None, 0, 1, 2, 3])
CRASH = st.one_of(*(st.integers(first, first + 9) for first in range(1, 50, 10)))  # not mostly the first steps
TROUBLE = st.one_of(
    st.just(Trouble()),
    st.builds(Trouble, st.lists(LOST, min_size=1, max_size=3).map(tuple), LATE),
    st.builds(Trouble, st.lists(LOST, max_size=1).flatmap(lambda lost: GONE.map(lambda gone: (*lost, gone))), LATE),
    st.builds(Trouble, st.lists(st.just(Fault.REFUSED_AS_LOCKED), min_size=1, max_size=3).map(tuple)),
    st.builds(Trouble, crash_at=CRASH),
    st.builds(Trouble, crash_after_swap=st.integers(1, 9)),
    st.builds(Trouble, rival=RIVALS),
    st.builds(Trouble, st.lists(LOST, max_size=2).map(tuple), LATE, st.none(), st.integers(1, 20), RIVALS),
)
WRITER = st.integers(0, WRITERS - 1)


class LakeMachine(RuleBasedStateMachine):
    """The world as it should be, and the writers that change it one after the other or across each other."""

    place_of: ClassVar[Callable[[], CatalogBackend]]

    @initialize()
    def open(self) -> None:
        self.place = type(self).place_of()
        self.raw = self.place.store()
        self.io = self.place.io()
        lake = self._fresh_lake()
        lake.create_namespace("db")
        for name, properties in TABLES.items():
            lake.create_table(name, ORDERS, properties=properties).append(order_rows(-1)).append(order_rows(-2))
        self.parents: dict[int, int | None] = {}
        self.rows: dict[int, frozenset[int]] = {}
        self.files: dict[int, frozenset[str]] = {}
        self.manifests: dict[str, Entries] = {}
        self.expired: set[str] = set()
        self.late: list[tuple[Callable[[], bool], Act, bool]] = []
        self.next_id = 0
        self.world = self.look()
        self.processes = [Process(self.place, self.world) for _ in range(WRITERS)]

    def teardown(self) -> None:
        self.place.close()

    @rule(writer=WRITER, table=TABLE, branch=PICKS, overwrite=st.booleans(), count=st.integers(0, 3), trouble=TROUBLE)
    def write(self, writer: int, table: str, branch: Pick, overwrite: bool, count: int, trouble: Trouble) -> None:
        self.act(writer, Write(table, self.ref(table, branch), self.new_ids(count), overwrite), trouble)

    @rule(
        writer=WRITER,
        table=TABLE,
        branch=PICKS,
        picks=st.lists(st.integers(0, 5), min_size=1, max_size=3),
        count=st.integers(0, 1),
        trouble=TROUBLE,
    )
    def delete(self, writer: int, table: str, branch: Pick, picks: list[int], count: int, trouble: Trouble) -> None:
        name = self.ref(table, branch)
        ref = self.world[table].refs.get(name)
        there = sorted(ref.rows, reverse=True) if ref and ref.rows else [0]
        ids = tuple({there[pick % len(there)] for pick in picks})
        self.act(writer, Delete(table, name, ids, self.new_ids(count)), trouble)

    @rule(writer=WRITER, table=TABLE, name=NAMES, at=PICKS, tag=st.booleans(), trouble=TROUBLE)
    def create_ref(self, writer: int, table: str, name: str, at: Pick, tag: bool, trouble: Trouble) -> None:
        self.act(writer, CreateRef(table, name, self.ref(table, at), tag), trouble)

    @rule(writer=WRITER, table=TABLE, name=PICKS, at=PICKS, tag=KINDS, trouble=TROUBLE)
    def replace_ref(self, writer: int, table: str, name: Pick, at: Pick, tag: bool | None, trouble: Trouble) -> None:
        moved = self.ref(table, name)
        self.act(writer, ReplaceRef(table, moved, self.ref(table, at), self.kind(table, moved, tag)), trouble)

    @rule(writer=WRITER, table=TABLE, name=PICKS, tag=KINDS, trouble=TROUBLE)
    def drop_ref(self, writer: int, table: str, name: Pick, tag: bool | None, trouble: Trouble) -> None:
        dropped = self.ref(table, name)
        self.act(writer, DropRef(table, dropped, self.kind(table, dropped, tag)), trouble)

    @rule(writer=WRITER, table=TABLE, branch=PICKS, to=PICKS, trouble=TROUBLE)
    def fast_forward(self, writer: int, table: str, branch: Pick, to: Pick, trouble: Trouble) -> None:
        self.act(writer, FastForward(table, self.ref(table, branch), self.ref(table, to)), trouble)

    @rule(writer=WRITER, table=TABLE, key=KEYS, value=st.sampled_from(["a", "b", None]), trouble=TROUBLE)
    def set_property(self, writer: int, table: str, key: str, value: str | None, trouble: Trouble) -> None:
        self.act(writer, SetProperty(table, key, value), trouble)

    @rule(writer=WRITER, table=TABLE, column=COLUMNS, drop=KINDS, trouble=TROUBLE)
    def change_column(self, writer: int, table: str, column: str, drop: bool | None, trouble: Trouble) -> None:
        right = column in self.world[table].columns
        self.act(writer, ChangeColumn(table, column, right if drop is None else drop), trouble)

    @rule(
        writer=WRITER,
        table=TABLE,
        kind=st.sampled_from(["expire", "compact", "rewrite manifests"]),
        branch=PICKS,
        retain_last=st.integers(1, 3),
        trouble=TROUBLE,
    )
    def maintain(self, writer: int, table: str, kind: str, branch: Pick, retain_last: int, trouble: Trouble) -> None:
        self.act(writer, Maintain(table, kind, self.ref(table, branch), retain_last), trouble)

    @rule(writer=WRITER, table=TABLE, branch=PICKS, tag=NAMES, trouble=TROUBLE)
    def several_changes_to_one_table(self, writer: int, table: str, branch: Pick, tag: str, trouble: Trouble) -> None:
        written = self.ref(table, branch)
        acts = (
            Write(table, written, self.new_ids(1)),
            CreateRef(table, tag, written, tag=True),
            SetProperty(table, "k1", "together"),
            Write(table, written, self.new_ids(1)),
        )
        self.act(writer, Together(acts), trouble)

    @rule(writer=WRITER, branch=PICKS, overwrite=st.booleans(), trouble=TROUBLE)
    def both_tables(self, writer: int, branch: Pick, overwrite: bool, trouble: Trouble) -> None:
        acts = [Write(name, self.ref(name, branch), self.new_ids(1), overwrite) for name in TABLES]
        self.act(writer, Together(tuple(acts)), trouble)

    @rule(writer=WRITER, table=TABLE)
    def look_again(self, writer: int, table: str) -> None:
        self.processes[writer].look_again(table, self.world)

    @rule()
    def what_is_late_arrives(self) -> None:
        late, self.late = self.late, []
        for arrive, act, settled in late:
            if arrive():
                assert not settled, "a change arrived that was said to be there, or not to be"
                self.adopt(worlds_after(act, self.world, self))
        self.adopt([self.world])

    def ref(self, table: str, pick: Pick) -> str:
        there = sorted(self.world[table].refs)
        return pick if isinstance(pick, str) else there[pick % len(there)]

    def kind(self, table: str, name: str, tag: bool | None) -> bool:
        ref = self.world[table].refs.get(name)
        return not ref.is_branch if tag is None and ref else bool(tag)

    def new_ids(self, count: int) -> tuple[int, ...]:
        self.next_id += count
        return tuple(range(self.next_id - count + 1, self.next_id + 1))

    def act(self, writer: int, act: Act, trouble: Trouble) -> None:
        """Carry out an act in trouble, and check that it ended in one of the ways that it may end."""
        process, before = self.processes[writer], self.world
        seen = before if isinstance(act, Together) else before | process.seen
        rivalled: list[Act] = []

        def at_first_swap() -> None:
            if trouble.crash_after_swap is not None:
                process.steps.crash_at = process.steps.taken + trouble.crash_after_swap
            one = trouble.rival
            if one is None:
                return
            if isinstance(one, Write):
                one = msgspec.structs.replace(one, rows=self.new_ids(1))
            rivalled.append(one)
            self.act((writer + 1) % WRITERS, one, Trouble())

        process.at_first_swap = at_first_swap
        process.store.meet(*trouble.faults, late_after=trouble.late_after)
        if trouble.crash_at is not None:
            process.steps.crash_at = process.steps.taken + trouble.crash_at
        ended: BaseException | None = None
        try:
            act.run(process.lake, process.tables)
        except (BerglineError, Crash) as error:
            ended = error
        process.steps.crash_at, process.at_first_swap = None, lambda: None
        process.store.meet()
        if isinstance(act, Maintain) and act.kind == "expire":
            self.expired.add(act.table)
        self.judge(act, trouble, ended, [seen, before, self.world], rivalled)
        settled = not isinstance(ended, Crash | CommitUnknownError)
        self.late += [(arrive, act, settled) for arrive in process.store.take_late()]
        if isinstance(ended, Crash):
            process.io.end()
            self.processes[writer] = Process(self.place, self.world)
        elif ended is None and not isinstance(act, Together):
            process.seen[act.table] = self.world[act.table]

    def judge(
        self, act: Act, trouble: Trouble, ended: BaseException | None, worlds: list[World], rivalled: list[Act]
    ) -> None:
        """`worlds` are those that the act may have seen; the last one is the one that it was committed on."""
        now = worlds[-1]
        due = [error_due(act, world, self) for world in worlds]
        after = worlds_after(act, now, self) if due[-1] is None else []
        match ended:
            case None:
                assert due[-1] is None or due[0] is None, f"expected {due[-1]}"
                self.adopt(after or [now])  # what was done by others already is done
            case Crash():
                assert trouble.crash_at or trouble.crash_after_swap
                self.adopt([now, *after])
            case CommitUnknownError():
                assert trouble.loses_the_store
                self.adopt([now, *after])
            case ConflictError() if rivalled or worlds[0] != worlds[1]:  # compactions conflict, which nobody sees
                assert act.may_conflict or any(isinstance(r, ChangeColumn) for r in rivalled), ended
                self.adopt([now])
            case RefusedError() if isinstance(act, FastForward) and act.table in self.expired:
                self.adopt([now])
            case _:
                assert type(ended) in due, ended
                self.adopt([now])

    def adopt(self, worlds: list[World]) -> None:
        """Look at the lake as a new process would; what it reads must be one of these."""
        found = self.look()
        assert any(same_to_readers(found, world) for world in worlds), f"expected one of {worlds}, found {found}"
        self.world = found

    def look(self) -> World:
        lake = self._fresh_lake()
        return {name: self._look_at(lake.load_table(name)) for name in TABLES}

    def _look_at(self, table: Table) -> TableModel:
        for snapshot_id, files in check_nothing_is_missing(table, self.manifests).items():
            assert self.files.setdefault(snapshot_id, files) == files
        self.parents |= {s.snapshot_id: s.parent_snapshot_id for s in table.metadata.snapshots}
        return TableModel(
            refs={
                name: RefModel(ref.is_branch, self._rows(table, ref.snapshot_id), ref.snapshot_id)
                for name, ref in table.metadata.refs.items()
            },
            properties={k: v for k, v in table.properties.items() if k.startswith("k")},
            columns=frozenset(f.name for f in table.schema.fields) - set(ORDERS.names),
        )

    def _rows(self, table: Table, snapshot_id: int) -> frozenset[int]:
        if snapshot_id not in self.rows:
            found = ids(table.scan(snapshot_id=snapshot_id, columns=["id"]).to_arrow())
            self.rows[snapshot_id] = frozenset(found)
            assert len(found) == len(self.rows[snapshot_id]), f"{found} has rows twice"
        return self.rows[snapshot_id]

    def descends(self, snapshot_id: int, ancestor: int) -> bool:
        """By all that was ever seen."""
        current: int | None = snapshot_id
        while current is not None and current != ancestor:
            current = self.parents.get(current)
        return current == ancestor

    def _fresh_lake(self) -> Lake:
        return _lake(PointerCatalog(self.raw, self.io, self.place.warehouse))


LONG = os.environ.get("BERGLINE_EXAMPLES")


def check_model(place_of: Callable[[], CatalogBackend], examples: int, steps: int) -> None:
    machine = type("Machine", (LakeMachine,), {"place_of": staticmethod(place_of)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=int(LONG) if LONG else examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=not LONG,
            database=None,
        ),
    )


@pytest.mark.timeout(0 if LONG else 300)
def test_in_memory() -> None:
    check_model(MemoryBackend, 30, 25)


@pytest.mark.timeout(0 if LONG else 300)
def test_on_sqlite() -> None:
    check_model(SqliteBackend, 8, 25)


@pytest.mark.timeout(0 if LONG else 300)
def test_on_postgres(postgres: str) -> None:
    check_model(lambda: PostgresBackend(postgres), 8, 25)
