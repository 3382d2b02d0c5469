"""Checks and approvals, each of one snapshot of one table: a head that moves has none of them.

A review counts for the ref for which it was given, or for all: whoever gives it needs a right there, not elsewhere.
"""

from enum import StrEnum
from typing import Any, Final

import msgspec
import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.decision import HeadReview
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.layout import join_namespace
from bergline.catalog.sql.security_layout import REVIEWS

EVERY_REF: Final = ""
"""The target of reviews that count for all refs, given by those who may give them for all."""


class ReviewKind(StrEnum):
    """What a review is."""

    CHECK = "check"
    APPROVAL = "approval"


class ReviewState(StrEnum):
    """What a review says."""

    PENDING = "pending"
    PASSED = "passed"
    FAILED = "failed"
    APPROVED = "approved"
    WITHDRAWN = "withdrawn"


class ReviewedTable(msgspec.Struct, frozen=True):
    """A table by name and UUID: neither alone is a table's own, a client may choose the UUID of a new one."""

    name: TableName
    uuid: str

    def columns(self) -> dict[str, str]:
        """The values that its rows have."""
        namespace = join_namespace(self.name.namespace)
        return {"table_namespace": namespace, "table_name": self.name.name, "table_uuid": self.uuid}

    def rows(self) -> sa.ColumnElement[bool]:
        """A condition for its reviews."""
        return sa.and_(*(REVIEWS.c[name] == value for name, value in self.columns().items()))


class RecordedReview(msgspec.Struct, frozen=True):
    """What one check, or one person, says about a snapshot of a table."""

    snapshot_id: int
    kind: ReviewKind
    name: str
    """The check's name, or the principal who approves."""
    state: ReviewState
    principal: str
    """Who reported it."""
    at_ms: int
    detail: str | None = None
    target: str = EVERY_REF
    """The ref for which it counts."""


_COLUMNS = [REVIEWS.c[name] for name in RecordedReview.__struct_fields__]


class SqlReviews:
    """The reviews of one catalog."""

    def __init__(self, database: SqlDatabase, catalog_name: str) -> None:
        self._database = database
        self._catalog = catalog_name

    def record(self, table: ReviewedTable, review: RecordedReview, connection: sa.Connection | None = None) -> None:
        """Record what a check or a person says now, in place of what it said before."""
        if connection is None:
            with self._database.changing() as own:
                self.record(table, review, own)
            return
        row = {"catalog_name": self._catalog} | table.columns() | msgspec.structs.asdict(review)
        changed = {key: row[key] for key in ("state", "principal", "at_ms", "detail")}
        insert = self._database.insert(REVIEWS).values(row)
        connection.execute(insert.on_conflict_do_update(index_elements=list(REVIEWS.primary_key), set_=changed))

    def of(
        self, table: ReviewedTable, snapshot_id: int, target: str, connection: sa.Connection | None = None
    ) -> tuple[RecordedReview, ...]:
        """The reviews of a snapshot that count for a ref; in a transaction they stay as they are until its end."""
        query = (
            sa.select(*_COLUMNS)
            .where(
                REVIEWS.c.catalog_name == self._catalog,
                table.rows(),
                REVIEWS.c.snapshot_id == snapshot_id,
                REVIEWS.c.target.in_((EVERY_REF, target)),
            )
            .order_by(REVIEWS.c.kind, REVIEWS.c.name, REVIEWS.c.target)
        )
        if connection is not None:
            return _read(connection, query.with_for_update())
        with self._database.reading() as own:
            return _read(own, query)

    def head_review(
        self, table: ReviewedTable, snapshot_id: int, target: str, connection: sa.Connection | None = None
    ) -> HeadReview:
        """For a ref: the checks that passed on a snapshot and nowhere else did not, and who approves it."""
        found = self.of(table, snapshot_id, target, connection)
        checks = [(r.name, r.state is ReviewState.PASSED) for r in found if r.kind is ReviewKind.CHECK]
        not_passed = {name for name, passed in checks if not passed}
        approvals = (r for r in found if r.kind is ReviewKind.APPROVAL)
        return HeadReview(
            frozenset(name for name, _ in checks) - not_passed,
            frozenset(r.name for r in approvals if r.state is ReviewState.APPROVED),
        )


def _read(connection: sa.Connection, query: sa.Select[Any]) -> tuple[RecordedReview, ...]:
    if not sa.inspect(connection).has_table(REVIEWS.name):  # of an older layout, and nothing was reviewed since
        return ()
    names = RecordedReview.__struct_fields__
    return tuple(
        msgspec.convert(dict(zip(names, row, strict=True)), RecordedReview) for row in connection.execute(query)
    )
