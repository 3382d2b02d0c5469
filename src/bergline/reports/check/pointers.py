"""Whether the pointers of a backup lead to readable metadata files, and which tables have moved on since."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import msgspec

from bergline.arguments import counted
from bergline.catalog.sql.backup.pointers import PointerOf, StoredPointer
from bergline.errors import BerglineError, NotFoundError
from bergline.format.metadata.gzip import MAX_METADATA_BYTES, unpack
from bergline.format.metadata.json import parse_metadata
from bergline.format.view.json import parse_view_metadata
from bergline.io.fileio import FileIO
from bergline.reports.check.manifests import READERS, PhaseProgress
from bergline.reports.check.newest_metadata import find_newest_metadata

_AT_ONCE = 256
_MOST_SHOWN = 100


class PointerFinding(msgspec.Struct, frozen=True):
    """A pointer with a problem: its file is broken, or the table moved on after the backup."""

    pointer: StoredPointer
    problem: str | None = None
    """Why its metadata file cannot be read."""
    newest: str | None = None
    """The newest metadata file that descends from it."""
    doubtful: tuple[str, ...] = ()
    """Metadata files of later commits of which at most one happened, and nobody knows which."""

    @property
    def _is_dropped(self) -> bool:
        return self.pointer.kind is PointerOf.DROPPED_TABLE

    @property
    def newest_of_table(self) -> str | None:
        """The newest metadata file of a table that is not in the trash."""
        return self.newest if self.pointer.kind is PointerOf.TABLE else None

    def __str__(self) -> str:
        moved = (
            "was restored from the trash after the backup, and moved on"
            if self._is_dropped
            else "moved on after the backup"
        )
        lines = [f"{self.pointer.kind} `{self.pointer.name}`: {self.problem or moved}"]
        if self.newest is not None:
            lines.append(f"the newest metadata file found is {self.newest}")
        if self.doubtful:
            lines.append(f"after it, one of these may have been committed: {', '.join(self.doubtful)}")
        return "\n  ".join(lines)


class PointerReport(msgspec.Struct, frozen=True):
    """All pointers of a backup: how many there are, and the findings."""

    checked: int
    broken: tuple[PointerFinding, ...] = ()
    moved_on: tuple[PointerFinding, ...] = ()

    def __str__(self) -> str:
        broken, moved = len(self.broken), len(self.moved_on)
        states = [
            f"{broken:,} broken" if broken else "none broken",
            f"{moved:,} of tables that moved on after the backup" if moved else "none of a table that moved on",
        ]
        lines = [f"{counted(self.checked, 'pointer')} checked: {', '.join(states)}"]
        found = [*self.broken, *self.moved_on]
        lines += map(str, found[:_MOST_SHOWN])
        if len(found) > _MOST_SHOWN:
            lines.append(f"and {len(found) - _MOST_SHOWN:,} more")
        return "\n".join(lines)


def check_pointers(
    io: FileIO, pointers: Iterable[StoredPointer], total: int, progress: PhaseProgress | None = None
) -> PointerReport:
    """Read the metadata file of every pointer, and look for newer ones of tables; nothing is changed."""
    left, checked = iter(pointers), 0
    broken: list[PointerFinding] = []
    moved_on: list[PointerFinding] = []
    with ThreadPoolExecutor(READERS, thread_name_prefix="bergline-check") as threads:
        while some := list(islice(left, _AT_ONCE)):
            for found in threads.map(lambda pointer: _check(io, pointer), some):
                checked += 1
                if found is not None:
                    (moved_on if found.problem is None else broken).append(found)
            if progress is not None:
                progress("check the pointers", checked, total)
    return PointerReport(checked, tuple(broken), tuple(moved_on))


def _check(io: FileIO, pointer: StoredPointer) -> PointerFinding | None:
    location = pointer.metadata_location
    if location is None:
        return PointerFinding(pointer, "its row has no metadata file")
    uuid = problem = None
    try:
        uuid = _read_uuid(io, pointer.kind, location)
    except NotFoundError:
        problem = f"the metadata file does not exist: {location}"
    except BerglineError as error:
        problem = str(error)
    if pointer.kind not in {PointerOf.TABLE, PointerOf.DROPPED_TABLE}:
        return None if problem is None else PointerFinding(pointer, problem)
    try:
        newest = find_newest_metadata(io, location, uuid)
    except BerglineError as error:
        return PointerFinding(pointer, problem or f"cannot look for newer metadata files: {error}")
    newer = None if newest.location == location else newest.location
    if problem is None and newer is None and not newest.doubtful:
        return None
    return PointerFinding(pointer, problem, newer, newest.doubtful)


def _read_uuid(io: FileIO, kind: PointerOf, location: str) -> str | None:
    text = unpack(io.read(location, MAX_METADATA_BYTES), location)
    if kind in {PointerOf.VIEW, PointerOf.DROPPED_VIEW}:
        return parse_view_metadata(text, location).view_uuid
    return parse_metadata(text, location).table_uuid
