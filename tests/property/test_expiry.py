"""Random histories of branches, tags, changes, merges and expiry, against the rows that every snapshot had.

After each expiry every ref and every snapshot that is left has its rows, all their files are there and, where expiry
deletes everything, no others; and expiry did exactly what its plan said.
"""

import datetime as dt
import os
from collections.abc import Iterator
from itertools import count
from typing import Any

import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st

from bergline import Lake, Table
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import AlreadyExistsError, ConflictError, NotFoundError, RefusedError
from bergline.format.metadata.table_metadata import PartitionStatisticsFile, StatisticsFile
from bergline.scan.manifests import load_manifest_list
from bergline.table.commits.retry import Timing
from support.fixtures.add_deletes import equality_deletes
from support.fixtures.catalog_backends import MemoryBackend
from support.models.table_invariants import check_nothing_is_missing

EXAMPLES = int(os.environ.get("BERGLINE_EXAMPLES", "15"))
ARROW = pa.schema([pa.field("n", pa.int64(), nullable=False), ("k", pa.int32())])
HOUR = 3_600_000
START = 1_800_000_000_000

BRANCHES, TAGS = ["main", "dev", "été"], ["v1", "v2"]
branches, tags, refs = st.sampled_from(BRANCHES), st.sampled_from(TAGS), st.sampled_from(BRANCHES + TAGS)
hours = st.none() | st.integers(1, 30)
few = st.none() | st.integers(1, 4)
steps = st.one_of(
    st.tuples(st.just("append"), branches, st.lists(st.integers(0, 2), min_size=1, max_size=3)),
    st.tuples(st.just("append"), branches, st.lists(st.integers(0, 2), min_size=1, max_size=3)),
    st.tuples(st.sampled_from(["delete", "overwrite", "delete by equality"]), branches, st.integers(0, 2)),
    st.tuples(st.sampled_from(["replace all", "compact", "statistics"]), branches),
    st.tuples(st.just("rewrite manifests"), branches),
    st.tuples(st.just("branch"), branches, refs, few, hours, hours),
    st.tuples(st.just("tag"), tags, refs, hours),
    st.tuples(st.just("drop"), refs),
    st.tuples(st.sampled_from(["merge", "rebase", "fast forward"]), branches, branches).filter(lambda s: s[1] != s[2]),
    st.tuples(st.just("wait"), st.integers(1, 20)),
)
expiries = st.tuples(
    st.just("expire"),
    st.sampled_from([-1, -1, -1, 0, 5, None]),  # hours ago: what is older goes, at -1 all that no rule keeps
    few,
    st.sampled_from(["all", "all", "all", "all", "metadata", "none"]),
    st.sampled_from([None, None, 0, 1, 2, 3]),
)
histories = st.lists(st.tuples(st.lists(steps, min_size=1, max_size=6), expiries), min_size=1, max_size=3)
REFUSALS = (ConflictError, NotFoundError, RefusedError, AlreadyExistsError)


class History:
    """A table whose clock stands still unless it is told to move, and the rows that its snapshots have had."""

    def __init__(self, properties: dict[str, str], partition_by: list[str]) -> None:
        place = MemoryBackend()
        self.now_ms = START
        catalog = PointerCatalog(place.store(), place.io(), place.warehouse)
        lake = Lake(catalog, "lake", timing=Timing(clock_ms=lambda: self.now_ms))
        lake.create_namespace("db")
        self.table = lake.create_table("db.t", ARROW, properties=properties, partition_by=partition_by)
        self.rows: dict[int, list[tuple[int, int]]] = {}
        self.complete = True
        """Whether every expiry so far has deleted all that it could."""
        self._numbers = count(1)

    def do(self, step: Any) -> None:
        """One step; what is refused changes nothing."""
        before = self.table.metadata
        try:
            self._do(step)
        except REFUSALS as error:
            event(f"{step[0]} refused: {type(error).__name__}")
            assert self.table.refresh().metadata == before
        for snapshot in self.table.metadata.snapshots:
            if snapshot.snapshot_id not in self.rows:
                self.rows[snapshot.snapshot_id] = self._found(snapshot_id=snapshot.snapshot_id)

    def _do(self, step: Any) -> None:
        table = self.table
        match step:
            case ("append", branch, keys):
                table.append(self._new(keys), branch=branch)
            case ("delete", branch, key):
                table.delete(f"k = {key}", branch=branch)
            case ("overwrite", branch, key):
                table.overwrite(self._new([key]), f"k = {key}", branch=branch)
            case ("delete by equality", branch, key):
                delete_by_equality(table, branch, key)
            case ("replace all", branch):
                table.overwrite(self._new([0, 1]), branch=branch)
            case ("compact", branch):
                table.compact(branch=branch)
            case ("rewrite manifests", branch):
                table.rewrite_manifests(branch=branch)
            case ("statistics", branch):
                self._add_statistics(table.refs[branch].snapshot_id)
            case ("branch", name, at, keep, age, ref_age):
                table.refs.create_branch(
                    name, at=at, min_snapshots_to_keep=keep, max_snapshot_age_ms=ms(age), max_ref_age_ms=ms(ref_age)
                )
            case ("tag", name, at, ref_age):
                table.refs.create_tag(name, at=at, max_ref_age_ms=ms(ref_age))
            case ("drop", name):
                (table.refs.drop_branch if name in BRANCHES else table.refs.drop_tag)(name)
            case ("merge", branch, other):
                table.refs.merge(branch, into=other)
            case ("rebase", branch, other):
                table.refs.rebase(branch, onto=other)
            case ("fast forward", branch, other):
                table.refs.fast_forward(branch, to=other)
            case ("wait", time):
                self.now_ms += time * HOUR

    def expire(self, age: int | None, retain_last: int | None, level: str, named: int | None) -> None:
        """Expire as planned, and look at everything that is left."""
        table = self.table
        arguments: dict[str, Any] = {"retain_last": retain_last, "level": level}
        if age is not None:
            arguments["older_than"] = dt.datetime.fromtimestamp((self.now_ms - age * HOUR) / 1000, dt.UTC)
        if named is not None and named < len(table.metadata.snapshots):
            arguments["snapshot_ids"] = [table.metadata.snapshots[named].snapshot_id]
        before, metadata = self._files(), table.metadata
        try:
            plan = table.plan_expiry(**arguments)
        except RefusedError:
            assert {r.snapshot_id for r in metadata.refs.values()}.issuperset(arguments["snapshot_ids"])
            return
        assert (table.metadata, self._files()) == (metadata, before)
        result = table.expire(**arguments)
        assert (result.removed_snapshots, result.removed_refs) == (plan.removed_snapshots, plan.removed_refs)
        assert metadata.snapshots_by_id.keys() - table.metadata.snapshots_by_id.keys() == set(plan.removed_snapshots)
        assert before.keys() - self._files().keys() == {f.location for f in plan.files}
        assert {f.location: f.size for f in plan.files}.items() <= before.items()
        event(f"{level}: {'some' if plan.removed_snapshots else 'no'} snapshots went")
        self.complete = self.complete and (level == "all" or not plan.removed_snapshots)
        self.check()

    def check(self) -> None:
        """Rows are there, files are there, and nothing else is."""
        metadata = self.table.refresh().metadata
        for snapshot in metadata.snapshots:
            assert self._found(snapshot_id=snapshot.snapshot_id) == self.rows[snapshot.snapshot_id]
        assert {ref.snapshot_id for ref in metadata.refs.values()} <= metadata.snapshots_by_id.keys()
        contents = check_nothing_is_missing(self.table, merged=True)
        needed = {path for paths in contents.values() for path in paths} | set(named_files(self.table))
        there = self._files().keys()
        assert needed <= there
        if self.complete:
            assert there == needed, "everything that only removed snapshots needed is gone"

    def _found(self, **version: Any) -> list[tuple[int, int]]:
        rows = self.table.scan(**version, columns=["n", "k"]).to_arrow()
        return sorted(zip(rows["n"].to_pylist(), rows["k"].to_pylist(), strict=True))

    def _files(self) -> dict[str, int]:
        io = self.table.io
        return {f: len(io.read(f)) for f in io.list(self.table.location) if not f.endswith(".metadata.json")}

    def _new(self, keys: list[int]) -> pa.Table:
        return pa.Table.from_pylist([{"n": next(self._numbers), "k": key} for key in keys], ARROW)

    def _add_statistics(self, snapshot_id: int) -> None:
        known = {s.snapshot_id for s in self.table.metadata.statistics}
        if snapshot_id in known:  # what is replaced is nobody's any more, and is left to an orphan sweep
            return
        place = f"{self.table.location}/metadata/{snapshot_id}"
        for path, size in ((f"{place}.puffin", 3), (f"{place}.stats", 4)):
            self.table.io.create(path, b"x" * size)
        self.table.set_statistics(StatisticsFile(snapshot_id, f"{place}.puffin", 3, 1, ()))
        self.table.set_statistics(PartitionStatisticsFile(snapshot_id, f"{place}.stats", 4))


def named_files(table: Table) -> Iterator[str]:
    """Manifest lists, manifests and statistics."""
    for snapshot in table.metadata.snapshots:
        yield snapshot.manifest_list or ""
        yield from (m.manifest_path for m in load_manifest_list(table.io, snapshot))
    yield from (s.statistics_path for s in table.metadata.statistics)
    yield from (s.statistics_path for s in table.metadata.partition_statistics)


def delete_by_equality(table: Table, branch: str, key: int) -> None:
    """Delete the rows of a key in all partitions that the branch has files in."""
    rows = pa.table({"k": pa.array([key], pa.int32())})
    partitions = {p.file.partition for p in table.scan(ref=branch).plan().files}
    if partitions:
        deletes = [equality_deletes(table, rows, [2], partition) for partition in sorted(partitions)]
        table.row_delta(deletes=deletes, branch=branch, isolation="none", discard_on_failure=True)


def ms(number: int | None) -> int | None:
    return None if number is None else number * HOUR


@settings(max_examples=EXAMPLES)
@given(
    history=histories,
    version=st.sampled_from(["2", "3"]),
    mode=st.sampled_from(["copy-on-write", "merge-on-read"]),
    partition_by=st.sampled_from([[], ["k"]]),
    max_age=st.none() | st.integers(1, 20),
)
def test_expiry_keeps_what_refs_need_and_nothing_else(
    history: list[tuple[list[Any], Any]], version: str, mode: str, partition_by: list[str], max_age: int | None
) -> None:
    properties = {"format-version": version, "write.delete.mode": mode, "commit.manifest.min-count-to-merge": "3"}
    if max_age is not None:
        properties["history.expire.max-snapshot-age-ms"] = str(max_age * HOUR)
    model = History(properties, partition_by)
    model.do(("append", "main", [0, 1, 2]))
    for some_steps, (_, *expiry) in history:
        for step in some_steps:
            model.do(step)
        model.expire(*expiry)
