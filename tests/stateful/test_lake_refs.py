"""The whole lake at many refs against a plain value: every ref of every table has the rows that were written there.

`BERGLINE_EXAMPLES=200 pytest tests/stateful/test_lake_refs.py` runs longer, with other examples each time.
"""

import datetime as dt
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import bergline
from bergline import Lake, Table
from bergline.catalog.at_ref.lake_ref import LAKE_MAIN
from bergline.errors import AlreadyExistsError, ConflictError, NotFoundError, RefusedError
from bergline.format.metadata.invariants import check_invariants
from bergline.format.metadata.refs import MAIN
from bergline.server.opening import open_server
from support.fixtures.catalog_files import new_catalog_uri
from support.fixtures.rows import ORDERS, ids, order_rows
from support.models.table_invariants import check_nothing_is_missing
from support.servers.server_on_socket import on_socket

TABLES = ("db.orders", "db.items", "db.empty")
BRANCHES = ("staging", "fix/é", "dev")
OWN = ("db.own", "db.two")
"""Tables that are created at a branch."""
TABLE = st.sampled_from([*TABLES, *OWN])
AT = st.sampled_from([None, *BRANCHES])
LONG = os.environ.get("BERGLINE_EXAMPLES")
Line = tuple[tuple[int, frozenset[int]], ...]
"""The snapshots of a branch, oldest first, each with the rows that are read there."""


class TableModel(msgspec.Struct):
    """Branches and tags with their lines, and the columns that were added."""

    branches: dict[str, Line]
    tags: dict[str, Line]
    columns: set[str]
    lost_history: bool = False
    created_on: str | None = None
    """The branch that it is on alone."""

    def line(self, ref: str) -> Line:
        return self.tags.get(ref, self.branches.get(ref, self.branches[MAIN]))


def rows_of(line: Line) -> frozenset[int]:
    return line[-1][1] if line else frozenset()


class LakeRefsMachine(RuleBasedStateMachine):
    """Branches of the lake, and what is done at each."""

    opened: ClassVar[Callable[[], AbstractContextManager[Callable[[str | None], Lake]]]]

    @initialize()
    def open(self) -> None:
        self.opening = type(self).opened()
        self.connect = self.opening.__enter__()
        self.lake = self.connect(None)
        self.lake.create_namespace("db")
        self.model: dict[str, TableModel] = {}
        for place, name in enumerate(TABLES):
            self.lake.create_table(name, ORDERS, properties={"format-version": str(2 + place % 2)})
            self.model[name] = TableModel({MAIN: ()}, {}, set())
        self.at: dict[str, Lake] = {}
        self.handles: dict[tuple[str | None, str], Table] = {}
        self.moments: dict[str, dict[str, frozenset[int]]] = {}
        self.next_id = 0
        for branch in BRANCHES:  # which all tables may join
            self.lake.branches.create(branch)
            self.at[branch] = self.connect(branch)
        for name in TABLES[:2]:
            self.append(None, name, stale=False)

    def teardown(self) -> None:
        if hasattr(self, "opening"):
            self.opening.__exit__(None, None, None)

    @rule(at=AT, table=TABLE, stale=st.booleans())
    def append(self, at: str | None, table: str, stale: bool) -> None:
        row, lake = self.new_id(), self.lake_at(at, table)
        if lake is None:
            return
        handle = self.handles.get((at, table)) if stale else None
        handle = handle or lake.load_table(table)
        if self.lands(at, table, lambda: handle.append(order_rows(row))):
            self.handles[at, table] = handle
            self.moved(at, table, rows_of(self.model[table].line(at or MAIN)) | {row})

    @rule(at=AT, table=TABLE, pick=st.integers(0, 5))
    def delete(self, at: str | None, table: str, pick: int) -> None:
        lake = self.lake_at(at, table)
        there = [] if lake is None else sorted(rows_of(self.model[table].line(at or MAIN)))
        if lake is None or not there:
            return
        row = there[pick % len(there)]
        if self.lands(at, table, lambda: lake.load_table(table).delete(f"id = {row}")):
            self.moved(at, table, frozenset(there) - {row})

    @rule(at=AT, table=TABLE)
    def overwrite(self, at: str | None, table: str) -> None:
        row, lake = self.new_id(), self.lake_at(at, table)
        if lake is not None and self.lands(at, table, lambda: lake.load_table(table).overwrite(order_rows(row))):
            self.moved(at, table, frozenset([row]))

    @rule(at=AT)
    def append_to_all_at_once(self, at: str | None) -> None:
        lake, row = self.lake_at(at), self.new_id()
        if lake is None:
            return

        def together() -> None:
            with lake.transaction() as transaction:
                for name in TABLES:
                    transaction.load_table(name).append(order_rows(row))

        if any(at in self.model[name].tags for name in TABLES):
            with pytest.raises(RefusedError, match="is read at"):
                together()
            return
        together()
        for name in TABLES:
            self.moved(at, name, rows_of(self.model[name].line(at or MAIN)) | {row})

    @rule(branch=st.sampled_from(BRANCHES), table=st.sampled_from(OWN))
    def create_table_there(self, branch: str, table: str) -> None:
        lake = self.lake_at(branch)
        if lake is None:
            return
        if table in self.model:
            with pytest.raises(AlreadyExistsError):
                lake.create_table(table, ORDERS)
            return
        lake.create_table(table, ORDERS)
        self.model[table] = TableModel({MAIN: ()}, {}, set(), created_on=branch)
        self.append(branch, table, stale=False)

    @rule(branch=st.sampled_from(BRANCHES), table=TABLE)
    def drop_table_there(self, branch: str, table: str) -> None:
        lake = self.lake_at(branch)
        if lake is None or table not in self.model:
            return
        if self.model[table].created_on != branch:
            with pytest.raises(RefusedError, match="cannot drop table"):
                lake.drop_table(table)
            return
        lake.drop_table(table)
        self.model.pop(table)
        self.handles = {key: handle for key, handle in self.handles.items() if key[1] != table}
        for rows in self.moments.values():
            rows.pop(table, None)

    @rule(branch=st.sampled_from(BRANCHES), tables=st.sets(st.sampled_from(TABLES), min_size=1))
    def create_branch(self, branch: str, tables: set[str]) -> None:
        free = [t for t in sorted(tables) if branch not in self.model[t].branches | self.model[t].tags]
        free = [t for t in free if self.model[t].branches[MAIN]]
        if free:
            self.lake.branch(branch, free)
            for name in free:
                self.model[name].branches[branch] = self.model[name].branches[MAIN]

    @rule(tag=st.sampled_from(["v1", LAKE_MAIN, *BRANCHES]), at=st.sampled_from([MAIN, *BRANCHES]), table=TABLE)
    def create_tag(self, tag: str, at: str, table: str) -> None:
        model = self.model.get(table)
        if model and model.branches.get(at) and tag not in model.branches | model.tags:
            self.lake.tag(tag, [table], at=at)
            model.tags[tag] = model.branches[at]

    @rule(ref=st.sampled_from(["v1", LAKE_MAIN, *BRANCHES]))
    def drop(self, ref: str) -> None:
        having = [m for m in self.model.values() if ref in m.branches | m.tags]
        if not having:
            with pytest.raises(NotFoundError):
                self.lake.drop_ref(ref)
        else:
            self.lake.drop_ref(ref)
        for model in having:
            model.branches.pop(ref, None)
            model.tags.pop(ref, None)

    @rule(branch=st.sampled_from(BRANCHES), merge=st.booleans())
    def publish(self, branch: str, merge: bool) -> None:
        having = {n: m for n, m in self.model.items() if branch in m.branches | m.tags}
        if not having:
            with pytest.raises(NotFoundError):
                self.lake.publish(branch)
            return
        due = [self.is_published(model, branch, merge=merge) for model in having.values()]
        try:
            self.lake.publish(branch, merge=merge)
        except (ConflictError, RefusedError):
            if all(due):
                raise
            return
        for name, model in having.items():
            self.published(name, model, branch)

    @rule(at=AT, table=TABLE)
    def add_column(self, at: str | None, table: str) -> None:
        lake, column = self.lake_at(at, table), f"c{self.new_id()}"
        if lake is None:
            return

        def add() -> None:
            with lake.load_table(table).update_schema() as change:
                change.add_column(column, "string")

        if self.lands(at, table, add):
            self.model[table].columns.add(column)

    @rule(at=AT, table=TABLE)
    def expire(self, at: str | None, table: str) -> None:
        lake = self.lake_at(at, table)
        if lake is None:
            return
        handle = lake.load_table(table)
        before = lake.load_table(table).metadata.snapshots_by_id.keys()
        if at is None:
            handle.expire(older_than=dt.datetime.now(dt.UTC), retain_last=1)
        else:
            try:
                handle.expire(older_than=dt.datetime.now(dt.UTC), retain_last=1)
            except RefusedError:
                pass
            else:  # there was nothing to expire
                assert self.lake.load_table(table).metadata.snapshots_by_id.keys() == before
        if self.lake.load_table(table).metadata.snapshots_by_id.keys() != before:
            assert at == self.model[table].created_on
            self.model[table].lost_history = True

    @rule(table=TABLE, pick=st.integers(0, 3))
    def roll_main_back(self, table: str, pick: int) -> None:
        model = self.model.get(table)
        if model is None or len(model.branches[MAIN]) < 2 or model.lost_history:
            return
        line, handle = model.branches[MAIN], self.lake.load_table(table)
        end = len(line) - 1 - pick % (len(line) - 1)
        handle.refs.rollback(to=line[end - 1][0])
        model.branches[MAIN] = line[:end]

    @rule()
    def remember_the_time(self) -> None:
        time.sleep(0.003)
        now = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        on_main = {name: m for name, m in self.model.items() if m.created_on is None}
        self.moments[now] = {name: rows_of(m.branches[MAIN]) for name, m in on_main.items()}
        time.sleep(0.003)

    @invariant()
    def every_ref_has_its_rows(self) -> None:
        if not hasattr(self, "model"):
            return
        for name, model in self.model.items():
            table = self.lake.load_table(name)
            refs = {r: line for r, line in (model.branches | model.tags).items() if r != MAIN or line}
            assert set(table.refs) == set(refs)
            assert {r: found(table, ref=r) for r in refs} == {r: rows_of(line) for r, line in refs.items()}
            assert {f.name for f in table.schema.fields} - set(ORDERS.names) == model.columns
            check_nothing_is_missing(table, merged=True)
        assert self.lake.list_tables() == sorted(name for name, m in self.model.items() if m.created_on is None)
        for ref in BRANCHES:
            self.check_at(ref)
        for moment, rows in self.moments.items():
            at = self.connect(moment)
            for name, expected in rows.items():
                try:
                    table = at.load_table(name)
                except NotFoundError:
                    assert self.model[name].lost_history
                else:
                    check_invariants(table.metadata)
                    assert found(table) == expected

    def check_at(self, ref: str) -> None:
        lake = self.lake_at(ref)
        if lake is None:
            if not any(ref in m.tags for m in self.model.values()):
                with pytest.raises(NotFoundError):
                    self.connect(ref)
            return
        seen = {name: m for name, m in self.model.items() if m.created_on in {None, ref}}
        assert lake.list_tables() == sorted(seen)
        for name, model in seen.items():
            table, line = lake.load_table(name), model.line(ref)
            check_invariants(table.metadata)
            assert found(table) == rows_of(line)
            assert table.metadata.current_snapshot_id == (line[-1][0] if line else None)
            if LAKE_MAIN not in model.branches | model.tags and model.branches[MAIN]:
                assert found(table, ref=LAKE_MAIN) == rows_of(model.branches[MAIN])

    def lake_at(self, at: str | None, table: str | None = None) -> Lake | None:
        """The lake there; an older one where the branch was dropped since.

        None for a branch that never was, and where there is no such table.
        """
        if table is not None and (table not in self.model or self.model[table].created_on not in {None, at}):
            return None
        if at is None:
            return self.lake
        if at not in self.at and any(at in m.branches for m in self.model.values()):
            self.at[at] = self.connect(at)
        return self.at.get(at)

    def lands(self, at: str | None, table: str, act: Callable[[], object]) -> bool:
        """Whether a change is made: not where the name is a tag."""
        if at is not None and at in self.model[table].tags:
            with pytest.raises(RefusedError, match="is read at"):
                act()
            return False
        act()
        return True

    def moved(self, at: str | None, table: str, rows: frozenset[int]) -> None:
        ref, model = at or MAIN, self.model[table]
        model.branches[ref] = (*model.line(ref), (self.head(table, ref), rows))

    def head(self, table: str, ref: str) -> int:
        return self.lake.load_table(table).refs[ref].snapshot_id

    def is_published(self, model: TableModel, branch: str, *, merge: bool) -> bool:
        """Whether there is nothing that could refuse it."""
        if branch in model.tags or model.lost_history:
            return False
        own, main = model.branches[branch], model.branches[MAIN]
        base = common(own, main)
        if base in (own, main):
            return True
        if not merge or not base:
            return False
        kept = rows_of(base)
        return kept <= rows_of(own) and kept <= rows_of(main)

    def published(self, name: str, model: TableModel, branch: str) -> None:
        own, main, model.created_on = model.branches.pop(branch), model.branches[MAIN], None
        base = common(own, main)
        if base == main:
            model.branches[MAIN] = own
        elif base != own:
            rows = (rows_of(main) | (rows_of(own) - rows_of(base))) - (rows_of(base) - rows_of(own))
            model.branches[MAIN] = (*main, (self.head(name, MAIN), rows))

    def new_id(self) -> int:
        self.next_id += 1
        return self.next_id


def common(one: Line, other: Line) -> Line:
    length = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a[0] != b[0]), None)
    return one[: min(len(one), len(other)) if length is None else length]


def found(table: Table, ref: str | None = None) -> frozenset[int]:
    rows = ids(table.scan(ref=ref, columns=["id"]).to_arrow())
    assert len(rows) == len(set(rows)), f"{rows} has rows twice"
    return frozenset(rows)


@contextmanager
def in_process() -> Iterator[Callable[[str | None], Lake]]:
    with (
        tempfile.TemporaryDirectory() as directory,
        bergline.connect(new_catalog_uri(Path(directory) / "catalog.db")) as lake,
    ):
        yield lambda ref: lake if ref is None else lake.at(ref)


@contextmanager
def served() -> Iterator[Callable[[str | None], Lake]]:
    """Our client, to which the server's paths are all that tells of the ref."""
    with tempfile.TemporaryDirectory() as directory:
        context = open_server(new_catalog_uri(Path(directory) / "catalog.db"))
        with on_socket(context) as port:
            uri = f"http://127.0.0.1:{port}"
            yield lambda ref: bergline.connect(uri, warehouse=None if ref is None else f"lake@{ref}")
        context.catalog.close()


def check(
    opened: Callable[[], AbstractContextManager[Callable[[str | None], Lake]]], examples: int, steps: int
) -> None:
    machine = type("Machine", (LakeRefsMachine,), {"opened": staticmethod(opened)})
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
def test_in_process() -> None:
    check(in_process, 8, 16)


@pytest.mark.timeout(0 if LONG else 300)
def test_served() -> None:
    check(served, 2, 10)
