"""The trash: tables and views that were dropped, and how to bring one back."""

from collections.abc import Callable
from itertools import islice
from typing import Any

from bergline.catalog.catalog import DroppedTable, DroppedView
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.named_pointers import NameKind
from bergline.catalog.rest.protocol.errors import row_of
from bergline.console.actions.review import Review
from bergline.console.actions.undrop import review_undrop
from bergline.console.links import name_text, parse_name
from bergline.console.page import Page, PageQuery, Source, asked_table
from bergline.console.pages.values import asked_number
from bergline.errors import BerglineError, InvalidInputError

_SHOWN = 100
_MOST = 10**6
_KINDS: dict[str, NameKind] = {"table": "table", "view": "view"}
_FAILED = 500

MakeChange = Callable[[str, TableName, Callable[[], bool]], bool]
"""Makes a change to a name, as an action of this key."""


def trash_page(source: Source, query: PageQuery) -> Page:
    """What is in the trash, newest first, a page at a time."""
    offset = asked_number(query, "offset", 0, _MOST)
    most = offset + _SHOWN + 1
    found: list[DroppedTable | DroppedView] = [*source.lake.dropped_tables(most), *source.lake.dropped_views(most)]
    found.sort(key=lambda dropped: dropped.dropped_ms, reverse=True)
    shown = list(islice(found, offset, offset + _SHOWN))
    values = {
        "entries": [_row(dropped) for dropped in shown],
        "may_change": source.may_change,
        "previous_offset": max(0, offset - _SHOWN) if offset else None,
        "next_offset": offset + _SHOWN if len(found) > offset + _SHOWN else None,
    }
    return Page("Trash", "trash.html", values)


def undrop_page(source: Source, given: PageQuery, change: MakeChange, *, is_read: bool) -> tuple[Page, int]:
    """The form, the review or the result of bringing one back, and the status."""
    kind, name = _kind(given), asked_table(given)
    if is_read:
        return _page("form", kind, name, given), 200
    confirmed, stale = given.get("confirm"), None
    try:
        review = _review(source, kind, name, given)
        if confirmed:
            stale = "the trash changed since you reviewed this"

            def act() -> bool:
                again = _review(source, kind, name, given)
                return again.fingerprint == confirmed and bool(again.do())

            if change(f"undrop-{kind}", name, act):
                return _page("done", kind, name, given, review), 200
            review = _review(source, kind, name, given)
    except BerglineError as error:
        status = min(row_of(error).status, _FAILED)
        return _page("form", kind, name, given, problem=error), status
    return _page("review", kind, name, given, review, stale=stale), 409 if stale else 200


def _review(source: Source, kind: NameKind, name: TableName, given: PageQuery) -> Review:
    to = given.get("to", "").strip()
    return review_undrop(source.lake, kind, name, parse_name(to) if to else None, source.now_ms)


def _page(
    step: str,
    kind: NameKind,
    name: TableName,
    given: PageQuery,
    review: Review | None = None,
    *,
    problem: BerglineError | None = None,
    stale: str | None = None,
) -> Page:
    to = given.get("to", "").strip()
    values: dict[str, Any] = {"step": step, "kind": kind, "name": str(name), "key": name_text(name), "to": to}
    values["problem"] = None if problem is None else {"message": str(problem), "hints": list(problem.hints)}
    values |= {"stale": stale, "new": to or name_text(name)}
    if review is not None:
        values |= {"lines": list(review.lines), "fingerprint": review.fingerprint}
        same = review.equivalents
        values |= {"python": same.python, "sql": same.sql, "command": same.command}
    title = f"Bring back {kind} {name}" + (": done" if step == "done" else "")
    return Page(title, "undrop.html", values)


def _kind(given: PageQuery) -> NameKind:
    kind = _KINDS.get(given.get("kind", "table"))
    if kind is None:
        raise InvalidInputError("expected `table` or `view` as the kind, found another text")
    return kind


def _row(dropped: DroppedTable | DroppedView) -> dict[str, Any]:
    table = dropped if isinstance(dropped, DroppedTable) else None
    return {
        "kind": "view" if table is None else "table",
        "name": str(dropped.name),
        "key": name_text(dropped.name),
        "dropped_ms": dropped.dropped_ms,
        "keep_until_ms": dropped.keep_until_ms,
        "principal": dropped.principal,
        "metadata_location": dropped.metadata_location,
        "purges_files": table is not None and table.purges_files,
        "purge_begun": table is not None and table.purge_begun,
        "problem": None if table is None else table.problem,
    }
