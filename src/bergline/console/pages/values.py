"""Reports as the plain values of a page, and the parts of a query that several pages have."""

from collections.abc import Iterable
from typing import Any

import msgspec

from bergline.arguments import shown
from bergline.catalog.identifiers import TableName
from bergline.console.links import name_text
from bergline.console.page import Page, PageQuery, Source, asked_table
from bergline.errors import InvalidInputError
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.reports.found_table import FoundTable, find_table
from bergline.reports.problem import Problem
from bergline.table.table import Table

_LONGEST_NUMBER = 9


def plain(value: Any) -> Any:
    """A report as JSON has it; the ids of snapshots, which JavaScript cannot hold, as text."""
    return _with_text_ids(msgspec.to_builtins(value, builtin_types=()))


def found_table(source: Source, query: PageQuery) -> FoundTable:
    """The table that a query names, as far as it can be loaded."""
    return find_table(source.lake, asked_table(query))


def broken_page(found: FoundTable) -> Page:
    """What is known of a table that cannot be loaded."""
    values = named(found.name) | {"metadata_location": found.metadata_location, "problems": plain([found.problem])}
    return Page(str(found.name), "broken_table.html", values)


def named(name: TableName) -> dict[str, Any]:
    """The name of a table, for people and for links."""
    return {"table": str(name), "key": name_text(name)}


def table_values(source: Source, table: Table, problems: Iterable[Problem] = ()) -> dict[str, Any]:
    """What every page of a table has."""
    return named(table.name) | {
        "ref_names": ref_names(table.metadata),
        "may_change": source.may_change,
        "problems": plain(tuple(problems)),
    }


def ref_names(metadata: TableMetadata) -> list[str]:
    """The refs of a table: `main` first, then branches, then tags."""
    refs = metadata.refs.items()
    return [name for name, ref in sorted(refs, key=lambda item: (item[0] != MAIN, not item[1].is_branch, item[0]))]


def asked_number(query: PageQuery, key: str, default: int, most: int) -> int:
    """A whole number of a query, from 0 to the most that is allowed."""
    text = query.get(key, "")
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER and int(text) <= most):
        raise InvalidInputError(f"expected a whole number up to {most} for `{key}`, found {shown(text)}")
    return int(text)


def pages_around(offset: int, limit: int, count: int) -> dict[str, int | None]:
    """Where the pages before and after one begin; None where there is none."""
    return {
        "offset": offset,
        "limit": limit,
        "previous_offset": max(0, offset - limit) if offset else None,
        "next_offset": offset + limit if offset + limit < count else None,
    }


def _with_text_ids(value: Any) -> Any:
    match value:
        case dict():
            return {key: str(v) if _is_id(key, v) else _with_text_ids(v) for key, v in value.items()}
        case list() | tuple():
            return [_with_text_ids(one) for one in value]
    return value


def _is_id(key: object, value: object) -> bool:
    return type(value) is int and key in _IDS


_IDS = frozenset({"snapshot_id", "parent_id", "source_id", "first_snapshot_id", "parent_snapshot_id"}) | {
    "snapshot-id"  # of refs, whose fields have the names of the specification
}
