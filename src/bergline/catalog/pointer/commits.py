"""Commits of a pointer catalog: write the next metadata files, then swap the pointers to them."""

import uuid
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

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
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.named_pointers import check_namespace
from bergline.catalog.pointer.pointer_store import NOTHING_CHANGED, PointerSwap, PointersWithTurns
from bergline.catalog.pointer.settle import (
    SwapHistory,
    Verdict,
    check_refused,
    send_swaps,
    settle_swaps,
    table_history,
)
from bergline.catalog.pointer.tables import PointerTables
from bergline.catalog.protection.caller import see_change
from bergline.catalog.table_locations import remembering_former
from bergline.catalog.turns import TurnKeeper, wait_for_turn
from bergline.errors import BerglineError, ConflictError
from bergline.format.metadata.requirements import check_requirements
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import AssignUuid
from bergline.lazy_module import LazyModule

if TYPE_CHECKING:
    from bergline.format.metadata import apply
else:  # reading does not need it
    apply = LazyModule("bergline.format.metadata.apply")


class PointerCommit(PointerTables):
    """Commits that succeed only if the whole base is still current."""

    def commit(self, changes: tuple[TableChange, ...], new: tuple[NewTable, ...] = ()) -> Outcome:
        """Apply, write, swap; a lost response is settled by reading back.

        New tables are created in the same step, and come last in the outcome.
        """
        with self.guard.changing():
            return self._commit(changes, new)

    def _commit(self, changes: tuple[TableChange, ...], new: tuple[NewTable, ...]) -> Outcome:
        self._check_tables([*(c.base.name for c in changes), *(table.name for table in new)])
        for base in (c.base for c in changes):
            if self._read_in_turn(base.name) != base.metadata_location:
                return Conflicted(self._moved_on(base))
        for table in new:
            check_namespace(self.store, table.name.namespace)
            self._named("table").check_free(table.name)
            self.guard.check_new(table.name, table.metadata)
            see_change(table.name, None, table.metadata)
        try:
            applied = [self._apply(change) for change in changes]
        except ConflictError as error:
            return Conflicted(error)
        for base, after in zip((c.base for c in changes), applied, strict=True):
            self.guard.check_change(base.name, base.metadata, after)
            see_change(base.name, base.metadata, after)
        bases = [(c.base.name, c.base.metadata_location) for c in changes]
        written: list[LoadedTable] = []
        try:
            for (name, before), metadata in zip(bases, applied, strict=True):
                written.append(LoadedTable(name, metadata, self._table_files.write(metadata, before)))
            for table in new:
                location = self._table_files.write(table.metadata, None)
                written.append(LoadedTable(table.name, table.metadata, location))
        except BaseException:
            self._discard(written)
            raise
        return self._swap(changes, tuple(written), self._history(changes))

    @property
    def turns(self) -> TurnKeeper | None:
        """Where writers of the same tables take turns; None if the store cannot."""
        return self._pointers_with_turns

    @cached_property
    def _pointers_with_turns(self) -> PointersWithTurns | None:
        store = self.store
        return store if isinstance(store, PointersWithTurns) else None

    def _read_in_turn(self, table: TableName) -> str | None:
        """The pointer, once nobody else has a turn on its table."""
        pointers, store = self.store, self._pointers_with_turns
        if store is None:
            return pointers.read(table)
        pointer, turn = store.read_with_turn(table)
        if turn is not None and wait_for_turn(table, turn, lambda: store.read_with_turn(table)[1], self._sleep):
            return pointers.read(table)
        return pointer

    def _check_tables(self, names: list[TableName]) -> None:
        check_changed_tables(names, "this catalog", atomic=self.atomic_tables)

    def _apply(self, change: TableChange, *, logs_base: bool = True) -> TableMetadata:
        base, updates = change.base, change.updates
        check_requirements(base.metadata, change.requirements, str(base.name))
        if base.metadata.table_uuid is None:  # an old v1 table gets its UUID with the first commit, as in Java
            updates = (AssignUuid(str(uuid.uuid4())), *updates)
        logged = base.metadata_location if logs_base else None
        after = apply.apply_updates(base.metadata, updates, base_location=logged, now_ms=self._clock_ms())
        return remembering_former(base.metadata, after, updates)

    # not self.store: a commit in progress while the lake is closed must still be settled
    def _swap(self, changes: tuple[TableChange, ...], new: tuple[LoadedTable, ...], history: SwapHistory) -> Outcome:
        before = {change.base.name: change.base.metadata_location for change in changes}
        swaps = [PointerSwap(table.name, before.get(table.name), table.metadata_location) for table in new]
        try:
            landed, cause = send_swaps(self._store, swaps), "the pointer cannot be read after a refusal"
            verdict = Verdict.LANDED if landed else self._check_refused(changes, swaps, history)
        except NOTHING_CHANGED:
            self._discard(new)
            raise
        except Exception as error:  # noqa: BLE001  (any doubt is settled below)
            cause = f"{type(error).__name__}: {error}"
            verdict = self._settle(changes, swaps, history)
        match verdict:
            case Verdict.LANDED:
                return Committed(new)
            case Verdict.PRESENT:
                return self._present(new, cause)
            case Verdict.LOST:
                self._discard(new)
                return Conflicted(self._winner(changes, new))
            case Verdict.UNKNOWN:
                return Unknown(new[0].name, new[0].metadata_location, cause)

    def _present(self, new: tuple[LoadedTable, ...], cause: str) -> Outcome:
        """The tables as they are now: the files that were written for this attempt may never have been theirs."""
        try:
            pointers = {table.name: self._store.read(table.name) for table in new}
            found = tuple(LoadedTable(n, self._table_files.load(p), p) for n, p in pointers.items() if p is not None)
        except (BerglineError, OSError) as error:
            return Unknown(new[0].name, new[0].metadata_location, f"{cause}; {error}")
        if len(found) < len(new):
            return Unknown(new[0].name, new[0].metadata_location, f"{cause}; a table was dropped since")
        return Committed(found)

    def _settle(self, changes: tuple[TableChange, ...], swaps: Sequence[PointerSwap], history: SwapHistory) -> Verdict:
        waits = self._status_check_waits(changes[0].base.metadata.properties if changes else {})
        return settle_swaps(self._store, swaps, history=history, waits=waits)

    def _check_refused(
        self, changes: tuple[TableChange, ...], swaps: Sequence[PointerSwap], known: SwapHistory
    ) -> Verdict:
        waits = self._status_check_waits(changes[0].base.metadata.properties if changes else {})
        adds_rows = any(added_snapshots(c) for c in changes)
        uuids = {c.base.name: c.base.metadata.table_uuid for c in changes}

        def history(swap: PointerSwap, pointer: str) -> Verdict:
            verdict = known(swap, pointer)
            if verdict is not Verdict.UNKNOWN:
                return verdict
            # a change without snapshots wrote no files and may be repeated; of a dropped table nothing is left
            is_another = uuids.get(swap.table) != self._table_files.load(pointer).table_uuid
            return verdict if adds_rows and not is_another else Verdict.LOST

        return check_refused(self._store, swaps, history=history, waits=waits)

    def _history(self, changes: tuple[TableChange, ...]) -> SwapHistory:
        added = {c.base.name: added_snapshots(c) for c in changes}
        bases = {c.base.name: c.base.metadata for c in changes}
        return lambda swap, pointer: table_history(
            swap, bases.get(swap.table), self._table_files.load(pointer), added.get(swap.table, frozenset())
        )

    def _winner(self, changes: tuple[TableChange, ...], new: tuple[LoadedTable, ...]) -> ConflictError:
        """The table of the commit that caused the conflict: changed, or with a name that was taken."""
        for base in (c.base for c in changes):
            if self._store.read(base.name) != base.metadata_location:
                return self._moved_on(base)
        if len(new) > len(changes):
            return ConflictError(f"table `{new[-1].name}` cannot be created: a name was taken meanwhile")
        return self._moved_on(changes[0].base)

    def _moved_on(self, base: LoadedTable) -> ConflictError:
        """The conflict of a table, with what changed if that can be read."""
        try:
            what = describe_change(base.metadata, self.load_table(base.name).metadata)
        except BerglineError:
            what = f"it is no longer at {base.metadata_location}"
        return ConflictError(f"table `{base.name}` moved on: {what}")

    def _discard(self, tables: Iterable[LoadedTable]) -> None:
        for table in tables:
            self._table_files.discard(table.metadata_location)
