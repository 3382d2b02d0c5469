"""Appends, overwrites, deletes, replaced partitions beside Java's API: the same entries, totals, rows, decisions."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import ConflictError
from bergline.expressions.bound_filter import bind_filter
from bergline.expressions.parse import parse_predicate
from bergline.format.manifest.manifest import DataFile
from bergline.scan.manifests import load_entries, load_manifest_list
from bergline.table.commits.history_window import Scope
from bergline.table.commits.isolation import Isolation
from bergline.table.manifests.removal import RemovedFiles
from bergline.table.operations.overwrite import Overwrite, OverwriteChecks
from support.fixtures.add_deletes import add_deletes, deletion_vectors, equality_deletes, position_deletes
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows
from support.java.java_overwrites import java_change
from support.servers.peers import OfficialRuntime

pytestmark = pytest.mark.official
Official = Callable[[str], list[tuple[Any, ...]]]
VERSIONS = ["1", "2", "3"]
EU_JSON = {"type": "eq", "term": "region", "value": "eu"}
NOT_OURS = ("engine-", "app-", "iceberg-version", "spark.")


def twin(lake: Lake, table: Table, name: str) -> Table:
    """Another table on the same metadata: what is committed to one is not in the other."""
    return lake.register_table(name, table.metadata_location)


def data_files(table: Table, row_filter: str) -> list[DataFile]:
    return [p.file for p in table.scan(row_filter).plan().files]


def head(table: Table) -> int:
    assert table.current_snapshot is not None
    return table.current_snapshot.snapshot_id


def entries(table: Table) -> list[list[tuple[Any, ...]]]:
    """What each manifest of `main`, those of data first, says of each file; snapshots by their place in the history."""
    place = {s.snapshot_id: n for n, s in enumerate(table.metadata.snapshots)}
    assert table.current_snapshot is not None
    manifests = sorted(load_manifest_list(table.io, table.current_snapshot), key=lambda m: m.content)
    return [
        [
            (
                e.status,
                place[e.snapshot_id or 0],
                e.sequence_number,
                e.file_sequence_number,
                e.data_file.file_path,
                e.data_file.content_offset,
                e.data_file.first_row_id,
            )
            for e in load_entries(table.io, m, table.metadata)
        ]
        for m in manifests
    ]


def summary(table: Table) -> dict[str, str]:
    assert table.current_snapshot is not None
    return {k: v for k, v in table.current_snapshot.summary.items() if not k.startswith(NOT_OURS)}


class Pair:
    """Two tables with the same content: changes go to one by bergline and to the other by Java."""

    def __init__(self, lake: Lake, official: Official, runtime: OfficialRuntime, ours: Table) -> None:
        self.ours = ours
        self.theirs = twin(lake, ours, "db.theirs")
        self._official = official
        self._runtime = runtime

    def both(self, kind: str, change: Callable[[Table], object], **java: Any) -> None:
        """The same change twice: then manifests, entries, summaries and rows are the same."""
        change(self.ours)
        assert java_change(self._runtime, self.theirs, kind, **java) is None
        self.theirs.refresh()
        assert entries(self.ours) == entries(self.theirs)
        assert summary(self.ours) == summary(self.theirs)
        columns = ["id", "_row_id"] if self.ours.metadata.format_version > 2 else ["id"]
        rows = sorted(tuple(r.values()) for r in self.ours.scan(columns=columns).to_arrow().to_pylist())
        for name in (self.ours.name, self.theirs.name):
            assert sorted(self._official(f"SELECT {', '.join(columns)} FROM {name}")) == rows


@pytest.mark.kinds(2)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_steps_give_the_same_manifests_and_totals(
    lake: Lake, official: Official, official_runtime: OfficialRuntime, pyiceberg: Any, version: str
) -> None:
    ours = lake.create_table("db.ours", ORDERS, partition_by=["region"], properties={"format-version": version})
    ours.append(order_rows(1, 2)).append(order_rows(3, region="us"))
    pair = Pair(lake, official, official_runtime, ours)

    new = [
        *written_files(ours, order_rows(4, 5)),
        *written_files(ours, order_rows(6, region="us")),
        *written_files(ours, order_rows(7)),
    ]
    pair.both("append", lambda t: t.append_files(new), added=new)
    new = written_files(ours, order_rows(8, region="jp"))
    pair.both("fast append", lambda t: t.append_files(new, fast=True), added=new)
    gone, new = data_files(ours, "id = 7"), written_files(ours, order_rows(9))
    pair.both("overwrite", lambda t: t.overwrite_files(new, removed=gone), added=new, removed=gone)
    gone = data_files(ours, "id = 4")
    pair.both("delete", lambda t: t.overwrite_files([], removed=gone), removed=gone)
    new = written_files(ours, order_rows(10))
    pair.both("append", lambda t: t.append_files(new), added=new)
    new = written_files(ours, pa.concat_tables([order_rows(11, region="us"), order_rows(12, region="cn")]))
    pair.both("replace partitions", lambda t: t.replace_partitions(new), added=new)
    us = {"type": "eq", "term": "region", "value": "us"}
    pair.both("delete", lambda t: t.delete("region = 'us'"), row_filter=us)
    new = written_files(ours, order_rows(13, 14))
    pair.both("fast append", lambda t: t.append_files(new, fast=True), added=new)
    pair.both(
        "delete",
        lambda t: t.delete("id >= 13"),
        row_filter={"type": "gt-eq", "term": "id", "value": 13},
    )
    new = written_files(ours, order_rows(15, 16))
    pair.both("overwrite", lambda t: t.overwrite_files(new), added=new, row_filter=True)
    assert ids(ours.scan().to_arrow()) == [15, 16]
    assert ids(pyiceberg.load_table("db.ours").scan().to_arrow()) == [15, 16]


@pytest.mark.parametrize("version", ["2", "3"])
def test_deletes_go_with_the_data_as_in_java(
    lake: Lake, official: Official, official_runtime: OfficialRuntime, version: str
) -> None:
    ours = lake.create_table("db.ours", ORDERS, partition_by=["region"], properties={"format-version": version})
    ours.append(order_rows(1, 2)).append(order_rows(3, 4)).append(order_rows(5, 6, region="us"))
    places = {f.file_path: [0] for f in data_files(ours, "id < 5")}
    add_deletes(ours, *(deletion_vectors(ours, places) if version == "3" else [position_deletes(ours, places)]))
    add_deletes(ours, equality_deletes(ours, pa.table({"id": [6]}), [1], ("us",)))
    ours.append(order_rows(7, 8)).append(order_rows(9, region="us"))
    pair = Pair(lake, official, official_runtime, ours)
    gone = data_files(ours, "id = 2")
    pair.both("delete", lambda t: t.overwrite_files([], removed=gone), removed=gone)
    # by filter Java drops delete files that rows left in the table may need: that is not followed
    new = written_files(ours, pa.concat_tables([order_rows(11), order_rows(12, region="us")]))
    pair.both("replace partitions", lambda t: t.replace_partitions(new), added=new)
    assert summary(ours)["total-delete-files"] == "0"


FILTERS = [
    "id = 2",
    "amount > 40 AND region = 'us'",
    "region = 'eu' AND id < 2",
    "id IN (99, 100)",
    "amount IS NULL",
]


@pytest.mark.kinds(2)
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("version", VERSIONS)
def test_rows_are_deleted_as_spark_deletes_them(lake: Lake, official: Official, version: str, mode: str) -> None:
    if (version, mode) == ("1", "merge-on-read"):
        pytest.skip("format version 1 has no delete files")
    properties = {"format-version": version, "write.delete.mode": mode}
    ours = lake.create_table("db.ours", ORDERS, partition_by=["region"], properties=properties)
    ours.append(order_rows(1, 2, 3)).append(order_rows(4, 5, 6, region="us"))
    ours.append(pa.Table.from_pylist([{"id": 7, "region": "eu"}, {"id": 8, "amount": 1.0}], schema=ORDERS))
    twin(lake, ours, "db.theirs")
    columns = ["id", "amount", "region"]
    if version == "3":
        columns += ["_row_id", "_last_updated_sequence_number"]
    for row_filter in FILTERS:
        before = ours.metadata_location
        ours.delete(row_filter)
        official(f"DELETE FROM db.theirs WHERE {row_filter}")
        rows = sorted((tuple(r.values()) for r in ours.scan(columns=columns).to_arrow().to_pylist()), key=str)
        for name in ("db.ours", "db.theirs"):
            assert sorted(official(f"SELECT {', '.join(columns)} FROM {name}"), key=str) == rows
        assert (ours.metadata_location == before) == ("99" in row_filter)
    assert ids(ours.scan().to_arrow()) == [3, 4, 8]
    official("INSERT INTO db.ours VALUES (20, 1.0, 'eu')")
    official("DELETE FROM db.ours WHERE id = 3")
    ours.refresh().delete("id = 4")
    assert sorted(official("SELECT id FROM db.ours")) == [(8,), (20,)]


@pytest.mark.kinds(2)
@pytest.mark.parametrize("version", VERSIONS)
def test_java_reads_and_goes_on_with_joined_manifests(
    lake: Lake, official: Official, pyiceberg: Any, version: str
) -> None:
    properties = {"format-version": version, "commit.manifest.min-count-to-merge": "3"}
    table = lake.create_table("db.t", ORDERS, partition_by=["region"], properties=properties)
    for number in range(12):
        table.append(order_rows(number, region="us" if number % 3 else "eu"))
    columns = "id, _row_id, _last_updated_sequence_number" if version == "3" else "id"

    def check(expected: Sequence[int]) -> None:
        rows = sorted(
            tuple(r.values()) for r in table.refresh().scan(columns=columns.split(", ")).to_arrow().to_pylist()
        )
        assert [row[0] for row in rows] == list(expected)
        assert sorted(official(f"SELECT {columns} FROM db.t")) == rows
        assert ids(pyiceberg.load_table("db.t").scan().to_arrow()) == list(expected)

    check(range(12))
    official("DELETE FROM db.t WHERE id = 4")
    official("INSERT INTO db.t VALUES (12, 1.0, 'eu')")
    table.refresh().delete("region = 'eu'").append(order_rows(13)).append(order_rows(14))
    check([1, 2, 5, 7, 8, 10, 11, 13, 14])


def _append(region: str) -> Callable[[Table], object]:
    return lambda table: table.append(order_rows(9, region=region))


RIVALS: dict[str, Callable[[Table], object]] = {
    "nothing": lambda _: None,
    "append where it looked": _append("eu"),
    "append elsewhere": _append("us"),
    "overwrite": lambda t: t.overwrite_files(written_files(t, order_rows(1, 2)), removed=data_files(t, "id = 1")),
    "delete of the whole file": lambda t: t.overwrite_files([], removed=data_files(t, "id = 1")),
    "delete of another file": lambda t: t.overwrite_files([], removed=data_files(t, "id = 3")),
    "delete by equality": lambda t: t.row_delta(
        deletes=[equality_deletes(t, pa.table({"id": [1]}), [1], ("eu",))], isolation="none"
    ),
    "delete by equality elsewhere": lambda t: t.row_delta(
        deletes=[equality_deletes(t, pa.table({"id": [3]}), [1], ("us",))], isolation="none"
    ),
    "replaced partition": lambda t: t.overwrite_partitions(order_rows(5)),
    "rewrite of the file": lambda t: t.rewrite_files(
        add=written_files(t, order_rows(1, 2)),
        remove=data_files(t, "id = 1"),
        sequence_number=t.metadata.last_sequence_number,
    ),
}
Said = tuple[str | None, str | None]


def _files(mine: Table, theirs: Table, new: list[DataFile], level: Isolation, runtime: OfficialRuntime) -> Said:
    """One file replaced by another, after a look at one partition."""
    old = data_files(mine, "id = 1")
    scope = Scope(bind_filter(parse_predicate("region = 'eu'"), mine.schema))
    java = {"added": new, "removed": old, "checks": _checks(mine, level, EU_JSON)}
    said = java_change(runtime, theirs, "overwrite", **java)
    checks = OverwriteChecks(head(mine), level, scope, tuple(old), tuple(old))
    operation = Overwrite(mine.io, new, [RemovedFiles(tuple(old), must_exist=True)], checks=checks)
    return said, _refused(lambda: mine.commit(operation))


def _partitions(
    mine: Table, theirs: Table, new: list[DataFile], level: Isolation | None, runtime: OfficialRuntime
) -> Said:
    said = java_change(runtime, theirs, "replace partitions", added=new, checks=_checks(mine, level, None))
    return said, _refused(lambda: mine.replace_partitions(new, isolation=level))


def _everything(
    mine: Table, theirs: Table, new: list[DataFile], level: Isolation | None, runtime: OfficialRuntime
) -> Said:
    said = java_change(runtime, theirs, "overwrite", added=new, row_filter=True, checks=_checks(mine, level, True))
    return said, _refused(lambda: mine.overwrite_files(new, isolation=level))


def _checks(table: Table, level: Isolation | None, row_filter: Any) -> dict[str, Any] | None:
    if level is None:
        return None
    return {"since": head(table), "filter": row_filter, "data": level is Isolation.SERIALIZABLE, "deletes": True}


LEVELS = (Isolation.SNAPSHOT, Isolation.SERIALIZABLE)
CASES: list[tuple[str, Any, Isolation | None]] = [
    (rival, operation, level)
    for rival in RIVALS
    for operation, levels in ((_files, LEVELS), (_partitions, (None, *LEVELS)), (_everything, (None, *LEVELS)))
    for level in levels
]


def test_conflicts_are_found_where_java_finds_them(
    lake: Lake, official: Official, official_runtime: OfficialRuntime
) -> None:
    assert official("SELECT 1") == [(1,)]
    start = lake.create_table("db.t", ORDERS, partition_by=["region"])
    start.append(order_rows(1, 2)).append(order_rows(3, 4, region="us"))
    wrong, conflicts = [], 0
    for number, (rival, operation, level) in enumerate(CASES):
        mine = twin(lake, start, f"db.ours_{number}")
        other = lake.load_table(f"db.ours_{number}")
        RIVALS[rival](other)
        theirs = twin(lake, other, f"db.theirs_{number}")
        said, refused = operation(mine, theirs, written_files(mine, order_rows(1)), level, official_runtime)
        conflicts += refused is not None
        case = f"{operation.__name__} at {level} after {rival}"
        if (said is None) != (refused is None) or (said and not said.startswith("ValidationException")):
            wrong.append(f"{case}: Java says {said}, we say {refused}")
        elif refused is None and entries(mine) != entries(theirs.refresh()):
            wrong.append(f"{case}: other entries than Java's")
    assert wrong == []
    assert 10 < conflicts < len(CASES) - 10


def _refused(commit: Callable[[], object]) -> str | None:
    try:
        commit()
    except ConflictError as error:
        return str(error)
    return None
