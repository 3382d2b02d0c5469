"""Random transactions on two tables against a plain model: all of one comes in or nothing, whatever the store does."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

import bergline
from bergline import Lake, Table
from bergline.errors import CommitUnknownError, ConflictError
from bergline.scan.manifests import load_entries, load_manifest_list
from bergline.testing.faults import Fault
from support.fixtures.competing_writers import once, rival_lake
from support.fixtures.rows import ORDERS, ids, order_rows

TABLES = ("orders", "items")
BRANCHES = st.sampled_from(["main", "dev"])
Model = dict[str, dict[str, frozenset[int]]]


class Step(msgspec.Struct, frozen=True):
    """One operation of a transaction on one of the tables."""

    table: str
    kind: str
    branch: str


class Plan(msgspec.Struct, frozen=True):
    """A transaction, and what happens to it: it raises, others come first, or the store misbehaves."""

    steps: tuple[Step, ...]
    raises: bool
    rival: Step | None
    fault: Fault | None


STEPS = st.builds(
    Step,
    st.sampled_from(TABLES),
    st.sampled_from(["append", "overwrite", "clear", "delete", "tag", "property", "expire"]),
    BRANCHES,
)
RIVALS = st.none() | st.builds(Step, st.sampled_from(TABLES), st.sampled_from(["append", "overwrite"]), BRANCHES)
PLANS = st.builds(
    Plan, st.lists(STEPS, max_size=4).map(tuple), st.booleans(), RIVALS, st.none() | st.sampled_from(list(Fault))
)


class Abandon(Exception):  # noqa: N818  (the user's own exception)
    """Raised in the block."""


class World:
    """The lake, the model of it, and a supply of ids that are never used twice."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.model: Model = {name: {"main": frozenset({0})} for name in TABLES}
        self._next = 0
        self._tidy = True

    def applying(self, step: Step) -> tuple[Callable[[Table], object], Callable[[Model], None]]:
        """What a step does to a table, and to the model."""
        self._next += 1
        number = self._next

        def write(model: Model) -> None:
            refs = model[step.table]
            before = refs.get(step.branch, refs["main"])
            after = {"append": before | {number}, "overwrite": frozenset({number}), "clear": frozenset()}
            refs[step.branch] = after[step.kind]  # type: ignore[assignment]

        def delete(model: Model) -> None:
            refs = model[step.table]
            if step.branch in refs:
                refs[step.branch] -= {number - 1}

        def tag(model: Model) -> None:
            model[step.table][f"t{number}"] = model[step.table]["main"]

        match step.kind:
            case "append":
                return lambda t: t.append(order_rows(number), branch=step.branch), write
            case "overwrite":
                return lambda t: t.overwrite(order_rows(number), branch=step.branch), write
            case "clear":
                return lambda t: t.overwrite_files([], branch=step.branch), write
            case "delete":
                return (
                    lambda t: t.delete(f"id = {number - 1}", branch=step.branch) if step.branch in t.refs else t,
                    delete,
                )
            case "expire":
                return lambda t: t.expire(older_than=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)), lambda _: None
            case "tag":
                return lambda t: t.refs.create_tag(f"t{number}"), tag
            case _:
                return lambda t: t.set_properties({f"p{number}": "1"}), lambda _: None

    def run(self, plan: Plan) -> None:
        """The plan on the lake and on the model."""
        work = [(step.table, *self.applying(step)) for step in plan.steps]
        shaky, _ = rival_lake(
            self.lake, *([plan.fault] if plan.fault else []), before_swap=once(lambda: self._interfere(plan.rival))
        )
        try:
            with shaky.transaction() as tx:
                for table, act, _ in work:
                    act(tx.load_table(f"db.{table}"))
                abandon_if(plan.raises)
        except Abandon:
            return
        except ConflictError:
            assert plan.rival is not None
            assert any(step.kind == "delete" for step in plan.steps)
            return
        except CommitUnknownError:
            assert plan.fault in {Fault.STORE_GOES_AWAY, Fault.STORE_WENT_AWAY}
            self._tidy = False
            if self._found() == self.model:
                return
        for _, _, apply in work:
            apply(self.model)

    def check(self) -> None:
        """Every ref reads as the model says, numbers are in order, and every file of the tables is needed."""
        assert self._found() == self.model
        for table in map(self._load, TABLES):
            numbers = [s.sequence_number for s in table.metadata.snapshots]
            assert numbers == sorted(set(numbers))
            there = {f for f in table.io.list(table.location) if not f.endswith(".metadata.json")}
            assert needed(table) == there if self._tidy else needed(table) <= there

    def _interfere(self, rival: Step | None) -> None:
        if rival is not None:
            act, apply = self.applying(rival)
            act(self._load(rival.table))
            apply(self.model)

    def _found(self) -> Model:
        tables = {name: self._load(name) for name in TABLES}
        return {
            name: {ref: frozenset(ids(table.scan(ref=ref).to_arrow())) for ref in table.refs}
            for name, table in tables.items()
        }

    def _load(self, name: str) -> Table:
        return self.lake.load_table(f"db.{name}")


def abandon_if(wanted: bool) -> None:
    if wanted:
        raise Abandon


def needed(table: Table) -> set[str]:
    files: set[str] = set()
    for snapshot in table.metadata.snapshots:
        files.add(snapshot.manifest_list)
        for manifest in load_manifest_list(table.io, snapshot):
            files.add(manifest.manifest_path)
            files |= {e.data_file.file_path for e in load_entries(table.io, manifest, table.metadata) if e.is_live}
    return files


@settings(max_examples=30)
@given(st.lists(PLANS, max_size=4), st.sampled_from("23"))
def test_transactions_come_in_whole_or_not_at_all(plans: list[Any], version: str) -> None:
    with bergline.connect("memory:") as lake:
        lake.create_namespace("db")
        for name in TABLES:
            table = lake.create_table(f"db.{name}", ORDERS, properties={"format-version": version})
            table.append(order_rows(0))
        world = World(lake)
        for plan in plans:
            world.run(plan)
            world.check()
