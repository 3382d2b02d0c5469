"""Branches, tags, commits, merges and expiry in any order, each done to a table and to its model."""

import datetime as dt
import os
from collections.abc import Callable
from itertools import count
from typing import Any, ClassVar

import msgspec
import pyarrow as pa
from hypothesis import Phase, event, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from bergline import Lake, Table
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    TablesRefusedError,
)
from bergline.format.manifest.manifest import partition_key
from bergline.io.locations import normalized
from bergline.table.commits.retry import Timing
from support.fixtures.add_deletes import equality_deletes
from support.fixtures.catalog_backends import CatalogBackend
from support.models.modelled_table import ModelledTable, numbers
from support.models.refs_model import (
    EVERYWHERE,
    KEYS,
    ExpiryModel,
    History,
    Key,
    MergeModel,
    Patch,
    RefModel,
    SnapshotModel,
    after_expiry,
    any_in,
)
from support.models.table_invariants import unneeded_files

ARROW = pa.schema([pa.field("n", pa.int64(), nullable=False), ("k", pa.int32())])
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
START_MS = 1_900_000_000_000
"""A time in the future: every file that a test writes is old by then."""
FIVE_DAYS_MS = 5 * DAY_MS

Pick = int | str
NAMES = st.sampled_from(["main", "dev", "audit", "v1", "v2"])
BRANCHES = st.sampled_from(["main", "main", "dev", "dev", "audit", "v1"])
PICKS = st.one_of(st.integers(0, 4), st.integers(0, 4), NAMES)  # a number stands for one of the refs that there are
TABLE = st.sampled_from(["db.t", "db.t", "db.t", "db.u"])
PLACES = st.integers(0, 9)
SOME_KEYS = st.lists(st.sampled_from(KEYS), min_size=1, max_size=3)
FILTERS = st.one_of(
    st.tuples(st.just("one"), PLACES),
    st.tuples(st.just("one"), PLACES),
    st.tuples(st.just("some"), st.integers(0, 3)),
    st.tuples(st.just("key"), st.sampled_from(KEYS)),
    st.just(("all", 0)),
)
CHANGES = st.one_of(
    st.tuples(st.just("append"), SOME_KEYS),
    st.tuples(st.just("delete"), FILTERS),
    st.tuples(st.just("overwrite"), FILTERS, SOME_KEYS),
    st.tuples(st.just("overwrite_all"), SOME_KEYS),
    st.tuples(st.just("replace_partitions"), SOME_KEYS),
    st.tuples(st.just("delete_by_equality"), st.integers(0, 3)),
    st.tuples(st.just("compact"), st.sampled_from([*KEYS, "all", "all"])),
    st.tuples(st.just("rewrite_manifests")),
)
"""Changes by the name of the method that does them, small ones first."""
STAGED = st.one_of(
    st.tuples(st.just("append"), SOME_KEYS),
    st.tuples(st.just("delete"), FILTERS),
    st.tuples(st.just("replace_partitions"), SOME_KEYS),
)
AGES = st.sampled_from([None, None, 1, 3, 30])  # days
RETENTIONS = st.tuples(st.sampled_from([None, None, 1, 2, 4]), AGES, AGES)


class ReferencesMachine(RuleBasedStateMachine):
    """Two tables of one lake, changed by one user who makes mistakes now and then."""

    place_of: ClassVar[Callable[[], CatalogBackend]]

    @initialize(
        versions=st.tuples(*[st.sampled_from(["1", "2", "2", "3", "3"])] * 2),
        partitioned=st.tuples(st.booleans(), st.booleans()),
        mode=st.sampled_from(["copy-on-write", "merge-on-read", "merge-on-read"]),
        granularity=st.sampled_from(["file", "partition"]),
        two_roots=st.booleans(),
    )
    def open(
        self,
        versions: tuple[str, str],
        partitioned: tuple[bool, bool],
        mode: str,
        granularity: str,
        two_roots: bool,
    ) -> None:
        self.place = type(self).place_of()
        self.now_ms = START_MS
        self.sound = False
        self.numbers = count(1)
        catalog = PointerCatalog(self.place.store(), self.place.io(), self.place.warehouse)
        self.lake = Lake(catalog, "lake", timing=Timing(clock_ms=lambda: self.now_ms, sleep=lambda _: None))
        self.lake.create_namespace("db")
        self.books: dict[str, ModelledTable] = {}
        for name, version, by_key in zip(("db.t", "db.u"), versions, partitioned, strict=True):
            properties = {
                "format-version": version,
                "write.delete.mode": mode,
                "write.delete.granularity": granularity,
                "commit.manifest.min-count-to-merge": "3",
            }
            table = self.lake.create_table(name, ARROW, partition_by=["k"] if by_key else [], properties=properties)
            self.books[name] = book = ModelledTable(table, History(partitioned=by_key, columns=("n", "k")))
            if two_roots:
                table.refs.create_branch("dev")
                self.snapshot_came(book, "dev", Patch("start"))
            self.append(name, "main", [0, 1, 2, None])
            self.append(name, "main", [0, 1, 1])

    def teardown(self) -> None:
        if hasattr(self, "books"):
            for book in self.books.values() if self.sound else ():
                book.check_everything()
            self.place.close()

    # rows

    @rule(name=TABLE, branch=BRANCHES, changes=st.lists(CHANGES, min_size=1, max_size=3))
    def change(self, name: str, branch: str, changes: list[Any]) -> None:
        for kind, *arguments in changes:
            getattr(self, kind)(name, branch, *arguments)

    @rule(
        name=TABLE,
        branches=st.permutations(["main", "dev", "audit"]),
        ours=st.lists(CHANGES, max_size=3),
        theirs=st.lists(CHANGES, min_size=1, max_size=3),
        expired=st.sampled_from([False, False, True]),
        rebase=st.booleans(),
        squash=st.booleans(),
    )
    def part_and_join(
        self, name: str, branches: list[str], ours: Any, theirs: Any, expired: bool, rebase: bool, squash: bool
    ) -> None:
        one, other, _ = branches
        if any(branch not in self.books[name].history.refs for branch in (one, other)):
            self.create_ref(name, other, one, False, (None, None, None), "or_replace")
        self.change(name, one, ours)
        self.change(name, other, theirs)
        if expired:
            self.expire(name, 0, None, [], "all", clean_metadata=False)
        self.merge(name, other, one, rebase, squash)

    def append(self, name: str, branch: str, keys: list[Key]) -> None:
        rows = self.new_rows(keys)
        self.write(name, branch, Patch("append", added=rows), lambda t: t.append(arrow(rows), branch=branch))

    def delete(self, name: str, branch: str, rows: tuple[str, Any]) -> None:
        where, gone, touched = self.matching(name, branch, rows)
        patch = Patch("delete", removed=gone, rewrites=touched)
        self.write(name, branch, patch, lambda t: t.delete(where, branch=branch))

    def overwrite(self, name: str, branch: str, rows: tuple[str, Any], keys: list[Key]) -> None:
        where, gone, touched = self.matching(name, branch, rows)
        new = self.new_rows(keys)
        patch = Patch("overwrite", removed=gone, added=new, rewrites=touched)
        self.write(name, branch, patch, lambda t: t.overwrite(arrow(new), where, branch=branch))

    def overwrite_all(self, name: str, branch: str, keys: list[Key]) -> None:
        new, gone = self.new_rows(keys), frozenset(self.books[name].history.rows(branch))
        patch = Patch("overwrite", removed=gone, added=new, rewrites=EVERYWHERE)
        self.write(name, branch, patch, lambda t: t.overwrite(arrow(new), branch=branch))

    def replace_partitions(self, name: str, branch: str, keys: list[Key]) -> None:
        new = self.new_rows(keys)
        patch = self.replacing(name, branch, keys, new)
        self.write(name, branch, patch, lambda t: t.overwrite_partitions(arrow(new), branch=branch))

    def delete_by_equality(self, name: str, branch: str, rest: int) -> None:
        book = self.books[name]
        if book.table.metadata.format_version == 1 or not book.history.refs.get(branch, RefModel(0, False)).is_branch:
            return
        gone = frozenset(n for n in book.history.rows(branch) if n % 4 == rest)
        planned = book.table.scan(ref=branch).plan().files
        partitions = {partition_key(p.file): p.file.partition for p in planned}.values()
        keys = pa.table({"n": sorted(gone)})
        deletes = [equality_deletes(book.table, keys, [1], p) for p in partitions if gone]
        if deletes:
            patch = Patch("equality", removed=gone, rewrites=EVERYWHERE, claims=EVERYWHERE)
            self.write(name, branch, patch, lambda t: t.row_delta(deletes=deletes, branch=branch))

    def compact(self, name: str, branch: str, key: Any) -> None:
        touched = EVERYWHERE if key == "all" else frozenset({key})
        where = None if key == "all" else has_key(key)
        self.maintain(name, branch, Patch("compact", rewrites=touched), lambda t: t.compact(where, branch=branch))

    def rewrite_manifests(self, name: str, branch: str) -> None:
        self.maintain(name, branch, Patch("manifests"), lambda t: t.rewrite_manifests(branch=branch))

    @rule(name=TABLE, column=st.sampled_from(["c1", "c2"]))
    def change_column(self, name: str, column: str) -> None:
        book = self.books[name]
        with book.table.update_schema() as schema:
            if column in book.history.columns:
                schema.drop_column(column)
            else:
                schema.add_column(column, "int")
        columns = tuple(c for c in book.history.columns if c != column)
        book.history.columns = columns if column in book.history.columns else (*columns, column)
        self.check(book)

    @rule(name=TABLE, mode=st.sampled_from(["copy-on-write", "merge-on-read"]))
    def change_mode(self, name: str, mode: str) -> None:
        self.books[name].table.set_properties({"write.delete.mode": mode})

    # refs

    @rule(
        name=TABLE,
        ref=NAMES,
        at=st.none() | PICKS | st.tuples(PLACES),
        tag=st.booleans(),
        retention=RETENTIONS,
        how=st.sampled_from(["create", "create", "or_replace", "if_not_exists"]),
    )
    def create_ref(self, name: str, ref: str, at: Any, tag: bool, retention: tuple[Any, ...], how: str) -> None:
        book, history = self.books[name], self.books[name].history
        where, head, missing = self.target(book, at)
        old, settings_ = history.refs.get(ref), self.retention(retention, tag=tag)
        due: type[BerglineError] | None = missing
        if old and how == "if_not_exists":  # where it is to be does not count
            due = InvalidInputError if old.is_branch == tag else None
        elif not missing and old and how == "create":
            due = AlreadyExistsError
        elif not missing and old and old.is_branch == tag:
            due = InvalidInputError
        flags = {} if how == "create" else {how: True}
        refs = book.table.refs
        create = refs.create_tag if tag else refs.create_branch
        ended = self.attempt(book, lambda: create(ref, at=where, **flags, **settings_), {due} if due else set())
        if ended is not None or (old and how == "if_not_exists"):
            self.check(book)
            return
        before = old or RefModel(head, is_branch=not tag)
        self.set_ref(book, ref, msgspec.structs.replace(before, head=head), settings_)

    @rule(name=TABLE, ref=PICKS, at=PICKS | st.tuples(PLACES), tag=st.sampled_from([None, None, True]))
    def replace_ref(self, name: str, ref: Pick, at: Any, tag: bool | None) -> None:
        book = self.books[name]
        moved = book.ref(ref)
        where, head, missing = self.target(book, at)
        old = book.history.refs.get(moved)
        as_tag = not old.is_branch if old and tag is None else bool(tag)
        due: set[Any] = {missing} if missing else set()
        if old is None:
            due.add(NotFoundError)
        elif old.is_branch == as_tag:
            due.add(InvalidInputError)
        refs = book.table.refs
        replace = refs.replace_tag if as_tag else refs.replace_branch
        if self.attempt(book, lambda: replace(moved, at=where), due) is None and old:
            self.set_ref(book, moved, msgspec.structs.replace(old, head=head), {})

    @rule(name=TABLE, ref=PICKS, retention=RETENTIONS)
    def set_retention(self, name: str, ref: Pick, retention: tuple[Any, ...]) -> None:
        book = self.books[name]
        changed = book.ref(ref)
        old = book.history.refs.get(changed)
        settings_ = self.retention(retention, tag=bool(old and not old.is_branch))
        due: set[type[BerglineError]] = set() if old else {NotFoundError}
        if not any(settings_.values()):
            due = {InvalidInputError}
        if self.attempt(book, lambda: book.table.refs.set_retention(changed, **settings_), due) is None and old:
            self.set_ref(book, changed, old, settings_)

    @rule(name=TABLE, ref=PICKS, tag=st.sampled_from([None, None, None, True]))
    def drop_ref(self, name: str, ref: Pick, tag: bool | None) -> None:
        book = self.books[name]
        dropped = book.ref(ref)
        old = book.history.refs.get(dropped)
        as_tag = not old.is_branch if old and tag is None else bool(tag)
        due: set[Any] = set()
        if dropped == "main" and not as_tag:
            due = {RefusedError}
        elif old is None:
            due = {NotFoundError}
        elif old.is_branch == as_tag:
            due = {InvalidInputError}
        refs = book.table.refs
        if self.attempt(book, lambda: (refs.drop_tag if as_tag else refs.drop_branch)(dropped), due) is None:
            book.history.refs = {n: r for n, r in book.history.refs.items() if n != dropped}
            self.check(book)

    @rule(name=TABLE, ref=PICKS, to=NAMES)
    def rename_ref(self, name: str, ref: Pick, to: str) -> None:
        book = self.books[name]
        renamed = book.ref(ref)
        old = book.history.refs.get(renamed)
        due: set[Any] = set()
        if renamed == "main":
            due = {RefusedError}
        elif old is None:
            due = {NotFoundError}
        elif to in book.history.refs:
            due = {AlreadyExistsError}
        refs = book.table.refs
        rename = refs.rename_tag if old and not old.is_branch else refs.rename_branch
        if self.attempt(book, lambda: rename(renamed, to=to), due) is None and old:
            left = {n: r for n, r in book.history.refs.items() if n != renamed}
            book.history.refs = left | {to: old}
            self.check(book)

    @rule(name=TABLE, branch=PICKS, at=PICKS | st.tuples(PLACES), anywhere=st.booleans())
    def go_back(self, name: str, branch: Pick, at: Any, anywhere: bool) -> None:
        book = self.books[name]
        moved = book.ref(branch)
        where, head, missing = self.target(book, at)
        old = book.history.refs.get(moved)
        due: set[Any] = {missing} if missing else set()
        if old is None:
            due.add(NotFoundError)
        elif not old.is_branch:
            due.add(InvalidInputError)
        elif not missing and not anywhere and not book.history.is_ancestor(head, of=old.head):
            due.add(RefusedError)
        refs = book.table.refs
        if self.attempt(book, lambda: (refs.set_current if anywhere else refs.rollback)(moved, to=where), due) is None:
            book.history.move(moved, head)
            self.check(book)

    @rule(name=TABLE, branch=PICKS, to=PICKS)
    def fast_forward(self, name: str, branch: Pick, to: Pick) -> None:
        book, history = self.books[name], self.books[name].history
        moved, target = book.ref(branch), book.ref(to)
        old, there = history.refs.get(moved), history.refs.get(target)
        due: set[Any] = set()
        if there is None:
            due = {NotFoundError}
        elif old and not old.is_branch:
            due = {InvalidInputError}
        elif old and not history.is_ancestor(old.head, of=there.head):
            due = {RefusedError}
        if self.attempt(book, lambda: book.table.refs.fast_forward(moved, to=target), due) is None and there:
            history.move(moved, there.head)
            self.check(book)

    # merges

    @rule(name=TABLE, picked=PICKS, onto=PICKS, rebase=st.booleans(), squash=st.sampled_from([False, False, True]))
    def merge(self, name: str, picked: Pick, onto: Pick, rebase: bool, squash: bool) -> None:
        book, history = self.books[name], self.books[name].history
        source, target = book.ref(picked), book.ref(onto)
        moved = source if rebase else target
        due: set[Any] = set()
        if source == target:
            due = {InvalidInputError}
        elif source not in history.refs or target not in history.refs:
            due = {NotFoundError}
        elif not history.refs[moved].is_branch:
            due = {RefusedError}
        refs = book.table.refs

        def do() -> Any:
            return (
                refs.rebase(source, onto=target, squash=squash)
                if rebase
                else refs.merge(source, into=target, squash=squash)
            )

        if due:
            self.attempt(book, do, due)
            return
        ends = history.refs[source].head, history.refs[target].head
        plan = history.merge(*ends, "picked" if rebase else "onto", squash=squash)
        results: list[Any] = []
        ended = self.attempt(book, lambda: results.append(do()), set(plan.may), surely=plan.must)
        what = "rebase" if rebase else "merge"
        event(f"{what}{' squashed' if squash else ''}: {type(ended).__name__ if ended else len(plan.todo)}")
        if ended is not None:
            return
        (result,) = results
        head = self.merged(book, moved, plan, result.replayed, squash=squash)
        assert result.head == head
        self.check(book)
        known = book.table.metadata_location
        assert do().replayed == {}
        assert book.table.refresh().metadata_location == known, "a second time adds nothing"

    def merged(
        self, book: ModelledTable, moved: str, plan: MergeModel, replayed: dict[int, int], *, squash: bool
    ) -> int:
        """The snapshots that a merge has made are those of the model; where the moved branch is now."""
        history, new = book.history, book.new_snapshots()
        assert list(replayed.values()) == [s.snapshot_id for s in new]
        now = history.refs[moved].head
        head = now if history.is_ancestor(plan.start, of=now) else plan.start
        if squash:
            for one in new:
                own = tuple(patch for s in plan.todo for patch in s.own)
                head = history.add(one.snapshot_id, head, own, one.timestamp_ms, squashed=True).snapshot_id
            assert len(new) == bool(plan.todo)
        else:
            assert list(replayed) == [s.snapshot_id for s in plan.todo]
            for one, source in zip(new, plan.todo, strict=True):
                assert one.parent_snapshot_id == head
                head = self.done_again(book, one, head, source)
        history.move(moved, head)
        return head

    def done_again(self, book: ModelledTable, new: Any, parent: int, source: SnapshotModel) -> int:
        assert new.operation == book.table.metadata.snapshot(source.snapshot_id).operation
        book.history.add(new.snapshot_id, parent, source.own, new.timestamp_ms, squashed=source.squashed)
        return int(new.snapshot_id)

    # one snapshot, and several tables

    @rule(name=TABLE, wap_id=st.sampled_from(["w1", "w2", "w3"]), branch=BRANCHES, change=STAGED)
    def stage(self, name: str, wap_id: str, branch: str, change: Any) -> None:
        book = self.books[name]
        ref = book.history.refs.get(branch)
        if wap_id in book.staged or (ref and not ref.is_branch):
            return
        kind, argument = change
        new = self.new_rows(argument) if kind != "delete" else {}
        if kind == "delete":
            where, gone, touched = self.matching(name, branch, argument)
            patch = Patch("delete", removed=gone, rewrites=touched)
            self.attempt(book, lambda: book.table.delete(where, branch=branch, wap_id=wap_id), set())
        elif kind == "append":
            patch = Patch("append", added=new)
            self.attempt(book, lambda: book.table.append(arrow(new), branch=branch, wap_id=wap_id), set())
        else:
            patch = self.replacing(name, branch, argument, new)
            rows = arrow(new)
            self.attempt(book, lambda: book.table.overwrite_partitions(rows, branch=branch, wap_id=wap_id), set())
        for one in book.new_snapshots():
            assert one.parent_snapshot_id == book.history.head(branch)
            book.history.add(one.snapshot_id, one.parent_snapshot_id, (patch,), one.timestamp_ms)
            book.staged[wap_id] = one.snapshot_id
        self.check(book)

    @rule(name=TABLE, wap_id=st.sampled_from(["w1", "w2", "w3"]), onto=BRANCHES)
    def publish_staged(self, name: str, wap_id: str, onto: str) -> None:
        book = self.books[name]
        staged = book.staged.get(wap_id)
        if staged in book.history.retained:
            self.pick(book, staged, onto, lambda: book.table.refs.publish(wap_id, into=onto))
        elif onto in book.history.refs and book.history.refs[onto].is_branch:
            self.attempt(book, lambda: book.table.refs.publish(wap_id, into=onto), {NotFoundError})

    @rule(name=TABLE, place=PLACES, onto=BRANCHES)
    def cherry_pick(self, name: str, place: int, onto: str) -> None:
        book = self.books[name]
        picked = book.snapshot(place)
        self.pick(book, picked, onto, lambda: book.table.refs.cherry_pick(picked, onto=onto))

    def pick(self, book: ModelledTable, picked: int, onto: str, call: Callable[[], Any]) -> None:
        """One snapshot on top of a branch: appends and replaced partitions, or whatever was made on its head."""
        history, source = book.history, book.history.snapshots[picked]
        ref = history.refs.get(onto)
        if ref is None or not ref.is_branch:
            self.attempt(book, call, {NotFoundError if ref is None else RefusedError})
            return
        line = history.snapshots[ref.head].line
        known = any(any_in(source.own, s.own) or s is source for s in history.ancestors(ref.head, retained=True))
        if any_in(source.own, line) and not known:
            return  # nobody can know it any more
        snapshot = book.table.metadata.snapshot(picked)
        again = snapshot.operation == "append" or snapshot.summary.get("replace-partitions") == "true"
        forward = source.parent == ref.head
        may: set[Any] = set()
        if (known or not again) and not forward:
            may = {RefusedError}
        elif not forward and snapshot.operation != "append":
            may = {ConflictError, RefusedError}
        results: list[Any] = []
        surely = known or not again
        ended = self.attempt(book, lambda: results.append(call()), may, surely=surely)
        event(f"picked: {type(ended).__name__ if ended else 'moved' if forward else 'done again'}")
        if ended is None:
            new = book.new_snapshots()
            assert len(new) == (not forward)
            for one in new:
                assert one.parent_snapshot_id == ref.head
                self.done_again(book, one, ref.head, source)
            assert results[0].head == (new[0].snapshot_id if new else picked)
            history.move(onto, results[0].head)
            self.check(book)

    @rule(branch=st.sampled_from(["dev", "audit", "v1"]), how=st.sampled_from(["create", "or_replace"]))
    def branch_both(self, branch: str, how: str) -> None:
        taken = [b.history.refs.get(branch) for b in self.books.values()]
        due: set[Any] = set()
        if any(taken) and (how == "create" or not all(ref.is_branch for ref in taken if ref)):
            due = {TablesRefusedError}
        flags = {} if how == "create" else {how: True}
        if self.attempt_all(lambda: self.lake.branch(branch, list(self.books), **flags), due) is None:
            for book in self.books.values():
                book.history.move(branch, book.history.refs["main"].head)
                self.check(book)

    @rule(
        branch=st.sampled_from(["dev", "audit", "v1"]),
        into=st.sampled_from(["main", "main", "audit"]),
        merge=st.sampled_from([False, True, True]),
        squash=st.booleans(),
        keep_branch=st.booleans(),
    )
    def publish_all(self, branch: str, into: str, merge: bool, squash: bool, keep_branch: bool) -> None:
        squash = squash and merge
        books = {n: b for n, b in self.books.items() if branch in b.history.refs}
        if not books or branch == into:
            return
        plans: dict[str, MergeModel] = {}
        may, surely = False, False
        for name, book in books.items():
            refs = book.history.refs
            if into not in refs or not (refs[into].is_branch and refs[branch].is_branch):
                may = surely = True
                continue
            plans[name] = plan = book.history.merge(refs[branch].head, refs[into].head, "onto", squash=squash)
            parted = plan.parted and not merge
            # a branch of which every snapshot was merged before is published already
            may, surely = may or bool(plan.may) or parted, surely or plan.must or (parted and bool(plan.todo))
        results: list[Any] = []
        ended = self.attempt_all(
            lambda: results.append(
                self.lake.publish(branch, into=into, merge=merge, squash=squash, keep_branch=keep_branch)
            ),
            {TablesRefusedError} if may else set(),
            surely=surely,
        )
        event(f"published: {type(ended).__name__ if ended else len(books)}")
        if ended is None:
            replayed = {change.table: change.replayed for change in results[0].tables}
            assert replayed.keys() == books.keys()
            for name, book in books.items():
                self.merged(book, into, plans[name], replayed[name], squash=squash)
                if not keep_branch:
                    book.history.refs = {n: r for n, r in book.history.refs.items() if n != branch}
                self.check(book)

    def attempt_all(
        self, call: Callable[[], object], due: set[type[BerglineError]], *, surely: bool = True
    ) -> BerglineError | None:
        """The same for all tables: an error leaves every one of them as it was."""
        others = list(self.books.values())[1:]
        before = [(b.table.refresh().metadata_location, set(b.table.io.list(b.table.location))) for b in others]
        ended = self.attempt(self.books["db.t"], call, due, surely=surely)
        for book, state in zip(others, before, strict=True):
            now = book.table.refresh().metadata_location, set(book.table.io.list(book.table.location))
            assert ended is None or now == state
        return ended

    # expiry

    @rule(hours=st.sampled_from([1, 24, 72, 240]))
    def time_passes(self, hours: int) -> None:
        self.now_ms += hours * HOUR_MS

    @rule(
        name=TABLE,
        days=st.sampled_from([None, -1, 0, 1, 3, 10]),
        retain_last=st.sampled_from([None, None, 1, 2, 3]),
        ids=st.lists(PLACES, max_size=2),
        level=st.sampled_from(["all", "all", "metadata", "none"]),
        clean_metadata=st.booleans(),
    )
    def expire(
        self,
        name: str,
        days: int | None,
        retain_last: int | None,
        ids: list[int],
        level: str,
        clean_metadata: bool,
    ) -> None:
        book, history = self.books[name], self.books[name].history
        now_ms = self.now_ms + HOUR_MS  # when it is attempted
        older_ms = now_ms - (FIVE_DAYS_MS if days is None else days * DAY_MS)
        named = frozenset(book.snapshot(i) for i in ids)
        wish = ExpiryModel(now_ms, older_ms, retain_last or 1, named)
        older_than = None if days is None else dt.datetime.fromtimestamp(older_ms / 1000, dt.UTC)
        try:
            refs, kept = after_expiry(history, wish)
            due: set[Any] = set()
        except RefusedError:
            refs, kept, due = history.refs, history.retained, {RefusedError}

        def do() -> None:
            for dry_run in (True, False):
                result = book.table.expire(
                    older_than=older_than,
                    retain_last=retain_last,
                    snapshot_ids=named,
                    level=level,
                    clean_metadata=clean_metadata,
                    dry_run=dry_run,
                )
                assert set(result.removed_snapshots) == history.retained - kept
                assert set(result.removed_refs) == history.refs.keys() - refs.keys()
                assert not result.failed

        if self.attempt(book, do, due) is None:
            event(f"expired {min(len(history.retained - kept), 3)}")
            history.refs, history.retained = refs, set(kept)
            self.check(book)
            left = unneeded_files(book.table) - book.strays
            assert not left or level != "all"
            assert level == "none" or all(f.endswith((".parquet", ".puffin")) for f in left)
            book.strays |= left
            book.check_files()
            book.check_rows({r.head for r in refs.values()})

    @rule(name=TABLE, planted=st.integers(0, 2))
    def sweep(self, name: str, planted: int) -> None:
        book = self.books[name]
        for _ in range(planted):
            stray = f"{book.table.location}/data/stray-{next(self.numbers)}.parquet"
            book.table.io.create(stray, b"nobody's")
            book.strays.add(normalized(stray))
        plan = book.table.plan_orphans()
        assert {normalized(file.location) for file in plan.files} == book.strays
        book.table.sweep_orphans(plan)
        book.strays = set()
        self.check(book)
        book.check_files()
        book.check_rows({r.head for r in book.history.refs.values()})

    # reads

    @rule(name=TABLE, before=PLACES | NAMES, after=PLACES | NAMES)
    def read_changes(self, name: str, before: Pick, after: Pick) -> None:
        book, history = self.books[name], self.books[name].history
        states = [p if isinstance(p, str) else book.snapshot(p) for p in (before, after)]
        if any(isinstance(s, str) and s not in history.refs for s in states):
            return
        old, new = (history.snapshots[history.refs[s].head if isinstance(s, str) else s].rows for s in states)
        changes = book.table.changes(*states)
        assert numbers(changes.added) == sorted(new.keys() - old.keys())
        assert numbers(changes.removed) == sorted(old.keys() - new.keys())

    # how it is done

    def write(self, name: str, branch: str, patch: Patch, call: Callable[[Table], object]) -> None:
        """A change of rows; where none matches there may still be files without rows to remove."""
        book, ref = self.books[name], self.books[name].history.refs.get(branch)
        due: set[Any] = {RefusedError} if ref and not ref.is_branch else set()
        self.commit(book, branch, patch, lambda: call(book.table), due, surely=bool(patch.removed or patch.added))

    def maintain(self, name: str, branch: str, patch: Patch, call: Callable[[Table], object]) -> None:
        """A change of files, where there is something to do."""
        book, ref = self.books[name], self.books[name].history.refs.get(branch)
        due: set[Any] = set() if ref and ref.is_branch else {RefusedError if ref else NotFoundError}
        self.commit(book, branch, patch, lambda: call(book.table), due, surely=False)

    def commit(
        self, book: ModelledTable, branch: str, patch: Patch, call: Callable[[], object], due: set[Any], *, surely: bool
    ) -> None:
        if self.attempt(book, call, due) is None and (surely or book.new_snapshots()):
            self.snapshot_came(book, branch, patch)
        else:
            self.check(book)

    def attempt(
        self, book: ModelledTable, call: Callable[[], object], due: set[type[BerglineError]], *, surely: bool = True
    ) -> BerglineError | None:
        """The error that a call ends with, one that is due; then nothing has changed and no file was left."""
        self.now_ms += HOUR_MS
        self.sound = False
        before, files = book.table.refresh().metadata_location, set(book.table.io.list(book.table.location))
        try:
            call()
        except BerglineError as error:
            note(f"{type(error).__name__}: {error}")
            if type(error) not in due:
                raise
            assert book.table.refresh().metadata_location == before
            assert set(book.table.io.list(book.table.location)) == files
            self.sound = True
            return error
        assert not due or not surely, f"expected one of {due}"
        book.table.refresh()
        return None

    def snapshot_came(self, book: ModelledTable, branch: str, patch: Patch) -> None:
        (new,) = book.new_snapshots()
        start = book.history.head(branch)
        assert new.parent_snapshot_id == start
        book.history.add(new.snapshot_id, start, (patch,), new.timestamp_ms)
        book.history.move(branch, new.snapshot_id)
        self.check(book)

    def check(self, book: ModelledTable) -> None:
        book.check()
        self.sound = True

    def set_ref(self, book: ModelledTable, name: str, ref: RefModel, settings_: dict[str, int]) -> None:
        names = {"min_snapshots_to_keep": "keep", "max_snapshot_age_ms": "age_ms", "max_ref_age_ms": "ref_age_ms"}
        changed = msgspec.structs.replace(ref, **{names[k]: v for k, v in settings_.items()})
        book.history.refs = book.history.refs | {name: changed}
        self.check(book)

    def target(self, book: ModelledTable, at: Any) -> tuple[Any, int, type[BerglineError] | None]:
        """Where a ref goes: what the caller says, the snapshot that is meant, and the error if there is none."""
        if at is None:
            return None, book.history.refs["main"].head, None
        if isinstance(at, tuple):
            return (snapshot := book.snapshot(at[0])), snapshot, None
        ref = book.ref(at)
        there = book.history.refs.get(ref)
        return ref, there.head if there else 0, None if there else NotFoundError

    def retention(self, wished: tuple[Any, ...], *, tag: bool) -> dict[str, int]:
        keep, age, ref_age = wished
        given = {"max_ref_age_ms": ref_age and ref_age * DAY_MS}
        if not tag:
            given |= {"min_snapshots_to_keep": keep, "max_snapshot_age_ms": age and age * DAY_MS}
        return {k: v for k, v in given.items() if v is not None}

    def matching(self, name: str, branch: str, rows: tuple[str, Any]) -> tuple[str, frozenset[int], frozenset[Key]]:
        """A filter, the rows of a branch that it matches, and the partitions that they are in."""
        there = self.books[name].history.rows(branch)
        match rows:
            case ("one", place):
                gone = sorted(there)[place : place + 1]
                where = in_list(gone)
            case ("some", rest):
                gone = [n for n in there if n % 4 == rest]
                where = in_list(gone)
            case ("key", key):
                gone = [n for n, of in there.items() if of == key]
                where = has_key(key)
            case _:
                gone, where = list(there), "true"
        touched = EVERYWHERE if where == "true" else frozenset(there[n] for n in gone)
        return where, frozenset(gone), touched | ({rows[1]} if rows[0] == "key" else set())

    def replacing(self, name: str, branch: str, keys: list[Key], new: dict[int, Key]) -> Patch:
        """What replacing the partitions of new rows does."""
        history = self.books[name].history
        touched = frozenset(keys) if history.partitioned else EVERYWHERE
        gone = frozenset(n for n, key in history.rows(branch).items() if key in touched)
        return Patch("replace partitions", removed=gone, added=new, rewrites=touched, claims=touched)

    def new_rows(self, keys: list[Key]) -> dict[int, Key]:
        return {next(self.numbers): key for key in keys}


def arrow(rows: dict[int, Key]) -> pa.Table:
    return pa.Table.from_pylist([{"n": n, "k": key} for n, key in rows.items()], ARROW)


def has_key(key: Key) -> str:
    return "k IS NULL" if key is None else f"k = {key}"


def in_list(found: list[int]) -> str:
    return f"n IN ({', '.join(map(str, sorted(found)))})" if found else "false"


LONG = os.environ.get("BERGLINE_EXAMPLES")


def check_machine(
    machine: type[ReferencesMachine], place_of: Callable[[], CatalogBackend], examples: int, steps: int
) -> None:
    run_state_machine_as_test(
        type("Machine", (machine,), {"place_of": staticmethod(place_of)}),
        settings=settings(
            max_examples=int(LONG) if LONG else examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=not LONG,
            database=None,
            phases=[Phase.generate, Phase.shrink] if LONG else [Phase.generate],
        ),
    )
