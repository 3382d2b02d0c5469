"""The event log of a lake that `bergline serve` serves: what happened, in an order that a cursor can follow."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from bergline.arguments import check_positive, shown
from bergline.catalog.identifiers import TableName, parse_table_name
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.governance.events.model import (
    MOST_EVENTS,
    EventFilter,
    EventPage,
    LoggedEvent,
    event_filter,
    table_subject,
)

_WAIT_S = 15


class EventLog(Protocol):
    """The events of a catalog."""

    def read(self, after: int | None, limit: int, wanted: EventFilter, wait_s: int = 0) -> EventPage:
        """Some events after a position, or from the oldest on; if there are none, waits for some up to this long."""
        ...

    def latest(self, limit: int, wanted: EventFilter) -> EventPage:
        """The newest events, oldest first."""
        ...


def read_events(
    find_log: Callable[[], EventLog | None],
    after: int | None,
    types: Iterable[str],
    table: str | TableName | None,
    newest: int | None,
    *,
    follow: bool,
) -> Iterator[LoggedEvent]:
    """The events that `lake.events` returns; UnsupportedError without a log."""
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
    log = find_log()
    if log is None:
        raise UnsupportedError("this catalog has no event log: `bergline serve` keeps one in SQLite or PostgreSQL")
    first = None if newest is None else log.latest(newest, wanted)
    return _pages(log, wanted, after, first, follow=follow)


def _pages(
    log: EventLog, wanted: EventFilter, after: int | None, first: EventPage | None, *, follow: bool
) -> Iterator[LoggedEvent]:
    is_at_end = False
    if first is not None:
        yield from first.events
        if not follow:
            return
        after, is_at_end = first.position, True
    while True:
        page = log.read(after, MOST_EVENTS, wanted, _WAIT_S if follow and is_at_end else 0)
        yield from page.events
        after, is_at_end = page.position, page.position >= page.newest
        if is_at_end and not follow:
            return
