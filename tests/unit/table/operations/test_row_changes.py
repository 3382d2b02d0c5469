"""Rows that a command deletes and adds by position: both modes, what stays of each row, and what conflicts."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.datafiles.write.write_spec import write_spec
from bergline.datafiles.write.writer import DataFileWriter
from bergline.errors import CommitUnknownError, ConflictError, InvalidInputError, NotFoundError
from bergline.format.deletes.position_set import PositionSet, position_set
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.format.schema.reserved import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from bergline.format.schema.schema import Schema
from bergline.scan.plan import ScanPlan
from bergline.table.operations.row_changes import RowChanges, RowLevelWrite, write_row_changes
from bergline.table.references.staged import staged
from bergline.testing.faults import Fault
from support.fixtures.add_deletes import add_deletes, deletion_vectors, position_deletes
from support.fixtures.competing_writers import once, rival_lake
from support.fixtures.rows import ORDERS, ids, order_rows
from support.fixtures.twin_tables import KINDS, all_rows

pytestmark = pytest.mark.long

MODES = ("copy-on-write", "merge-on-read")
UPDATE = RowLevelWrite("update")
DELETE = RowLevelWrite("delete")


def create(lake: Lake, version: str = "2", mode: str = "merge-on-read", **properties: str) -> Table:
    modes = {f"write.{command}.mode": mode for command in ("delete", "update", "merge")}
    table = lake.create_table("db.t", ORDERS, properties={"format-version": version} | modes | properties)
    return table.append(order_rows(1, 2, 3)).append(order_rows(4, 5))


def positions(table: Table, row_filter: str) -> dict[str, PositionSet]:
    """Where the rows are that match, by data file."""
    found: dict[str, list[int]] = {}
    for row in table.scan(row_filter, columns=["_file", "_pos"]).to_arrow().to_pylist():
        found.setdefault(row["_file"], []).append(row["_pos"])
    return {path: position_set(rows) for path, rows in found.items()}


def new_files(table: Table, rows: pa.Table) -> tuple[DataFile, ...]:
    """Rows as files of a table, in format version 3 with the ids that they had."""
    spec = write_spec(table.metadata)
    if "_row_id" in rows.column_names:
        fields = (*spec.schema.fields, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
        spec = msgspec.structs.replace(spec, schema=Schema(fields=fields))
    with DataFileWriter(table.io, spec, f"00000-0-{uuid.uuid4()}") as writer:
        writer.write(rows)
        return tuple(writer.finish())


def update(table: Table, row_filter: str, amount: float) -> RowChanges:
    """Rows that match get another amount."""
    names = [f.name for f in table.schema.fields] + (["_row_id"] if table.metadata.format_version > 2 else [])
    rows = table.scan(row_filter, columns=names).to_arrow()
    place = names.index("amount")
    rows = rows.set_column(place, rows.field(place), pa.array([amount] * rows.num_rows, pa.float64()))
    return RowChanges(positions(table, row_filter), new_files(table, rows))


def commit(table: Table, row_filter: str, changes: RowChanges, write: RowLevelWrite, **options: Any) -> Table:
    read: ScanPlan = table.scan(row_filter).plan()
    return table.commit(write_row_changes(table.io, table.metadata, read, changes, write, **options))


def summary(table: Table) -> Mapping[str, str]:
    assert table.current_snapshot is not None
    return table.current_snapshot.summary


def on_disk(table: Table) -> list[str]:
    return sorted(table.io.list(table.location))


@pytest.mark.parametrize("kind", KINDS)
def test_deleted_and_updated_rows_leave_all_others_as_they_were(lake: Lake, kind: str) -> None:
    table = KINDS[kind](lake, "db.t")
    mode = table.properties.get("write.delete.mode", MODES[0])
    table.set_properties({"write.update.mode": mode})
    before, lineage = all_rows(table), table.metadata.format_version > 2
    wanted = "id IN (2, 9, 10, 21, 31)"
    commit(table, wanted, RowChanges(positions(table, wanted)), DELETE)
    rest = [row for row in before if row[0] not in {2, 9, 10, 21, 31}]
    assert all_rows(table) == rest
    wanted = "id IN (3, 8, 30)"
    commit(table, wanted, update(table, wanted, 77.0), UPDATE)
    place = [f.name for f in table.schema.fields].index("amount")
    number = table.metadata.last_sequence_number
    expected = []
    for row in rest:
        changed = list(row)
        if row[0] in {3, 8, 30}:
            changed[place] = 77.0
            changed[-1] = number if lineage else changed[-1]
        expected.append(tuple(changed))
    assert all_rows(table) == expected
    deletes = [d for p in table.scan().plan().files for d in p.deletes if d.content is FileContent.POSITION_DELETES]
    assert bool(deletes) == (mode == "merge-on-read" or kind == "v2 copy")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", ["2", "3"])
def test_a_file_of_which_every_row_goes_is_removed_by_its_metadata(
    lake: Lake, version: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(lake, version, mode)
    if version == "3":
        (path,) = positions(table, "id = 1")
        add_deletes(table, *deletion_vectors(table, {path: [0]}))
    monkeypatch.setattr("bergline.table.engine.rewrite_rows.read_file", None)
    before = on_disk(table)
    commit(table, "id <= 3", RowChanges(positions(table, "id <= 3")), DELETE)
    assert ids(table.scan().to_arrow()) == [4, 5]
    assert (summary(table)["operation"], summary(table)["deleted-data-files"]) == ("delete", "1")
    assert not [path for path in on_disk(table) if path not in before and "/data/" in path]
    assert not [d for p in table.scan().plan().files for d in p.deletes]


@pytest.mark.parametrize(
    ("mode", "deletes", "operation"), [("copy-on-write", 0, "overwrite"), ("merge-on-read", 1, "delete")]
)
def test_a_snapshot_says_what_the_official_runtime_says(lake: Lake, mode: str, deletes: int, operation: str) -> None:
    table = create(lake, "2", mode)
    write = RowLevelWrite("delete", summary={"engine-name": "tests"})
    commit(table, "id = 2", RowChanges(positions(table, "id = 2"), summary={"own-count": "1"}), write)
    said = summary(table)
    assert (said["operation"], said["total-delete-files"]) == (operation, str(deletes))
    assert (said["engine-name"], said["own-count"]) == ("tests", "1")


@pytest.mark.parametrize("mode", MODES)
def test_rows_may_only_be_added(lake: Lake, mode: str) -> None:
    table = create(lake, "3", mode)
    commit(table, "id > 0", RowChanges(added=new_files(table, order_rows(9))), RowLevelWrite("merge"))
    assert (ids(table.scan().to_arrow()), summary(table)["operation"]) == ([1, 2, 3, 4, 5, 9], "append")


def test_changes_go_to_a_branch_or_are_staged(lake: Lake) -> None:
    table = create(lake)
    changes = RowChanges(positions(table, "id = 2"))
    commit(table, "id = 2", changes, RowLevelWrite("delete", "audit"))
    assert ids(table.scan(ref="audit").to_arrow()) == [1, 3, 4, 5]
    gone = RowLevelWrite("delete", "gone", starts_branch=False)
    with pytest.raises((ConflictError, NotFoundError), match="gone"):
        commit(table, "id = 2", changes, gone)
    read = table.scan("id = 2").plan()
    operation = write_row_changes(table.io, table.metadata, read, changes, DELETE)
    table.commit(staged(operation, "w1"))
    assert ids(table.scan().to_arrow()) == [1, 2, 3, 4, 5]


def rivals() -> dict[str, tuple[Callable[[Table], object], dict[tuple[str, str, str], bool]]]:
    """What others do to a file of rows 1, 2, 3 while row 2 is deleted or updated, and whether that conflicts."""
    every = [(c, i, m) for c in ("delete", "update") for i in ("serializable", "snapshot") for m in MODES]

    def where(wanted: Callable[[str, str, str], bool]) -> dict[tuple[str, str, str], bool]:
        return {case: wanted(*case) for case in every}

    return {
        "adds a row that matches": (lambda t: t.append(order_rows(2)), where(lambda _c, i, _m: i == "serializable")),
        "adds another row": (lambda t: t.append(order_rows(9)), where(lambda *_: False)),
        "removes the data file": (
            lambda t: t.delete("id <= 3"),
            where(lambda c, _i, m: (c, m) != ("delete", MODES[1])),
        ),
        "deletes rows of the file": (
            lambda t: t.row_delta(deletes=[_position_delete(t, "id = 3")]),
            where(lambda c, _i, m: m == MODES[0] or c == "update"),
        ),
    }


def _position_delete(table: Table, row_filter: str) -> DataFile:
    return position_deletes(table, {p: list(found) for p, found in positions(table, row_filter).items()})


@pytest.mark.parametrize("rival", rivals())
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
@pytest.mark.parametrize("command", ["delete", "update"])
def test_what_others_do_meanwhile_conflicts_by_isolation_level(
    lake: Lake, rival: str, mode: str, isolation: str, command: Any
) -> None:
    table = create(lake, "2", mode, **{f"write.{command}.isolation-level": isolation})
    act, conflicts = rivals()[rival]
    late = rival_lake(lake, before_swap=once(lambda: act(lake.load_table("db.t"))))[0].load_table("db.t")
    changes = update(late, "id = 2", 7.0) if command == "update" else RowChanges(positions(late, "id = 2"))
    if not conflicts[command, isolation, mode]:
        commit(late, "id = 2", changes, RowLevelWrite(command))
        return
    before = set(on_disk(table)) - {f.file_path for f in changes.added}
    with pytest.raises(ConflictError, match="came first"):
        commit(late, "id = 2", changes, RowLevelWrite(command))
    left = [path for path in on_disk(table) if path not in before and "/data/" in path]
    referenced = {p.file.file_path for p in table.refresh().scan().plan().files}
    referenced |= {d.file_path for p in table.scan().plan().files for d in p.deletes}
    assert set(left) <= referenced


def test_a_retry_writes_no_rows_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(lake, "2", "copy-on-write")
    late = rival_lake(lake, before_swap=once(lambda: lake.load_table("db.t").append(order_rows(9))))[0]
    mine = late.load_table("db.t")
    operation = write_row_changes(
        mine.io, mine.metadata, mine.scan("id = 2").plan(), RowChanges(positions(mine, "id = 2")), DELETE
    )
    monkeypatch.setattr("bergline.table.engine.rewrite_rows.read_file", None)
    mine.commit(operation)
    assert ids(table.refresh().scan().to_arrow()) == [1, 3, 4, 5, 9]


def test_two_vectors_for_one_file_conflict(lake: Lake) -> None:
    table = create(lake, "3")
    late = rival_lake(lake, before_swap=once(lambda: lake.load_table("db.t").delete("id = 3")))[0].load_table("db.t")
    with pytest.raises(ConflictError, match="deletion vector"):
        commit(late, "id = 2", RowChanges(positions(late, "id = 2")), DELETE)
    assert ids(table.refresh().scan().to_arrow()) == [1, 2, 4, 5]


def test_an_upgrade_meanwhile_is_a_conflict(lake: Lake) -> None:
    create(lake, "2")
    late = rival_lake(lake, before_swap=once(lambda: lake.load_table("db.t").upgrade_format(3)))[0].load_table("db.t")
    with pytest.raises(ConflictError, match="format version 3"):
        commit(late, "id = 2", RowChanges(positions(late, "id = 2")), DELETE)


def test_files_stay_where_the_outcome_is_unknown(lake: Lake) -> None:
    create(lake, "2")
    table = rival_lake(lake, Fault.STORE_GOES_AWAY)[0].load_table("db.t")
    changes = update(table, "id = 2", 7.0)
    with pytest.raises(CommitUnknownError):
        commit(table, "id = 2", changes, UPDATE)
    assert all(table.io.exists(f.file_path) for f in changes.added)
    assert lake.load_table("db.t").scan("id = 2").to_arrow()["amount"].to_pylist() == [7.0]


def test_positions_in_a_file_that_was_not_read_are_refused_and_nothing_is_left(lake: Lake) -> None:
    table = create(lake)
    added = new_files(table, order_rows(9))
    before = [path for path in on_disk(table) if path not in {f.file_path for f in added}]
    with pytest.raises(InvalidInputError, match=r"found some in elsewhere\.parquet"):
        commit(table, "id = 2", RowChanges({"elsewhere.parquet": position_set([1])}, added), UPDATE)
    assert on_disk(table) == before


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("mode", MODES)
def test_an_error_after_the_engine_has_written_leaves_nothing(lake: Lake, version: str, mode: str) -> None:
    table = create(lake, version, mode)
    before = on_disk(table)
    changes = update(table, "id = 2", 7.0)
    with pytest.raises(InvalidInputError, match="ref name"):
        commit(table, "id = 2", changes, RowLevelWrite("update", branch=""))
    assert on_disk(table) == before


def test_bad_mode_is_refused_by_name(lake: Lake) -> None:
    table = create(lake)
    with pytest.raises(InvalidInputError, match=r"write\.merge\.mode"):
        table.set_properties({"write.merge.mode": "sometimes"})


def test_changes_of_no_row_are_known_as_such() -> None:
    assert RowChanges().is_empty
    assert RowChanges({"a": PositionSet()}).is_empty
    assert not RowChanges({"a": position_set([1])}).is_empty
