"""What an action will do, shown before it is done; then exactly that is done, or nothing."""

import hashlib
import time
from collections.abc import Callable
from typing import Any

import msgspec

from bergline.console.actions.form import Answers, Field
from bergline.errors import ConflictError
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.scratch import ScratchFileIO
from bergline.table.commits.operation import Change, CommitStamp, Landed, Operation
from bergline.table.references.merge import MergeResult
from bergline.table.references.refs import Refs
from bergline.table.table import Table

ReviewedState = Callable[[TableMetadata], Any]
"""What a review depends on, in a state of the table."""
RefCall = Callable[[Refs], MergeResult | None]


class Equivalents(msgspec.Struct, frozen=True):
    """The same action elsewhere; None where there is no statement or command for it."""

    python: str
    sql: str | None
    command: str | None


class Section(msgspec.Struct, frozen=True):
    """A list in a review."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: int = 0
    """How many rows are left out."""


class Review(msgspec.Struct, frozen=True):
    """What will happen; `do` makes it happen, and says what was done."""

    lines: tuple[str, ...]
    equivalents: Equivalents
    fingerprint: str
    do: Callable[[], str]
    sections: tuple[Section, ...] = ()
    nothing_to_do: bool = False
    moment_ms: int = 0
    """When the review was made, which what is done goes by too."""


class ConsoleAction(msgspec.Struct, frozen=True):
    """Something that may be done to a table."""

    key: str
    title: str
    fields: tuple[Field, ...]
    review: Callable[[Table, Answers, int], Review]
    """Of a table, the answers and the moment; raises what would forbid the action."""
    button: str
    destroys: bool = False
    only_on_main: bool = False
    """Whether it is about the whole table, and not offered at a ref of the lake."""


def review_refs(
    table: Table,
    call: RefCall,
    state: ReviewedState,
    lines: Callable[[MergeResult | None], tuple[str, ...]],
    equivalents: Equivalents,
) -> Review:
    """The review of a change of refs, tried out on the table as it is; nothing is written."""
    base = table.metadata
    expected = state(base)
    tried = _try(table, call)

    def do() -> str:
        result = call(Refs(lambda: table.metadata, lambda o: table.commit(Confirmed(o, state, expected)), table.io))
        return "done" if result is None else str(result)

    return Review(
        lines(tried),
        equivalents,
        fingerprint(str(table.name), base.table_uuid, expected, equivalents.python),
        do,
        nothing_to_do=tried is not None and tried.previous == tried.head,
    )


def fingerprint(*parts: Any) -> str:
    """A text that is the same if and only if what was reviewed is the same."""
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


class Confirmed:
    """An operation that is committed only on a base on which the review would be the same."""

    def __init__(self, operation: Operation, state: ReviewedState, expected: Any) -> None:
        self._operation = operation
        self._state = state
        self._expected = expected

    @property
    def needs_validation(self) -> bool:
        """As the operation says."""
        return self._operation.needs_validation

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """The operation's change; ConflictError if the table is not as it was reviewed."""
        change = self._operation.attempt(base, stamp)
        if change.updates and self._state(base) != self._expected:
            raise changed_since()
        return change

    def settled(self, landed: Landed | None) -> None:
        """Pass on."""
        self._operation.settled(landed)


def changed_since() -> ConflictError:
    """The error for a table that changed after the review."""
    return ConflictError("the table changed since this was reviewed: nothing was done", hints=["review it again"])


def _try(table: Table, call: RefCall) -> MergeResult | None:
    base = table.metadata
    now_ms = time.time_ns() // 1_000_000

    def run(operation: Operation) -> TableMetadata:
        change = operation.attempt(base, CommitStamp(1, now_ms))
        if not change.updates:
            return base
        after = apply_updates(base, change.updates, base_location=None, now_ms=now_ms)
        table.check_rules(after)
        return after

    return call(Refs(lambda: base, run, ScratchFileIO(table.io)))
