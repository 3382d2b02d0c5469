"""What a user does to the history of a table: forget it, or ask what would be forgotten."""

import datetime as dt
from collections.abc import Iterable

from bergline.arguments import check_positive, check_whole, shown
from bergline.errors import InvalidInputError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.table.commits.commit import load_same_table
from bergline.table.commits.operation import CommitStamp, Operation
from bergline.table.expiry.deletion import DEFAULT_THREADS, Progress
from bergline.table.expiry.expire import Cleanup, Expire, ExpiryResult
from bergline.table.expiry.explain import ExpiryPlan
from bergline.table.expiry.planning import ExplainExpiry
from bergline.table.expiry.retention import CleanupLevel, ExpiryRequest, parse_level
from bergline.table.handle import TableHandle
from bergline.table.scans.version import epoch_ms


class TableExpiring(TableHandle):
    """Snapshots are kept as the settings of refs and table say; arguments take the place of the table's."""

    def expire(
        self,
        *,
        older_than: dt.datetime | None = None,
        retain_last: int | None = None,
        snapshot_ids: Iterable[int] = (),
        level: str | CleanupLevel = CleanupLevel.ALL,
        clean_metadata: bool = False,
        dry_run: bool = False,
        threads: int = DEFAULT_THREADS,
        progress: Progress | None = None,
    ) -> ExpiryResult:
        """Forget snapshots that no live ref protects, and delete the files that only they needed.

        `level` says what is deleted: "all", "metadata" (no data and delete files) or "none". `clean_metadata` also
        removes partition specs and schemas that nothing uses any more. A dry run changes nothing, and says what would
        go. Files are deleted by up to so many `threads`, and `progress` is told how many are done, and of how many.
        """
        cleaning = Cleanup(parse_level(level), bool(clean_metadata), check_positive(threads, "threads"), progress)
        request = _request(older_than, retain_last, snapshot_ids)
        operation = Expire(self.io, request, cleaning, self._load_newest, dry_run=bool(dry_run))
        if dry_run:
            self._look(operation)
        else:
            self.commit(operation)
        if operation.interruption is not None:
            raise operation.interruption
        return operation.result

    def plan_expiry(
        self,
        *,
        older_than: dt.datetime | None = None,
        retain_last: int | None = None,
        snapshot_ids: Iterable[int] = (),
        level: str | CleanupLevel = CleanupLevel.ALL,
        clean_metadata: bool = False,
    ) -> ExpiryPlan:
        """What `expire` would do with these arguments, and why, and what each ref alone holds on to.

        `print(plan)` shows it, `plan.to_arrow()` gives it as rows; the table stays as it is.
        """
        request = _request(older_than, retain_last, snapshot_ids)
        operation = ExplainExpiry(self.io, request, Cleanup(parse_level(level), bool(clean_metadata)))
        self._look(operation)
        return operation.plan

    def _load_newest(self) -> TableMetadata:
        return load_same_table(
            self._catalog, self.name, self._loaded.metadata.table_uuid, self.metadata_location
        ).metadata

    def _look(self, operation: Operation) -> None:
        """Run an operation that changes nothing, on the table as it is now; a transaction must not repeat it."""
        if self._chain is None:
            self.commit(operation)
        else:
            operation.attempt(self.metadata, CommitStamp(1, self._timing.clock_ms()))


def _request(older_than: dt.datetime | None, retain_last: int | None, snapshot_ids: Iterable[int]) -> ExpiryRequest:
    if not isinstance(snapshot_ids, Iterable):
        raise InvalidInputError(f"expected a list of snapshot ids, found {shown(snapshot_ids)}")
    return ExpiryRequest(
        None if older_than is None else epoch_ms(older_than),
        None if retain_last is None else check_whole(retain_last, "retain_last"),
        frozenset([check_whole(i, "a snapshot id") for i in snapshot_ids]),
    )
