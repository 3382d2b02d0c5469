"""The audit log: who changed what with which program, who won a conflict and who lost."""

import re
from typing import Any

from bergline.arguments import shown
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.records import AuditEntry, Records, find_sql_store
from bergline.console.links import name_text, parse_name
from bergline.console.page import Page, PageQuery, Source
from bergline.errors import BerglineError, InvalidInputError, UnsupportedError
from bergline.governance.events.store import SqlEvents
from bergline.governance.granted_catalog import administered, administers
from bergline.lake.lake import Lake

_ACCESS = "access"
DEFAULT_ENTRIES, MOST_ENTRIES = 100, 1000


def audit_page(source: Source, query: PageQuery) -> Page:
    """Changes made through a server, newest first: all, of one table or of one principal."""
    name = parse_name(query["name"]) if query.get("name") else None
    who = query.get("who", "").strip() or None
    values: dict[str, Any] = {
        "table": None if name is None else str(name),
        "who": who,
        "limit": _limit(query.get("limit")),
        "entries": [],
        "more": False,
        "problem": None,
    }
    try:
        records = _records(source.lake, name)
        since_ms = None if name is None or administers(source.lake.catalog) else _named_ms(records, name)
        resources = () if name is None else _resources(name)
        found = records.newest_audit(
            values["limit"] + 1, resources=resources, principal=who, since_ms=since_ms, conflicts=True
        )
    except BerglineError as error:
        values["problem"] = {"message": str(error), "hints": list(error.hints)}
    else:
        values["entries"] = [_row(entry) for entry in found[: values["limit"]]]
        values["more"] = len(found) > values["limit"]
    return Page("Audit" if name is None else f"Audit of {name}", "audit.html", values)


def _records(lake: Lake, name: TableName | None) -> Records:
    """The records of the lake's database, which is left as it is; where there are grants, for administrators."""
    store = find_sql_store(administered(lake.catalog, name))
    if store is None:
        raise UnsupportedError(
            "this catalog has no audit log: `bergline serve` keeps one in SQLite or PostgreSQL",
            hints=["every snapshot says which program made it: look at the table's graph"],
        )
    if not store.database.has_audit_log():
        raise UnsupportedError("there is no audit log yet: `bergline serve` keeps one from its first start on")
    return Records(store.database, store.catalog_name)


def _named_ms(records: Records, name: TableName) -> int | None:
    """Since when a table has its name, if that is known: what is older happened to another."""
    first = SqlEvents(records.database, records.catalog_name).first_of_table(name)
    return None if first is None else first.at_ms


def _limit(text: str | None) -> int:
    if not text:
        return DEFAULT_ENTRIES
    if not re.fullmatch(r"[0-9]{1,6}", text) or not 1 <= int(text) <= MOST_ENTRIES:
        raise InvalidInputError(f"expected a limit from 1 to {MOST_ENTRIES}, found {shown(text)}")
    return int(text)


def _resources(name: TableName) -> tuple[str, ...]:
    """A table or view as the server records it."""
    return tuple(f"{kind}/{'.'.join(name.namespace)}/{name.name}" for kind in ("table", "view"))


def _row(entry: AuditEntry) -> dict[str, Any]:
    kind, _, rest = entry.resource.partition("/")
    namespace, slash, table = rest.partition("/")
    name = name_text(TableName(tuple(namespace.split(".")), table)) if kind == "table" and slash else None
    return {
        "at_ms": entry.at_ms,
        "who": entry.principal,
        "operation": entry.operation,
        "resource": rest.replace("/", ".") if slash and kind != _ACCESS else rest,
        "kind": kind,
        "table": name,
        "agent": entry.agent,
        "metadata_location": entry.metadata_location,
        "conflict": entry.conflict,
    }
