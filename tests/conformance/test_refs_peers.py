"""Refs beside Java's ManageSnapshots and procedures: the same refs, refusals, staged and picked snapshots, columns."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import astuple

from bergline import Lake, Table
from bergline.errors import BerglineError
from bergline.format.manifest.manifest import DataFile
from bergline.scan.manifests import load_entries, load_manifest_list
from bergline.sql.analyze import analyze
from bergline.sql.names.resolve import Lakes
from bergline.sql.statements.registry import run_statement
from bergline.sql.text.tokens import SqlText
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows
from support.java.java_refs import java_call, java_manage, java_stage
from support.servers.peers import OfficialRuntime

pytestmark = pytest.mark.official
Official = Callable[[str], list[tuple[Any, ...]]]
NOT_OURS = ("engine-", "app-", "iceberg-version", "spark.", "replayed-")
UNKNOWN = 12345
SQL_TYPES = {pa.int64(): "bigint", pa.string(): "string"}


def failed(change: Callable[[], object]) -> bool:
    try:
        change()
    except BerglineError:
        return True
    return False


def state(table: Table) -> tuple[Any, ...]:
    """Refs with kind, retention and the place of their snapshot in the history, and what `main` has been."""
    place = {s.snapshot_id: n for n, s in enumerate(table.refresh().metadata.snapshots)}
    refs = {name: (place[r.snapshot_id], *astuple(r)[1:]) for name, r in table.metadata.refs.items()}
    return refs, [place[e.snapshot_id] for e in table.metadata.snapshot_log]


def snapshots(table: Table) -> list[tuple[Any, ...]]:
    """Every snapshot: parent, number, summary, and the entries of its manifests; ids as places in the history."""
    known = table.refresh().metadata.snapshots
    place = {s.snapshot_id: n for n, s in enumerate(known)} | {None: None}
    ids_in_summary = {str(s.snapshot_id): f"snapshot {n}" for n, s in enumerate(known)}
    return [
        (
            place[s.parent_snapshot_id],
            s.sequence_number,
            {k: ids_in_summary.get(v, v) for k, v in s.summary.items() if not k.startswith(NOT_OURS)},
            [
                (
                    e.status,
                    place[e.snapshot_id],
                    e.sequence_number,
                    e.file_sequence_number,
                    e.data_file.file_path,
                    e.data_file.first_row_id,
                )
                for m in load_manifest_list(table.io, s)
                for e in load_entries(table.io, m, table.metadata)
            ],
        )
        for s in known
    ]


class Pair:
    """Two tables on the same metadata: one is changed by bergline, the other by Java."""

    def __init__(self, lake: Lake, runtime: OfficialRuntime, ours: Table) -> None:
        self.ours = ours
        self.theirs = lake.register_table("db.theirs", ours.metadata_location)
        self.runtime = runtime
        self._lakes = Lakes({"lake": lake}, "lake")

    def both(self, change: Callable[[Table], object], method: str, *arguments: Any) -> bool:
        """The same change twice: both do it or refuse it, and then the refs are the same. Whether it was done."""
        ours = failed(lambda: change(self.ours))
        theirs = java_manage(self.runtime, self.theirs, method, *arguments)
        assert ours == (theirs is not None), f"{method}{arguments}: {theirs}"
        assert state(self.ours) == state(self.theirs), f"{method}{arguments}"
        return not ours

    def call(self, text: str) -> list[tuple[Any, ...]] | None:
        """A procedure with `{}` for the table: the same columns and rows, or two refusals."""
        theirs = java_call(self.runtime, f"CALL system.{text.format('db.theirs')}")
        ours = self._call(f"CALL system.{text.format('db.ours')}")
        assert (ours is None) == ("error" in theirs), f"{text}: {theirs}"
        if ours is None:
            return None
        assert [[f.name, SQL_TYPES[f.type], f.nullable] for f in ours.schema] == theirs["columns"], text
        found = _places(self.ours, [list(row.values()) for row in ours.to_pylist()])
        assert found == _places(self.theirs, theirs["rows"]), text
        assert state(self.ours) == state(self.theirs), text
        return found

    def _call(self, text: str) -> pa.Table | None:
        try:
            return run_statement(analyze(SqlText(text)), self._lakes)  # type: ignore[arg-type]
        except BerglineError:
            return None


def _places(table: Table, rows: list[list[Any]]) -> list[tuple[Any, ...]]:
    """Rows with the places of snapshots for their ids."""
    places = {s.snapshot_id: n for n, s in enumerate(table.refresh().metadata.snapshots)}
    return [tuple(f"snapshot {places[v]}" if v in places else v for v in row) for row in rows]


@pytest.fixture
def pair(lake: Lake, official: Official, official_runtime: OfficialRuntime) -> Pair:
    """Four snapshots on main, one more on `dev`, whose history has parted from that of `other`."""
    ours = lake.create_table("db.ours", ORDERS)
    ours.append(order_rows(1)).append(order_rows(2)).append(order_rows(3)).append(order_rows(4))
    ours.refs.create_branch("dev")
    ours.append(order_rows(5), branch="dev")
    ours.refs.create_branch("other", at=ours.metadata.snapshots[1].snapshot_id)
    ours.append(order_rows(6), branch="other")
    return Pair(lake, official_runtime, ours)


def test_a_chain_of_ref_changes_has_the_same_refs_and_refusals(pair: Pair) -> None:
    s = [snapshot.snapshot_id for snapshot in pair.ours.metadata.snapshots]
    times = [snapshot.timestamp_ms for snapshot in pair.ours.metadata.snapshots]

    def moment(milliseconds: int) -> dt.datetime:
        return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=milliseconds)

    done = [
        pair.both(change, method, *arguments)
        for change, method, *arguments in [
            (lambda t: t.refs.create_branch("b1"), "createBranch", "b1"),
            (lambda t: t.refs.create_branch("b2", at=s[0]), "createBranch", "b2", s[0]),
            (lambda t: t.refs.create_tag("t1", at=s[1]), "createTag", "t1", s[1]),
            (lambda t: t.refs.create_tag("T1/ü u\u0308", at=s[1]), "createTag", "T1/ü u\u0308", s[1]),
            (lambda t: t.refs.set_retention("b2", min_snapshots_to_keep=4), "setMinSnapshotsToKeep", "b2", 4),
            (lambda t: t.refs.set_retention("b2", max_snapshot_age_ms=2**40), "setMaxSnapshotAgeMs", "b2", 2**40),
            (lambda t: t.refs.set_retention("b2", max_ref_age_ms=2**41), "setMaxRefAgeMs", "b2", 2**41),
            (lambda t: t.refs.set_retention("t1", max_ref_age_ms=2**42), "setMaxRefAgeMs", "t1", 2**42),
            (lambda t: t.refs.set_retention("main", max_ref_age_ms=2**43), "setMaxRefAgeMs", "main", 2**43),
            (lambda t: t.refs.rename_branch("b2", to="b3"), "renameBranch", "b2", "b3"),
            (lambda t: t.refs.replace_branch("b3", at=s[5]), "replaceBranch", "b3", s[5]),
            (lambda t: t.refs.replace_tag("t1", at=s[5]), "replaceTag", "t1", s[5]),
            (lambda t: t.refs.set_current("b3", to="dev"), "replaceBranch", "b3", "dev"),
            (lambda t: t.refs.create_branch("n", at="dev", or_replace=True), "replaceBranch", "n", "dev"),
            (lambda t: t.refs.fast_forward("main", to="dev"), "fastForwardBranch", "main", "dev"),
            (lambda t: t.refs.fast_forward("dev", to="main"), "fastForwardBranch", "dev", "main"),
            (lambda t: t.refs.fast_forward("new", to="t1"), "fastForwardBranch", "new", "t1"),
            (lambda t: t.refs.rollback(to=s[2]), "rollbackTo", s[2]),
            (lambda t: t.refs.rollback(to=s[2]), "rollbackTo", s[2]),
            (lambda t: t.refs.rollback(to=moment(times[2])), "rollbackToTime", times[2]),
            (lambda t: t.refs.set_current(to=s[5]), "setCurrentSnapshot", s[5]),
            (lambda t: t.refs.rollback(to=moment(2**42)), "rollbackToTime", 2**42),
            (lambda t: t.refs.set_current(to=s[4]), "setCurrentSnapshot", s[4]),
            (lambda t: t.refs.drop_branch("b3"), "removeBranch", "b3"),
            (lambda t: t.refs.drop_tag("t1"), "removeTag", "t1"),
            (lambda t: t.refs.create_tag("b3", at=s[0]), "createTag", "b3", s[0]),
        ]
    ]
    assert all(done)
    refused = [
        pair.both(change, method, *arguments)
        for change, method, *arguments in [
            (lambda t: t.refs.create_branch("main"), "createBranch", "main"),
            (lambda t: t.refs.create_branch("b3"), "createBranch", "b3"),
            (lambda t: t.refs.create_tag("dev", at=s[0]), "createTag", "dev", s[0]),
            (lambda t: t.refs.create_tag("x", at=UNKNOWN), "createTag", "x", UNKNOWN),
            (lambda t: t.refs.create_branch("x", at=UNKNOWN), "createBranch", "x", UNKNOWN),
            (lambda t: t.refs.drop_branch("main"), "removeBranch", "main"),
            (lambda t: t.refs.drop_branch("b3"), "removeBranch", "b3"),
            (lambda t: t.refs.drop_branch("nope"), "removeBranch", "nope"),
            (lambda t: t.refs.drop_tag("dev"), "removeTag", "dev"),
            (lambda t: t.refs.drop_tag("nope"), "removeTag", "nope"),
            (lambda t: t.refs.rename_branch("main", to="x"), "renameBranch", "main", "x"),
            (lambda t: t.refs.rename_branch("dev", to="main"), "renameBranch", "dev", "main"),
            (lambda t: t.refs.rename_branch("dev", to="b3"), "renameBranch", "dev", "b3"),
            (lambda t: t.refs.rename_branch("dev", to="dev"), "renameBranch", "dev", "dev"),
            (lambda t: t.refs.rename_branch("b3", to="x"), "renameBranch", "b3", "x"),
            (lambda t: t.refs.rename_branch("nope", to="x"), "renameBranch", "nope", "x"),
            (lambda t: t.refs.replace_branch("b3", at=s[0]), "replaceBranch", "b3", s[0]),
            (lambda t: t.refs.replace_branch("nope", at=s[0]), "replaceBranch", "nope", s[0]),
            (lambda t: t.refs.replace_branch("dev", at=UNKNOWN), "replaceBranch", "dev", UNKNOWN),
            (lambda t: t.refs.replace_branch("dev", at="nope"), "replaceBranch", "dev", "nope"),
            (lambda t: t.refs.replace_tag("dev", at=s[0]), "replaceTag", "dev", s[0]),
            (lambda t: t.refs.replace_tag("nope", at=s[0]), "replaceTag", "nope", s[0]),
            (lambda t: t.refs.replace_tag("b3", at=UNKNOWN), "replaceTag", "b3", UNKNOWN),
            (lambda t: t.refs.fast_forward("main", to="other"), "fastForwardBranch", "main", "other"),
            (lambda t: t.refs.fast_forward("main", to="b1"), "fastForwardBranch", "main", "b1"),
            (lambda t: t.refs.fast_forward("b3", to="dev"), "fastForwardBranch", "b3", "dev"),
            (lambda t: t.refs.fast_forward("main", to="nope"), "fastForwardBranch", "main", "nope"),
            (lambda t: t.refs.rollback(to=s[5]), "rollbackTo", s[5]),
            (lambda t: t.refs.rollback(to=UNKNOWN), "rollbackTo", UNKNOWN),
            (lambda t: t.refs.rollback(to=moment(times[0])), "rollbackToTime", times[0]),
            (lambda t: t.refs.set_current(to=UNKNOWN), "setCurrentSnapshot", UNKNOWN),
            (lambda t: t.refs.set_retention("dev", min_snapshots_to_keep=0), "setMinSnapshotsToKeep", "dev", 0),
            (lambda t: t.refs.set_retention("dev", max_snapshot_age_ms=-1), "setMaxSnapshotAgeMs", "dev", -1),
            (lambda t: t.refs.set_retention("b3", max_ref_age_ms=0), "setMaxRefAgeMs", "b3", 0),
            (lambda t: t.refs.set_retention("b3", min_snapshots_to_keep=1), "setMinSnapshotsToKeep", "b3", 1),
            (lambda t: t.refs.set_retention("b3", max_snapshot_age_ms=1), "setMaxSnapshotAgeMs", "b3", 1),
            (lambda t: t.refs.set_retention("nope", max_ref_age_ms=1), "setMaxRefAgeMs", "nope", 1),
            (lambda t: t.refs.cherry_pick(UNKNOWN), "cherrypick", UNKNOWN),
            (lambda t: t.refs.cherry_pick(s[0]), "cherrypick", s[0]),
        ]
    ]
    assert not any(refused)


def test_names_that_only_java_takes(pair: Pair) -> None:
    """`ref names` in docs/differences.md."""
    head = pair.ours.refs["main"].snapshot_id
    for name in ("", "x" * 256):
        assert failed(lambda name=name: pair.ours.refs.create_tag(name, at=head))  # type: ignore[misc]
        assert java_manage(pair.runtime, pair.theirs, "createTag", name, head) is None


def test_refs_of_an_empty_table(lake: Lake, official: Official, official_runtime: OfficialRuntime) -> None:
    pair = Pair(lake, official_runtime, lake.create_table("db.ours", ORDERS))
    assert pair.both(lambda t: t.refs.create_branch("b"), "createBranch", "b")
    assert snapshots(pair.ours) == snapshots(pair.theirs)
    assert pair.both(lambda t: t.refs.create_branch("c"), "createBranch", "c")
    assert not pair.both(lambda t: t.refs.create_branch("b"), "createBranch", "b")
    assert not pair.both(lambda t: t.refs.drop_branch("main"), "removeBranch", "main")
    assert not pair.both(lambda t: t.refs.rollback(to=UNKNOWN), "rollbackTo", UNKNOWN)
    assert pair.both(lambda t: t.refs.rename_branch("b", to="main"), "renameBranch", "b", "main")


def _new(pair: Pair, *numbers: int, region: str = "eu") -> list[DataFile]:
    return written_files(pair.ours, order_rows(*numbers, region=region))


@pytest.mark.kinds(2)
@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_staged_and_picked_snapshots_are_javas(
    lake: Lake, official: Official, official_runtime: OfficialRuntime, version: str
) -> None:
    ours = lake.create_table("db.ours", ORDERS, partition_by=["region"], properties={"format-version": version})
    ours.append(order_rows(1, 2)).append(order_rows(3, region="us"))
    pair = Pair(lake, official_runtime, ours)

    def stage(kind: str, files: list[DataFile], wap_id: str) -> None:
        write = pair.ours.append_files if kind == "append" else pair.ours.replace_partitions
        write(files, wap_id=wap_id)
        java_stage(pair.runtime, pair.theirs, kind, files, wap_id)
        check()

    def check() -> None:
        assert state(pair.ours) == state(pair.theirs)
        assert snapshots(pair.ours) == snapshots(pair.theirs)

    def go_on(number: int, region: str) -> None:
        files = _new(pair, number, region=region)
        pair.ours.append_files(files)
        pair.theirs.refresh().append_files(files)

    stage("append", _new(pair, 10), "on the head")
    assert pair.call("publish_changes('{}', 'on the head')")
    assert pair.call("publish_changes('{}', 'on the head')") is None  # published already
    stage("append", _new(pair, 11), "late")
    stage("replace partitions", _new(pair, 12, region="us"), "replaced")
    stage("replace partitions", _new(pair, 13, region="us"), "too late")
    stage("append", _new(pair, 14), "twice")
    stage("append", _new(pair, 15), "twice")
    go_on(20, "jp")
    assert pair.call("publish_changes('{}', 'late')")
    check()
    assert pair.call("publish_changes('{}', 'late')") is None
    assert pair.call("publish_changes('{}', 'replaced')")
    check()
    assert pair.call("publish_changes('{}', 'replaced')") is None
    assert pair.call("publish_changes('{}', 'too late')") is None  # others added to the partition
    assert pair.call("publish_changes('{}', 'twice')") is None
    assert pair.call("publish_changes('{}', 'nope')") is None
    check()
    for name in ("db.ours", "db.theirs"):
        assert sorted(official(f"SELECT id FROM {name}")) == [(n,) for n in (1, 2, 10, 11, 12, 20)]
    assert ids(pair.ours.scan().to_arrow()) == [1, 2, 10, 11, 12, 20]


def test_what_cannot_be_picked_is_refused_by_both(
    lake: Lake, official: Official, official_runtime: OfficialRuntime
) -> None:
    ours = lake.create_table("db.ours", ORDERS, partition_by=["region"])
    ours.append(order_rows(1, 2)).append(order_rows(3, region="us"))
    for branch in ("deleted", "overwritten", "replaced"):
        ours.refs.create_branch(branch)
    ours.delete("id = 1", branch="deleted")
    ours.overwrite(order_rows(7), branch="overwritten")
    ours.overwrite_partitions(order_rows(8), branch="replaced").append(order_rows(9), branch="replaced")
    ours.overwrite_partitions(order_rows(10), branch="replaced")
    pair = Pair(lake, official_runtime, ours)
    deleted, overwritten, replaced, appended, on_branch = (s.snapshot_id for s in ours.metadata.snapshots[2:])
    assert pair.both(lambda t: t.refs.cherry_pick(deleted), "cherrypick", deleted)  # moves main
    assert not pair.both(lambda t: t.refs.cherry_pick(deleted), "cherrypick", deleted)
    assert not pair.both(lambda t: t.refs.cherry_pick(overwritten), "cherrypick", overwritten)
    assert not pair.both(lambda t: t.refs.cherry_pick(replaced), "cherrypick", replaced)  # its file was rewritten
    assert not pair.both(lambda t: t.refs.cherry_pick(on_branch), "cherrypick", on_branch)
    assert pair.both(lambda t: t.refs.cherry_pick(appended), "cherrypick", appended)
    assert not pair.both(lambda t: t.refs.cherry_pick(appended), "cherrypick", appended)
    assert snapshots(pair.ours) == snapshots(pair.theirs)
    assert ids(pair.ours.scan().to_arrow()) == [2, 3, 9]


def test_procedures_have_the_official_columns_and_rows(pair: Pair) -> None:
    s = [snapshot.snapshot_id for snapshot in pair.ours.metadata.snapshots]
    time = pair.ours.metadata.snapshots[2].timestamp_ms
    moment = dt.datetime.fromtimestamp(time // 1000, dt.UTC).replace(microsecond=time % 1000 * 1000)
    answers = [
        pair.call(text)
        for text in (
            "ancestors_of('{}')",
            f"ancestors_of(table => '{{}}', snapshot_id => {s[5]})",
            f"rollback_to_snapshot('{{}}', {s[3]})",
            f"rollback_to_timestamp('{{}}', TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}')",
            f"set_current_snapshot('{{}}', {s[5]})",
            "set_current_snapshot(table => '{}', ref => 'dev')",
            f"rollback_to_snapshot('{{}}', {s[3]})",
            f"cherrypick_snapshot('{{}}', {s[4]})",
            f"cherrypick_snapshot(table => '{{}}', snapshot_id => {s[5]})",
            "fast_forward('{}', 'dev', 'main')",
            "fast_forward('{}', 'made', 'main')",
        )
    ]
    assert all(answers)
    refused = [
        pair.call(text)
        for text in (
            f"ancestors_of('{{}}', {UNKNOWN})",
            f"rollback_to_snapshot('{{}}', {s[4]}, 1)",
            f"rollback_to_snapshot('{{}}', {UNKNOWN})",
            "rollback_to_snapshot('{}')",
            "rollback_to_timestamp('{}', TIMESTAMP '2001-01-01')",
            "set_current_snapshot('{}')",
            f"set_current_snapshot('{{}}', {s[0]}, 'dev')",
            "set_current_snapshot(table => '{}', ref => 'nope')",
            f"cherrypick_snapshot('{{}}', {UNKNOWN})",
            "publish_changes('{}', 'nope')",
            "fast_forward('{}', 'main', 'nope')",
            "fast_forward('{}', 'main', 'other')",
        )
    ]
    assert refused == [None] * len(refused)
    assert snapshots(pair.ours) == snapshots(pair.theirs)


def test_procedures_on_an_empty_table(lake: Lake, official: Official, official_runtime: OfficialRuntime) -> None:
    pair = Pair(lake, official_runtime, lake.create_table("db.ours", ORDERS))
    for text in ("ancestors_of('{}')", f"rollback_to_snapshot('{{}}', {UNKNOWN})"):
        assert pair.call(text) is None
    assert pair.both(lambda t: t.refs.create_branch("b"), "createBranch", "b")
    assert pair.call("set_current_snapshot(table => '{}', ref => 'b')") == [(None, "snapshot 0")]
