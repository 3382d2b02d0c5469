"""The event log of a lake that `bergline serve` serves: what happened, in an order that a cursor can follow."""

import time
from collections.abc import Callable, Iterable, Iterator

from bergline.arguments import check_positive, shown
from bergline.catalog.catalog import Catalog
from bergline.catalog.event_log import (
    MOST_EVENTS,
    EventFilter,
    EventPage,
    LoggedEvent,
    event_filter,
    table_subject,
)
from bergline.catalog.identifiers import TableName, parse_table_name
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.rest.client.events import RestEvents
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.catalog.sql.governance.events import SqlEvents
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.lake.handle import LakeHandle

_WAIT_S = 15
_LOOK_AGAIN_S = 1.0

_Read = Callable[[int | None, bool], EventPage]
"""Reads a page after a position, and waits a while for more if asked to."""
_Latest = Callable[[int, EventFilter], EventPage]


class LakeEvents:
    """What a lake tells of its past."""

    def __init__(self, lake: LakeHandle) -> None:
        self._catalog = lake.catalog

    def events(
        self,
        after: int | None = None,
        *,
        types: Iterable[str] = (),
        table: str | TableName | None = None,
        newest: int | None = None,
        follow: bool = False,
    ) -> Iterator[LoggedEvent]:
        """What happened through `bergline serve`, in order; each event has the position after which to go on.

        Args:
            after: the position of the last event that is known; by default from the oldest that is kept.
            types: only events of these types, such as `table.commit` or `ref.*`.
            table: only events of one table.
            newest: begin with so many of the newest, up to 1000, in place of `after`.
            follow: whether to wait for more at the end, for ever.
        """
        if after is not None and (not isinstance(after, int) or isinstance(after, bool) or after < 0):
            raise InvalidInputError(f"expected a position from 0 on, found {shown(after)}")
        if isinstance(types, str):
            raise InvalidInputError(f"expected a list of types, found {shown(types)}")
        if newest is not None and (after is not None or check_positive(newest, "the newest events") > MOST_EVENTS):
            found = "a position as well" if after is not None else newest
            raise InvalidInputError(
                f"expected up to {MOST_EVENTS} of the newest events, found {found}",
                hints=["read from a position on instead: 0, or that of the oldest event that is kept"],
            )
        subjects = () if table is None else (table_subject(parse_table_name(table)),)
        wanted = event_filter(types, subjects)
        read, latest = _reader(self._catalog, wanted)
        first = None if newest is None else latest(newest, wanted)
        return _pages(read, after, first, follow=follow)


def _pages(read: _Read, after: int | None, first: EventPage | None, *, follow: bool) -> Iterator[LoggedEvent]:
    is_at_end = False
    if first is not None:
        yield from first.events
        if not follow:
            return
        after, is_at_end = first.position, True
    while True:
        page = read(after, follow and is_at_end)
        yield from page.events
        after, is_at_end = page.position, page.position >= page.newest
        if is_at_end and not follow:
            return


def _reader(catalog: Catalog, wanted: EventFilter) -> tuple[_Read, _Latest]:
    if isinstance(catalog, RestCatalog):
        server = RestEvents(catalog.session)
        return lambda after, wait: server.read(after, MOST_EVENTS, wanted, _WAIT_S if wait else 0), server.latest
    if not isinstance(catalog, PointerCatalog) or not isinstance(catalog.store, SqlPointerStore):
        raise UnsupportedError("this catalog has no event log: `bergline serve` keeps one in SQLite or PostgreSQL")
    log = SqlEvents(catalog.store.database, catalog.store.catalog_name)
    log.check_there()

    def read(after: int | None, wait: bool) -> EventPage:
        if wait:
            time.sleep(_LOOK_AGAIN_S)
        return log.read(after, MOST_EVENTS, wanted)

    return read, log.latest
