"""The event log: what happened through a server, to the lake or to one table."""

import re
from typing import Any

from bergline.arguments import shown
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.records import find_sql_store
from bergline.console.links import name_text, parse_name
from bergline.console.page import Page, PageQuery, Source
from bergline.errors import BerglineError, InvalidInputError, UnsupportedError
from bergline.governance.events.model import EventFilter, LoggedEvent, event_filter, table_subject, view_subject
from bergline.governance.events.store import SqlEvents
from bergline.governance.granted_catalog import administered, administers
from bergline.lake.lake import Lake

DEFAULT_EVENTS, MOST_EVENTS = 100, 1000
_SHOWN = ("ref", "rule", "maintenance", "to")


def events_page(source: Source, query: PageQuery) -> Page:
    """Events, newest first: all, of one table, or of a type."""
    name = parse_name(query["name"]) if query.get("name") else None
    kind = query.get("type", "").strip() or None
    values: dict[str, Any] = {
        "table": None if name is None else str(name),
        "type": kind,
        "limit": _limit(query.get("limit")),
        "events": [],
        "more": False,
        "problem": None,
    }
    wanted = event_filter(() if kind is None else (kind,), () if name is None else _subjects(name))
    try:
        found = _newest(source.lake, name, values["limit"] + 1, wanted)
    except BerglineError as error:
        values["problem"] = {"message": str(error), "hints": list(error.hints)}
    else:
        values["events"] = [_row(event) for event in found[: values["limit"]]]
        values["more"] = len(found) > values["limit"]
    return Page("Events" if name is None else f"Events of {name}", "events.html", values)


def _newest(lake: Lake, name: TableName | None, limit: int, wanted: EventFilter) -> list[LoggedEvent]:
    store = find_sql_store(administered(lake.catalog, name))
    if store is None:
        raise UnsupportedError("this catalog has no event log: `bergline serve` keeps one in SQLite or PostgreSQL")
    log = SqlEvents(store.database, store.catalog_name)
    log.check_there()
    page = log.latest(limit, wanted)
    if name is not None and not administers(lake.catalog):
        page = log.of_present_tables(page, (name,))
    return list(reversed(page.events))


def _limit(text: str | None) -> int:
    if not text:
        return DEFAULT_EVENTS
    if not re.fullmatch(r"[0-9]{1,6}", text) or not 1 <= int(text) <= MOST_EVENTS:
        raise InvalidInputError(f"expected a limit from 1 to {MOST_EVENTS}, found {shown(text)}")
    return int(text)


def _subjects(name: TableName) -> tuple[str, ...]:
    return table_subject(name), view_subject(name)


def _row(event: LoggedEvent) -> dict[str, Any]:
    kind, _, rest = event.subject.partition("/")
    namespace, slash, table = rest.partition("/")
    name = name_text(TableName(tuple(namespace.split(".")), table)) if kind == "table" and slash else None
    detail = next((str(event.data[key]) for key in _SHOWN if event.data.get(key)), None)
    return {
        "position": event.position,
        "at_ms": event.at_ms,
        "who": event.principal,
        "type": event.type,
        "kind": kind,
        "subject": rest.replace("/", ".") if slash else rest,
        "table": name,
        "detail": detail,
        "data": event.data,
    }
