"""Appends of processes that meet on one table: whoever leads commits all that wait in the catalog's queue at once.

A change is put there as it was worked out, and on the table as it is then by who leads. What became of it is written in
the transaction that moves the pointer, so it is there if and only if it happened.
"""

import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Generic, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary

import msgspec

from bergline.catalog.catalog import Catalog, Committed, Conflicted, LoadedTable, TableChange, Unknown
from bergline.catalog.commit_queue import CommitQueue, QueuedChange, QueueOutcome, QueueState
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.pointer.pointer_store import NOTHING_CHANGED, QueueingPointers
from bergline.catalog.protection.caller import acting_as, current_caller, requesting_caller
from bergline.catalog.status_checks import status_check_waits
from bergline.errors import BerglineError, CommitUnknownError, NotFoundError
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.metadata.requirements import AssertDefaultSpecId, Requirement, same_retention
from bergline.format.metadata.updates import Update
from bergline.format.metadata.updates_json import WireUpdate, plain_updates
from bergline.io.fileio import FileIO
from bergline.parquet.write.write_spec import check_not_encrypted
from bergline.table.commits.operation import cleaning_up
from bergline.table.commits.rebase import PlacedChange, Proposal, put_on

MOST_TOGETHER: Final = 64
_LEAD_AGAIN_S: Final = 1.0
_GIVE_UP_S: Final = 30.0
"""Less than what the queue keeps a change for: after that it is tried without the queue."""
_PAUSE_S: Final = (0.003, 0.012)

_Update = TypeVar("_Update")


class _WireChange(msgspec.Struct, Generic[_Update], frozen=True, rename="kebab"):
    """A change as it stands in the queue."""

    requirements: tuple[Requirement, ...]
    updates: tuple[_Update, ...]


class CatalogQueue:
    """The queue of a catalog, as this process knows it."""

    def __init__(self, catalog: PointerCatalog, queue: CommitQueue) -> None:
        self.catalog = catalog
        self.queue = queue
        self.read = _READ.setdefault(queue, set())
        """Changes of this process whose outcomes are known, to be forgotten with the next one."""


_READ: WeakKeyDictionary[CommitQueue, set[str]] = WeakKeyDictionary()


def catalog_queue(catalog: Catalog) -> CatalogQueue | None:
    """The queue of a catalog; None if it has none, or in a server, whose commits are put together otherwise."""
    if not isinstance(catalog, PointerCatalog) or requesting_caller() is not None:
        return None
    store = catalog.store
    queue = store.commit_queue if isinstance(store, QueueingPointers) else None
    return None if queue is None else CatalogQueue(catalog, queue)


class QueuedCommit:
    """One change of this process, from the queue to its outcome."""

    def __init__(self, known: CatalogQueue, change: TableChange, sleep: Callable[[float], None] = time.sleep) -> None:
        self._known = known
        self._catalog = known.catalog
        self._queue = known.queue
        self._base = change.base
        self._table = change.base.name
        self._sleep = sleep
        self._token = uuid4().hex
        base = change.base.metadata
        same_spec = AssertDefaultSpecId(base.default_spec_id)
        held = (*change.requirements, *same_retention(base, change.updates), same_spec)
        wire = _WireChange[Update](held, change.updates)
        self._row = QueuedChange(self._token, current_caller().name, encode_json(wire).decode())
        self._lead_again_s = 0.0
        self._in_doubt = False
        """Whether the database did not say what became of the row."""

    def run(self) -> Committed | Unknown | None:
        """What became of the change; None if it is certain that it was not committed, and will not be."""
        cause = "the queue did not say what became of it"
        read = self._known.read.copy()  # other threads may add to it
        try:
            if self._queue.add(self._table, self._row, read):
                self._lead_again_s = time.monotonic() + _LEAD_AGAIN_S
            self._known.read.difference_update(read)
        except NOTHING_CHANGED:
            return None
        except BerglineError as error:  # it may be in the queue
            cause, self._in_doubt = str(error), True
        try:
            outcome = self._until_decided()
        except BerglineError as error:
            cause, outcome = str(error), None
        except BaseException:
            self._withdraw()
            raise
        return self._settled(outcome or self._withdraw(), cause)

    def _until_decided(self) -> QueueOutcome | None:
        """Wait for whoever leads, or lead; None if that takes too long."""
        end = time.monotonic() + _GIVE_UP_S
        while time.monotonic() < end:
            found = self._queue.outcome(self._token)
            if found is None or found.state is not QueueState.WAITING:
                return found
            if self._leads(found):
                self._commit_waiting()
            else:
                self._sleep(random.uniform(*_PAUSE_S))  # noqa: S311  (jitter)
        return None

    def _leads(self, found: QueueOutcome) -> bool:
        if found.has_leader and time.monotonic() < self._lead_again_s:
            return True
        if found.has_leader and not self._lead_again_s:
            return False
        leads = self._queue.lead(self._table, self._token)
        self._lead_again_s = time.monotonic() + _LEAD_AGAIN_S if leads else 0.0
        return leads

    def _commit_waiting(self) -> None:
        """Commit what waits for the table, all at once; who is refused tries by itself."""
        waiting = self._queue.waiting(self._table, MOST_TOGETHER)
        base = self._catalog.load_table(self._table)
        members = [_QueuedMember(self._catalog.io, self._queue, row, self._token) for row in waiting]
        try:
            results = self._catalog.commit_group(base, members).results
        except CommitUnknownError:
            raise
        except BerglineError:
            for member in members:
                member.discard()
            raise
        refused = []
        for member, result in zip(members, results, strict=True):
            match result:
                case Committed() | Unknown():
                    continue
                case Conflicted():
                    member.discard()
                case _:
                    member.discard()
                    refused.append(member.token)
        if refused:
            self._queue.refuse(refused, self._token)

    def _withdraw(self) -> QueueOutcome | None:
        """Take the change out of the queue, unless it is decided; None if it cannot be found out which."""
        for wait in status_check_waits(self._base.metadata.properties, self._sleep):
            try:
                if self._in_doubt:
                    self._queue.bar(self._table, self._token)
                if self._queue.withdraw(self._token):
                    return QueueOutcome(QueueState.REFUSED)
                return self._queue.outcome(self._token)
            except BerglineError:
                self._in_doubt = True
                wait()
        return None

    def _settled(self, outcome: QueueOutcome | None, cause: str) -> Committed | Unknown | None:
        if outcome is None or outcome.state is QueueState.WAITING:
            return Unknown(self._table, None, cause)
        self._known.read.add(self._token)
        if outcome.state is QueueState.REFUSED:
            return None
        location = outcome.metadata_location or ""
        for wait in status_check_waits(self._base.metadata.properties, self._sleep):
            try:
                return Committed((self._landed_at(location),))
            except BerglineError as error:  # it has landed, whatever can be read now
                cause = str(error)
                wait()
        return Unknown(self._table, location, cause)

    def _landed_at(self, location: str) -> LoadedTable:
        """The table after the change, or as it is now if that metadata file is gone."""
        try:
            return LoadedTable(self._table, self._catalog.metadata_at(location), location)
        except NotFoundError:
            return self._catalog.load_table(self._table)


class _QueuedMember:
    """A change of the queue, among those that are committed together."""

    def __init__(self, io: FileIO, queue: CommitQueue, row: QueuedChange, leader: str) -> None:
        self.token = row.token
        self._io = io
        self._queue = queue
        self._row = row
        self._leader = leader
        self._placed: PlacedChange | None = None

    def acting(self) -> AbstractContextManager[object]:
        """Who put the change into the queue acts."""
        return acting_as(self._row.principal)

    def change(self, base: LoadedTable) -> TableChange:
        """The change on a base; ConflictError, or another error, if it does not fit there any more."""
        self.discard()
        check_not_encrypted(base.metadata)
        wire = decode_json(self._row.change.encode(), _WireChange[WireUpdate], "the queue")
        proposal = Proposal(wire.requirements, plain_updates(wire.updates), may_move=True)
        self._placed = put_on(self._io, base, proposal, time.time_ns() // 1_000_000)
        return self._placed.change

    def finish(self) -> None:
        """Nothing: its files are there."""

    def note(self, connection: Any, metadata_location: str) -> None:
        """Write that it has landed."""
        self._queue.land(connection, self.token, metadata_location, self._leader)

    def discard(self) -> None:
        """Remove the files of an attempt that certainly did not land."""
        placed, self._placed = self._placed, None
        if placed is not None and placed.written:
            with cleaning_up(placed.change.base.name):
                self._io.delete(placed.written)
