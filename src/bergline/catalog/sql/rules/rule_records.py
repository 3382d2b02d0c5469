"""What a SQL catalog has on record to decide by: rules of its scopes, reviews and authors of snapshots.

In a transaction all of it is read on its connection, and reviews stay as they are until its end. A database that an
older bergline made has no records, and none are added by reading.
"""

import contextlib
from collections.abc import Collection, Iterator

import msgspec
import sqlalchemy as sa

from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.protection.decision import HeadReview
from bergline.catalog.protection.kept_rules import KeptRule, levels_of
from bergline.catalog.protection.rule_scope import RuleLevel, scopes_above
from bergline.catalog.protection.table_rules import read_rule
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.governance_layout import REF_RULES, SNAPSHOT_AUTHORS
from bergline.catalog.sql.layout import join_namespace
from bergline.catalog.sql.rules.reviews import ReviewedTable, ReviewKind, ReviewState, SqlReviews
from bergline.catalog.sql.security_layout import REVIEWS

_AT_ONCE = 500
_VOID = {ReviewKind.CHECK: ReviewState.PENDING, ReviewKind.APPROVAL: ReviewState.WITHDRAWN}
_OF_CATALOG = REF_RULES.c.catalog_name == sa.bindparam("of_catalog")
_ALL = (
    sa.select(REF_RULES.c.namespace, REF_RULES.c.pattern, REF_RULES.c.rule, REF_RULES.c.principal, REF_RULES.c.at_ms)
    .where(_OF_CATALOG)
    .order_by(REF_RULES.c.namespace, REF_RULES.c.pattern)
)
_OF_SCOPES = _ALL.where(REF_RULES.c.namespace.in_(sa.bindparam("of_namespaces", expanding=True)))
_ANY = sa.select(sa.literal(1)).where(_OF_CATALOG).limit(1)
"""Made once: composing a query takes longer than running it."""


class RecordsPresence(msgspec.Struct):
    """Whether a database has tables of governance, which never go away again."""

    is_known: bool = False


class SqlRuleRecords:
    """The records of one catalog, read on connections of their own, or on that of a transaction."""

    def __init__(
        self,
        database: SqlDatabase,
        catalog_name: str,
        connection: sa.Connection | None = None,
        presence: RecordsPresence | None = None,
    ) -> None:
        self._database = database
        self._catalog = catalog_name
        self._connection = connection
        self._presence = presence or RecordsPresence()

    def within(self, connection: sa.Connection) -> "SqlRuleRecords":
        """The same records, as a transaction sees them."""
        return SqlRuleRecords(self._database, self._catalog, connection, self._presence)

    def rules(self, namespace: Namespace | None = None) -> tuple[KeptRule, ...]:
        """All rules, or those that hold in a namespace."""
        values: dict[str, object] = {"of_catalog": self._catalog}
        if namespace is not None:
            values["of_namespaces"] = [join_namespace(above) for above in scopes_above(namespace)]
        with self._reading() as connection:
            if not self._are_there(connection):
                return ()
            rows = connection.execute(_ALL if namespace is None else _OF_SCOPES, values).all()
        return tuple(
            KeptRule(_split(name), read_rule(pattern, text), principal, at_ms)
            for name, pattern, text, principal, at_ms in rows
        )

    def levels(self, table: TableName) -> tuple[RuleLevel, ...]:
        """The rules of the catalog and of the table's namespaces."""
        return levels_of(self.rules(table.namespace)) if self._has_rules() else ()

    def review(self, table: TableName, table_uuid: str, snapshot_id: int, ref: str) -> HeadReview | None:
        """What is on record about a snapshot for a ref; in a transaction its rows are locked."""
        with self._reading() as connection:
            if not self._are_there(connection):
                return None
        reviewed = ReviewedTable(table, table_uuid)
        return SqlReviews(self._database, self._catalog).head_review(reviewed, snapshot_id, ref, self._connection)

    def authors(self, table_uuid: str, snapshot_ids: Collection[int]) -> frozenset[str]:
        """Who wrote these snapshots, as far as that was recorded."""
        mine = sa.and_(SNAPSHOT_AUTHORS.c.catalog_name == self._catalog, SNAPSHOT_AUTHORS.c.table_uuid == table_uuid)
        query = sa.select(SNAPSHOT_AUTHORS.c.principal).where(mine).distinct()
        found: set[str] = set()
        with self._reading() as connection:
            numbers = sorted(snapshot_ids) if self._are_there(connection) else []
            for start in range(0, len(numbers), _AT_ONCE):
                some = SNAPSHOT_AUTHORS.c.snapshot_id.in_(numbers[start : start + _AT_ONCE])
                found.update(connection.execute(query.where(some)).scalars())
        return frozenset(found)

    def add_authors(self, table_uuid: str, snapshot_ids: Collection[int], principal: str) -> None:
        """Record who writes snapshots, in the transaction that adds them."""
        if self._connection is None or not snapshot_ids or not self._are_there(self._connection):
            return
        rows = [
            {"catalog_name": self._catalog, "table_uuid": table_uuid, "snapshot_id": number, "principal": principal}
            for number in sorted(snapshot_ids)
        ]
        insert = self._database.insert(SNAPSHOT_AUTHORS).on_conflict_do_nothing()
        self._connection.execute(insert, rows)

    def void_reviews(self, table: TableName, table_uuid: str, snapshot_ids: Collection[int]) -> None:
        """Void the reviews of snapshots that are removed, in that transaction: another may come under the same id."""
        if self._connection is None or not snapshot_ids:
            return
        if not sa.inspect(self._connection).has_table(REVIEWS.name):
            return
        numbers, mine = sorted(snapshot_ids), ReviewedTable(table, table_uuid).rows()
        for start in range(0, len(numbers), _AT_ONCE):
            some = REVIEWS.c.snapshot_id.in_(numbers[start : start + _AT_ONCE])
            for kind, state in _VOID.items():
                statement = sa.update(REVIEWS).where(
                    REVIEWS.c.catalog_name == self._catalog,
                    mine,
                    some,
                    REVIEWS.c.kind == kind,
                )
                self._connection.execute(statement.values(state=state))

    def _has_rules(self) -> bool:
        """Whether there are rules at all, which most commits find out in no time."""
        values = {"of_catalog": self._catalog}
        if self._connection is not None:
            return self._are_there(self._connection) and self._connection.execute(_ANY, values).first() is not None
        if not self._presence.is_known:
            with self._reading() as connection:
                if not self._are_there(connection):
                    return False
        return self._database.first_row(_ANY, values) is not None

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        if self._connection is not None:
            yield self._connection
            return
        with self._database.reading() as connection:
            yield connection

    def _are_there(self, connection: sa.Connection) -> bool:
        if not self._presence.is_known:
            self._presence.is_known = sa.inspect(connection).has_table(REF_RULES.name)
        return self._presence.is_known


def _split(name: str) -> Namespace:
    return tuple(name.split(".")) if name else ()
