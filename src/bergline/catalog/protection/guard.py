"""The guard of a catalog: asked before every change of a pointer, it refuses what a rule forbids."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from bergline.catalog.identifiers import TableName
from bergline.errors import RefusedError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.lazy_module import LazyModule

if TYPE_CHECKING:
    from bergline.catalog.protection import rule_scope
else:  # not needed to read
    rule_scope = LazyModule("bergline.catalog.protection.rule_scope")


DecideAgain = Callable[[Any], None]
"""Decides on a change that was checked, on the connection of the transaction that makes it."""


class RefGuard(Protocol):
    """Decides on changes from the metadata before and after them, before anything is written."""

    def check_change(
        self, table: TableName, base: TableMetadata, result: TableMetadata | None, done: str | None = None
    ) -> None:
        """ProtectedRefError for a change that a rule forbids, InvalidInputError for rules that are wrong.

        Without a result the table is gone from its name; `done` says how, as in "the table dropped".
        """
        ...

    def check_member(self, table: TableName, base: TableMetadata, result: TableMetadata) -> DecideAgain:
        """As `check_change`, for one of several changes to a table that are made in one transaction.

        The result is called to decide again in that transaction, if the guard can do so.
        """
        ...

    def refusals(self, table: TableName, base: TableMetadata, result: TableMetadata) -> Iterable[RefusedError]:
        """All that `check_change` could raise, for a change that is only tried out, with its new files in memory."""
        ...

    def check_new(self, table: TableName, metadata: TableMetadata) -> None:
        """InvalidInputError for a new table whose rules are wrong."""
        ...

    def levels(self, table: TableName) -> "tuple[rule_scope.RuleLevel, ...]":
        """The rules of the catalog and of namespaces that hold for a table."""
        ...

    def changing(self) -> AbstractContextManager[None]:
        """A block that checks a change and then makes it.

        A guard that can do so decides again in the transaction that moves the pointer: ProtectedRefError, and nothing
        was changed.
        """
        ...
