"""What expiry would do to the current state of a table, with sizes and with what each ref holds."""

import os
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.manifest_cache import FreshReads
from bergline.table.commits.operation import Change, CommitStamp, Landed
from bergline.table.expiry.expire import Cleanup, work_out_expiry
from bergline.table.expiry.plan import Amount, ExpiryPlan, total
from bergline.table.expiry.reachable import NOBODY, Owners, StoredFile, held_files
from bergline.table.expiry.retention import CleanupLevel, ExpiryDecision, ExpiryRequest

_NO_REF: Owners = frozenset({""})
_READERS = 16


class PlanExpiry:
    """An operation that changes nothing: it plans on the current state of the table."""

    needs_validation = False

    def __init__(self, io: FileIO, request: ExpiryRequest, cleaning: Cleanup) -> None:
        self._io = io
        self._request = request
        self._cleaning = cleaning
        self.plan = ExpiryPlan(ExpiryDecision((), ()))

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """Plan on this base, as expiry itself would."""
        fresh = FreshReads()
        planned = work_out_expiry(self._io, base, self._request, self._cleaning, stamp.now_ms, fresh=fresh)
        self.plan = ExpiryPlan(
            planned.decision,
            tuple(_with_sizes(self._io, planned.files)),
            _held_by_refs(self._io, base, planned.decision, self._cleaning.level, fresh),
            planned.removed_specs,
            planned.removed_schemas,
        )
        return Change()

    def settled(self, landed: Landed | None) -> None:
        """Nothing was written."""


def _held_by_refs(
    io: FileIO, base: TableMetadata, decision: ExpiryDecision, level: CleanupLevel, fresh: FreshReads
) -> dict[str, Amount]:
    """For each ref that stays, the files needed only by snapshots that it alone keeps."""
    if level is CleanupLevel.NONE:
        return {}
    owners = {d.snapshot.snapshot_id: (d.kept_by or _NO_REF) if d.kept else NOBODY for d in decision.snapshots}
    contents = level is CleanupLevel.ALL
    held = held_files(io, base, lambda i: owners.get(i, _NO_REF), most=1, contents=contents, fresh=fresh)
    files: dict[str, list[StoredFile]] = defaultdict(list)
    for one in held:
        for owner in one.owners:
            files[owner].append(one.file)
    return {d.name: total(_with_sizes(io, files[d.name])) for d in decision.refs if d.kept}


def _with_sizes(io: FileIO, files: Iterable[StoredFile]) -> list[StoredFile]:
    """Files with their sizes; sizes that are not in metadata are read from storage."""
    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(lambda f: f if f.size is not None else _with_size(io, f), files))


def _with_size(io: FileIO, file: StoredFile) -> StoredFile:
    with io.open_input(file.location) as stream:
        return msgspec.structs.replace(file, size=stream.seek(0, os.SEEK_END))
