"""The protocol between the commit loop and every operation."""

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import msgspec

from bergline.catalog.conflicts import describe_change
from bergline.catalog.identifiers import TableName
from bergline.errors import BerglineError, ConflictError
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.requirements import Requirement, same_table
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import Update

_LOG = logging.getLogger(__name__)


class Change(msgspec.Struct, frozen=True):
    """What one attempt is to commit: updates, and the requirements for them; without updates there is nothing to do."""

    updates: tuple[Update, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    rewritten: frozenset[str] = frozenset()
    """Data files that are removed because new ones hold their rows, with the ids that the rows had."""
    can_rebase: bool = False
    """Whether it is an append that means the same on whatever head its branch has."""


class CommitStamp(msgspec.Struct, frozen=True):
    """Which attempt this is, counted from 1, and when it is made."""

    attempt: int
    now_ms: int
    earlier: Mapping[int, int | None] = {}
    """The snapshots that came before in the same transaction, each with the parent that it had at first.

    An operation that looked at one of them knows nothing newer than that parent of what others committed.
    """


class Landed(msgspec.Struct, frozen=True):
    """The attempt that landed, and the table in the catalog after it.

    Others may have committed since, and expired what the attempt added: a snapshot that is not in the metadata may have
    landed all the same.
    """

    attempt: int
    metadata: TableMetadata


class Operation(Protocol):
    """A change that can be computed again on every new base."""

    @property
    def needs_validation(self) -> bool:
        """Whether another commit can make this one wrong, rather than only late."""
        ...

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """The change on this base; raises where the base forbids it."""
        ...

    def settled(self, landed: Landed | None) -> None:
        """Delete the files of the attempts that lost; all files if None says that certainly no attempt landed."""
        ...


class MetadataOperation:
    """An operation that writes no files of its own; updates that would have no effect are not committed.

    `overwrites` is what the change replaces: if another commit changes that between two attempts, the operation fails
    rather than overwrite what it did not know of.
    """

    def __init__(
        self,
        change: Callable[[TableMetadata], Change],
        *,
        needs_validation: bool = False,
        overwrites: Callable[[TableMetadata], object] = lambda _: None,
    ) -> None:
        self._change = change
        self.needs_validation = needs_validation
        self._overwrites = overwrites
        self._first_base: TableMetadata | None = None

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """The change on this base."""
        change = self._change(base)
        if not change.updates or _changes_nothing(base, change.updates, stamp.now_ms):
            return Change()
        self.check_unchanged(base)
        return Change(change.updates, (*same_table(base), *change.requirements))

    def check_unchanged(self, base: TableMetadata) -> None:
        """ConflictError if what the change replaces is not what it was on the first base."""
        self._first_base = first = self._first_base or base
        if self._overwrites(base) != self._overwrites(first):
            raise ConflictError(
                f"another commit changed the same thing meanwhile: {describe_change(first, base)}",
                hints=["look again, then decide whether it is still wanted"],
            )

    def settled(self, landed: Landed | None) -> None:
        """Nothing to remove."""


@contextlib.contextmanager
def cleaning_up(name: TableName) -> Iterator[None]:
    """A block that deletes files: errors in it are logged, because they do not change the outcome of the commit."""
    try:
        yield
    except (BerglineError, OSError) as error:
        _LOG.warning("could not remove leftover files of `%s`: %s", name, error)


def _changes_nothing(base: TableMetadata, updates: tuple[Update, ...], now_ms: int) -> bool:
    after = apply_updates(base, updates, base_location=None, now_ms=now_ms)
    return msgspec.structs.replace(after, last_updated_ms=base.last_updated_ms) == base
