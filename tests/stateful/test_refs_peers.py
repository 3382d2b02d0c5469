"""The same random histories of refs, commits, merges and expiry, read in PyIceberg and in the official runtime."""

from typing import Any, ClassVar

import pytest
from hypothesis import event
from hypothesis.stateful import precondition, rule

from bergline.format.manifest.manifest import FileContent
from support.fixtures.catalog_backends import SqliteBackend
from support.models.modelled_table import ModelledTable, numbers
from support.models.refs_machine import LONG, TABLE, ReferencesMachine, check_machine
from support.servers.peers import OfficialRuntime, pyiceberg_catalog

LOOKS = 2
READS = """
result = []
for options in reads:
    frame = spark.read.format("iceberg")
    for key, value in options.items():
        frame = frame.option(key, value)
    result.append(sorted(row[0] for row in frame.load(table).select("n").collect()))
"""


class PeersMachine(ReferencesMachine):
    """Now and then, and at the end, the peers read every ref, some other snapshots, and what was appended between."""

    runtime: ClassVar[OfficialRuntime]

    def teardown(self) -> None:
        if hasattr(self, "books") and self.sound:
            self.peers_read("db.t")
        super().teardown()

    @precondition(lambda self: self.__dict__.get("looks", 0) < LOOKS)
    @rule(name=TABLE)
    def peers_look(self, name: str) -> None:
        self.looks = self.__dict__.get("looks", 0) + 1
        self.peers_read(name)

    def peers_read(self, name: str) -> None:
        book = self.books[name]
        heads = {ref.head for ref in book.history.refs.values()}
        some = [*heads, *sorted(book.history.retained - heads)[:3]]
        expected = {str(i): sorted(book.history.snapshots[i].rows) for i in some}
        reads = [{"versionAsOf": i} for i in expected]
        appended = _appended(book)
        reads += [{"start-snapshot-id": str(start), "end-snapshot-id": str(end)} for start, end in appended]
        place = self.place
        assert isinstance(place, SqliteBackend)
        self.runtime.use_catalog(place.directory / "catalog.db", place.directory / "warehouse", "lake")
        found = self.runtime.python(READS, reads=reads, table=f"lake.{name}")
        assert found == [*expected.values(), *appended.values()]
        refs = {n: (ref.head, ref.is_branch) for n, ref in book.history.refs.items()}
        theirs = self.runtime.sql(f"SELECT name, snapshot_id, type FROM {name}.refs")
        assert {n: (head, kind == "BRANCH") for n, head, kind in theirs} == refs
        catalog = pyiceberg_catalog(place.directory / "catalog.db", place.directory / "warehouse", "lake")
        table = catalog.load_table(name)
        catalog.close()
        assert {n: (r.snapshot_id, r.snapshot_ref_type == "branch") for n, r in table.metadata.refs.items()} == refs
        for snapshot_id, rows in expected.items():
            if not _has_equality_deletes(book, int(snapshot_id)):  # which PyIceberg does not read
                assert numbers(table.scan(snapshot_id=int(snapshot_id), selected_fields=("n",)).to_arrow()) == rows
        event(f"peers read {len(reads)}")


def _appended(book: ModelledTable) -> dict[tuple[int, int], list[Any]]:
    """The rows that appends brought, between the oldest known snapshot of each branch, and another, and its head."""
    found: dict[tuple[int, int], list[Any]] = {}
    metadata, snapshots = book.table.metadata, book.history.snapshots
    for ref in book.history.refs.values():
        line = list(book.history.ancestors(ref.head, retained=True))
        for start in {len(line) - 1, len(line) // 2} - {0}:
            rows: set[int] = set()
            for model in line[:start]:
                if metadata.snapshot(model.snapshot_id).operation == "append":
                    rows |= model.rows.keys() - snapshots[model.parent or 0].rows.keys()
            found[line[start].snapshot_id, ref.head] = sorted(rows)
            if {metadata.snapshot(s.snapshot_id).operation for s in line[:start]} == {"append"}:
                changes = book.table.changes(line[start].snapshot_id, ref.head)
                assert numbers(changes.added) == sorted(rows)
                assert changes.removed.num_rows == 0
    return found


def _has_equality_deletes(book: ModelledTable, snapshot_id: int) -> bool:
    planned = book.table.scan(snapshot_id=snapshot_id).plan().files
    return any(d.content is FileContent.EQUALITY_DELETES for p in planned for d in p.deletes)


@pytest.mark.official
@pytest.mark.timeout(0 if LONG else 600)
def test_peers_read_what_was_done(official_runtime: OfficialRuntime) -> None:
    machine = type("WithPeers", (PeersMachine,), {"runtime": official_runtime})
    check_machine(machine, SqliteBackend, 3, 12)
