"""Checks and approvals by the name of a table: each is bound to its UUID and one of its snapshots."""

import time

from bergline.arguments import check_no_nul, check_text
from bergline.catalog.attempts import attempts
from bergline.catalog.catalog import Catalog
from bergline.catalog.identifiers import TableName, check_lengths
from bergline.catalog.protection.caller import current_caller
from bergline.catalog.protection.ref_rule import check_names
from bergline.catalog.sql.rules.reviews import (
    EVERY_REF,
    RecordedReview,
    ReviewedTable,
    ReviewKind,
    ReviewState,
    SqlReviews,
)
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.errors import InvalidInputError, NotFoundError, RefusedError
from bergline.governance.reviews.model import CheckState, SnapshotApproval, SnapshotCheck

_MAX_DETAIL_CHARACTERS = 4000


class SqlSnapshotReviews:
    """The reviews of a catalog's tables that count for all refs; a change is made under the caller's name."""

    def __init__(self, catalog: Catalog, store: SqlPointerStore) -> None:
        self._catalog = catalog
        self._store = store
        self._database = store.database
        self._reviews = SqlReviews(store.database, store.catalog_name)

    def checks(self, table: TableName, snapshot_id: int) -> tuple[SnapshotCheck, ...]:
        return tuple(
            SnapshotCheck(r.name, CheckState(r.state), r.principal, r.at_ms, r.detail)
            for r in self._found(table, snapshot_id, ReviewKind.CHECK)
        )

    def report_check(
        self, table: TableName, snapshot_id: int, name: str, state: CheckState, detail: str | None = None
    ) -> None:
        check_names((name,), "check")
        self._record(table, snapshot_id, name, kind=ReviewKind.CHECK, state=ReviewState(state), detail=detail)

    def approvals(self, table: TableName, snapshot_id: int) -> tuple[SnapshotApproval, ...]:
        return tuple(
            SnapshotApproval(r.name, r.state is ReviewState.WITHDRAWN, r.at_ms, r.detail)
            for r in self._found(table, snapshot_id, ReviewKind.APPROVAL)
        )

    def approve(self, table: TableName, snapshot_id: int, detail: str | None = None) -> None:
        who = current_caller().name
        self._record(table, snapshot_id, who, kind=ReviewKind.APPROVAL, state=ReviewState.APPROVED, detail=detail)

    def withdraw(self, table: TableName, snapshot_id: int) -> None:
        who = current_caller().name
        approving = {a.principal for a in self.approvals(table, snapshot_id) if not a.withdrawn}
        if who not in approving:
            raise NotFoundError(
                f"no approval of `{who}` for snapshot {snapshot_id} of table `{table}`", kind="approval", name=who
            )
        self._record(table, snapshot_id, who, kind=ReviewKind.APPROVAL, state=ReviewState.WITHDRAWN, detail=None)

    def _found(self, table: TableName, snapshot_id: int, kind: ReviewKind) -> tuple[RecordedReview, ...]:
        reviewed, _ = self._reviewed(table, snapshot_id)
        return tuple(review for review in self._reviews.of(reviewed, snapshot_id, EVERY_REF) if review.kind is kind)

    def _record(
        self, table: TableName, snapshot_id: int, name: str, *, kind: ReviewKind, state: ReviewState, detail: str | None
    ) -> None:
        check_lengths(name)
        check_no_nul(name, "a name")
        if detail is not None:
            check_no_nul(check_text(detail, "text for the detail"), "the detail")
            if len(detail) > _MAX_DETAIL_CHARACTERS:
                raise InvalidInputError(
                    f"expected a detail of up to {_MAX_DETAIL_CHARACTERS} characters, found {len(detail)}"
                )
        now_ms, who = time.time_ns() // 1_000_000, current_caller().name
        review = RecordedReview(snapshot_id, kind, name, state, who, now_ms, detail)
        for _ in attempts(f"table `{table}` kept changing during the review"):
            reviewed, pointer = self._reviewed(table, snapshot_id)
            with self._database.changing() as connection:
                # else the snapshot may have been removed in the meantime, and another have taken its id
                if self._store.holds(connection, table, pointer):
                    self._reviews.record(reviewed, review, connection)
                    self._database.run_hooks(connection)
                    return

    def _reviewed(self, table: TableName, snapshot_id: int) -> tuple[ReviewedTable, str]:
        """The table and the pointer that it was read from; NotFoundError if it has no such snapshot."""
        loaded = self._catalog.load_table(table)
        metadata = loaded.metadata
        metadata.snapshot(snapshot_id)
        if metadata.table_uuid is None:
            raise RefusedError(
                f"cannot review table `{table}`: it has no UUID yet", hints=["the next commit to it gives it one"]
            )
        return ReviewedTable(table, metadata.table_uuid), loaded.metadata_location
