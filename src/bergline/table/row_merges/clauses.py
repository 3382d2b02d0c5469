"""What a merge is asked to do, as the caller said it: texts and values, not yet bound to columns."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from bergline.expressions.predicate import Predicate

When = Literal["matched", "not matched", "not matched by source"]
Action = Literal["update", "delete", "insert"]
TARGET, SOURCE = "target", "source"


class MergeClause(msgspec.Struct, frozen=True):
    """`WHEN … [AND condition] THEN action`."""

    when: When
    action: Action
    condition: str | None = None
    values: Mapping[str, Any] | None = None
    """A value for each column, SQL text or a Python value; None for the source's columns of the same names."""

    @property
    def heading(self) -> str:
        """The clause as SQL begins it, for messages."""
        return f"WHEN {self.when.upper()} THEN {self.action.upper()}"


class RowMergeRequest(msgspec.Struct, frozen=True):
    """How source rows find target rows, and what becomes of both."""

    on: str | tuple[str, ...]
    """A condition, or the columns that are equal on both sides."""
    clauses: tuple[MergeClause, ...]
    target_alias: str = TARGET
    source_alias: str = SOURCE
    only_changed: bool = False
    """Whether rows stay as they are where an update would give them the values that they have."""
    partial: bool = False
    """Whether columns that the source does not have stay as they are, or get their default in new rows."""
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
