"""The queue of changes in the database of a SQL catalog."""

import time
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from bergline.catalog.commit_queue import QueuedChange, QueueOutcome, QueueState
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.contention_layout import QUEUE_LEADERS, QUEUED_COMMITS
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.layout import join_namespace
from bergline.errors import RefusedError

LEAD_MS = 3000
"""For so long at most others wait for a leader that is gone."""
GOOD_FOR_MS = 60_000
"""A change that nobody has taken by then is of a process that is gone; those that are there withdraw theirs before."""
_FORGOTTEN_AFTER_MS = 3_600_000
_FORGET_EVERY_S = 60.0
_QUEUE, _LEADERS = QUEUED_COMMITS.c, QUEUE_LEADERS.c
_WAITING = QueueState.WAITING.value
_IS_WAITING = sa.and_(_QUEUE.token == sa.bindparam("of_token"), _QUEUE.state == _WAITING)
# built once: building a statement is slower than running it
_REFUSE = sa.update(QUEUED_COMMITS).where(_IS_WAITING).values(state=QueueState.REFUSED.value)
_WITHDRAW = sa.delete(QUEUED_COMMITS).where(_IS_WAITING)
_FORGET_READ = sa.delete(QUEUED_COMMITS).where(_QUEUE.token.in_(sa.bindparam("tokens", expanding=True)))
_END_LEAD = sa.update(QUEUE_LEADERS).where(_LEADERS.token == sa.bindparam("of_token")).values(until_ms=0)


class SqlCommitQueue:
    """The queue of one catalog."""

    def __init__(self, database: SqlDatabase, catalog_name: str) -> None:
        self._database = database
        self._catalog = catalog_name
        self._forget_at_s = 0.0
        now = database.now_ms()
        self._insert = sa.insert(QUEUED_COMMITS).values(queued_ms=now, state=_WAITING)
        barred = database.insert(QUEUED_COMMITS).values(queued_ms=now, state=QueueState.REFUSED.value)
        self._bar = barred.on_conflict_do_nothing(index_elements=["token"])
        old = sa.and_(_QUEUE.catalog_name == catalog_name, _QUEUE.queued_ms < now - _FORGOTTEN_AFTER_MS)
        self._forget_old = sa.delete(QUEUED_COMMITS).where(old)
        same = sa.and_(*(_QUEUE[c.name] == c for c in QUEUE_LEADERS.primary_key))
        # one that comes later than any may is from before the clock was set back
        is_good = sa.and_(_QUEUE.queued_ms > now - GOOD_FOR_MS, _QUEUE.queued_ms <= now + GOOD_FOR_MS)
        landed = {"state": QueueState.LANDED.value, "metadata_location": sa.bindparam("location")}
        self._land = sa.update(QUEUED_COMMITS).where(_IS_WAITING, is_good).values(landed)
        self._outcome = (
            sa.select(_QUEUE.state, _QUEUE.metadata_location, _LEADERS.until_ms - now)
            .select_from(QUEUED_COMMITS.outerjoin(QUEUE_LEADERS, same))
            .where(_QUEUE.token == sa.bindparam("of_token"))
        )
        self._waiting = (
            sa.select(_QUEUE.token, _QUEUE.principal, _QUEUE.change)
            .where(_of_table(QUEUED_COMMITS), _QUEUE.state == _WAITING, is_good)
            .order_by(_QUEUE.queue_id)
            .limit(sa.bindparam("most"))
        )
        insert = database.insert(QUEUE_LEADERS).values(until_ms=now + LEAD_MS)
        self._take_lead = insert.on_conflict_do_update(
            index_elements=[column.name for column in QUEUE_LEADERS.primary_key],
            set_={"token": insert.excluded.token, "until_ms": insert.excluded.until_ms},
            where=sa.or_(
                _LEADERS.until_ms <= now, _LEADERS.until_ms > now + LEAD_MS, _LEADERS.token == insert.excluded.token
            ),
        )
        self._leader = sa.select(_LEADERS.token).where(_of_table(QUEUE_LEADERS))

    def add(self, table: TableName, change: QueuedChange, read: Collection[str]) -> bool:
        with self._database.changing() as connection:
            if not self._database.has_turns:
                raise RefusedError("the catalog's database has no queue")
            if read:
                connection.execute(_FORGET_READ, {"tokens": sorted(read)})
            if time.monotonic() > self._forget_at_s:
                self._forget_at_s = time.monotonic() + _FORGET_EVERY_S
                connection.execute(self._forget_old)
            row = {"token": change.token, "principal": change.principal, "change": change.change}
            connection.execute(self._insert, self._key(table) | row)
            return self._lead(connection, table, change.token)

    def outcome(self, token: str) -> QueueOutcome | None:
        row = self._database.first_row(self._outcome, {"of_token": token})
        if row is None:
            return None
        return QueueOutcome(QueueState(row[0]), row[1], has_leader=row[2] is not None and 0 < row[2] <= LEAD_MS)

    def withdraw(self, token: str) -> bool:
        with self._database.changing() as connection:
            connection.execute(_END_LEAD, {"of_token": token})
            return bool(connection.execute(_WITHDRAW, {"of_token": token}).rowcount == 1)

    def bar(self, table: TableName, token: str) -> None:
        """Take its token, after whoever is about to add it: tokens are unique."""
        with self._database.changing() as connection:
            connection.execute(self._bar, self._key(table) | {"token": token, "principal": "", "change": ""})

    def lead(self, table: TableName, token: str) -> bool:
        with self._database.changing() as connection:
            return self._lead(connection, table, token)

    def waiting(self, table: TableName, most: int) -> list[QueuedChange]:
        with self._database.reading() as connection:
            rows = connection.execute(self._waiting, self._of(table) | {"most": most})
            return [QueuedChange(*row) for row in rows]

    def land(self, connection: sa.Connection, token: str, metadata_location: str, leader: str) -> None:
        landed = connection.execute(self._land, {"of_token": token, "location": metadata_location})
        if landed.rowcount != 1:
            raise RefusedError("the change does not wait in the queue any more")
        if token == leader:
            connection.execute(_END_LEAD, {"of_token": leader})

    def refuse(self, tokens: Collection[str], leader: str) -> None:
        with self._database.changing() as connection:
            for token in sorted(tokens):
                connection.execute(_REFUSE, {"of_token": token})
            if leader in tokens:
                connection.execute(_END_LEAD, {"of_token": leader})

    def _lead(self, connection: sa.Connection, table: TableName, token: str) -> bool:
        connection.execute(self._take_lead, self._key(table) | {"token": token})
        return bool(connection.execute(self._leader, self._of(table)).scalar_one() == token)

    def _key(self, table: TableName) -> dict[str, Any]:
        namespace = join_namespace(table.namespace)
        return {"catalog_name": self._catalog, "table_namespace": namespace, "table_name": table.name}

    def _of(self, table: TableName) -> dict[str, Any]:
        return {f"of_{name}": value for name, value in self._key(table).items()}


def _of_table(where: sa.Table) -> sa.ColumnElement[bool]:
    return sa.and_(*(where.c[c.name] == sa.bindparam(f"of_{c.name}") for c in QUEUE_LEADERS.primary_key))
