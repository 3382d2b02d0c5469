"""Checks and approvals, each of one snapshot of one table: a head that moves has none of them."""

from enum import StrEnum
from typing import Any

import msgspec
import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.decision import HeadReview
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.governance_layout import REVIEWS
from bergline.catalog.sql.layout import join_namespace


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
        self, table: ReviewedTable, snapshot_id: int, connection: sa.Connection | None = None
    ) -> tuple[RecordedReview, ...]:
        """All reviews of a snapshot; in a transaction they stay as they are until its end."""
        query = (
            sa.select(*_COLUMNS)
            .where(
                REVIEWS.c.catalog_name == self._catalog,
                table.rows(),
                REVIEWS.c.snapshot_id == snapshot_id,
            )
            .order_by(REVIEWS.c.kind, REVIEWS.c.name)
        )
        if connection is not None:
            return _read(connection, query.with_for_update())
        with self._database.reading() as own:
            return _read(own, query)

    def head_review(
        self, table: ReviewedTable, snapshot_id: int, connection: sa.Connection | None = None
    ) -> HeadReview:
        """The checks that passed on a snapshot, and who approves it."""
        found = self.of(table, snapshot_id, connection)
        return HeadReview(
            frozenset(r.name for r in found if (r.kind, r.state) == (ReviewKind.CHECK, ReviewState.PASSED)),
            frozenset(r.name for r in found if (r.kind, r.state) == (ReviewKind.APPROVAL, ReviewState.APPROVED)),
        )


def _read(connection: sa.Connection, query: sa.Select[Any]) -> tuple[RecordedReview, ...]:
    names = RecordedReview.__struct_fields__
    return tuple(
        msgspec.convert(dict(zip(names, row, strict=True)), RecordedReview) for row in connection.execute(query)
    )
