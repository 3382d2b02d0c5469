"""Changes that come late: as they are, renumbered, or on the head that their branch has by then."""

import datetime as dt
from collections.abc import Callable

import msgspec
import pytest

from bergline import Lake, Table
from bergline.catalog.identifiers import parse_table_name
from bergline.errors import ConflictError
from bergline.format.manifest.manifest import EntryStatus, ManifestFile
from bergline.format.metadata.snapshot import REBASED_FROM, Snapshot
from bergline.format.metadata.updates import AddSchema, AddSnapshot, SetSnapshotRef
from bergline.scan.manifests import load_entries, load_manifest_list
from bergline.table.commits.rebase import Proposal, rebase
from support.fixtures.rebasing_lake import CLOCK_MS, RebasingCatalog, of_another_writer, rebasing, with_snapshot
from support.fixtures.rows import ORDERS, ids, order_rows
from support.models.table_invariants import check_nothing_is_missing, pointer_line, unneeded_files

FAR = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
VERSIONS = pytest.mark.parametrize("version", ["2", "3"])


def new_table(lake: Lake, version: str = "2", **properties: str) -> Table:
    settings = {"format-version": version, **{k.replace("_", "."): v for k, v in properties.items()}}
    return lake.create_table("db.t", ORDERS, partition_by=["region"], properties=settings)


def own_manifests(table: Table, snapshot: Snapshot) -> list[ManifestFile]:
    return [m for m in load_manifest_list(table.io, snapshot) if m.added_snapshot_id == snapshot.snapshot_id]


def row_ids(table: Table) -> list[int]:
    return sorted(table.scan(columns=["_row_id"]).to_arrow().column("_row_id").to_pylist())


def head(table: Table, branch: str = "main") -> Snapshot:
    found = table.metadata.head(branch)
    assert found is not None
    return found


def check_totals(table: Table) -> None:
    for name in table.metadata.refs:
        summary, plan = head(table, name).summary, table.scan(ref=name).plan()
        assert int(summary["total-data-files"]) == len(plan.files)
        assert int(summary["total-records"]) == sum(p.file.record_count for p in plan.files)
        assert int(summary["total-files-size"]) == sum(p.file.file_size_in_bytes for p in plan.files)


def test_change_whose_base_is_current_is_left_alone(lake: Lake) -> None:
    new_table(lake).append(order_rows(1))
    late, catalog = rebasing(lake, can_rebase=True)
    late.load_table("db.t").append(order_rows(2))
    (sent,), (placed,) = catalog.sent, catalog.placed
    assert placed.change.updates == sent.updates
    assert placed.written == ()


@VERSIONS
def test_append_to_another_branch_is_renumbered(lake: Lake, version: str) -> None:
    table = new_table(lake, version).append(order_rows(1))
    table.refs.create_branch("dev")
    late, catalog = rebasing(lake, lambda: table.append(order_rows(2, 3)))
    late.load_table("db.t").append(order_rows(4), branch="dev")
    table.refresh()
    assert catalog.refusals == []
    assert ids(table.scan().to_arrow()) == [1, 2, 3]
    assert ids(table.scan(ref="dev").to_arrow()) == [1, 4]
    renumbered = head(table, "dev")
    assert renumbered.sequence_number == 3
    assert renumbered.timestamp_ms == CLOCK_MS
    assert [m.sequence_number for m in own_manifests(table, renumbered)] == [3]
    check_totals(table)
    check_nothing_is_missing(table)
    pointer_line(table)
    if version == "3":
        assert (renumbered.first_row_id, renumbered.added_rows, table.metadata.next_row_id) == (3, 1, 4)


@VERSIONS
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_deletes_on_another_branch_are_renumbered(lake: Lake, version: str, mode: str) -> None:
    table = new_table(lake, version, write_delete_mode=mode).append(order_rows(1, 2, 3)).append(order_rows(4))
    table.refs.create_branch("dev")
    late, catalog = rebasing(lake, lambda: table.append(order_rows(5)))
    late.load_table("db.t").delete("id = 2", branch="dev")
    table.refresh()
    assert catalog.refusals == []
    assert len(catalog.placed) == 1
    assert ids(table.scan(ref="dev").to_arrow()) == [1, 3, 4]
    assert head(table, "dev").sequence_number == 4
    check_nothing_is_missing(table)
    table.append(order_rows(6), branch="dev").delete("id = 4", branch="dev")
    assert ids(table.scan(ref="dev").to_arrow()) == [1, 3, 6]


@VERSIONS
def test_compaction_of_another_branch_keeps_the_age_of_its_rows(lake: Lake, version: str) -> None:
    table = new_table(lake, version).append(order_rows(1)).append(order_rows(2))
    table.refs.create_branch("dev")
    late, catalog = rebasing(lake, lambda: table.append(order_rows(3)))
    late.load_table("db.t").compact(branch="dev")
    table.refresh()
    assert (len(catalog.placed), catalog.refusals) == (1, [])
    assert ids(table.scan(ref="dev").to_arrow()) == [1, 2]
    (entry,) = [
        e
        for m in own_manifests(table, head(table, "dev"))
        for e in load_entries(table.io, m, table.metadata)
        if e.status is EntryStatus.ADDED
    ]
    assert (entry.sequence_number, entry.file_sequence_number) == (2, 4)


@VERSIONS
def test_append_moves_to_the_head_that_its_branch_has(lake: Lake, version: str) -> None:
    table = new_table(lake, version).append(order_rows(1))
    late, catalog = rebasing(lake, lambda: table.append(order_rows(2, 3)).delete("id = 1"), can_rebase=True)
    late.load_table("db.t").append(order_rows(4))
    table.refresh()
    (sent,), (placed,) = catalog.sent, catalog.placed
    assert catalog.refusals == []
    assert ids(table.scan().to_arrow()) == [2, 3, 4]
    moved = head(table)
    assert moved.sequence_number == 4
    assert moved.snapshot_id == sent.updates[0].snapshot.snapshot_id  # type: ignore[union-attr]
    assert moved.summary[REBASED_FROM] == sent.updates[0].snapshot.manifest_list  # type: ignore[union-attr]
    assert placed.written == (moved.manifest_list,)
    assert moved.parent_snapshot_id == table.metadata.snapshots[-2].snapshot_id
    check_totals(table)
    check_nothing_is_missing(table)
    pointer_line(table)
    if version == "3":
        assert len(set(row_ids(table))) == 3
        assert (moved.first_row_id, moved.added_rows) == (3, 1)


def test_first_appends_of_two_writers_both_land(lake: Lake) -> None:
    table = new_table(lake)
    late, catalog = rebasing(lake, lambda: table.append(order_rows(1)), can_rebase=True)
    late.load_table("db.t").append(order_rows(2))
    assert (ids(table.refresh().scan().to_arrow()), catalog.refusals) == ([1, 2], [])
    check_totals(table)


def test_append_from_before_the_table_had_row_ids_gets_some(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS).append(order_rows(1))
    late, catalog = rebasing(lake, lambda: table.set_properties({"format-version": "3"}), can_rebase=False)
    late.load_table("db.t").append(order_rows(2, 3))
    assert catalog.refusals == []
    head = table.refresh().current_snapshot
    assert head
    assert (head.first_row_id, head.added_rows, table.metadata.next_row_id) == (0, 3, 3)
    assert ids(table.scan().to_arrow()) == [1, 2, 3]


def test_delete_from_before_the_table_had_row_ids_is_left_to_its_writer(lake: Lake) -> None:
    properties = {"write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.t", ORDERS, properties=properties).append(order_rows(1, 2))
    late, catalog = rebasing(lake, lambda: table.set_properties({"format-version": "3"}))
    with pytest.raises(ConflictError, match="another commit upgraded the table"):
        late.load_table("db.t").delete("id = 1")
    (why,) = catalog.refusals
    assert "expected a first-row-id, found none" in why
    assert "removes rows or files" in why
    assert ids(table.refresh().scan().to_arrow()) == [1, 2]


def test_append_that_landed_and_was_expired_is_not_moved_behind_itself(lake: Lake) -> None:
    """Sent again after its response was lost: nothing in the table names its snapshot any more."""
    table = new_table(lake)
    late, catalog = rebasing(lake, lambda: table.append(order_rows(1)), can_rebase=True)
    late.load_table("db.t").append(order_rows(2))
    table.append(order_rows(3)).append(order_rows(4)).expire(older_than=FAR, retain_last=1)
    table.refresh()
    assert len(table.metadata.snapshots) == 1
    (sent,) = catalog.sent
    base = lake.catalog.load_table(parse_table_name("db.t"))
    with pytest.raises(ConflictError, match="snapshots that came since were expired, and it may have been among them"):
        rebase(table.io, base, Proposal(sent.requirements, sent.updates, can_rebase=True), CLOCK_MS)


def test_branch_that_two_writers_begin_gets_the_rows_of_both(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1))
    late, catalog = rebasing(
        lake, lambda: table.append(order_rows(2)).append(order_rows(3), branch="dev"), can_rebase=True
    )
    late.load_table("db.t").append(order_rows(4), branch="dev")
    table.refresh()
    assert catalog.refusals == []
    assert ids(table.scan(ref="dev").to_arrow()) == [1, 2, 3, 4]
    assert ids(table.scan().to_arrow()) == [1, 2]


def test_new_branch_begins_at_the_head_that_main_has(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1))
    late, catalog = rebasing(lake, lambda: table.append(order_rows(2)), can_rebase=True)
    late.load_table("db.t").append(order_rows(3), branch="dev")
    table.refresh()
    assert (catalog.refusals, ids(table.scan(ref="dev").to_arrow())) == ([], [1, 2, 3])


def merging_append(lake: Lake, version: str, rival: Callable[[Table], object]) -> tuple[Table, RebasingCatalog]:
    """An append that merges three manifests, late by what a rival does."""
    table = new_table(lake, version, **{"commit_manifest_min-count-to-merge": "3"})
    for number in range(1, 4):
        table.append(order_rows(number), fast=True)
    late, catalog = rebasing(lake, lambda: rival(table), can_rebase=True)
    late.load_table("db.t").append(order_rows(4))
    return table.refresh(), catalog


@VERSIONS
def test_merged_manifests_move_along_where_all_that_they_replaced_is_there(lake: Lake, version: str) -> None:
    table, catalog = merging_append(lake, version, lambda t: t.append(order_rows(5), fast=True))
    assert catalog.refusals == []
    assert ids(table.scan().to_arrow()) == [1, 2, 3, 4, 5]
    found = load_manifest_list(table.io, head(table))
    assert [(m.added_files_count, m.existing_files_count) for m in found] == [(1, 0), (1, 0), (0, 3)]
    counts = ("manifests-created", "manifests-kept", "manifests-replaced")
    assert [head(table).summary[name] for name in counts] == ["2", "1", "3"]
    check_totals(table)
    check_nothing_is_missing(table)
    if version == "3":
        assert len(set(row_ids(table))) == 5


@VERSIONS
def test_merged_manifests_stay_behind_where_one_that_they_replaced_is_gone(lake: Lake, version: str) -> None:
    table, catalog = merging_append(lake, version, lambda t: t.delete("id = 2"))
    assert catalog.refusals == []
    assert ids(table.scan().to_arrow()) == [1, 3, 4]
    assert [m.existing_files_count for m in own_manifests(table, head(table))] == [0]
    check_totals(table)
    check_nothing_is_missing(table)


def test_rows_from_before_row_ids_keep_those_that_another_commit_gave_them(lake: Lake) -> None:
    """The merged manifest has none for them, and would give them others."""

    def upgraded(table: Table) -> None:
        table.append(order_rows(5), fast=True)

    table = new_table(lake, "2", **{"commit_manifest_min-count-to-merge": "3"})
    for number in range(1, 4):
        table.append(order_rows(number), fast=True)
    table.upgrade_format(3)
    late, catalog = rebasing(lake, lambda: upgraded(table), can_rebase=True)
    late.load_table("db.t").append(order_rows(4))
    first, second = table.refresh().metadata.snapshots[-2:]
    assert catalog.refusals == []

    def numbered(snapshot: Snapshot) -> dict[int, int]:
        rows = table.scan(snapshot_id=snapshot.snapshot_id, columns=["id", "_row_id"]).to_arrow().to_pylist()
        return {row["id"]: row["_row_id"] for row in rows}

    assert numbered(second) == numbered(first) | {4: 4}


def refused(
    lake: Lake,
    rival: Callable[[Table], object],
    edit: Callable[[Proposal], Proposal] = lambda p: p,
    branch: str = "main",
) -> str:
    """Why a late append is refused at first; the writer then works it out again, and nothing else is left."""
    table = lake.load_table("db.t")
    late, catalog = rebasing(lake, lambda: rival(table), can_rebase=True)
    attempts: list[Proposal] = []

    def first(proposal: Proposal) -> Proposal:
        attempts.append(proposal)
        return edit(proposal) if len(attempts) == 1 else proposal

    catalog.edit = first
    late.load_table("db.t").append(order_rows(9), branch=branch)
    table.refresh()
    assert 9 in ids(table.scan(ref=branch).to_arrow())
    check_nothing_is_missing(table)
    (why,) = catalog.refusals
    return why


def add_one(table: Table) -> None:
    table.append(order_rows(2))


def add_column(table: Table) -> None:
    with table.append(order_rows(2)).update_schema() as schema:
        schema.add_column("note", "string")


def change_columns(table: Table) -> None:
    with table.update_schema() as schema:
        schema.add_column("note", "string")


def change_columns_and_take_the_number(table: Table) -> None:
    change_columns(table)
    table.append(order_rows(2), branch="other")


def keep_longer(table: Table) -> None:
    table.append(order_rows(2)).refs.set_retention("main", min_snapshots_to_keep=3)


@pytest.mark.parametrize(
    ("rival", "why"),
    [
        (add_column, "expected the current schema of `db.t` to be 0, found 1"),
        (change_columns, "expected the current schema of `db.t` to be 0, found 1"),
        (change_columns_and_take_the_number, "expected the current schema of `db.t` to be 0, found 1"),
        (keep_longer, "has another retention"),
    ],
)
def test_append_is_left_to_its_writer_where_more_than_the_head_changed(
    lake: Lake, rival: Callable[[Table], object], why: str
) -> None:
    new_table(lake).append(order_rows(1))
    assert why in refused(lake, rival)


def test_append_that_asks_for_no_schema_lands_as_it_is_where_its_requirements_hold(lake: Lake) -> None:
    """Other writers require only what the protocol has."""
    table = new_table(lake).append(order_rows(1))
    late, catalog = rebasing(lake, lambda: change_columns(table), can_rebase=True)
    catalog.edit = of_another_writer
    late.load_table("db.t").append(order_rows(2))
    assert catalog.refusals == []
    (sent,), (placed,) = catalog.sent, catalog.placed
    assert placed.change.updates == sent.updates
    assert ids(table.refresh().scan().to_arrow()) == [1, 2]


def test_append_of_another_writer_for_a_spec_that_is_gone_is_refused(lake: Lake) -> None:
    def remove_spec(table: Table) -> None:
        for field in ("id", "bucket(4, id)"):
            with table.update_spec() as update:
                update.add_field(field)
        assert table.expire(older_than=FAR, clean_metadata=True).removed_specs == (0, 1)

    table = new_table(lake)
    late, catalog = rebasing(lake, lambda: remove_spec(table), can_rebase=False)
    catalog.edit = of_another_writer
    with pytest.raises(ConflictError, match="expected partition spec 0, for which files were written"):
        late.load_table("db.t").append(order_rows(1))
    assert catalog.refusals == [
        "expected a snapshot of partition spec [2], found one of partition spec 0, which was removed meanwhile"
    ]
    table.refresh().append(order_rows(2))


def test_append_of_another_writer_whose_number_is_taken_and_whose_schema_is_gone_is_refused(lake: Lake) -> None:
    def take_number_and_remove_schema(table: Table) -> None:
        with table.update_schema() as schema:
            schema.add_column("second", "int")
        table.append(order_rows(2), branch="other")
        assert table.expire(older_than=FAR, clean_metadata=True).removed_schemas == (1,)

    table = new_table(lake).append(order_rows(1))
    change_columns(table)
    late, catalog = rebasing(lake, lambda: take_number_and_remove_schema(table), can_rebase=False)
    catalog.edit = of_another_writer
    late.load_table("db.t").append(order_rows(3))
    assert catalog.refusals == [
        "expected a snapshot of schema [0, 2], found one of schema 1, which was removed meanwhile"
    ]
    assert head(table.refresh()).schema_id == 2


def test_list_that_cannot_be_read_here_is_its_writers_to_know(lake: Lake) -> None:
    base = lake.catalog.load_table(new_table(lake).name)
    for location in ("file:///elsewhere/snap.avro", f"{base.metadata.location}/metadata/none.avro", None):
        snapshot = Snapshot(sequence_number=1, snapshot_id=1, timestamp_ms=CLOCK_MS, manifest_list=location)
        placed = rebase(lake.catalog.io, base, Proposal((), (AddSnapshot(snapshot),)), CLOCK_MS)
        assert placed.change.updates == (AddSnapshot(snapshot),)


def test_append_to_a_branch_that_is_gone_is_left_to_its_writer(lake: Lake) -> None:
    new_table(lake).append(order_rows(1)).refs.create_branch("dev")
    assert "branch `dev` is gone" in refused(lake, lambda t: t.refs.drop_branch("dev"), branch="dev")


def test_snapshot_without_a_requirement_never_takes_the_head_from_others(lake: Lake) -> None:
    """Its number was all that told the catalog that its branch had moved."""
    new_table(lake).append(order_rows(1))
    said = refused(lake, add_one, lambda proposal: msgspec.structs.replace(proposal, requirements=()))
    assert "it does not say where `main` was" in said
    assert ids(lake.load_table("db.t").scan().to_arrow()) == [1, 2, 9]


def test_append_that_may_not_move_is_refused_by_its_requirement(lake: Lake) -> None:
    new_table(lake).append(order_rows(1))

    def asks_not(proposal: Proposal) -> Proposal:
        return msgspec.structs.replace(proposal, can_rebase=False)

    assert refused(lake, add_one, asks_not).startswith("expected ref `main` of `db.t` at snapshot")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"summary": {"operation": "overwrite"}}, "does more than append"),
        ({"summary": {"operation": "append", "source-snapshot-id": "1"}}, "does more than append"),
        ({"schema_id": None}, "the current schema is 0"),
        ({"manifest_list": None}, "no manifest list"),
        ({"manifest_list": "file:///nowhere/snap.avro"}, "outside of the table's directories"),
        ({"sequence_number": 7}, "another sequence number"),
        ({"parent_snapshot_id": 77}, "its parent 77 is gone"),
    ],
)
def test_snapshot_that_is_not_plainly_an_append_is_left_to_its_writer(
    lake: Lake, fields: dict[str, object], why: str
) -> None:
    new_table(lake).append(order_rows(1))
    assert why in refused(lake, add_one, lambda proposal: with_snapshot(proposal, **fields))


def test_list_that_cannot_be_found_is_a_conflict(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1))
    missing = f"{table.location}/metadata/none.avro"
    why = refused(lake, add_one, lambda proposal: with_snapshot(proposal, manifest_list=missing))
    assert "its manifests cannot be read" in why


def test_append_with_more_updates_is_left_to_its_writer(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1))

    def more(proposal: Proposal) -> Proposal:
        return msgspec.structs.replace(proposal, updates=(*proposal.updates, AddSchema(table.schema)))

    def two(proposal: Proposal) -> Proposal:
        return msgspec.structs.replace(proposal, updates=(*proposal.updates, proposal.updates[0]))

    def elsewhere(proposal: Proposal) -> Proposal:
        updates = tuple(u for u in proposal.updates if not isinstance(u, SetSnapshotRef))
        return msgspec.structs.replace(proposal, updates=updates)

    assert "AddSchema comes with it" in refused(lake, add_one, more)
    assert "2 snapshots come together" in refused(lake, add_one, two)
    assert "not appended to one branch" in refused(lake, add_one, elsewhere)


def test_what_was_written_for_a_change_is_all_that_is_left_of_it(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1))
    late, catalog = rebasing(lake, lambda: table.append(order_rows(2)), can_rebase=True)
    late.load_table("db.t").append(order_rows(3))
    assert set(catalog.placed[0].written) & unneeded_files(table.refresh()) == set()
