"""Commits to one table that clients request at the same time: one metadata file and one swap for all.

Each is checked and answered by itself, as if it had come alone after those before it.
"""

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from bergline.catalog.catalog import Committed, Conflicted, LoadedTable, Outcome, TableChange, Unknown
from bergline.catalog.conflicts import describe_latest
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.pointer.pointer_store import NOTHING_CHANGED
from bergline.catalog.protection.caller import Caller, acting_for
from bergline.catalog.sql.database import Connection, DatabaseError
from bergline.catalog.turns import TurnTaken
from bergline.errors import BerglineError, ConflictError, StorageError
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.updates import AddSnapshot
from bergline.governance.events.change_events import MovedTables
from bergline.server.commits.group_files import GroupFiles
from bergline.server.commits.requested_commits import LIMITS, RequestedChange, discard, is_done, place_requested
from bergline.table.commits.rebase import RebasedChange
from bergline.table.commits.retry import RetryLoop, Timing, unknown_commit

_LOG = logging.getLogger("bergline.server")


class NotedRequest(Protocol):
    """A request, whose rows are written in the transaction of its change."""

    caller: Caller
    is_noted: bool

    def note(self, connection: Connection, changed: MovedTables) -> None:
        """Write them."""
        ...


class RequestedMember:
    """The change of one request, among those that are committed together."""

    def __init__(
        self, catalog: PointerCatalog, change: RequestedChange, request: NotedRequest, files: GroupFiles | None = None
    ) -> None:
        self._catalog = catalog
        self._change = change
        self._request = request
        self._files = files
        self._placed: RebasedChange | None = None

    @property
    def snapshots(self) -> list[Snapshot]:
        """The snapshots that the change adds."""
        return [u.snapshot for u in self._change.updates if isinstance(u, AddSnapshot)]

    def acting(self) -> AbstractContextManager[object]:
        """The caller of the request acts."""
        return acting_for(self._request.caller)

    def change(self, base: LoadedTable) -> TableChange:
        """The change on a base; none if it was made before. ConflictError says who came first."""
        self.discard()
        self._request.is_noted = False
        if is_done(self._change, base):
            return TableChange(base, (), ())
        self._placed = place_requested(self._catalog, self._change, base, self._files)
        return self._placed.change

    def finish(self) -> None:
        """Wait for the files that were written for the change."""
        if self._files is not None and self._placed is not None:
            self._files.finish(self._placed.written)

    def before_commit(self, connection: Connection, metadata_location: str) -> None:
        """Write the rows of the request; a fault of ours over them is of this request alone."""
        try:
            self._request.note(connection, ((self._change.name, metadata_location),))
        except (BerglineError, DatabaseError):
            raise
        except Exception as error:
            _LOG.exception("the rows of a commit to `%s` could not be written", self._change.name)
            raise StorageError("the server failed; its log says why") from error

    def refused(self, error: Exception) -> Exception:
        """What refuses the change, which certainly did not get in; a conflict is one with what was committed last."""
        placed = self._placed
        self.discard()
        if placed is None or not isinstance(error, ConflictError):
            return error
        return ConflictError(f"{error}; {describe_latest(placed.change.base.metadata)}", hints=error.hints)

    def discard(self) -> None:
        """Remove the files that were written for an attempt which certainly did not get in."""
        placed, self._placed = self._placed, None
        if placed is not None:
            discard(self._files or self._catalog.io, (placed,))


def commit_together(
    catalog: PointerCatalog, name: TableName, members: Sequence[RequestedMember], files: GroupFiles | None = None
) -> tuple[LoadedTable | Exception, ...]:
    """What became of each member, all of which change the same table: the table after it, or why it was not changed.

    CommitUnknownError if that is not known.
    """
    answers: dict[int, LoadedTable | Exception] = {}

    def attempt(_: int) -> Conflicted | None:
        waiting = [place for place in range(len(members)) if place not in answers]
        base = catalog.load_table(name)
        if files is not None:
            files.read_ahead(base.metadata, [s for place in waiting for s in members[place].snapshots])
        results = catalog.commit_group(base, [members[place] for place in waiting])
        lost: ConflictError | None = None
        for place, result in zip(waiting, results, strict=True):
            if isinstance(result, Conflicted):
                lost = result.reason
            else:
                answers[place] = _answer(members[place], result)
        return None if lost is None else Conflicted(lost, (base.metadata_location,))

    try:
        RetryLoop(Timing(), lambda: LIMITS).run(attempt)
    except Exception as error:  # noqa: BLE001  (it is the answer to all that have none)
        for place, member in enumerate(members):
            if place not in answers and isinstance(error, (*NOTHING_CHANGED, ConflictError, TurnTaken)):
                member.discard()
        return tuple(answers.get(place, error) for place in range(len(members)))
    return tuple(answers[place] for place in range(len(members)))


def _answer(member: RequestedMember, result: Outcome | Exception) -> LoadedTable | Exception:
    match result:
        case Committed(tables):
            return tables[0]
        case Unknown():
            return unknown_commit(result)
        case Conflicted(reason):
            return reason
        case _:
            return member.refused(result)
