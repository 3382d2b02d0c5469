"""Manifests of late snapshots that do not hold what an append holds, or what their list says."""

import uuid
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest

from bergline import Lake, Table
from bergline.errors import ConflictError, StorageError
from bergline.format.manifest.avro import render_manifest, render_manifest_list
from bergline.format.manifest.inheritance import existing_entry
from bergline.format.manifest.manifest import EntryStatus, FileContent, ManifestContent, ManifestEntry, ManifestFile
from bergline.format.manifest.summary import describe_manifest
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.updates import AddSnapshot
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_entries, load_manifest_list
from bergline.table.commits import proposed_manifests
from bergline.table.commits.rebase import Proposal, rebase
from support.fixtures.rebasing_lake import of_another_writer, rebasing, with_snapshot
from support.fixtures.rows import ORDERS, ids, order_rows

Listed = list[ManifestFile]
replace = msgspec.structs.replace


def snapshot_of(proposal: Proposal) -> Snapshot:
    (found,) = [u.snapshot for u in proposal.updates if isinstance(u, AddSnapshot)]
    return found


def as_stored(table: Table, manifest: ManifestFile) -> list[ManifestEntry]:
    """The entries of a manifest, those that are new without their numbers."""
    entries = load_entries(table.io, manifest, table.metadata)
    return [
        ManifestEntry(e.status, replace(e.data_file, first_row_id=None)) if e.status is EntryStatus.ADDED else e
        for e in entries
    ]


def relisted(table: Table, proposal: Proposal, change: Callable[[Listed], Listed]) -> Proposal:
    """The same snapshot with another manifest list."""
    snapshot = snapshot_of(proposal)
    data = render_manifest_list(
        change(load_manifest_list(table.io, snapshot)),
        snapshot.snapshot_id,
        snapshot.parent_snapshot_id,
        snapshot.sequence_number,
        format_version=table.metadata.format_version,
        first_row_id=snapshot.first_row_id,
    )
    location = f"{table.location}/metadata/{uuid.uuid4()}.avro"
    table.io.create(location, data)
    return with_snapshot(proposal, manifest_list=location)


def rewritten(
    table: Table,
    manifest: ManifestFile,
    entries: list[ManifestEntry],
    *,
    spec: Any = None,
    directory: str | None = None,
) -> ManifestFile:
    """Another manifest in place of one, with other entries."""
    version, spec = table.metadata.format_version, spec or table.spec
    location = f"{directory or table.location}/metadata/{uuid.uuid4()}-m0.avro"
    data = render_manifest(entries, table.schema, spec, format_version=version, content=manifest.content)
    table.io.create(location, data)
    described = describe_manifest(
        location,
        len(data),
        entries,
        spec=table.spec,
        schema=table.schema,
        content=manifest.content,
        snapshot_id=manifest.added_snapshot_id,
    )
    return replace(
        described,
        sequence_number=manifest.sequence_number,
        min_sequence_number=manifest.min_sequence_number,
        first_row_id=manifest.first_row_id,
    )


def with_entries(table: Table, edit: Callable[[ManifestEntry], ManifestEntry]) -> Callable[[Listed], Listed]:
    """Another own manifest, its entries edited."""

    def change(listed: Listed) -> Listed:
        own, *carried = listed
        return [rewritten(table, own, [edit(e) for e in as_stored(table, own)]), *carried]

    return change


def numbered(entry: ManifestEntry) -> ManifestEntry:
    return replace(entry, sequence_number=1)


def with_file_number(entry: ManifestEntry) -> ManifestEntry:
    return replace(entry, file_sequence_number=1)


def with_row_id(entry: ManifestEntry) -> ManifestEntry:
    return replace(entry, data_file=replace(entry.data_file, first_row_id=0))


def of_another(entry: ManifestEntry) -> ManifestEntry:
    return replace(entry, snapshot_id=77)


def removed(entry: ManifestEntry) -> ManifestEntry:
    return replace(entry, status=EntryStatus.DELETED, snapshot_id=7, sequence_number=1, file_sequence_number=1)


def carried(entry: ManifestEntry) -> ManifestEntry:
    return replace(entry, status=EntryStatus.EXISTING, snapshot_id=7, sequence_number=2, file_sequence_number=2)


def deleting(entry: ManifestEntry) -> ManifestEntry:
    return replace(entry, data_file=replace(entry.data_file, content=FileContent.POSITION_DELETES))


def other_list(edit: Callable[[ManifestFile], ManifestFile]) -> Callable[[Table], Callable[[Listed], Listed]]:
    return lambda _: lambda listed: [edit(listed[0]), *listed[1:]]


def huge_and_below_zero(_: Table) -> Callable[[Listed], Listed]:
    def change(listed: Listed) -> Listed:
        below = replace(listed[0], manifest_path=f"{listed[0].manifest_path}.avro", manifest_length=-(2**40))
        return [replace(listed[0], manifest_length=2**40), below, *listed[1:]]

    return change


def as_own(_: Table) -> Callable[[Listed], Listed]:
    """A manifest of the parent, said to be new."""

    def change(listed: Listed) -> Listed:
        new = listed[0].added_snapshot_id, listed[0].sequence_number, listed[0].min_sequence_number
        own = replace(listed[1], added_snapshot_id=new[0], sequence_number=new[1], min_sequence_number=new[2])
        return [listed[0], own]

    return change


CASES: dict[str, tuple[Callable[[Table], Callable[[Listed], Listed]], str]] = {
    "number": (lambda t: with_entries(t, numbered), "new files have a sequence number of their own"),
    "number of the file": (lambda t: with_entries(t, with_file_number), "depend on its own"),
    "row id": (lambda t: with_entries(t, with_row_id), "row ids are in"),
    "another snapshot": (lambda t: with_entries(t, of_another), "were added by another snapshot"),
    "removal": (lambda t: with_entries(t, removed), "removes rows or files"),
    "carried forward with its own number": (lambda t: with_entries(t, carried), "depend on its own"),
    "deletes": (lambda t: with_entries(t, deleting), "removes rows or files"),
    "wrong rows": (other_list(lambda m: replace(m, added_rows_count=7)), "is not what the manifest list says"),
    "wrong files": (other_list(lambda m: replace(m, added_files_count=7)), "is not what the manifest list says"),
    "too short": (other_list(lambda m: replace(m, manifest_length=5)), "its manifests cannot be read"),
    "too long": (other_list(lambda m: replace(m, manifest_length=50_000)), "is not what the manifest list says"),
    "huge": (other_list(lambda m: replace(m, manifest_length=2**40)), "too many to be read in a commit"),
    "huge beside one below zero": (huge_and_below_zero, "too many to be read in a commit"),
    "encrypted": (other_list(lambda m: replace(m, key_metadata=b"k")), "is encrypted"),
    "outside": (
        other_list(lambda m: replace(m, manifest_path="file:///nowhere/m.avro")),
        "outside of the table's directories",
    ),
    "another spec": (other_list(lambda m: replace(m, partition_spec_id=5)), "partition spec 5"),
    "of nobody": (lambda _: lambda listed: [*listed, replace(listed[1], manifest_path="x.avro")], "not of its parent"),
    "appended again": (as_own, "is in the table already"),
    "twice": (lambda _: lambda listed: [*listed, listed[1]], "in its list twice"),
}


def refusal(lake: Lake, change: Callable[[Table], Callable[[Listed], Listed]]) -> str:
    """Why an append with another manifest list is refused; the writer's next one lands."""
    table = lake.create_table("db.t", ORDERS, properties={"format-version": "3"}).append(order_rows(1))
    late, catalog = rebasing(lake, lambda: table.append(order_rows(2)), can_rebase=True)
    edits: list[Callable[[Proposal], Proposal]] = [
        lambda proposal: relisted(table, of_another_writer(proposal), change(table))
    ]
    catalog.edit = lambda proposal: edits.pop()(proposal) if edits else proposal
    late.load_table("db.t").append(order_rows(3))
    assert ids(table.refresh().scan().to_arrow()) == [1, 2, 3]
    (why,) = catalog.refusals
    return why


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_plainly_an_append_is_a_conflict(lake: Lake, case: str) -> None:
    change, why = CASES[case]
    assert why in refusal(lake, change)


def test_partition_spec_that_became_another_is_a_conflict(lake: Lake) -> None:
    """Its id may be given again once it was removed."""

    def change(table: Table) -> Callable[[Listed], Listed]:
        with table.update_spec() as update:
            update.add_field("region")
        other = table.spec

        def under_another(listed: Listed) -> Listed:
            entries = [
                replace(e, data_file=replace(e.data_file, partition=("eu",))) for e in as_stored(table, listed[0])
            ]
            own = rewritten(table, listed[0], entries, spec=other)
            return [replace(own, partition_spec_id=0, partitions=()), *listed[1:]]

        return under_another

    assert "partition spec 0" in refusal(lake, change)


class NoRoomForLists:
    """Stands before a storage, notes what is created and deleted, and refuses manifest lists."""

    def __init__(self, io: FileIO) -> None:
        self._io = io
        self.created: list[str] = []
        self.deleted: list[str] = []

    def read(self, location: str, most: int | None = None) -> bytes:
        return self._io.read(location, most)

    def create(self, location: str, data: bytes) -> None:
        if "/snap-" in location:
            raise StorageError("no space left")
        self.created.append(location)
        self._io.create(location, data)

    def delete(self, locations: Iterable[str]) -> list[str]:
        self.deleted += locations
        return self._io.delete(locations)


def test_files_of_a_change_that_goes_nowhere_are_deleted_by_who_writes_them(lake: Lake) -> None:
    """In a group they may still be being written. A merged manifest, as Java's are, stays behind what it replaced."""
    table = lake.create_table("db.t", ORDERS).append(order_rows(1))
    late, catalog = rebasing(lake, lambda: table.delete("id = 1"), can_rebase=True)
    files = NoRoomForLists(table.io)

    def merged(listed: Listed) -> Listed:
        own, old = listed
        entries = [*map(existing_entry, load_entries(table.io, old, table.metadata)), *as_stored(table, own)]
        return [rewritten(table, own, entries)]

    def try_first(proposal: Proposal) -> Proposal:
        base = lake.catalog.load_table(table.name)
        with pytest.raises(ConflictError, match="no space left"):
            rebase(table.io, base, relisted(table, proposal, merged), 1, files)
        return proposal

    catalog.edit = try_first
    late.load_table("db.t").append(order_rows(3))
    assert len(files.created) == 1
    assert files.deleted == [*files.created, *(d for d in files.deleted if "/snap-" in d)]
    assert ids(table.refresh().scan().to_arrow()) == [3]


def test_number_of_entries_is_bounded_whatever_the_list_says(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposed_manifests, "_MOST_ENTRIES", 3)

    def many(table: Table) -> Callable[[Listed], Listed]:
        def change(listed: Listed) -> Listed:
            own = rewritten(table, listed[0], as_stored(table, listed[0]) * 4)
            return [replace(own, added_files_count=1, added_rows_count=1), *listed[1:]]

        return change

    assert "expected up to 3 entries, found 4" in refusal(lake, many)


def test_number_of_manifests_is_bounded(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposed_manifests, "_MOST_MANIFESTS", 2)
    assert "expected up to 2 manifests, found 3" in refusal(lake, lambda _: lambda listed: [*listed, listed[1]])


def test_number_of_files_is_bounded(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposed_manifests, "_MOST_ENTRIES", 0)
    assert "1 files in" in refusal(lake, lambda _: lambda listed: listed)


def test_manifest_with_content_of_deletes_that_adds_nothing_may_be_a_merged_one(lake: Lake) -> None:
    """An append that merges older delete manifests moves with them."""
    properties = {"write.delete.mode": "merge-on-read", "commit.manifest-merge.enabled": "false"}
    table = lake.create_table("db.t", ORDERS, properties=properties)
    for number in (1, 2, 3):
        table.append(order_rows(number, 10 * number)).delete(f"id = {number}")
    table.set_properties({"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "3"})
    late, catalog = rebasing(lake, lambda: table.append(order_rows(5), fast=True), can_rebase=True)
    late.load_table("db.t").append(order_rows(6))
    assert catalog.refusals == []
    table.refresh()
    assert ids(table.scan().to_arrow()) == [5, 6, 10, 20, 30]
    assert table.current_snapshot is not None
    listed = load_manifest_list(table.io, table.current_snapshot)
    merged = [m for m in listed if m.content is ManifestContent.DELETES]
    assert [m.existing_files_count for m in merged] == [3]
