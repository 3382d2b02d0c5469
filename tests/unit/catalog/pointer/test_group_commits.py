"""Commits of several members at once: in memory, SQLite and PostgreSQL."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import bergline
from bergline import Lake
from bergline.catalog.catalog import Committed, Conflicted, LoadedTable, TableChange, Unknown
from bergline.catalog.hadoop.hadoop_catalog import HadoopCatalog
from bergline.catalog.identifiers import parse_table_name
from bergline.catalog.pointer.group_commits import MemberOutcomes
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.pointer.pointer_store import PointerStore, PointerSwap
from bergline.catalog.protection.caller import Caller, acting_for, current_caller
from bergline.catalog.protection.table_rules import property_of
from bergline.catalog.sql.records import AuditEntry, Records, records_of
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    ConflictError,
    InvalidInputError,
    ProtectedRefError,
    RefusedError,
    StorageError,
    UnavailableError,
    UnsupportedError,
)
from bergline.format.metadata.refs import MAIN, SnapshotRefType
from bergline.format.metadata.requirements import AssertRefSnapshotId, Requirement
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.updates import AddSnapshot, RemoveSnapshots, SetProperties, SetSnapshotRef, Update
from bergline.io.schemes import SchemeFileIO
from bergline.testing.faults import Fault, FaultyStore
from support.fixtures.catalog_files import new_catalog_uri
from support.fixtures.rows import ORDERS

NAME = parse_table_name("db.orders")
_ONE_LOGGED = {"write.metadata.previous-versions-max": "1"}


class Member:
    """Updates, as they are or made from the state before them, by a caller with a name."""

    def __init__(
        self,
        *updates: Update,
        requires: tuple[Requirement, ...] = (),
        by: str = "ann",
        make: Callable[[LoadedTable], tuple[Update, ...]] | None = None,
        note: Callable[[Any, str], None] = lambda *_: None,
        finish: Callable[[], None] = lambda: None,
    ) -> None:
        self.caller = Caller(by)
        self._updates, self._requires, self._make, self._note = updates, requires, make, note
        self.finish = finish
        self.bases: list[LoadedTable] = []

    def acting(self) -> AbstractContextManager[object]:
        return acting_for(self.caller)

    def change(self, base: LoadedTable) -> TableChange:
        self.bases.append(base)
        return TableChange(base, self._requires, self._make(base) if self._make else self._updates)

    def before_commit(self, connection: Any, metadata_location: str) -> None:
        self._note(connection, metadata_location)


def setting(key: str, value: str = "v", **options: Any) -> Member:
    return Member(SetProperties({key: value}), **options)


def appending(number: int, branch: str = MAIN, **options: Any) -> Member:
    """A snapshot with this id on whatever head the branch has."""

    def make(base: LoadedTable) -> tuple[Update, ...]:
        head = base.metadata.refs.get(branch)
        snapshot = Snapshot(
            snapshot_id=number,
            parent_snapshot_id=head and head.snapshot_id,
            sequence_number=base.metadata.last_sequence_number + 1,
            timestamp_ms=base.metadata.last_updated_ms + 1,
            manifest_list=f"file:/nowhere/{number}.avro",
            summary={"operation": "append"},
            schema_id=0,
        )
        return AddSnapshot(snapshot), SetSnapshotRef(branch, number, SnapshotRefType.BRANCH)

    return Member(make=make, **options)


def in_memory(path: Path, *faults: Fault) -> tuple[PointerCatalog, LoadedTable, FaultyStore]:
    """A catalog with a table, whose next swaps go wrong."""
    faulty = FaultyStore(MemoryPointerStore(), *faults)
    catalog = PointerCatalog(faulty, SchemeFileIO(), f"file://{path}", sleep=lambda _: None)
    with_orders(PointerCatalog(faulty._store, catalog.io, f"file://{path}"))
    return catalog, catalog.load_table(NAME), faulty


def with_orders(catalog: PointerCatalog, **properties: str) -> LoadedTable:
    lake = Lake(catalog, "lake")
    lake.create_namespace("db")
    lake.create_table("db.orders", ORDERS, properties=properties)
    return catalog.load_table(NAME)


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PointerCatalog]:
    """A catalog with table `db.orders`."""
    if request.param == "memory":
        yield in_memory(tmp_path)[0]
        return
    with opened(request, tmp_path) as lake:
        assert isinstance(lake.catalog, PointerCatalog)
        with_orders(lake.catalog)
        yield lake.catalog


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def recorded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PointerCatalog]:
    """A catalog in a database, with table `db.orders`."""
    with opened(request, tmp_path) as lake:
        assert isinstance(lake.catalog, PointerCatalog)
        with_orders(lake.catalog)
        yield lake.catalog


def opened(request: pytest.FixtureRequest, path: Path) -> Lake:
    uri = new_catalog_uri(path / "catalog.db") if request.param == "sqlite" else request.getfixturevalue("postgres")
    return bergline.connect(uri, warehouse=path, name=f"group-{path.name}", create=True)


def metadata_files(path: Path) -> int:
    return len(list(path.rglob("*.metadata.json")))


def kinds(outcome: MemberOutcomes) -> list[type]:
    return [type(result) for result in outcome]


def test_member_whose_files_cannot_be_written_is_refused_alone(catalog: PointerCatalog) -> None:
    broken = StorageError("no room")

    def fail() -> None:
        raise broken

    last = appending(3)
    members = [appending(1), appending(2, finish=fail), last]
    outcome = catalog.commit_group(catalog.load_table(NAME), members)
    assert outcome[1] is broken
    assert kinds(outcome) == [Committed, StorageError, Committed]
    assert [s.snapshot_id for s in catalog.load_table(NAME).metadata.snapshots] == [1, 3]
    assert last.bases[-1].metadata.refs[MAIN].snapshot_id == 1


def test_members_are_one_file_in_their_order(catalog: PointerCatalog, tmp_path: Path) -> None:
    base, files = catalog.load_table(NAME), metadata_files(tmp_path)
    members = [appending(1), setting("k", "first"), appending(2), appending(3, "dev"), setting("k", "last")]
    outcome = catalog.commit_group(base, members)
    now = catalog.load_table(NAME)
    assert outcome == (Committed((now,)),) * 5
    assert metadata_files(tmp_path) == files + 1
    assert now.metadata.properties["k"] == "last"
    assert {name: ref.snapshot_id for name, ref in now.metadata.refs.items()} == {MAIN: 2, "dev": 3}
    assert [(s.snapshot_id, s.parent_snapshot_id, s.sequence_number) for s in now.metadata.snapshots] == [
        (1, None, 1),
        (2, 1, 2),
        (3, None, 3),
    ]


def test_logs_are_those_of_a_serial_run_but_for_files_that_were_never_written(tmp_path: Path) -> None:
    catalog, base, _ = in_memory(tmp_path / "group")
    catalog.commit_group(base, [appending(1), appending(2), setting("k")])
    serial, now, _ = in_memory(tmp_path / "serial")
    for member in (appending(1), appending(2), setting("k")):
        serial.commit_group(now, [member])
        now = serial.load_table(NAME)
    grouped = catalog.load_table(NAME).metadata
    assert [e.snapshot_id for e in grouped.snapshot_log] == [e.snapshot_id for e in now.metadata.snapshot_log] == [1, 2]
    assert [e.metadata_file for e in grouped.metadata_log] == [base.metadata_location]
    assert len(now.metadata.metadata_log) == 3


def test_refused_member_has_its_own_error_and_hurts_nobody(catalog: PointerCatalog) -> None:
    members = [
        setting("format-version", "1"),
        setting("a"),
        setting("b", requires=(AssertRefSnapshotId(MAIN, 7),)),
        setting("c"),
    ]
    outcome = catalog.commit_group(catalog.load_table(NAME), members)
    assert kinds(outcome) == [InvalidInputError, Committed, ConflictError, Committed]
    now = catalog.load_table(NAME).metadata
    assert {"a", "c"} <= now.properties.keys()
    assert "b" not in now.properties
    assert len(now.metadata_log) == 1


def test_member_sees_the_state_after_those_before_it(catalog: PointerCatalog) -> None:
    members = [appending(1), setting("k", requires=(AssertRefSnapshotId(MAIN, 1),)), appending(1)]
    outcome = catalog.commit_group(catalog.load_table(NAME), members)
    assert kinds(outcome) == [Committed, Committed, ConflictError]
    assert members[1].bases[0].metadata.current_snapshot_id == 1


def test_member_without_updates_is_done_and_no_file_is_written_for_it(catalog: PointerCatalog, tmp_path: Path) -> None:
    base, files = catalog.load_table(NAME), metadata_files(tmp_path)
    outcome = catalog.commit_group(base, [Member(), setting("format-version", "1")])
    assert outcome[0] == Committed((base,))
    assert kinds(outcome)[1] is InvalidInputError
    assert metadata_files(tmp_path) == files
    outcome = catalog.commit_group(base, [Member(), setting("k")])
    assert outcome == (Committed((catalog.load_table(NAME),)),) * 2


def test_all_conflict_if_the_pointer_moved_before(catalog: PointerCatalog, tmp_path: Path) -> None:
    base = catalog.load_table(NAME)
    catalog.commit_group(base, [setting("first")])
    files = metadata_files(tmp_path)
    outcome = catalog.commit_group(base, [setting("a"), setting("format-version", "1")])
    assert kinds(outcome) == [Conflicted, Conflicted]
    assert metadata_files(tmp_path) == files


def test_all_conflict_if_the_pointer_moves_meanwhile_and_no_file_is_left(tmp_path: Path) -> None:
    catalog, base, store = in_memory(tmp_path)
    rival = PointerCatalog(store._store, catalog.io, f"file://{tmp_path}")
    store._before_swap = lambda: rival.commit((TableChange(base, (), (SetProperties({"k": "rival"}),)),)) and None
    outcome = catalog.commit_group(base, [setting("a"), setting("format-version", "1"), appending(1)])
    assert kinds(outcome) == [Conflicted, Conflicted, Conflicted]
    assert catalog.load_table(NAME).metadata.properties["k"] == "rival"
    assert metadata_files(tmp_path) == 2


@pytest.mark.parametrize("fault", [Fault.LANDS_BUT_ANSWER_IS_LOST, Fault.NEVER_ARRIVES, Fault.DELIVERED_TWICE])
def test_lost_answer_is_settled_for_all(tmp_path: Path, fault: Fault) -> None:
    catalog, base, _ = in_memory(tmp_path, fault)
    outcome = catalog.commit_group(base, [setting("a"), setting("format-version", "1"), appending(1)])
    assert kinds(outcome) == [Committed, InvalidInputError, Committed]
    now = catalog.load_table(NAME).metadata
    assert ("a" in now.properties, now.current_snapshot_id) == (True, 1)


def test_outcome_that_cannot_be_found_out_is_unknown_for_all_but_the_refused(tmp_path: Path) -> None:
    catalog, base, _ = in_memory(tmp_path, Fault.STORE_GOES_AWAY)
    outcome = catalog.commit_group(base, [setting("a"), setting("format-version", "1"), appending(1)])
    assert kinds(outcome) == [Unknown, InvalidInputError, Unknown]
    assert isinstance(outcome[0], Unknown)
    assert catalog.io.exists(outcome[0].metadata_location or "")


def test_store_that_certainly_did_nothing_raises_and_leaves_no_file(tmp_path: Path) -> None:
    catalog, base, _ = in_memory(tmp_path, Fault.REFUSED_AS_LOCKED)
    with pytest.raises(UnavailableError):
        catalog.commit_group(base, [setting("a"), setting("b")])
    assert metadata_files(tmp_path) == 1


class LosingStore(FaultyStore):
    """The answer to the next swap is lost, and others commit before anybody looks."""

    def __init__(self, store: PointerStore, meanwhile: Callable[[], None], *, lands: bool) -> None:
        super().__init__(store)
        self._meanwhile: list[Callable[[], None]] = [meanwhile]
        self._lands = lands

    def swap(self, table: Any, expected: str, new: str) -> bool:
        if not self._meanwhile:
            return super().swap(table, expected, new)
        if self._lands:
            self._store.swap_all((PointerSwap(table, expected, new),))
        self._meanwhile.pop()()
        raise StorageError("the connection was lost")


def lost_answer(path: Path, members: list[Member], *others: list[Member], lands: bool) -> MemberOutcomes:
    """The outcome of a group whose answer is lost, with others' commits after it; the metadata log has one entry."""
    store = MemoryPointerStore()
    rival = PointerCatalog(store, SchemeFileIO(), f"file://{path}")
    base = with_orders(rival, **_ONE_LOGGED)

    def commit_others() -> None:
        for group in others:
            assert Committed in kinds(rival.commit_group(rival.load_table(NAME), list(group)))

    losing = LosingStore(store, commit_others, lands=lands)
    catalog = PointerCatalog(losing, rival.io, f"file://{path}", sleep=lambda _: None)
    return catalog.commit_group(base, list(members))


def test_group_is_proved_by_its_snapshots_if_the_log_is_short(tmp_path: Path) -> None:
    later = [[setting("x")], [setting("y")]]
    outcome = lost_answer(tmp_path / "a", [appending(1), appending(2)], *later, lands=True)
    assert kinds(outcome) == [Committed, Committed]
    outcome = lost_answer(tmp_path / "b", [appending(1), appending(2)], *later, lands=False)
    assert kinds(outcome) == [Conflicted, Conflicted]
    outcome = lost_answer(tmp_path / "c", [appending(1), appending(2)], *later, [appending(3)], lands=False)
    assert kinds(outcome) == [Conflicted, Conflicted]


def test_snapshot_that_another_server_committed_proves_nothing_about_the_others(tmp_path: Path) -> None:
    again = [[appending(1)], [setting("x")], [setting("y")]]
    outcome = lost_answer(tmp_path / "a", [appending(1), appending(2)], *again, lands=False)
    assert kinds(outcome) == [Conflicted, Conflicted]
    outcome = lost_answer(tmp_path / "b", [appending(1), setting("k")], *again, lands=False)
    assert kinds(outcome) == [Unknown, Unknown]


def test_lone_member_that_another_server_committed_is_looked_for_in_the_table(tmp_path: Path) -> None:
    """Its own metadata file, with its own manifest list, was never the table's."""
    outcome = lost_answer(tmp_path / "a", [appending(1)], [appending(1)], lands=False)
    assert kinds(outcome) == [Conflicted]
    outcome = lost_answer(tmp_path / "b", [appending(1)], [setting("x")], lands=True)
    assert kinds(outcome) == [Committed]


def test_group_that_another_server_committed_is_answered_with_a_file_that_was_the_tables(tmp_path: Path) -> None:
    again = [[appending(1), appending(2)], [setting("x")], [setting("y")]]
    outcome = lost_answer(tmp_path, [appending(1), appending(2)], *again, lands=False)
    for result in outcome:
        assert isinstance(result, Committed)
        assert result.tables[0].metadata.properties.keys() >= {"x", "y"}


def test_expired_snapshots_leave_the_outcome_unknown(tmp_path: Path) -> None:
    expired = [[appending(3)], [Member(RemoveSnapshots((2,)))], [setting("x")]]
    outcome = lost_answer(tmp_path, [appending(1), appending(2, "dev")], *expired[:1], lands=True)
    assert kinds(outcome) == [Committed, Committed]
    outcome = lost_answer(tmp_path / "b", [appending(1), appending(2)], *expired, lands=True)
    assert kinds(outcome) == [Unknown, Unknown]


def test_member_is_decided_on_as_its_own_caller(catalog: PointerCatalog) -> None:
    rule = property_of("main"), "writers=etl"
    catalog.commit_group(catalog.load_table(NAME), [appending(1), setting(*rule)])
    members = [appending(2, by="zoe"), appending(3, by="etl"), setting("k", by="zoe"), appending(4, "dev", by="zoe")]
    outcome = catalog.commit_group(catalog.load_table(NAME), members)
    assert kinds(outcome) == [ProtectedRefError, Committed, Committed, Committed]
    assert catalog.load_table(NAME).metadata.current_snapshot_id == 3
    assert [set(member.caller.changes) for member in members] == [set(), {NAME}, {NAME}, {NAME}]
    seen = members[2].caller.changes[NAME]
    assert (seen.before and seen.before.current_snapshot_id, seen.after and "k" in seen.after.properties) == (3, True)


def test_rule_of_a_member_holds_for_those_after_it(catalog: PointerCatalog) -> None:
    rule = property_of("main"), "writers=etl"
    members = [appending(1, by="zoe"), setting(*rule, by="etl"), appending(2, by="zoe"), appending(3, by="etl")]
    outcome = catalog.commit_group(catalog.load_table(NAME), members)
    assert kinds(outcome) == [Committed, Committed, ProtectedRefError, Committed]


def test_rule_that_comes_meanwhile_refuses_the_member_in_the_transaction(
    recorded: PointerCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, store = Lake(recorded, "lake"), recorded.store
    swap_all, acts = store.swap_all, [lambda: lake.rules.protect("main", namespace="db", writers=["etl"])]

    def swap_later(*arguments: Any) -> bool:
        while acts:
            acts.pop()()
        return swap_all(*arguments)

    monkeypatch.setattr(store, "swap_all", swap_later)
    members = [appending(1, by="etl"), appending(2, by="zoe"), setting("k", requires=(AssertRefSnapshotId(MAIN, 1),))]
    outcome = recorded.commit_group(recorded.load_table(NAME), members)
    assert kinds(outcome) == [Committed, ProtectedRefError, Committed]
    assert recorded.load_table(NAME).metadata.current_snapshot_id == 1


def noted(records: Records) -> Callable[[Any, str], None]:
    """Adds an audit row of the caller."""

    def note(connection: sa.Connection, location: str) -> None:
        records.add_audit(connection, AuditEntry(1, current_caller().name, "commit_table", "t", None, location))

    return note


def test_rows_of_all_members_are_in_the_transaction_of_the_swap(recorded: PointerCatalog) -> None:
    records = records_of(recorded)
    note = noted(records)
    members = [
        setting("a", note=note),
        setting("format-version", "1", note=note),
        setting("b", by="bob", note=note),
        Member(note=note),
    ]
    recorded.commit_group(recorded.load_table(NAME), members)
    location = recorded.pointer(NAME)
    assert [(e.principal, e.metadata_location) for e in records.audit()] == [("ann", location), ("bob", location)]


def test_member_whose_rows_are_refused_is_left_out(recorded: PointerCatalog, tmp_path: Path) -> None:
    records, files = records_of(recorded), metadata_files(tmp_path)

    def refuse(connection: sa.Connection, location: str) -> None:
        noted(records)(connection, location)
        raise AlreadyExistsError("answered already", kind="request", name="key")

    def lose(connection: sa.Connection, location: str) -> None:
        raise ConflictError(f"not at {location}")

    members = [
        appending(1, note=refuse),
        appending(2, note=noted(records)),
        setting("k", requires=(AssertRefSnapshotId(MAIN, 2),), note=lose),
        appending(3, note=noted(records)),
    ]
    outcome = recorded.commit_group(recorded.load_table(NAME), members)
    assert kinds(outcome) == [AlreadyExistsError, Committed, ConflictError, Committed]
    now = recorded.load_table(NAME).metadata
    assert [(s.snapshot_id, s.parent_snapshot_id) for s in now.snapshots] == [(2, None), (3, 2)]
    assert len(records.audit()) == 2
    assert metadata_files(tmp_path) == files + 1


def test_member_refused_for_one_that_is_left_out_is_asked_again(recorded: PointerCatalog) -> None:
    def refuse(_connection: sa.Connection, _location: str) -> None:
        raise RefusedError("not this one")

    members = [appending(1, note=refuse), setting("k", requires=(AssertRefSnapshotId(MAIN, None),))]
    outcome = recorded.commit_group(recorded.load_table(NAME), members)
    assert kinds(outcome) == [RefusedError, Committed]


def test_statement_that_the_database_refuses_leaves_out_its_member_alone(recorded: PointerCatalog) -> None:
    def fail(connection: sa.Connection, _location: str) -> None:
        connection.exec_driver_sql("SELECT no_such_column FROM iceberg_tables")

    outcome = recorded.commit_group(recorded.load_table(NAME), [setting("a", note=fail), setting("b")])
    refused = outcome[0]
    assert isinstance(refused, BerglineError)
    assert "no_such_column" in str(refused)
    assert kinds(outcome)[1] is Committed
    assert "a" not in recorded.load_table(NAME).metadata.properties


def test_store_that_fails_over_two_members_is_asked_no_more(recorded: PointerCatalog, tmp_path: Path) -> None:
    asked: list[str] = []
    files = metadata_files(tmp_path)

    def fail(_connection: sa.Connection, _location: str) -> None:
        asked.append(current_caller().name)
        raise UnavailableError("the table of audit rows is locked")

    members = [setting(str(n), by=str(n), note=fail) for n in range(5)]
    with pytest.raises(UnavailableError, match="is locked"):
        recorded.commit_group(recorded.load_table(NAME), members)
    assert asked == ["0", "1"]
    assert metadata_files(tmp_path) == files


def test_metadata_too_large_to_write_refuses_the_member_that_makes_it_so(tmp_path: Path) -> None:
    store = MemoryPointerStore()
    catalog = PointerCatalog(store, SchemeFileIO(), f"file://{tmp_path}", max_metadata_bytes=5000)
    with_orders(catalog)
    waiting = {i: setting(f"k{i}", "v" * (5000 if i == 2 else 1)) for i in range(5)}
    results: dict[int, object] = {}
    while waiting:
        outcome = catalog.commit_group(catalog.load_table(NAME), list(waiting.values()))
        answered = {i: r for i, r in zip(waiting, outcome, strict=True) if not isinstance(r, Conflicted)}
        assert answered
        results |= answered
        waiting = {i: member for i, member in waiting.items() if i not in answered}
    assert [type(results[i]) for i in range(5)] == [Committed, Committed, RefusedError, Committed, Committed]
    now = catalog.load_table(NAME).metadata.properties
    assert {f"k{i}" for i in (0, 1, 3, 4)} <= now.keys()


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("write.metadata.compression-codec", "zip", "expected none or gzip"),
        ("write.metadata.path", "file:///{root}/file/metadata", "file"),
        ("write.metadata.path", "ftp://nowhere/metadata", "ftp"),
        ("write.metadata.path", "file:///{root}/" + "long/" * 200, "1000 characters"),
    ],
)
def test_member_after_which_no_metadata_can_be_written_is_refused_alone(
    recorded: PointerCatalog, tmp_path: Path, key: str, value: str, why: str
) -> None:
    (tmp_path / "file").touch()
    members = [
        appending(1),
        setting("a"),
        setting(key, value.replace("{root}", str(tmp_path))),
        setting("b"),
        setting("format-version", "1"),
        appending(2),
    ]
    results: list[object] = [None] * len(members)
    for _ in members:
        waiting = [place for place, result in enumerate(results) if result is None]
        outcome = recorded.commit_group(recorded.load_table(NAME), [members[place] for place in waiting])
        for place, result in zip(waiting, outcome, strict=True):
            results[place] = None if isinstance(result, Conflicted) else result
    assert [isinstance(result, Committed) for result in results] == [True, True, False, True, False, True]
    assert why in str(results[2])
    now = recorded.load_table(NAME).metadata
    assert [s.snapshot_id for s in now.snapshots] == [1, 2]
    assert {"a", "b"} <= now.properties.keys()
    assert key not in now.properties


def test_member_that_could_not_be_written_is_refused_though_a_later_one_mends_it(catalog: PointerCatalog) -> None:
    codec = "write.metadata.compression-codec"
    outcome = catalog.commit_group(catalog.load_table(NAME), [setting(codec, "zip"), setting(codec, "none")])
    assert kinds(outcome) == [InvalidInputError, Committed]


def test_catalog_of_version_hints_takes_no_groups(tmp_path: Path) -> None:
    with bergline.connect(f"file://{tmp_path}", create=True) as lake:
        assert isinstance(lake.catalog, HadoopCatalog)
        lake.create_namespace("db")
        lake.create_table("db.orders", ORDERS)
        with pytest.raises(UnsupportedError, match="takes one at a time"):
            lake.catalog.commit_group(lake.catalog.load_table(NAME), [setting("a"), setting("b")])
