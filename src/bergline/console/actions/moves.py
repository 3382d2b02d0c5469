"""Move branches: fast-forward, merge and roll back."""

from bergline.arguments import counted
from bergline.console.actions.equivalents import call, command, python_call
from bergline.console.actions.form import Answers, Field
from bergline.console.actions.review import ConsoleAction, Equivalents, Review, ReviewedState, review_refs
from bergline.errors import InvalidInputError
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.table.references.merge import MergeResult
from bergline.table.references.ref_changes import left_behind, rollback_target
from bergline.table.table import Table

_SHOWN = 5


def _review_fast_forward(table: Table, answers: Answers, _now_ms: int) -> Review:
    branch, to = answers.text("branch"), answers.text("to")
    return review_refs(
        table,
        lambda refs: refs.fast_forward(branch, to=to),
        _heads(branch, to),
        lambda result: (_moved(branch, result),),
        Equivalents(
            python_call(table.name, "refs.fast_forward", branch, to=to),
            call("fast_forward", table.name, branch=branch, to=to),
            command("branch fast-forward", str(table.name), branch, to=to),
        ),
    )


def _review_merge(table: Table, answers: Answers, _now_ms: int) -> Review:
    branch, into, squash = answers.text("branch"), answers.text("into"), answers.checked("squash")

    def lines(result: MergeResult | None) -> tuple[str, ...]:
        if result is None or result.previous == result.head:
            return (f"`{into}` has all of `{branch}` already: nothing is done",)
        if not result.replayed:
            return (_moved(into, result), "nothing is replayed: it only moves forward")
        replayed = ", ".join(str(i) for i in list(result.replayed)[:_SHOWN])
        more = f" and {len(result.replayed) - _SHOWN} more" if len(result.replayed) > _SHOWN else ""
        count = counted(len(result.replayed), "snapshot")
        return (
            f"no conflict: {count} of `{branch}` replayed on `{into}` in one commit: {replayed}{more}",
            f"`{branch}` stays where it is",
        )

    return review_refs(
        table,
        lambda refs: refs.merge(branch, into=into, squash=squash),
        _heads(branch, into),
        lines,
        Equivalents(
            python_call(table.name, "refs.merge", branch, into=into, squash=squash or None),
            call("merge", table.name, branch=branch, into=into, squash=squash or None),
            command("branch merge", str(table.name), branch, into=into, squash=squash),
        ),
    )


def _review_rollback(table: Table, answers: Answers, _now_ms: int) -> Review:
    branch, to = answers.text("branch"), answers.snapshot("to")
    if to is None:
        raise InvalidInputError("expected a snapshot to go back to, found none")
    base = table.metadata
    target = rollback_target(base, branch, to)
    left = sorted(left_behind(base, branch, target), key=lambda i: base.snapshot(i).timestamp_ms, reverse=True)
    undone = ", ".join(map(str, left[:_SHOWN])) + (f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else "")
    is_main = branch == MAIN
    return review_refs(
        table,
        lambda refs: refs.rollback(branch, to=to),
        _heads(branch, *([to] if isinstance(to, str) else [])),
        lambda result: (
            _moved(branch, result),
            f"leaves {counted(len(left), 'snapshot')} out of its history: {undone}" if left else "nothing is undone",
            "no file is deleted before the next expiry",
        ),
        Equivalents(
            python_call(table.name, "refs.rollback", branch, to=to),
            call("rollback_to_snapshot", table.name, snapshot_id=target) if is_main else None,
            command("branch rollback", str(table.name), branch, to=to, yes=True),
        ),
    )


def _heads(*names: str) -> ReviewedState:
    def state(base: TableMetadata) -> list[int | None]:
        return [base.refs[name].snapshot_id if name in base.refs else None for name in names]

    return state


def _moved(branch: str, result: MergeResult | None) -> str:
    return f"`{branch}` is {result}" if result is not None else ""


FAST_FORWARD = ConsoleAction(
    "fast-forward",
    "Fast-forward a branch",
    (
        Field("branch", "Branch that moves", "branch"),
        Field("to", "To the head of", "ref", "A branch or tag that descends from it."),
    ),
    _review_fast_forward,
    "Fast-forward",
)
MERGE = ConsoleAction(
    "merge",
    "Merge a branch",
    (
        Field("branch", "Branch to merge", "ref"),
        Field("into", "Into", "branch"),
        Field(
            "squash",
            "As one snapshot",
            "check",
            "Takes the difference of the two ends, where history has expired.",
            required=False,
        ),
    ),
    _review_merge,
    "Merge",
)
ROLL_BACK = ConsoleAction(
    "roll-back",
    "Roll a branch back",
    (
        Field("branch", "Branch", "branch"),
        Field("to", "To", "snapshot", "A snapshot of its history by id, or a branch or tag that names one."),
    ),
    _review_rollback,
    "Roll back",
    destroys=True,
)
