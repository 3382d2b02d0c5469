"""Commits of a pointer catalog: write the next metadata files, then swap the pointers to them."""

import contextlib
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from bergline.catalog.at_ref.landing import published
from bergline.catalog.catalog import (
    Committed,
    Conflicted,
    LoadedTable,
    NewTable,
    Outcome,
    TableChange,
    Unknown,
    added_snapshots,
    check_changed_tables,
)
from bergline.catalog.conflicts import describe_change
from bergline.catalog.pointer.pointer_store import NOTHING_CHANGED, PointerSwap
from bergline.catalog.pointer.settle import CommitSettling, SentSwaps, SwapHistory, send_swaps, table_history
from bergline.catalog.pointer.store_access import StoreAccess
from bergline.catalog.pointer.tables import PointerTables
from bergline.catalog.protection.caller import see_change
from bergline.catalog.table_locations import remembering_former
from bergline.errors import BerglineError, ConflictError
from bergline.format.metadata.refs import CREATED_ON
from bergline.format.metadata.requirements import check_requirements
from bergline.format.metadata.snapshot_log import logged_at_once
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import AssignUuid
from bergline.lazy_module import LazyModule

if TYPE_CHECKING:
    from bergline.format.metadata import apply
else:  # reading does not need it
    apply = LazyModule("bergline.format.metadata.apply")


class TableCommits:
    """Commits that succeed only if the whole base is still current."""

    def __init__(
        self,
        access: StoreAccess,
        tables: PointerTables,
        settling: CommitSettling | None = None,
        check_result: Callable[[TableMetadata, TableMetadata], None] = lambda *_: None,
    ) -> None:
        """`check_result` refuses what a catalog cannot hold, from the metadata before and after a change."""
        self._access = access
        self._tables = tables
        self._files = tables.files
        self._settling = settling or CommitSettling(access, tables.files)
        self._check_result = check_result

    def commit(self, changes: Sequence[TableChange], new: Sequence[NewTable] = ()) -> Outcome:
        """Apply, write, swap; a lost response is settled by reading back.

        New tables are created in the same step, and come last in the outcome.
        """
        with self._access.guard.changing():
            return self._commit(changes, new)

    def check_tables(self, changes: Sequence[TableChange], new: Sequence[NewTable] = ()) -> None:
        """Refuse more tables than the store can change at once."""
        names = [*(c.base.name for c in changes), *(table.name for table in new)]
        check_changed_tables(names, "this catalog", atomic=self._access.atomic_tables)

    def apply(self, change: TableChange, *, logs_base: bool = True) -> TableMetadata:
        """The table after a change."""
        base, updates = change.base, change.updates
        check_requirements(base.metadata, change.requirements, str(base.name))
        if base.metadata.table_uuid is None:  # an old v1 table gets its UUID with the first commit, as in Java
            updates = (AssignUuid(str(uuid.uuid4())), *updates)
        logged = base.metadata_location if logs_base else None
        after = apply.apply_updates(base.metadata, updates, base_location=logged, now_ms=self._access.clock_ms())
        after = remembering_former(base.metadata, published(base.metadata, after), updates)
        self._check_result(base.metadata, after)
        return after

    def swap(self, changes: Sequence[TableChange], new: tuple[LoadedTable, ...], history: SwapHistory) -> Outcome:
        """Swap the pointers to files that were written, and delete these if they certainly never became current."""
        before = {change.base.name: change.base.metadata_location for change in changes}
        swaps = [PointerSwap(table.name, before.get(table.name), table.metadata_location) for table in new]
        sent, cause = SentSwaps(swaps, Committed(new), history), "the swap was refused"
        try:
            with self._listing(changes, new):
                if send_swaps(self._access.store_to_settle, swaps):
                    return sent.made
            outcome = self._settling.check_refused(changes, sent)
        except NOTHING_CHANGED:
            self._discard(new)
            raise
        except Exception as error:  # noqa: BLE001  (any doubt is settled here)
            cause = f"{type(error).__name__}: {error}"
            outcome = self._settling.settle(changes, sent, cause)
        match outcome:
            case Conflicted():
                self._discard(new)
                return Conflicted(self._winner(changes, new))
            case Committed(tables) if len(tables) < len(new):
                return self._as_they_are(new, cause)
            case _:
                return outcome

    def _listing(
        self, changes: Sequence[TableChange], after: Sequence[LoadedTable]
    ) -> contextlib.AbstractContextManager[None]:
        """Tables that are created on a branch get into lists with the commit that gives them a `main`."""
        of_branches = {table.name for table in after if CREATED_ON in table.metadata.properties}
        were = {c.base.name for c in changes if CREATED_ON in c.base.metadata.properties}
        new = of_branches - {c.base.name for c in changes}
        return self._access.listing(tuple(were - of_branches), tuple(new))

    def moved_on(self, base: LoadedTable) -> ConflictError:
        """The conflict of a table that is no longer at its base; says what has changed, if that can be read."""
        try:
            what = describe_change(base.metadata, self._tables.load(base.name).metadata)
        except BerglineError:
            what = f"it is no longer at {base.metadata_location}"
        return ConflictError(f"table `{base.name}` moved on: {what}")

    def _commit(self, changes: Sequence[TableChange], new: Sequence[NewTable]) -> Outcome:
        guard = self._access.guard
        self.check_tables(changes, new)
        for base in (c.base for c in changes):
            if self._access.read_in_turn(base.name) != base.metadata_location:
                return Conflicted(self.moved_on(base))
        for table in new:
            self._tables.check_free(table.name)
            guard.check_new(table.name, table.metadata)
            see_change(table.name, None, table.metadata)
        try:
            applied = logged_at_once([c.base.metadata for c in changes], [self.apply(change) for change in changes])
        except ConflictError as error:
            return Conflicted(error)
        for base, after in zip((c.base for c in changes), applied, strict=True):
            guard.check_change(base.name, base.metadata, after)
            see_change(base.name, base.metadata, after)
        written: list[LoadedTable] = []
        try:
            for base, after in zip((c.base for c in changes), applied, strict=True):
                written.append(LoadedTable(base.name, after, self._files.write(after, base.metadata_location)))
            for table in new:
                location = self._files.write(table.metadata, None)
                written.append(LoadedTable(table.name, table.metadata, location))
        except BaseException:
            self._discard(written)
            raise
        return self.swap(changes, tuple(written), self._history(changes))

    def _as_they_are(self, new: Sequence[LoadedTable], cause: str) -> Outcome:
        """The current tables after a commit that another server made of the same request, with files of its own."""
        first = new[0]
        try:
            pointers = {table.name: self._access.store_to_settle.read(table.name) for table in new}
            found = tuple(LoadedTable(n, self._files.load(p), p) for n, p in pointers.items() if p is not None)
        except (BerglineError, OSError) as error:
            return Unknown(first.name, first.metadata_location, f"{cause}; {error}")
        if len(found) < len(new):
            return Unknown(first.name, first.metadata_location, f"{cause}; a table was dropped since")
        return Committed(found)

    def _history(self, changes: Sequence[TableChange]) -> SwapHistory:
        added = {c.base.name: added_snapshots(c) for c in changes}
        bases = {c.base.name: c.base.metadata for c in changes}

        def history(swap: PointerSwap, pointer: str, made: Committed) -> Outcome | None:
            now = LoadedTable(swap.table, self._files.load(pointer), pointer)
            return table_history(swap, made, bases.get(swap.table), now, added.get(swap.table, frozenset()))

        return history

    def _winner(self, changes: Sequence[TableChange], new: Sequence[LoadedTable]) -> ConflictError:
        """The conflict of the table that caused it: it has changed, or its name was taken."""
        for base in (c.base for c in changes):
            if self._access.store_to_settle.read(base.name) != base.metadata_location:
                return self.moved_on(base)
        if len(new) > len(changes):
            return ConflictError(f"table `{new[-1].name}` cannot be created: a name was taken meanwhile")
        return self.moved_on(changes[0].base)

    def _discard(self, tables: Iterable[LoadedTable]) -> None:
        for table in tables:
            self._files.discard(table.metadata_location)
