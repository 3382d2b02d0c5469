"""Events: what happened in a catalog, in an order that a cursor can follow, and their form as CloudEvents 1.0."""

import datetime as dt
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import msgspec

from bergline.catalog.identifiers import Namespace, TableName
from bergline.errors import InvalidInputError, NotFoundError

TYPE_PREFIX = "org.bergline."
CLOUD_EVENTS_BATCH = "application/cloudevents-batch+json"
EVENT_POSITION = "event position"
"""The kind of a NotFoundError for a position whose events are no longer kept."""
MOST_EVENTS = 1000
"""The most events in one page."""
_MOST_PATTERNS = 100
_LONGEST_PATTERN = 1000
_SEQUENCE_DIGITS = 20


class Event(msgspec.Struct, frozen=True):
    """Something that happened, written in the transaction in which it happens."""

    catalog: str
    type: str
    """What happened, such as `table.commit`."""
    subject: str
    """What it happened to, such as `table/db/orders` or `namespace/db`."""
    principal: str
    at_ms: int
    data: dict[str, Any] = {}
    table_uuid: str | None = None


class LoggedEvent(msgspec.Struct, frozen=True):
    """An event at its position: positions have no gaps, and those of one table are in the order of its commits."""

    position: int
    type: str
    subject: str
    principal: str
    at_ms: int
    data: dict[str, Any] = {}
    table_uuid: str | None = None


class EventPage(msgspec.Struct, frozen=True):
    """Some events, and how far they go: a reader continues after `position`, until that is `newest`."""

    events: tuple[LoggedEvent, ...]
    position: int
    newest: int


class EventFilter(msgspec.Struct, frozen=True):
    """Which events to return: all, or those of some types and subjects; a pattern may end with `*`."""

    types: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()

    def matches(self, event: LoggedEvent) -> bool:
        """Whether an event passes the filter."""
        return _matches(self.types, event.type) and _matches(self.subjects, event.subject)


class CloudEvent(msgspec.Struct, frozen=True):
    """An event in CloudEvents 1.0; `sequence` is the position, zero-padded so that it sorts as text like the number."""

    id: str
    source: str
    type: str
    subject: str
    time: str
    specversion: str = "1.0"
    datacontenttype: str = "application/json"
    sequence: str | msgspec.UnsetType = msgspec.UNSET
    data: dict[str, Any] = {}


def event_filter(types: Iterable[str] = (), subjects: Iterable[str] = ()) -> EventFilter:
    """A filter; InvalidInputError for a pattern with a `*` that is not at its end. Types may have the prefix."""
    return EventFilter(
        _patterns([text.removeprefix(TYPE_PREFIX) for text in types], "type"), _patterns(list(subjects), "subject")
    )


def check_position(after: int | None, oldest: int, newest: int) -> None:
    """NotFoundError for a cursor whose next events are gone, InvalidInputError for one that was never reached."""
    if after is None:
        return
    if after < oldest - 1:
        raise NotFoundError(
            f"the events after position {after} are no longer kept: the oldest is at {oldest}",
            kind=EVENT_POSITION,
            name=str(after),
            hints=[f"continue after {oldest - 1}, and look at the tables themselves for what happened before"],
        )
    if after > newest:
        raise InvalidInputError(
            f"expected a position up to {newest}, the newest, found {after}",
            hints=["it is from another catalog, or from before the database was restored"],
        )


def table_subject(name: TableName) -> str:
    """The subject of a table's events."""
    return f"table/{'.'.join(name.namespace)}/{name.name}"


def view_subject(name: TableName) -> str:
    """The subject of a view's events."""
    return f"view/{'.'.join(name.namespace)}/{name.name}"


def namespace_subject(namespace: Namespace) -> str:
    """The subject of a namespace's events."""
    return f"namespace/{'.'.join(namespace)}"


def cloud_event(catalog: str, event: LoggedEvent) -> CloudEvent:
    """An event in the form in which it is sent."""
    about = {"principal": event.principal} | ({"table-uuid": event.table_uuid} if event.table_uuid else {})
    return CloudEvent(
        id=str(event.position),
        source=event_source(catalog),
        type=f"{TYPE_PREFIX}{event.type}",
        subject=event.subject,
        time=render_event_time(event.at_ms),
        sequence=f"{event.position:0{_SEQUENCE_DIGITS}}",
        data=about | event.data,
    )


def logged_event(event: CloudEvent) -> LoggedEvent:
    """The event that a server sent; ValueError if bergline did not write it."""
    data = dict(event.data)
    return LoggedEvent(
        position=int(event.sequence or 0),
        type=event.type.removeprefix(TYPE_PREFIX),
        subject=event.subject,
        principal=str(data.pop("principal", "")),
        at_ms=round(dt.datetime.fromisoformat(event.time).timestamp() * 1000),
        table_uuid=data.pop("table-uuid", None),
        data=data,
    )


def event_source(catalog: str) -> str:
    """The source of a catalog's events."""
    return f"/catalogs/{quote(catalog, safe='')}"


def render_event_time(at_ms: int) -> str:
    """A time in the format of RFC 3339."""
    return dt.datetime.fromtimestamp(at_ms / 1000, dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _patterns(texts: list[str], what: str) -> tuple[str, ...]:
    if len(texts) > _MOST_PATTERNS:
        raise InvalidInputError(f"expected up to {_MOST_PATTERNS} {what}s, found {len(texts)}")
    for text in texts:
        if not text or len(text) > _LONGEST_PATTERN or "*" in text[:-1] or "\0" in text:
            raise InvalidInputError(f"expected a {what}, whole or with `*` at its end, found `{text[:80]}`")
    return tuple(dict.fromkeys(texts))


def _matches(patterns: tuple[str, ...], text: str) -> bool:
    return not patterns or any(
        text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern for pattern in patterns
    )
