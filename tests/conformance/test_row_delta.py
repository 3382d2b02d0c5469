"""Row deltas, rewrites and their conflicts beside Java's own API: the same files, numbers, rows and decisions."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import ConflictError
from bergline.expressions.bound_filter import bind_filter
from bergline.expressions.parse import parse_predicate
from bergline.format.deletes.delete_files import only_data_file
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.format.schema.schema import Schema
from bergline.format.types.types import STRING, NestedField
from bergline.table.commits.history_window import Scope
from bergline.table.commits.isolation import Isolation, RowLevelCommand
from bergline.table.engine.arrow_engine import ArrowRowEngine
from bergline.table.engine.plans import plan_rewrite
from bergline.table.operations.compaction import CompactionRequest, RewrittenGroup, as_rewritten, plan_compaction
from bergline.table.operations.delete import write_deletes_by_position
from bergline.table.operations.rewrite_files import RewriteFiles, Rewritten
from bergline.table.operations.rewrite_options import RewriteOptions
from bergline.table.operations.row_delta import RowDelta, RowDeltaChecks, row_delta_checks
from support.fixtures.add_deletes import deletion_vectors, equality_deletes, position_deletes
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows
from support.java.java_commits import java_rewrite, java_row_delta, live_files
from support.servers.peers import OfficialError, OfficialRuntime

pytestmark = pytest.mark.official
Official = Callable[[str], list[tuple[Any, ...]]]
VERSIONS = ["2", "3"]
TOTALS = ("records", "data-files", "delete-files", "position-deletes", "equality-deletes", "files-size")
REGION = Schema(fields=(NestedField(3, "region", False, STRING),))
EU = Scope(bind_filter(parse_predicate("region = 'eu'"), REGION))
EU_JSON = {"type": "eq", "term": "region", "value": "eu"}


def twin(lake: Lake, table: Table, name: str) -> Table:
    """Another table on the same metadata: what is committed to one is not in the other."""
    return lake.register_table(name, table.metadata_location)


def by_position(table: Table, path: str, *positions: int) -> tuple[DataFile, ...]:
    wanted = {path: positions}
    return deletion_vectors(table, wanted) if table.metadata.format_version > 2 else (position_deletes(table, wanted),)


def data_file(table: Table, order: int) -> DataFile:
    (planned,) = table.scan(f"id = {order}").plan().files
    return planned.file


def head(table: Table) -> int:
    assert table.current_snapshot is not None
    return table.current_snapshot.snapshot_id


class Pair:
    """Two tables with the same content: changes go to one by bergline and to the other by Java."""

    def __init__(self, lake: Lake, runtime: OfficialRuntime, ours: Table) -> None:
        self._runtime = runtime
        self.ours = ours
        self.theirs = twin(lake, ours, "db.theirs")

    def row_delta(self, added: Sequence[DataFile], removed: Sequence[DataFile] = ()) -> None:
        checks = RowDeltaChecks()
        said = java_row_delta(self._runtime, self.theirs, added, removed, head(self.theirs), checks, None)
        assert said is None
        self.ours.commit(RowDelta(self.ours.io, added, removed, since=head(self.ours), checks=checks))
        self.theirs.refresh()

    def rewrite(self, rewritten: Rewritten) -> None:
        assert java_rewrite(self._runtime, self.theirs, rewritten, head(self.theirs)) is None
        self.ours.commit(RewriteFiles(self.ours.io, rewritten, since=head(self.ours)))
        self.theirs.refresh()

    def check_same(self) -> None:
        assert live_files(self.ours) == live_files(self.theirs)
        ours, theirs = self.ours.current_snapshot, self.theirs.current_snapshot
        assert ours is not None
        assert theirs is not None
        keys = ["operation", *(f"total-{name}" for name in TOTALS)]
        keys += [key for key in theirs.summary if key.startswith(("added-", "deleted-", "removed-"))]
        assert {k: ours.summary.get(k) for k in keys} == {k: theirs.summary.get(k) for k in keys}
        assert (ours.sequence_number, ours.added_rows) == (theirs.sequence_number, theirs.added_rows)


def check_readable(table: Table, official: Official, pyiceberg: Any) -> list[int]:
    """Java and PyIceberg read what is in a table as we do; PyIceberg has no deletes by equality, and no v3 scans."""
    columns = ["id", "_row_id"] if table.metadata.format_version > 2 else ["id"]
    rows = sorted(tuple(r.values()) for r in table.scan(columns=columns).to_arrow().to_pylist())
    assert sorted(official(f"SELECT {', '.join(columns)} FROM {table.name}")) == rows
    kinds = {kind for _, _, kind, _, _ in live_files(table).values()}
    if table.metadata.format_version == 2 and FileContent.EQUALITY_DELETES not in kinds:
        assert ids(pyiceberg.load_table(str(table.name)).scan().to_arrow()) == [r[0] for r in rows]
    return [r[0] for r in rows]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_steps_give_the_same_files_numbers_and_rows(
    lake: Lake, official: Official, official_runtime: OfficialRuntime, pyiceberg: Any, version: str
) -> None:
    ours = lake.create_table("db.ours", ORDERS, partition_by=["region"], properties={"format-version": version})
    ours.append(order_rows(1, 2, 3)).append(order_rows(4, 5, 6, region="us")).append(order_rows(7, 8))
    pair = Pair(lake, official_runtime, ours)

    def agreed(*expected: int) -> None:
        pair.check_same()
        assert check_readable(pair.ours, official, pyiceberg) == list(expected)
        assert check_readable(pair.theirs, official, pyiceberg) == list(expected)

    first = by_position(ours, data_file(ours, 1).file_path, 0)
    pair.row_delta([*written_files(ours, order_rows(9)), *first])
    agreed(2, 3, 4, 5, 6, 7, 8, 9)
    made = write_deletes_by_position(ours.io, ours.metadata, ours.scan("id IN (2, 6)").plan())
    assert [d.file_path for d in made.replaced] == [first[0].file_path]
    pair.row_delta(made.deletes, made.replaced)
    agreed(3, 4, 5, 7, 8, 9)
    pair.row_delta([equality_deletes(ours, pa.table({"id": [7]}), [1], ("eu",))])
    agreed(3, 4, 5, 8, 9)
    assert ours.current_snapshot is not None
    request = CompactionRequest(options=RewriteOptions(rewrite_all=True, remove_dangling_deletes=True))
    plan = plan_compaction(ours.io, ours.metadata, ours.current_snapshot, request)
    groups = plan.layouts(0, len(plan))
    written = ArrowRowEngine().rewrite_groups(ours.io, plan_rewrite(ours.metadata, plan.read, groups))
    done = [RewrittenGroup(*pair) for pair in zip(groups, written, strict=True)]
    pair.rewrite(as_rewritten(ours.io, ours.metadata, ours.current_snapshot, request, done, pinned=True))
    agreed(3, 4, 5, 8, 9)
    assert {kind for _, _, kind, _, _ in live_files(ours).values()} == {FileContent.DATA}
    (planned,) = ours.scan("region = 'us'").plan().files
    pair.row_delta([], [planned.file])
    agreed(3, 8, 9)


@pytest.mark.parametrize("version", VERSIONS)
def test_rewritten_manifests_hold_the_same_entries(
    lake: Lake, official: Official, pyiceberg: Any, version: str
) -> None:
    ours = lake.create_table("db.ours", ORDERS, partition_by=["region"], properties={"format-version": version})
    for i in range(3):
        ours.append(order_rows(2 * i, 2 * i + 1)).append(order_rows(i + 20, region="us"))
    for i in (0, 2):
        ours.row_delta(deletes=by_position(ours, data_file(ours, i).file_path, 0))
    theirs = twin(lake, ours, "db.theirs")
    before = live_files(ours)
    official("CALL lake.system.rewrite_manifests('db.theirs')")
    ours.rewrite_manifests()
    theirs.refresh()
    assert live_files(ours) == before
    assert {k: v[:4] for k, v in live_files(theirs).items()} == {k: v[:4] for k, v in before.items()}
    assert ours.current_snapshot is not None
    assert theirs.current_snapshot is not None
    for key in ("operation", "manifests-created", "manifests-kept", "manifests-replaced", "total-records"):
        assert ours.current_snapshot.summary[key] == theirs.current_snapshot.summary[key]
    assert check_readable(ours, official, pyiceberg) == [1, 3, 4, 5, 20, 21, 22]


def test_java_goes_on_with_our_deletion_vectors(lake: Lake, official: Official) -> None:
    table = lake.create_table("db.t", ORDERS, properties={"format-version": "3", "write.delete.mode": "merge-on-read"})
    table.append(order_rows(*range(10)))
    table.row_delta(deletes=by_position(table, data_file(table, 0).file_path, 0, 3))
    official("DELETE FROM db.t WHERE id = 5")
    made = write_deletes_by_position(table.io, table.refresh().metadata, table.scan("id = 7").plan())
    assert [d.record_count for d in made.deletes] == [4]
    table.row_delta(deletes=made.deletes, remove=made.replaced)
    assert sorted(r[0] for r in official("SELECT id FROM db.t")) == ids(table.scan().to_arrow()) == [1, 2, 4, 6, 8, 9]
    assert table.compact().removed_delete_files == 1
    assert sorted(r[0] for r in official("SELECT id FROM db.t")) == [1, 2, 4, 6, 8, 9]


def test_a_second_deletion_vector_breaks_the_table_in_java_and_is_refused_here(
    lake: Lake, official: Official, official_runtime: OfficialRuntime
) -> None:
    ours = lake.create_table("db.t", ORDERS, properties={"format-version": "3"}).append(order_rows(1, 2, 3))
    path = data_file(ours, 1).file_path
    ours.row_delta(deletes=by_position(ours, path, 0))
    theirs = twin(lake, ours, "db.theirs")
    second, checks = by_position(ours, path, 1), RowDeltaChecks()
    assert java_row_delta(official_runtime, theirs, second, (), head(theirs), checks, None) is None
    with pytest.raises(OfficialError, match="multiple DVs"):
        official("SELECT * FROM db.theirs")
    with pytest.raises(ConflictError, match="to be removed with the new one"):
        ours.row_delta(deletes=second)
    assert [r[0] for r in official("SELECT id FROM db.t ORDER BY id")] == [2, 3]


def test_deletes_of_another_file_one_after_the_other_do_not_stop_a_rewrite(
    lake: Lake, official: Official, official_runtime: OfficialRuntime
) -> None:
    assert official("SELECT 1") == [(1,)]
    ours = lake.create_table("db.t", ORDERS, properties={"format-version": "3"})
    ours.append(order_rows(1, 2)).append(order_rows(3, 4, 5))
    since, work = head(ours), _rewrite(pinned=True)(ours)
    for order in (3, 4):
        plan = ours.scan(f"id = {order}").plan()
        made = write_deletes_by_position(ours.io, ours.metadata, plan)
        ours.row_delta(deletes=made.deletes, remove=made.replaced)
    assert java_rewrite(official_runtime, twin(lake, ours, "db.theirs"), work, since) is None
    ours.commit(RewriteFiles(ours.io, work, since=since))
    assert sorted(r[0] for r in official("SELECT id FROM db.t")) == [1, 2, 5]


def _append(region: str) -> Callable[[Table], object]:
    return lambda table: table.append(order_rows(9, region=region))


def _overwrite(table: Table) -> object:
    return table.overwrite_files(written_files(table, order_rows(1, 2)), removed=[data_file(table, 1)])


def _delete_file(table: Table) -> object:
    return table.overwrite_files([], removed=[data_file(table, 1)])


def _delete_rows(table: Table) -> object:
    return table.row_delta(deletes=by_position(table, data_file(table, 1).file_path, 1))


def _delete_other_rows(table: Table) -> object:
    return table.row_delta(deletes=by_position(table, data_file(table, 3).file_path, 1))


def _delete_equal(order: int) -> Callable[[Table], object]:
    return lambda table: table.row_delta(deletes=[equality_deletes(table, pa.table({"id": [order]}), [1], ("eu",))])


def _compact(table: Table) -> object:
    start = table.current_snapshot
    assert start is not None
    return table.rewrite_files(
        add=written_files(table, order_rows(1, 2)), remove=[data_file(table, 1)], sequence_number=start.sequence_number
    )


RIVALS: dict[str, Callable[[Table], object]] = {
    "nothing": lambda _: None,
    "append where it looked": _append("eu"),
    "append elsewhere": _append("us"),
    "overwrite": _overwrite,
    "delete of the whole file": _delete_file,
    "delete of rows of the file": _delete_rows,
    "delete of rows elsewhere": _delete_other_rows,
    "delete by equality": _delete_equal(1),
    "delete by equality of what is not there": _delete_equal(100),
    "rewrite of the file": _compact,
}


def _delta(command: RowLevelCommand, isolation: Isolation | None) -> Callable[[Table], Any]:
    def prepare(table: Table) -> Any:
        file = data_file(table, 1)
        added = written_files(table, order_rows(1)) if command != "delete" else []
        deletes = by_position(table, file.file_path, 0)
        referenced = {path for d in deletes if (path := only_data_file(d))}
        if isolation is None:
            return [*added, *deletes], (), RowDeltaChecks()
        return [*added, *deletes], (), row_delta_checks(command, isolation, EU, referenced)

    return prepare


def _remove(table: Table) -> Any:
    """The file replaced through a row delta, with every check."""
    checks = RowDeltaChecks(scope=EU, deleted_files=True, new_data=True, new_deletes=True)
    return written_files(table, order_rows(1)), (data_file(table, 1),), checks


def _rewrite(pinned: bool) -> Callable[[Table], Any]:
    def prepare(table: Table) -> Any:
        assert table.current_snapshot is not None
        number = table.current_snapshot.sequence_number if pinned else None
        return Rewritten(tuple(written_files(table, order_rows(1, 2))), (data_file(table, 1),), sequence_number=number)

    return prepare


OPERATIONS: dict[str, Callable[[Table], Any]] = {
    "delete, serializable": _delta("delete", Isolation.SERIALIZABLE),
    "delete, snapshot": _delta("delete", Isolation.SNAPSHOT),
    "merge, serializable": _delta("merge", Isolation.SERIALIZABLE),
    "merge, snapshot": _delta("merge", Isolation.SNAPSHOT),
    "delta without checks": _delta("merge", None),
    "delta that removes the file": _remove,
    "rewrite with its number": _rewrite(pinned=True),
    "rewrite": _rewrite(pinned=False),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_conflicts_are_found_where_java_finds_them(
    lake: Lake, official: Official, official_runtime: OfficialRuntime, version: str
) -> None:
    assert official("SELECT 1") == [(1,)]
    start = lake.create_table("db.t", ORDERS, partition_by=["region"], properties={"format-version": version})
    start.append(order_rows(1, 2)).append(order_rows(3, 4, region="us"))
    wrong, conflicts = [], 0
    cases = [(rival, name) for rival in RIVALS for name in OPERATIONS]
    for number, (rival, name) in enumerate(cases):
        ours = twin(lake, start, f"db.ours_{number}")
        since, work = head(ours), OPERATIONS[name](ours)
        RIVALS[rival](lake.load_table(str(ours.name)))
        theirs = twin(lake, ours.refresh(), f"db.theirs_{number}")
        said, operation = _both(official_runtime, theirs, since, work)
        refused = _refused(ours, operation)
        conflicts += refused is not None
        if (said is None) != (refused is None) or (said and not said.startswith("ValidationException")):
            wrong.append(f"{name} after {rival}: Java says {said}, we say {refused}")
        elif refused is None and live_files(ours) != live_files(theirs.refresh()):
            wrong.append(f"{name} after {rival}: other files than Java's")
    assert wrong == []
    assert 20 < conflicts < len(cases) - 20


def _refused(table: Table, operation: Any) -> str | None:
    try:
        table.commit(operation)
    except ConflictError as error:
        return str(error)
    return None


def _both(runtime: OfficialRuntime, theirs: Table, since: int, work: Any) -> tuple[str | None, Any]:
    """What Java says of an operation, and the operation of ours."""
    if isinstance(work, Rewritten):
        return java_rewrite(runtime, theirs, work, since), RewriteFiles(theirs.io, work, since=since)
    added, removed, checks = work
    row_filter = EU_JSON if checks.scope == EU else None
    said = java_row_delta(runtime, theirs, added, removed, since, checks, row_filter)
    return said, RowDelta(theirs.io, added, removed, since=since, checks=checks)
