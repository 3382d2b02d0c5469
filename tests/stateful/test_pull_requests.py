"""Pull requests under pushes, reviews and publishes in any order: never published with stale checks or approvals."""

import os
import subprocess
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from hypothesis.strategies import sampled_from

import bergline
from bergline.catalog.protection.caller import acting_as
from bergline.errors import ConflictError, NotFoundError, RefusedError
from bergline.governance.pull_requests.model import EntryKind, PullRequestState, Standing, TableHead
from bergline.governance.pull_requests.pull_requests import PullRequest
from support.fixtures.reviewing_lake import RULES, TABLES, guarded, ids, push
from support.paths import PROCESSES

LONG = os.environ.get("BERGLINE_EXAMPLES")
WHO = sampled_from(["ann", "bob", "eve"])
Head = tuple[str, int]
PUBLISHED: Counter[str] = Counter()
ROWS = 6


class PullRequestsMachine(RuleBasedStateMachine):
    """One pull request after the other of a branch of two tables, looked at by three people at different times."""

    @initialize()
    def open_lake(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.lake = bergline.connect(f"sqlite:///{self.directory.name}/catalog.db", create=True)
        guarded(self.lake)
        self.lake.create_namespace("db")
        for name in TABLES:
            table = self.lake.create_table(name, pa.schema([("id", pa.int64())]), properties=RULES[name])
            with acting_as("admin"):
                table.append(pa.table({"id": [0]}))
        self.rows: dict[tuple[str, str], list[int]] = {(name, "main"): [0] for name in TABLES}
        self.approvals: dict[Head, set[str]] = {}
        self.checks: dict[Head, str] = {}
        self.number, self.next_row = 0, 1
        self.begin()

    def teardown(self) -> None:
        if hasattr(self, "lake"):
            self.lake.close()
            self.directory.cleanup()

    def begin(self) -> None:
        """A new branch with a row more in each table, and ann's pull request for it."""
        self.lake.branch("work", TABLES)
        for name in TABLES:
            self.rows[name, "work"] = list(self.rows[name, "main"])
            self.add(name, "work")
        with acting_as("ann"):
            self.number = self.lake.pull_requests.open("work").number
        self.open, self.version = True, 1
        self.diverged: set[str] = set()
        self.approved: dict[str, set[Head]] = {}
        self.seen: dict[str, tuple[PullRequest, frozenset[Head], int]] = {}
        for who in ("ann", "bob", "eve"):
            self.look(who)

    def add(self, table: str, branch: str) -> None:
        with acting_as("admin"):
            push(self.lake, table, self.next_row, branch)
        self.rows[table, branch].append(self.next_row)
        self.next_row += 1

    @property
    def heads(self) -> frozenset[Head]:
        return frozenset((name, self.lake.load_table(name).refs["work"].snapshot_id) for name in TABLES)

    @rule(who=WHO)
    def look(self, who: str) -> None:
        with acting_as(who):
            self.seen[who] = (self.lake.pull_requests.get(self.number), self.heads, self.version)

    @rule(table=sampled_from(TABLES))
    def push(self, table: str) -> None:
        self.add(table, "work")

    @rule(table=sampled_from(TABLES))
    def target_moves(self, table: str) -> None:
        self.add(table, "main")
        self.diverged.add(table)

    @rule(who=WHO)
    def approve(self, who: str) -> None:
        request, seen, _ = self.seen[who]
        allowed = self.open and who != "ann" and seen == self.heads
        with acting_as(who):
            if not self.happens(request.approve, allowed):
                return
        for head in seen:
            self.approvals.setdefault(head, set()).add(who)
        self.approved.setdefault(who, set()).update(seen)
        self.changed(who)

    @rule(who=WHO)
    def withdraw(self, who: str) -> None:
        request, _, _ = self.seen[who]
        with acting_as(who):
            if not self.happens(request.withdraw, self.open and who in self.approved):
                return
        for head in self.approved[who]:
            self.approvals[head].discard(who)
        self.changed(who)

    @rule(who=WHO, state=sampled_from(["passed", "passed", "failed", "pending"]))
    def check(self, who: str, state: str) -> None:
        request, seen, _ = self.seen[who]
        with acting_as(who):
            if not self.happens(lambda: request.report_check("nulls", state, heads=dict(seen)), self.open):
                return
        self.checks |= dict.fromkeys(seen, state)
        self.changed(who)

    @rule(
        who=sampled_from(["ann", "bob"]),
        between=sampled_from(["nothing", "nothing", "push", "withdraw", "check", "target", "look"]),
        method=sampled_from(["fast-forward", "merge"]),
    )
    def review_and_publish(self, who: str, between: str, method: str) -> None:
        """Eve approves what is there, with its check passed; somebody looks, something happens, and they publish."""
        self.look("eve")
        self.check("eve", "passed")
        self.approve("eve")
        self.look(who)
        match between:
            case "push":
                self.push(TABLES[0])
            case "withdraw":
                self.withdraw("eve")
            case "check":
                self.check("eve", "failed")
            case "target":
                self.target_moves(TABLES[1])
            case "look":
                self.withdraw("eve")
                self.look(who)
        self.publish(who, method, keep=True)

    @rule(who=WHO, method=sampled_from(["fast-forward", "merge"]), keep=sampled_from([True, False]))
    def publish(self, who: str, method: str, keep: bool) -> None:
        request, seen, version = self.seen[who]
        allowed = (
            self.open
            and seen == self.heads
            and version == self.version
            and all(self.is_ready(head, who) for head in seen)
            and (method == "merge" or not self.diverged)
        )
        with acting_as(who):
            done = self.happens(lambda: request.publish(method=method, keep_branch=keep), allowed)
        if not done:
            return
        PUBLISHED[method] += 1
        for name in TABLES:
            new = [row for row in self.rows[name, "work"] if row not in self.rows[name, "main"]]
            self.rows[name, "main"] += new
            assert ids(self.lake, name) == sorted(self.rows[name, "main"])
        assert (self.lake.tables_with_ref("work") != []) is keep
        if keep:
            self.lake.drop_ref("work")
        self.begin()

    @rule(who=WHO)
    def close(self, who: str) -> None:
        with acting_as(who):
            if self.happens(self.seen[who][0].close, self.open):
                self.open = False
                self.changed(who)

    @precondition(lambda self: not self.__dict__.get("open", True))
    @rule(who=WHO)
    def reopen(self, who: str) -> None:
        with acting_as(who):
            self.seen[who][0].reopen()
        self.open = True
        self.changed(who)

    @rule()
    def overview_says_what_would_happen(self) -> None:
        with acting_as("ann"):
            overview = self.lake.pull_requests.get(self.number).overview
        assert (overview.record.state is PullRequestState.OPEN) is self.open
        assert overview.record.version == self.version
        assert {str(t.name) for t in overview.tables if t.standing is Standing.DIVERGED} == self.diverged
        assert set(overview.approved_by) == set.intersection(*(self.approvals.get(h, set()) for h in self.heads))
        ready = all(self.is_ready(head, "ann") for head in self.heads)
        assert (overview.obstacles == ()) is (self.open and ready)

    def is_ready(self, head: Head, who: str) -> bool:
        """Whether the rules of a head's table would let somebody publish it; no check is one of a merge's snapshot."""
        table, state = head[0], self.checks.get(head)
        demanded = state == "passed" and table not in self.diverged if "checks" in str(RULES[table]) else True
        return demanded and state in {None, "passed"} and bool(self.approvals.get(head, set()) - {who})

    def changed(self, who: str) -> None:
        """One's own change is no surprise: what it returns has the version that one publishes."""
        self.version += 1
        request, seen, _ = self.seen[who]
        self.seen[who] = (request, seen, self.version)

    def happens(self, act: Callable[[], object], allowed: bool) -> bool:
        """Whether something happened, which must be so if and only if it is allowed."""
        before = {name: self.lake.load_table(name).metadata_location for name in TABLES}
        try:
            act()
        except (ConflictError, RefusedError, NotFoundError):
            assert not allowed
            assert {name: self.lake.load_table(name).metadata_location for name in TABLES} == before
            return False
        assert allowed
        return True


@pytest.mark.timeout(0 if LONG else 300)
def test_nothing_is_published_with_stale_checks_or_approvals() -> None:
    fixed = settings(
        max_examples=12,
        stateful_step_count=30,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(PullRequestsMachine, settings=fixed)
    assert set(PUBLISHED) == {"fast-forward", "merge"}
    if LONG:
        chance = settings(fixed, max_examples=int(LONG), derandomize=False, phases=[Phase.generate, Phase.shrink])
        run_state_machine_as_test(PullRequestsMachine, settings=chance)


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
@pytest.mark.timeout(300)
def test_processes_publish_only_what_was_approved(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db" if kind == "sqlite" else request.getfixturevalue("postgres")
    name, warehouse = uuid.uuid4().hex, str(tmp_path)
    with bergline.connect(uri, warehouse=warehouse, name=name, create=True) as lake:
        lake.create_namespace("db")
        for table in TABLES:
            created = lake.create_table(table, pa.schema([("id", pa.int64())]))
            created.append(pa.table({"id": [0]})).set_properties(RULES[table])
        lake.branch("work", TABLES)
        program = [sys.executable, str(PROCESSES / "pull_request_process.py")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        running = [
            subprocess.Popen([*program, role, uri, warehouse, name, str(ROWS)], env=environment)
            for role in ("ann", "bob", *TABLES)
        ]
        try:
            assert [process.wait(120) for process in running] == [0] * len(running)
        finally:
            for process in running:
                process.kill()
        published = list(reversed(lake.pull_requests.list("published")))
        there = {lake.load_table(table).metadata.snapshot_log[0].snapshot_id for table in TABLES}
        for done in published:
            new = {head.snapshot_id for head in done.record.published}
            if not new <= there:  # else it had nothing to publish, of which no rule demands anything
                assert_was_ready(done)
            there |= new
        for table in TABLES:
            metadata = lake.load_table(table).metadata
            mine = {h.snapshot_id for r in published for h in r.record.published if str(h.name) == table}
            moved = [entry.snapshot_id for entry in metadata.snapshot_log]
            assert set(moved[1:]) <= mine
            assert ids(lake, table) == list(range(ROWS))


def assert_was_ready(request: PullRequest) -> None:
    """Whether the heads were approved and their check passed when they were published, by the history."""
    approved: frozenset[TableHead] | None = None
    passed: frozenset[TableHead] | None = None
    for entry in request.overview.history:
        heads = frozenset(entry.heads)
        match entry.what:
            case EntryKind.APPROVED:
                approved = heads
            case EntryKind.WITHDREW:
                approved = None
            case EntryKind.CHECKED if heads == passed or str(entry.text).endswith("passed"):
                passed = heads if str(entry.text).endswith("passed") else None
            case EntryKind.PUBLISHED:
                assert approved == heads == passed
