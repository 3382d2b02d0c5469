"""A merge that a caller builds clause by clause, as in Delta Lake and Spark's `mergeInto`."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from bergline.arguments import check_text
from bergline.errors import InvalidInputError
from bergline.table.row_merges.clauses import Action, MergeClause, RowCounts, RowMergeRequest, When


class MergeBuilder:
    """Clauses are tried in the order in which they were given, and the first whose condition holds applies.

    Values and conditions are SQL text over the columns of `source` and `target`; values that are not text are literals.
    """

    def __init__(self, request: RowMergeRequest, run: Callable[[RowMergeRequest], RowCounts]) -> None:
        self._request = request
        self._run = run

    def when_matched_update(self, set: Mapping[str, Any], condition: str | None = None) -> "MergeBuilder":  # noqa: A002
        """Set columns of target rows that have a source row."""
        return self._with("matched", "update", condition, set)

    def when_matched_update_all(self, condition: str | None = None) -> "MergeBuilder":
        """Set all columns of target rows that have a source row to the source's columns of the same name."""
        return self._with("matched", "update", condition)

    def when_matched_delete(self, condition: str | None = None) -> "MergeBuilder":
        """Delete target rows that have a source row."""
        return self._with("matched", "delete", condition)

    def when_not_matched_insert(self, values: Mapping[str, Any], condition: str | None = None) -> "MergeBuilder":
        """Insert a row for each source row without a target row; columns that are not given get their default."""
        return self._with("not matched", "insert", condition, values)

    def when_not_matched_insert_all(self, condition: str | None = None) -> "MergeBuilder":
        """Insert each source row without a target row, by the names of its columns."""
        return self._with("not matched", "insert", condition)

    def when_not_matched_by_source_update(
        self,
        set: Mapping[str, Any],  # noqa: A002
        condition: str | None = None,
    ) -> "MergeBuilder":
        """Set columns of target rows that have no source row."""
        return self._with("not matched by source", "update", condition, set)

    def when_not_matched_by_source_delete(self, condition: str | None = None) -> "MergeBuilder":
        """Delete target rows that have no source row."""
        return self._with("not matched by source", "delete", condition)

    def execute(self) -> RowCounts:
        """Run the merge: one snapshot, or none if no row changes."""
        if not self._request.clauses:
            raise InvalidInputError(
                "expected at least one clause, found none", hints=["for example when_matched_update_all()"]
            )
        return self._run(self._request)

    def _with(
        self, when: When, action: Action, condition: str | None, values: Mapping[str, Any] | None = None
    ) -> "MergeBuilder":
        if condition is not None:
            check_text(condition, "a condition as SQL text")
        clause = MergeClause(when, action, condition, None if values is None else dict(values))
        request = msgspec.structs.replace(self._request, clauses=(*self._request.clauses, clause))
        return MergeBuilder(request, self._run)
