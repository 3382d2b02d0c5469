"""The files of commits that are made together: read ahead and written side by side.

On an object store every file takes tens of milliseconds, and each member of a group has a manifest list and a manifest.
"""

import contextlib
from collections.abc import Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final

from bergline.errors import BerglineError
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.io.locations import scheme_of
from bergline.table.commits.proposed_manifests import UnfitError, is_stray, read_proposed_list

_MOST_READ_AHEAD: Final = 32 * 1024 * 1024
"""Bytes: what does not fit is read when it is needed."""


class GroupFiles:
    """Files between a storage and the members of one group."""

    def __init__(self, io: FileIO, threads: ThreadPoolExecutor) -> None:
        self._io = io
        self._threads = threads
        self._read: dict[str, bytes] = {}
        self._room = _MOST_READ_AHEAD
        self._writing: dict[str, Future[None]] = {}

    def read_ahead(self, metadata: TableMetadata, snapshots: Collection[Snapshot]) -> None:
        """Read the manifest lists of new snapshots and their own manifests, all at once; what fails is read later.

        Those on a local disk are read when they are needed, which takes less time than to hand them to a thread.
        """
        distant = [s for s in snapshots if s.manifest_list is not None and scheme_of(s.manifest_list) != "file"]
        wait([self._threads.submit(self._read_one, metadata, snapshot) for snapshot in distant])

    def read(self, location: str, most: int | None = None) -> bytes:
        """The whole object, which is kept for the next one who reads it: files never change.

        One that is being written is waited for.
        """
        known = self._read.get(location)
        if known is None:
            if location in self._writing:
                self._writing[location].result()
            known = self._io.read(location, most)
            if len(known) <= self._room:
                self._room -= len(known)
                self._read[location] = known
        return known

    def create(self, location: str, data: bytes) -> None:
        """Begin to write an object; `finish` waits for it."""
        self._writing[location] = self._threads.submit(self._io.create, location, data)

    def finish(self, locations: Iterable[str]) -> None:
        """Wait for objects that are being written; raises what went wrong with one."""
        for location in locations:
            self._writing[location].result()

    def delete(self, locations: Iterable[str]) -> list[str]:
        """Delete objects once they are written, or are not."""
        known = list(locations)
        wait([self._writing[location] for location in known if location in self._writing])
        return self._io.delete(known)

    def _read_one(self, metadata: TableMetadata, snapshot: Snapshot) -> None:
        with contextlib.suppress(BerglineError, UnfitError):  # it is said when the change is put on the table
            for manifest in read_proposed_list(self, metadata, snapshot):
                path, size = manifest.manifest_path, manifest.manifest_length
                is_own = manifest.added_snapshot_id == snapshot.snapshot_id
                if is_own and size <= self._room and not is_stray(metadata, manifest, snapshot):
                    self.read(path, size)
