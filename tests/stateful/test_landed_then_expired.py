"""Random transactions of picks, publishes, merges, expiry and clean-up on one table, answered late or not at all.

What a transaction added may have expired by the time that it hears of its outcome, by its own hand or by another's:
rows stay right, every file that a snapshot needs is there, and nothing else is left behind.
"""

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

import bergline
from bergline import Lake, Table
from bergline.catalog.catalog import Committed, Outcome, TableChange
from bergline.errors import CommitUnknownError, ConflictError, NotFoundError, RefusedError
from bergline.format.metadata.updates import AddSnapshot
from bergline.table.commits.retry import Timing
from bergline.testing.faults import Fault
from support.fixtures.competing_writers import once, rival_lake
from support.fixtures.rows import ORDERS, ids, order_rows
from support.models.table_invariants import check_nothing_is_missing, unneeded_files

KINDS = ("append", "dev", "pick", "wap", "merge", "squash", "delete", "manifests", "expire", "clean up")
ENDS = ((), ("append", "expire"))
RIVALS = ("append", "dev", "expire", "append, expire", "append, expire", "evolve, evolve, clean up")
Model = dict[str, frozenset[int]]


class Plan(msgspec.Struct, frozen=True):
    """A transaction; who comes before its swap, what becomes of the swap, and who comes before its answer."""

    steps: tuple[str, ...]
    before: str | None = None
    fault: Fault | None = None
    after: str | None = None


class LateAnswers:
    """A catalog whose commits are answered with the table as it is after what others do in between."""

    def __init__(self, catalog: Any, then: Callable[[], None]) -> None:
        self._catalog = catalog
        self._then = then
        self.sent: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def commit(self, changes: tuple[TableChange, ...]) -> Outcome:
        self.sent |= {u.snapshot.snapshot_id for c in changes for u in c.updates if isinstance(u, AddSnapshot)}
        outcome = self._catalog.commit(changes)
        if not isinstance(outcome, Committed):
            return outcome  # type: ignore[no-any-return]
        self._then()
        return Committed(tuple(self._catalog.load_table(t.name) for t in outcome.tables))


class World:
    """The lake with one table, the model of its refs, and a supply of ids that are never used twice."""

    def __init__(self, lake: Lake, version: str) -> None:
        self.lake = lake
        lake.create_namespace("db")
        table = lake.create_table("db.t", ORDERS, properties={"format-version": version})
        table.append(order_rows(0)).refs.create_branch("dev")
        self.model: Model = {"main": frozenset({0}), "dev": frozenset({0})}
        self._brought = frozenset({0})
        """What `main` has ever had: what was deleted there does not come back with a merge."""
        self.seen: Counter[str] = Counter()
        self._ids = iter(range(1, 10_000))
        self._is_tidy = True

    def run(self, plan: Plan) -> None:
        """The plan on the table and on the model."""
        faults = [plan.fault] if plan.fault else []
        shaky, _ = rival_lake(self.lake, *faults, before_swap=once(lambda: self._interfere(plan.before)))
        applied: list[Callable[[], None]] = []

        def landed() -> None:
            while applied:
                applied.pop(0)()

        late = LateAnswers(shaky.catalog, once(lambda: landed() or self._interfere(plan.after)))
        slow = Lake(late, "lake", timing=Timing(sleep=lambda _: None))  # type: ignore[arg-type]
        prepared = [self._prepared(kind) for kind in plan.steps]
        try:
            with slow.load_table("db.t").transaction() as inside:
                for kind, (act, apply) in zip(plan.steps, prepared, strict=True):
                    try:
                        act(inside)
                    except (RefusedError, ConflictError, NotFoundError):  # the others go on without it
                        self.seen[f"{kind} refused"] += 1
                    else:
                        self.seen[kind] += 1
                        applied.append(apply)
        except (ConflictError, RefusedError, NotFoundError):
            assert plan.before is not None
            self.seen["transaction refused"] += 1
            return
        except CommitUnknownError:
            assert plan.fault in {Fault.STORE_GOES_AWAY, Fault.STORE_WENT_AWAY}
            self._is_tidy = False
            if self._found() == self.model:
                return
        landed()  # where the outcome is unknown, and the table has it
        there = self.table.metadata.snapshots_by_id.keys()
        if late.sent - there:
            self.seen["landed, then expired"] += 1
        if len(self.table.metadata.partition_specs) < len(self.table.schema.fields) - len(ORDERS):
            self.seen["specs removed"] += 1

    def check(self) -> None:
        """Every ref reads as the model says, all that snapshots need is there, and nothing else."""
        assert self._found() == self.model
        check_nothing_is_missing(self.table, merged=True)
        assert not self._is_tidy or not unneeded_files(self.table)

    @property
    def table(self) -> Table:
        """As it is now."""
        return self.lake.load_table("db.t")

    def _prepared(self, kind: str) -> tuple[Callable[[Table], object], Callable[[], None]]:
        """What a step does to the table and to the model; what is picked or merged is written before."""
        number = next(self._ids)

        def add_to_dev() -> None:
            self.model["dev"] |= {number}

        def add(rows: frozenset[int]) -> None:
            self.model["main"] |= rows - self._brought
            self._brought |= rows

        def remove() -> None:
            self.model["main"] -= {number - 1}

        match kind:
            case "append":
                return lambda t: t.append(order_rows(number)), lambda: add(frozenset({number}))
            case "dev":
                return lambda t: t.append(order_rows(number), branch="dev"), add_to_dev
            case "pick":  # nearly always of another line of history, and never refused for what it was made on
                self.table.append(order_rows(number), branch="dev")
                add_to_dev()
                picked = self.table.refs["dev"].snapshot_id
                return lambda t: t.refs.cherry_pick(picked), lambda: add(frozenset({number}))
            case "wap":
                self.table.append(order_rows(number), wap_id=f"w{number}")
                return lambda t: t.refs.publish(f"w{number}"), lambda: add(frozenset({number}))
            case "merge" | "squash":
                self.table.append(order_rows(number), branch="dev")
                add_to_dev()
                return lambda t: t.refs.merge("dev", into="main", squash=kind == "squash"), lambda: add(
                    self.model["dev"]
                )
            case "delete":
                return lambda t: t.delete(f"id = {number - 1}"), remove
            case "manifests":
                return lambda t: t.rewrite_manifests(), lambda: None
            case "evolve":
                return evolve, lambda: None
            case "clean up":
                return lambda t: expire(t, clean_metadata=True), lambda: None
            case _:
                return expire, lambda: None

    def _interfere(self, rival: str | None) -> None:
        for kind in rival.split(", ") if rival else ():
            act, apply = self._prepared(kind)
            act(self.table)
            apply()

    def _found(self) -> Model:
        return {ref: frozenset(ids(self.table.scan(ref=ref).to_arrow())) for ref in self.table.refs}


def expire(table: Table, *, clean_metadata: bool = False) -> None:
    """All snapshots but those that a ref names."""
    later = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    table.expire(older_than=later, retain_last=1, clean_metadata=clean_metadata)


def evolve(table: Table) -> None:
    """Another column, and another partition spec: twice, and a clean-up may remove those in between."""
    number = len(table.schema.fields)
    with table.update_schema() as schema:
        schema.add_column(f"c{number}", "int")
    with table.update_spec() as spec:
        spec.add_field(f"bucket({number}, id)")


def check_plans(plans: list[Plan], version: str) -> Counter[str]:
    """The plans one after the other, checked after each; what was met."""
    with bergline.connect("memory:") as lake:
        world = World(lake, version)
        for plan in plans:
            world.run(plan)
            world.check()
        return world.seen


PLANS = st.builds(
    Plan,
    st.builds(
        lambda steps, end: (*steps, *end),
        st.lists(st.sampled_from(KINDS), min_size=1, max_size=5),
        st.sampled_from(ENDS),
    ),
    st.none() | st.sampled_from(RIVALS),
    st.none() | st.sampled_from(list(Fault)),
    st.none() | st.sampled_from(RIVALS),
)


@settings(max_examples=30)
@given(st.lists(PLANS, min_size=1, max_size=3), st.sampled_from("23"))
@example([Plan(("pick", "append", "expire"))], "2")
@example([Plan(("append",)), Plan(("wap", "append", "expire"), before="append")], "3")
@example([Plan(("pick",), fault=Fault.LANDS_BUT_ANSWER_IS_LOST, after="append, expire")], "2")
@example([Plan(("merge",), before="append", after="append, expire")], "2")
@example(
    [Plan(("append",), before="evolve, evolve, clean up"), Plan(("wap", "pick"), before="evolve, evolve, clean up")],
    "2",
)
def test_what_expired_before_its_answer_is_neither_lost_nor_left_behind(plans: list[Plan], version: str) -> None:
    for what in check_plans(plans, version):
        event(what)


def random_plans(chance: random.Random) -> Iterator[Plan]:
    for _ in range(4):
        steps = tuple(chance.choice(KINDS) for _ in range(chance.randint(1, 5))) + chance.choice(ENDS)
        before, after = chance.choice((None, None, None, *RIVALS)), chance.choice((None, *RIVALS))
        yield Plan(steps, before, chance.choice((None, None, *Fault)), after)


def test_random_plans_meet_what_they_are_about() -> None:
    chance = random.Random(7)  # noqa: S311
    seen = Counter[str]()
    for version in "232323":
        seen += check_plans(list(random_plans(chance)), version)
    refused = {kind: seen[f"{kind} refused"] for kind in ("pick", "wap", "merge", "squash")}
    done = {kind: seen[kind] for kind in refused}
    assert seen["landed, then expired"] >= 6, seen
    assert seen["specs removed"] >= 3, seen
    assert all(done[kind] > refused[kind] for kind in ("pick", "wap")), seen
    assert done["merge"] + done["squash"] > 0, seen
