"""`lake.reviews`: the checks and approvals that rules about refs can demand."""

from bergline.arguments import check_whole
from bergline.catalog.identifiers import TableName, parse_table_name
from bergline.governance.reviews.model import CheckState, SnapshotApproval, SnapshotCheck, SnapshotReviews
from bergline.governance.rules.rules import keeps_none


class LakeReviews:
    """Checks and approvals, each of one snapshot of a table: when a branch moves on, its new head has none."""

    def __init__(self, reviews: SnapshotReviews | None) -> None:
        if reviews is None:
            raise keeps_none("checks and approvals")
        self._reviews = reviews

    def report_check(
        self,
        table: str | TableName,
        snapshot_id: int,
        check: str,
        *,
        passed: bool | None = True,
        detail: str | None = None,
    ) -> None:
        """Record that a check passed on a snapshot, or failed; with None, that it is still running."""
        states = {True: CheckState.PASSED, False: CheckState.FAILED, None: CheckState.PENDING}
        self._reviews.report_check(parse_table_name(table), _number(snapshot_id), check, states[passed], detail)

    def checks(self, table: str | TableName, snapshot_id: int) -> tuple[SnapshotCheck, ...]:
        """The checks of a snapshot, by name."""
        return self._reviews.checks(parse_table_name(table), _number(snapshot_id))

    def approve(self, table: str | TableName, snapshot_id: int, *, detail: str | None = None) -> None:
        """Approve a snapshot: on a server as the principal of the token, else as the user of the operating system."""
        self._reviews.approve(parse_table_name(table), _number(snapshot_id), detail)

    def withdraw(self, table: str | TableName, snapshot_id: int) -> None:
        """Withdraw one's own approval; NotFoundError if there is none."""
        self._reviews.withdraw(parse_table_name(table), _number(snapshot_id))

    def approvals(self, table: str | TableName, snapshot_id: int) -> tuple[SnapshotApproval, ...]:
        """Who approves a snapshot or has withdrawn it, by name."""
        return self._reviews.approvals(parse_table_name(table), _number(snapshot_id))


def _number(snapshot_id: int) -> int:
    return check_whole(snapshot_id, "the id of a snapshot")
