"""The event log of a catalog in its database.

Rows are written in the transaction of the change, by as many writers as there are, so that neither ids nor times are
in the order of commits. A reader gives positions to rows that are committed and have none, in the order of their ids,
while it holds the row of the catalog's counter: positions have no gaps, and a cursor over them misses nothing.
Two commits to one table wait for each other, so that the second has the higher id and the first is seen before it.
"""

import contextlib
import itertools
import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.governance_layout import EVENT_POSITIONS, EVENTS
from bergline.catalog.sql.layout_version import GOVERNANCE_VERSION
from bergline.catalog.sql.migrations import find_layout
from bergline.errors import RefusedError, UnsupportedError
from bergline.governance.events.model import (
    MOST_EVENTS,
    Event,
    EventFilter,
    EventPage,
    LoggedEvent,
    check_position,
    table_subject,
)

_PIECE = 1000
_MOST_SCANNED = 10_000
_LOOK_AGAIN_S = 1
"""The most positions that a page with a filter examines."""
_UUID_LENGTH = 36
_ENDS = ("table.drop", "table.unregister")
_NAMING = ("table.create", "table.register", "table.undrop", "table.rename", *_ENDS)
_MOST_NAMINGS = 100
_INSERT = sa.insert(EVENTS)  # building a statement is slower than running it
_COLUMNS = [EVENTS.c[name] for name in LoggedEvent.__struct_fields__]
_ENCODER = msgspec.json.Encoder()
_GIVE = sa.text(
    f"""
    UPDATE {EVENTS.name} SET position = :last + fresh.place
    FROM (
        SELECT id AS fresh_id, row_number() OVER (ORDER BY id) AS place FROM {EVENTS.name}
        WHERE catalog_name = :catalog AND position IS NULL ORDER BY id LIMIT :most
    ) AS fresh
    WHERE id = fresh.fresh_id
    """  # noqa: S608  (names of our own)
)


def append_events(connection: sa.Connection, events: Iterable[Event]) -> None:
    """Write events by one statement, in the transaction in which they happen."""
    rows = [
        {
            "catalog_name": event.catalog,
            "type": event.type,
            "subject": event.subject,
            "table_uuid": event.table_uuid and event.table_uuid[:_UUID_LENGTH],  # a client may have sent any text
            "principal": event.principal,
            "at_ms": event.at_ms,
            "data": _ENCODER.encode(event.data).decode(),
        }
        for event in events
    ]
    if rows:
        connection.execute(_INSERT, rows)


class SqlEvents:
    """The event log of one catalog."""

    def __init__(self, database: SqlDatabase, catalog_name: str) -> None:
        self._database = database
        self._catalog = catalog_name
        self._mine = EVENTS.c.catalog_name == catalog_name
        self._any_new = sa.select(EVENTS.c.id).where(self._mine, EVENTS.c.position.is_(None)).limit(1)
        self._newest = sa.select(EVENT_POSITIONS.c.position).where(EVENT_POSITIONS.c.catalog_name == catalog_name)
        self._oldest = sa.select(sa.func.min(EVENTS.c.position)).where(self._mine)

    def check_there(self) -> None:
        """UnsupportedError if the database has no event log yet; nothing is changed to find out."""
        with self._database.reading() as connection:
            if find_layout(connection).version < GOVERNANCE_VERSION:
                raise UnsupportedError("there is no event log yet: `bergline serve` keeps one from its first start on")

    def read(
        self, after: int | None = None, limit: int = MOST_EVENTS, wanted: EventFilter | None = None, wait_s: int = 0
    ) -> EventPage:
        """The events after a position, or from the oldest that is kept; of those with a filter, some at a time.

        NotFoundError if events after the position are no longer kept, InvalidInputError if it was never reached. A
        database does not notify readers: whoever waits gets what has arrived a second later.
        """
        time.sleep(min(wait_s, _LOOK_AGAIN_S))
        # a reader that may not write sees only events to which others gave positions
        with contextlib.suppress(RefusedError):
            self.give_positions()
        wanted = wanted or EventFilter()
        with self._database.reading() as connection:
            newest = connection.execute(self._newest).scalar() or 0
            start = self._oldest_kept(connection, newest) - 1 if after is None else after
            end = newest if wanted == EventFilter() else min(newest, start + _MOST_SCANNED)
            query = sa.select(*_COLUMNS).where(self._mine, EVENTS.c.position > start, EVENTS.c.position <= end)
            query = query.where(_like(EVENTS.c.type, wanted.types), _like(EVENTS.c.subject, wanted.subjects))
            rows = connection.execute(query.order_by(EVENTS.c.position).limit(limit)).all()
            # only after reading: events that were deleted during the read do not go unnoticed
            check_position(after, self._oldest_kept(connection, newest), newest)
        events = tuple(_event(row) for row in rows)
        return EventPage(events, events[-1].position if len(events) == limit else end, newest)

    def latest(self, limit: int, wanted: EventFilter) -> EventPage:
        """The newest events, oldest first; a reader continues after all existing ones."""
        with contextlib.suppress(RefusedError):
            self.give_positions()
        query = sa.select(*_COLUMNS).where(
            self._mine, _like(EVENTS.c.type, wanted.types), _like(EVENTS.c.subject, wanted.subjects)
        )
        query = query.order_by(EVENTS.c.position.desc()).limit(limit)
        with self._database.reading() as connection:
            newest = connection.execute(self._newest).scalar() or 0
            # positions may be given between the two queries: rows beyond `newest` are left to the next page
            rows = connection.execute(query.where(EVENTS.c.position <= newest)).all()
        return EventPage(tuple(_event(row) for row in reversed(rows)), newest, newest)

    def of_present_tables(self, page: EventPage, names: Iterable[TableName]) -> EventPage:
        """A page without events of earlier tables with these names."""
        found = {table_subject(name): self.first_of_table(name) for name in names}
        first = {subject: event.position for subject, event in found.items() if event is not None}
        events = tuple(event for event in page.events if event.position >= first.get(event.subject, 0))
        return EventPage(events, page.position, page.newest)

    def first_of_table(self, name: TableName) -> LoggedEvent | None:
        """The event that gave a table its name, from which on the name's events are its own; None if no longer kept."""
        with contextlib.suppress(RefusedError):
            self.give_positions()
        query = sa.select(*_COLUMNS).where(self._mine, EVENTS.c.subject == table_subject(name))
        query = query.where(EVENTS.c.type.in_(_NAMING), EVENTS.c.position.is_not(None))
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(EVENTS.c.position.desc()).limit(_MOST_NAMINGS)).all()
        events = [_event(row) for row in rows]
        # from the newest back to the first event that gave the name to a table: not one that took it away, nor the
        # return of the same table from the trash
        for event, before in zip(events, [*events, None][1:], strict=True):
            has_come_back = (
                event.type == "table.undrop"
                and before is not None
                and (before.type, before.table_uuid) == ("table.drop", event.table_uuid)
            )
            has_left = event.type == "table.rename" and event.data.get("from") == str(name)
            if not (has_come_back or has_left or event.type in _ENDS):
                return event
        return events[-1] if len(events) == _MOST_NAMINGS else None

    def newest_position(self) -> int:
        """The position of the newest event."""
        self.give_positions()
        with self._database.reading() as connection:
            return connection.execute(self._newest).scalar() or 0

    def oldest_position(self) -> int:
        """The position of the oldest event that is kept; if there is none, that of the next one."""
        with self._database.reading() as connection:
            return self._oldest_kept(connection, connection.execute(self._newest).scalar() or 0)

    def give_positions(self) -> None:
        """Give positions to committed events without one, in pieces."""
        given = _PIECE
        while given == _PIECE:
            with self._database.reading() as connection:
                if connection.execute(self._any_new).first() is None:
                    return
            given = self._give_piece()

    def prune(self, before_ms: int, most: int = _PIECE) -> int:
        """Delete the oldest events, up to the first that is not older than a time; returns how many were deleted."""
        self.give_positions()
        query = sa.select(EVENTS.c.position, EVENTS.c.at_ms).where(self._mine, EVENTS.c.position.is_not(None))
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(EVENTS.c.position).limit(most)).all()
        old = [row.position for row in itertools.takewhile(lambda row: row.at_ms < before_ms, rows)]
        if old:
            with self._database.writing() as connection:
                connection.execute(sa.delete(EVENTS).where(self._mine, EVENTS.c.position <= old[-1]))
        return len(old)

    def _give_piece(self) -> int:
        counter = EVENT_POSITIONS.c.catalog_name == self._catalog
        with self._database.writing() as connection:
            first = self._database.insert(EVENT_POSITIONS).values(catalog_name=self._catalog, position=0)
            connection.execute(first.on_conflict_do_nothing())
            # the lock on the counter makes those who give positions wait for each other, so positions have no gaps
            last = connection.execute(self._newest.with_for_update()).scalar_one()
            given = connection.execute(_GIVE, {"last": last, "catalog": self._catalog, "most": _PIECE}).rowcount
            connection.execute(sa.update(EVENT_POSITIONS).where(counter).values(position=last + given))
        return int(given)

    def _oldest_kept(self, connection: sa.Connection, newest: int) -> int:
        return connection.execute(self._oldest).scalar() or newest + 1


def _like(column: sa.ColumnElement[str], patterns: Sequence[str]) -> sa.ColumnElement[bool]:
    """A condition for texts that match one of the patterns; all texts if there are no patterns."""
    if not patterns:
        return sa.true()
    whole = [pattern for pattern in patterns if not pattern.endswith("*")]
    starts = [pattern[:-1] for pattern in patterns if pattern.endswith("*")]
    # not LIKE, which is case-insensitive in SQLite
    return sa.or_(column.in_(whole), *(sa.func.substr(column, 1, len(start)) == start for start in starts))


def _event(row: Sequence[Any]) -> LoggedEvent:
    fields = dict(zip(LoggedEvent.__struct_fields__, row, strict=True))
    return LoggedEvent(**fields | {"data": msgspec.json.decode(fields["data"])})
