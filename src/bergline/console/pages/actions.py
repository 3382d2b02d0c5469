"""The forms, reviews and results of actions."""

from typing import Any

from bergline.catalog.at_ref.lake_ref import LAKE_MAIN, LakeRef
from bergline.console.actions.form import Answers, age_text
from bergline.console.actions.review import ConsoleAction, Review
from bergline.console.links import name_text
from bergline.console.page import Page, PageQuery
from bergline.errors import BerglineError
from bergline.format.metadata.refs import MAIN
from bergline.table.table import Table


def form_page(
    table: Table,
    action: ConsoleAction,
    given: PageQuery,
    problem: BerglineError | None = None,
    *,
    at: LakeRef | None = None,
) -> Page:
    """The questions of an action, with the answers given so far."""
    refs, own = table.metadata.refs, None if at is None else at.name
    names = sorted((name for name in refs if name != own), key=lambda name: (name != MAIN, name))
    choices = {
        "ref": names,
        "branch": [n for n in names if refs[n].is_branch and (own is None or n != LAKE_MAIN)],
        "tag": [name for name in names if not refs[name].is_branch],
    }
    known = _known(table, action, given)
    fields = [
        {
            "name": field.name,
            "label": field.label,
            "kind": field.kind,
            "help": field.help,
            "required": field.required,
            "choices": choices.get(field.kind, []),
            "value": given.get(field.name, known.get(field.name, "")),
        }
        for field in action.fields
    ]
    return Page(
        action.title,
        "action_form.html",
        {
            "table": str(table.name),
            "key": name_text(table.name),
            "action": action.key,
            "fields": fields,
            "problem": _described(problem),
        },
    )


def review_page(
    table: Table,
    action: ConsoleAction,
    answers: Answers,
    review: Review,
    *,
    stale: str | None = None,
    at: LakeRef | None = None,
) -> Page:
    """What will happen, with the button that makes it happen; `stale` is why the last review does not count."""
    return Page(
        action.title,
        "action_review.html",
        {
            "table": str(table.name),
            "key": name_text(table.name),
            "action": action.key,
            "answers": answers.values(),
            "lines": list(review.lines),
            "sections": [
                {"title": s.title, "columns": s.columns, "rows": s.rows, "more": s.more} for s in review.sections
            ],
            **_elsewhere(review, at),
            "fingerprint": review.fingerprint,
            "moment_ms": review.moment_ms,
            "nothing_to_do": review.nothing_to_do,
            "button": action.button,
            "destroys": action.destroys,
            "stale": stale,
        },
    )


def done_page(table: Table, action: ConsoleAction, review: Review, result: str, *, at: LakeRef | None = None) -> Page:
    """What was done."""
    return Page(
        f"{action.title}: done",
        "action_done.html",
        {
            "table": str(table.name),
            "key": name_text(table.name),
            "action": action.key,
            "lines": list(review.lines),
            "result": result,
            **_elsewhere(review, at),
        },
    )


def _elsewhere(review: Review, at: LakeRef | None) -> dict[str, str | None]:
    """The same in Python and SQL, and on the command line, which has no refs of the lake."""
    same = review.equivalents
    if at is None:
        return {"python": same.python, "sql": same.sql, "command": same.command}
    return {"python": f"lake = lake.at({at.name!r})\n{same.python}", "sql": same.sql, "command": None}


def _known(table: Table, action: ConsoleAction, given: PageQuery) -> dict[str, str]:
    """What the form of a retention begins with: the settings that the ref has."""
    ref = table.metadata.refs.get(given.get("ref", ""))
    if action.key != "set-retention" or ref is None:
        return {}
    keep = ref.min_snapshots_to_keep
    return {
        "min_snapshots": "" if keep is None else str(keep),
        "max_snapshot_age": age_text(ref.max_snapshot_age_ms),
        "max_ref_age": age_text(ref.max_ref_age_ms),
    }


def _described(problem: BerglineError | None) -> dict[str, Any] | None:
    return None if problem is None else {"message": str(problem), "hints": list(problem.hints)}
