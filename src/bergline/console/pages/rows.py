"""The rows of a table at any ref or snapshot: a bounded preview with a filter."""

import re
from typing import Any

import msgspec

from bergline.arguments import shown
from bergline.console.links import name_text
from bergline.console.page import Page, PageQuery, Source, asked_table
from bergline.errors import BerglineError, InvalidInputError, NotFoundError
from bergline.format.metadata.refs import MAIN
from bergline.reports.row_preview import preview_job
from bergline.table.scans.scan import TableScan
from bergline.table.table import Table

DEFAULT_LIMIT, MOST_ROWS = 50, 500
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
        "is_cut": False,
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
        preview = source.read_rows(preview_job(scan, values["filter"], limit))
    except BerglineError as error:
        values["filter_problem" if values["filter"] and _is_of_filter(error) else "problem"] = _described(error)
    else:
        values |= msgspec.structs.asdict(preview)
    return _page(table, values)


def _is_of_filter(error: BerglineError) -> bool:
    return isinstance(error, InvalidInputError) or (isinstance(error, NotFoundError) and error.kind == "column")


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


def _described(error: BerglineError) -> dict[str, Any]:
    return {"message": str(error), "hints": list(error.hints)}
