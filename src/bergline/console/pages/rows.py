"""The rows of a table at any ref or snapshot: a bounded preview with a filter."""

import datetime as dt
import decimal
import math
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from bergline.arguments import shown
from bergline.console.links import name_text
from bergline.console.page import Page, PageQuery, Source, asked_table
from bergline.errors import BerglineError, InvalidInputError, NotFoundError
from bergline.format.metadata.refs import MAIN
from bergline.table.scans.scan import TableScan
from bergline.table.table import Table

DEFAULT_LIMIT, MOST_ROWS = 50, 500
_LONGEST_TEXT, _MOST_ITEMS, _DEEPEST = 1000, 100, 8
_SAFE = 2**53
_NUMBER = re.compile(r"(?:int|long|float|double|decimal\b.*)$")


def rows_page(source: Source, query: PageQuery) -> Page:
    """Some rows; what is wrong with the filter stands beside it, what cannot be read in place of the rows."""
    table = source.lake.load_table(asked_table(query))
    values: dict[str, Any] = {
        "table": str(table.name),
        "key": name_text(table.name),
        "refs": sorted(table.metadata.refs, key=lambda name: (name != MAIN, name)),
        "ref": query.get("ref") or (None if query.get("snapshot") else MAIN),
        "snapshot": query.get("snapshot") or None,
        "filter": query.get("filter", "").strip(),
        "limit": DEFAULT_LIMIT,
        "most": MOST_ROWS,
        "columns": [],
        "rows": [],
        "more": False,
        "filter_problem": None,
        "problem": None,
    }
    try:
        values["limit"] = limit = _limit(query.get("limit"))
        scan = _scan(table, values)
    except BerglineError as error:
        values["problem"] = _described(error)
        return _page(table, values)
    values["columns"] = [
        {"name": f.name, "type": str(f.type), "is_number": bool(_NUMBER.match(str(f.type)))} for f in scan.schema.fields
    ]
    try:
        filtered = scan.where(values["filter"]) if values["filter"] else scan
        plan = filtered.plan()
    except (InvalidInputError, NotFoundError) as error:
        if not values["filter"] or (isinstance(error, NotFoundError) and error.kind == "file"):
            values["problem"] = _described(error)
        else:
            values["filter_problem"] = _described(error)
        return _page(table, values)
    except BerglineError as error:
        values["problem"] = _described(error)
        return _page(table, values)
    values["files"] = len(plan.files)
    try:
        found = list(_first(filtered, limit + 1))
    except BerglineError as error:
        values["problem"] = _described(error)
    else:
        values["rows"], values["more"] = found[:limit], len(found) > limit
    return _page(table, values)


def _page(table: Table, values: dict[str, Any]) -> Page:
    return Page(f"Rows of {table.name}", "rows.html", {"files": None} | values)


def _limit(text: str | None) -> int:
    if not text:
        return DEFAULT_LIMIT
    if not re.fullmatch(r"[0-9]{1,6}", text) or not 1 <= int(text) <= MOST_ROWS:
        raise InvalidInputError(f"expected a limit from 1 to {MOST_ROWS}, found {shown(text)}")
    return int(text)


def _scan(table: Table, values: dict[str, Any]) -> TableScan:
    snapshot = values["snapshot"]
    if snapshot is None:
        return table.scan(ref=values["ref"])
    if not re.fullmatch(r"[0-9]{1,19}", snapshot):
        raise InvalidInputError(f"expected the id of a snapshot, found {shown(snapshot)}")
    return table.scan(snapshot_id=int(snapshot))


def _first(scan: TableScan, most: int) -> Iterator[list[Any]]:
    """The first rows; no more batches are read than that takes."""
    left = most
    for batch in scan.to_batches():
        part = batch.slice(0, left)
        columns = [[cell(value) for value in _values(column)] for column in part.columns]
        yield from (list(row) for row in zip(*columns, strict=True))
        left -= part.num_rows
        if not left:
            return


def _values(column: pa.Array) -> list[Any]:
    """The values of a column; where Python has none for them, their texts."""
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError, ImportError, pa.ArrowException):
        return [None if value is None else str(value) for value in column]


def cell(value: Any, depth: int = 0) -> Any:
    """A value as JSON has it: long numbers and what JSON has no word for as text, long texts cut."""
    match value:
        case None | bool():
            return value
        case int():
            return value if abs(value) < _SAFE else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return _cut(value)
        case bytes():
            return _cut(value[:_LONGEST_TEXT].hex())
        case decimal.Decimal():
            return str(value)
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case _ if depth >= _DEEPEST:
            return "…"
        case dict():
            return {str(k): cell(v, depth + 1) for k, v in list(value.items())[:_MOST_ITEMS]}
        case list() | tuple():
            return [cell(v, depth + 1) for v in value[:_MOST_ITEMS]] + (["…"] if len(value) > _MOST_ITEMS else [])
    return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"


def _described(error: BerglineError) -> dict[str, Any]:
    return {"message": str(error), "hints": list(error.hints)}
