"""Purge tables whose time in the trash is over, in the background; several servers on one catalog share the work."""

import logging
import threading
import time
from collections.abc import Callable

from bergline.catalog.catalog import LoadedTable
from bergline.catalog.sql.trash.dropped_tables import ClaimedPurge
from bergline.errors import BerglineError, NotFoundError
from bergline.server.context.context import ServerContext
from bergline.table.orphans.purge import PurgeResult, purge_dropped

_LOG = logging.getLogger(__name__)
_LEASE_MS = 10 * 60 * 1000
_RETRY_MS = 60 * 60 * 1000
_INTERVAL_S = 60.0


class PurgeJob:
    """A thread that purges one table after the other, each claimed from the trash for a time that is extended."""

    def __init__(
        self, context: ServerContext, clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self._context = context
        self._clock_ms = clock_ms
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bergline-purge-job", daemon=True)

    def start(self) -> None:
        """Look into the trash every minute."""
        self._thread.start()

    def stop(self) -> None:
        """End after the piece that is being deleted; another server, or the next start, goes on."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def run_once(self) -> bool:
        """Purge one table; False if no table's time is over: then views whose time is over are forgotten."""
        claim = self._context.store.table_trash.claim(self._clock_ms(), _LEASE_MS)
        if claim is None:
            self._context.store.view_trash.forget_due(self._clock_ms())
            return False
        purge = _Purge(self._context, claim, self._clock_ms, self._stopping)
        try:
            purge.run()
        except _StoppedError:
            pass
        except BerglineError as error:
            _LOG.warning("cannot purge table %s: %s", claim.table.name, error)
            purge.put_off(str(error.told or error) if self._context.access.refresh().is_active else str(error))
        return True

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                while not self._stopping.is_set() and self.run_once():
                    pass
            except BerglineError as error:  # the database does not respond: the next minute will tell
                _LOG.warning("cannot look into the trash: %s", error)
            except Exception:  # noqa: BLE001  (a bug of ours must not end the thread)
                _LOG.exception("the purge of dropped tables failed")
            self._stopping.wait(_INTERVAL_S)


class _StoppedError(Exception):
    """The server is stopping."""


class _Purge:
    """The purge of one claimed table."""

    def __init__(
        self, context: ServerContext, claim: ClaimedPurge, clock_ms: Callable[[], int], stopping: threading.Event
    ) -> None:
        self._context = context
        self._claim = claim
        self._clock_ms = clock_ms
        self._stopping = stopping
        self._begun = claim.table.purge_begun

    def run(self) -> None:
        trash, dropped = self._context.store.table_trash, self._claim.table
        if dropped.purges_files:
            result = self._delete()
            if result is None:
                return
            if result.failed:
                self.put_off(f"{len(result.failed)} files could not be deleted, such as {result.failed[0]}")
                return
            _LOG.info("purged table %s: %d files", dropped.name, result.deleted_files)
        trash.forget(self._claim)

    def put_off(self, problem: str) -> None:
        """Try again in an hour."""
        self._context.store.table_trash.put_off(self._claim, self._clock_ms() + _RETRY_MS, problem, begun=self._begun)

    def _delete(self) -> PurgeResult | None:
        catalog, dropped = self._context.catalog, self._claim.table
        try:
            metadata = catalog.tables.metadata_at(dropped.metadata_location)
        except NotFoundError:
            if not dropped.purge_begun:
                raise
            return PurgeResult(0)  # it is the last file that goes
        table = LoadedTable(dropped.name, metadata, dropped.metadata_location)
        result = purge_dropped(catalog, table, self._begin, self._go_on, resumed=dropped.purge_begun)
        if result is not None and not result.failed:
            self._context.claims.directories.reserved.release(dropped.name, metadata.table_uuid)
        return result

    def _begin(self) -> bool:
        return self._context.store.table_trash.begin(self._claim)

    def _go_on(self) -> None:
        if self._stopping.is_set():
            raise _StoppedError
        self._begun = True
        self._claim = self._context.store.table_trash.extend(self._claim, self._clock_ms() + _LEASE_MS)
