"""Reserve the directories of tables and views that were there before directories were reserved, or that others made."""

import logging
import threading

from bergline.catalog.sql.directories.reserved_directories import Claim
from bergline.errors import BerglineError
from bergline.server.context.context import ServerContext

_LOG = logging.getLogger(__name__)
_INTERVAL_S = 3600.0


class ReservationJob:
    """A thread that looks for tables and views without a reservation after the start, and every hour."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bergline-reservation-job", daemon=True)

    def start(self) -> None:
        """Begin in the background: nothing waits for it."""
        self._thread.start()

    def stop(self) -> None:
        """End after the page that is being read; the next start goes on."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def run_once(self) -> int:
        """Reserve what is not; how many tables and views that were. Those that cannot be read stay without."""
        directories, done = self._context.claims.directories, 0
        for page in directories.reserved.unreserved():
            found: list[tuple[Claim, tuple[str, ...]]] = []
            for claim in page:
                if self._stopping.is_set():
                    return done
                try:
                    found.append((claim, tuple(directories.read(claim.kind, claim.name))))
                except BerglineError as error:
                    _LOG.info("cannot read where the files of %s %s are: %s", claim.kind, claim.name, error)
            directories.reserved.remember(found)
            done += len(found)
        return done

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if done := self.run_once():
                    _LOG.info("reserved the directories of %d tables and views", done)
            except BerglineError as error:  # the database does not respond: the next hour will tell
                _LOG.warning("cannot reserve directories: %s", error)
            except Exception:  # noqa: BLE001  (a bug of ours must not end the thread)
                _LOG.exception("the reservation of directories failed")
            self._stopping.wait(_INTERVAL_S)
