"""Random changes to two branches, merged now and then, against the same changes done to plain lists of rows.

A change is the rows that it removed and the rows that it added. A merge does the changes of one branch, those that the
other has not had, to the other's rows; or it is refused, and then nothing has changed.
"""

import datetime as dt
from collections.abc import Collection
from itertools import count
from typing import Any

import msgspec
import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st

import bergline
from bergline import Lake, Table
from bergline.errors import ConflictError, RefusedError
from bergline.format.manifest.manifest import partition_key
from bergline.table.manifests.removal import file_key
from bergline.table.references.common_ancestor import find_divergence
from bergline.table.references.merge import MergeResult
from support.fixtures.add_deletes import equality_deletes
from support.fixtures.competing_writers import overtaken
from support.models.table_invariants import check_nothing_is_missing

Row = dict[str, Any]
ARROW = pa.schema([pa.field("n", pa.int64(), nullable=False), ("k", pa.int32())])
KEYS = [None, 0, 1, 2]
branches = st.sampled_from(["main", "dev"])
keys = st.lists(st.sampled_from(KEYS), min_size=1, max_size=4)
places = st.integers(0, 9)
small_changes = st.one_of(
    st.tuples(st.just("append"), keys),
    st.tuples(st.just("delete one"), places),
    st.tuples(st.just("update one"), places),
    st.tuples(st.just("compact"), st.sampled_from(KEYS)),
    st.tuples(st.just("replace partitions"), keys.map(lambda values: values[:1])),
)
large_changes = st.one_of(
    st.tuples(st.just("delete key"), st.sampled_from(KEYS)),
    st.tuples(st.just("update"), st.integers(0, 3)),
    st.tuples(st.just("replace all"), keys),
    st.tuples(st.just("delete by equality"), st.integers(0, 3)),
    st.tuples(st.just("compact"), st.just("all")),
    st.tuples(st.just("add again"), places),
    st.just(("take deletes back",)),
    st.just(("rewrite manifests",)),
)
changes = st.one_of(small_changes, small_changes, large_changes)
some_changes = st.lists(changes, min_size=1, max_size=3)


class Join(msgspec.Struct, frozen=True):
    """How branches come together."""

    kind: str
    branch: str
    squash: bool
    beside: tuple[str, Any] | None
    """A change that comes first, while the merge is under way."""
    expired: bool
    """Whether history is lost before."""


joins = st.builds(
    Join,
    kind=st.sampled_from(["merge", "rebase"]),
    branch=branches,
    squash=st.booleans(),
    beside=st.none() | st.tuples(branches, changes),
    expired=st.booleans(),
)
rounds = st.lists(st.tuples(some_changes, some_changes, joins), min_size=1, max_size=3)


class Patch(msgspec.Struct, frozen=True, eq=False):
    """What a change did, by the numbers of the rows."""

    removed: frozenset[int]
    added: dict[int, Row]
    restored: frozenset[int] = frozenset()
    """Of the rows that were added, those whose deletes were taken back."""


class Branch(msgspec.Struct):
    """The rows of a branch by number, and how they came about."""

    rows: dict[int, Row]
    patches: list[Patch]

    def apply(self, patch: Patch, deleted: Collection[int] = ()) -> None:
        """Rows of which the branch itself has `deleted` the file's row stay so if others take their deletes back."""
        added = {n: row for n, row in patch.added.items() if n not in patch.restored or n not in deleted}
        self.rows = {n: row for n, row in self.rows.items() if n not in patch.removed} | added
        self.patches.append(patch)

    def take(self, other: "Branch") -> "Branch":
        """This branch after a merge of another."""
        merged = Branch(self.rows, list(self.patches))
        own = [patch for patch in self.patches if not any(patch is known for known in other.patches)]
        deleted = {n for patch in own for n in patch.removed} - self.rows.keys()
        for patch in other.patches:
            if not any(patch is known for known in merged.patches):
                merged.apply(patch, deleted)
        return merged

    def came_again(self, other: "Branch") -> bool:
        """Whether rows that went came again in this branch alone: squashed, they have not changed."""
        gone = {n for patch in (*self.patches, *other.patches) for n in patch.removed}
        return any(
            not gone.isdisjoint(patch.added) and not any(patch is known for known in other.patches)
            for patch in self.patches
        )


class Machine:
    """A table with two branches, and its model."""

    def __init__(self, lake: Lake, table: Table, partition_by: list[str]) -> None:
        self.lake = lake
        self.table = table
        self.partitioned = bool(partition_by)
        self.model = {"main": Branch({}, []), "dev": Branch({}, [])}
        self._numbers = count(1)

    def start(self) -> None:
        """Rows that both branches have."""
        self.table.append(self._arrow(self._new([0, 1, 2, None])))
        self.table.append(self._arrow(self._new([0, 1, 1])))
        self.table.refs.create_branch("dev")
        for branch in self.model.values():
            branch.rows = {row["n"]: row for row in self.table.scan().to_arrow().to_pylist()}

    def change(self, branch: str, change: Any) -> None:
        """One change to a branch and to its model."""
        now = self.model[branch].rows
        table = self.table
        gone: set[int] = set()
        new: list[Row] = []
        restored: frozenset[int] = frozenset()
        match change:
            case ("append", values):
                new = self._new(values)
                table.append(self._arrow(new), branch=branch)
            case ("delete one", place):
                gone = set(sorted(now)[place : place + 1])
                table.delete(in_list(gone), branch=branch)
            case ("update one", place):
                gone = set(sorted(now)[place : place + 1])
                new = self._new([now[n]["k"] for n in gone])
                table.overwrite(self._arrow(new), in_list(gone), branch=branch)
            case ("delete key", value):
                gone = {n for n, row in now.items() if row["k"] == value}
                table.delete(has_key(value), branch=branch)
            case ("update", rest):
                gone = {n for n in now if n % 4 == rest}
                new = self._new([now[n]["k"] for n in sorted(gone)])
                table.overwrite(self._arrow(new), in_list(gone), branch=branch)
            case ("replace partitions", values):
                new = self._new(values)
                gone = {n for n, row in now.items() if not self.partitioned or row["k"] in values}
                table.overwrite_partitions(self._arrow(new), branch=branch)
            case ("replace all", values):
                new, gone = self._new(values), set(now)
                table.overwrite(self._arrow(new), branch=branch)
            case ("delete by equality", rest):
                if table.metadata.format_version > 1:
                    gone = {n for n in now if n % 4 == rest}
                    delete_by_equality(table, branch, gone)
            case ("compact", value):
                table.compact(None if value == "all" else has_key(value), branch=branch)
            case ("rewrite manifests",):
                table.rewrite_manifests(branch=branch)
            case ("add again", place):
                gone, new = self._add_again(branch, place)
            case ("take deletes back",):
                deletes = {file_key(d): d for p in table.scan(ref=branch).plan().files for d in p.deletes}
                if deletes:
                    table.row_delta(remove=list(deletes.values()), branch=branch)
                    new = [row for row in self._found(branch) if row["n"] not in now]
                    restored = frozenset(row["n"] for row in new)
        self.model[branch].apply(Patch(frozenset(gone), {row["n"]: row for row in new}, restored))

    def join(self, join: Join) -> None:
        """Merge a branch into the other, or rebase it onto the other."""
        kind, branch, squash, beside = join.kind, join.branch, join.squash, join.beside
        other = "dev" if branch == "main" else "main"
        if join.expired:
            self._expire(branch, other)
        rival = overtaken(self.lake, *([lambda: self.change(*beside)] if beside else []))
        refs = rival.load_table("db.t").refs

        def do() -> MergeResult:
            if kind == "merge":
                return refs.merge(branch, into=other, squash=squash)
            return refs.rebase(branch, onto=other, squash=squash)

        try:
            result = do()
        except (ConflictError, RefusedError) as error:
            event(f"{kind} refused: {type(error).__name__}")
            before = self.table.metadata
            assert self.table.refresh().metadata == before
            return
        done = "squashed" if squash and result.replayed else "done again" if result.replayed else "moved"
        event(f"{kind} {done}{', with expired history' if join.expired else ''}")
        target = other if kind == "merge" else branch
        is_net = squash and self.model[branch].came_again(self.model[other])
        self.model[target] = self.model[other].take(self.model[branch])
        if is_net:  # the other branch may have changed them, and that stays
            self.model[target].rows = {
                row["n"]: row for row in self.table.refresh().scan(ref=target).to_arrow().to_pylist()
            }
        known = self.table.refresh().metadata_location
        assert do().replayed == {}
        assert self.table.refresh().metadata_location == known, "a second time adds nothing"

    def check(self) -> None:
        """The branches have the rows of the model, and rows have ids of their own."""
        lineage = self.table.metadata.format_version > 2
        for name, branch in self.model.items():
            columns = ["n", "k", "_row_id"] if lineage else ["n", "k"]
            found = self.table.scan(ref=name, columns=columns).to_arrow().to_pylist()
            assert sorted(row["n"] for row in found) == sorted(branch.rows)
            assert {row["n"]: row["k"] for row in found} == {n: row["k"] for n, row in branch.rows.items()}
            if lineage:
                ids = {row["_row_id"] for row in found}
                assert len(ids) == len(found)
                assert None not in ids

    def _add_again(self, branch: str, place: int) -> tuple[set[int], list[Row]]:
        """Remove a file and add it again, under a new number: the rows that went, and those that came."""
        files = sorted((p.file for p in self.table.scan(ref=branch).plan().files), key=lambda f: f.file_path)
        if not (again := files[place : place + 1]):
            return set(), []
        self.table.overwrite_files([], removed=again, branch=branch)
        left = {row["n"] for row in self._found(branch)}
        self.table.append_files(again, branch=branch)
        return set(self.model[branch].rows) - left, [row for row in self._found(branch) if row["n"] not in left]

    def _found(self, branch: str) -> list[Row]:
        return self.table.scan(ref=branch).to_arrow().to_pylist()

    def _expire(self, branch: str, other: str) -> None:
        """Forget what is between the common ancestor and the head of a branch, if nothing else needs it."""
        metadata = self.table.metadata
        heads = {ref.snapshot_id for ref in metadata.refs.values()}
        divergence = find_divergence(metadata, metadata.refs[branch].snapshot_id, metadata.refs[other].snapshot_id)
        between = {s.snapshot_id for s in divergence.picked} - heads if divergence else set()
        if between:
            self.table.expire(snapshot_ids=between, older_than=dt.datetime(2000, 1, 1, tzinfo=dt.UTC))

    def _new(self, values: list[Any]) -> list[Row]:
        return [{"n": next(self._numbers), "k": value} for value in values]

    def _arrow(self, rows: list[Row]) -> pa.Table:
        return pa.Table.from_pylist(rows, ARROW)


def has_key(value: int | None) -> str:
    return "k IS NULL" if value is None else f"k = {value}"


def in_list(numbers: set[int]) -> str:
    return f"n IN ({', '.join(map(str, sorted(numbers)))})" if numbers else "false"


def delete_by_equality(table: Table, branch: str, numbers: set[int]) -> None:
    """An equality delete file in every partition that has rows."""
    planned = table.scan(ref=branch).plan().files
    partitions = {partition_key(p.file): p.file.partition for p in planned}.values()
    deletes = [equality_deletes(table, pa.table({"n": sorted(numbers)}), [1], p) for p in partitions if numbers]
    if deletes:
        table.row_delta(deletes=deletes, branch=branch, isolation="none")


@settings(max_examples=40)
@given(
    rounds=rounds,
    partition_by=st.sampled_from([[], ["k"], ["k"]]),
    version=st.sampled_from(["1", "2", "3"]),
    mode=st.sampled_from(["copy-on-write", "merge-on-read"]),
    granularity=st.sampled_from(["file", "partition"]),
)
def test_merged_branches_have_the_rows_that_the_same_changes_make(
    rounds: list[Any], partition_by: list[str], version: str, mode: str, granularity: str
) -> None:
    with bergline.connect("memory:") as lake:
        lake.create_namespace("db")
        properties = {
            "format-version": version,
            "write.delete.mode": mode,
            "write.delete.granularity": granularity,
            "commit.manifest.min-count-to-merge": "3",
        }
        table = lake.create_table("db.t", ARROW, partition_by=partition_by, properties=properties)
        machine = Machine(lake, table, partition_by)
        machine.start()
        for on_main, on_dev, join in rounds:
            for change in on_main:
                machine.change("main", change)
            for change in on_dev:
                machine.change("dev", change)
            machine.join(join)
            machine.check()
        check_nothing_is_missing(table, merged=True)
