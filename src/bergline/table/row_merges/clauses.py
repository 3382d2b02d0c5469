"""Merges as requested by the caller: conditions and values, not yet bound to columns."""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

import msgspec

from bergline.expressions.predicate import Predicate

When = Literal["matched", "not matched", "not matched by source"]
Action = Literal["update", "delete", "insert"]
TARGET, SOURCE = "target", "source"
Condition = TypeVar("Condition")
Values = TypeVar("Values")


class MergeClause(msgspec.Struct, Generic[Condition, Values], frozen=True):
    """`WHEN … [AND condition] THEN action`, from Python, from `mergeInto` or from the text of a statement.

    The types of conditions and values depend on where the clause comes from.
    """

    when: When
    action: Action
    condition: Condition | None = None
    values: Values | None = None
    """The values of columns; None if rows are deleted, or get the source's columns of the same name."""
    start: int = 0
    """Its offset in the text of a statement."""

    @property
    def has_star(self) -> bool:
        """Whether it is `UPDATE SET *` or `INSERT *`: columns get the source's values by their names."""
        return self.values is None and self.action != "delete"

    @property
    def heading(self) -> str:
        """The beginning of the clause in SQL, for messages."""
        return f"WHEN {self.when.upper()} THEN {self.action.upper()}"


ValueClause = MergeClause[str, Mapping[str, Any]]
"""A clause from Python: conditions are SQL text, and values SQL text or Python values."""


def clause_before_others(clauses: Sequence[MergeClause[Any, Any]]) -> MergeClause[Any, Any] | None:
    """The first clause without a condition that is followed by others of its kind, which could never apply."""
    for number, clause in enumerate(clauses):
        if clause.condition is None and any(later.when == clause.when for later in clauses[number + 1 :]):
            return clause
    return None


class RowMergeRequest(msgspec.Struct, frozen=True):
    """How source rows match target rows, and what to do with both."""

    on: str | tuple[str, ...]
    """A condition, or the columns that are equal on both sides."""
    clauses: tuple[ValueClause, ...]
    target_alias: str = TARGET
    source_alias: str = SOURCE
    only_changed: bool = False
    """Whether an update skips rows that already have the new values."""
    partial: bool = False
    """Whether the source may lack columns: they keep their values, or get their default in new rows."""
    unique_source: bool = False
    """Whether the columns of `on` must identify one source row each."""


class UpdateRequest(msgspec.Struct, frozen=True):
    """`UPDATE … SET values WHERE where`."""

    values: Mapping[str, Any]
    where: str | Predicate | None = None


class RowCounts(msgspec.Struct, frozen=True):
    """How many rows a statement changed."""

    rows_updated: int = 0
    rows_inserted: int = 0
    rows_deleted: int = 0
