"""When tokens were last used: noted in memory by requests, written every minute by a thread."""

import logging
import threading

from bergline.catalog.sql.tokens.tokens import SqlTokens
from bergline.errors import BerglineError

_LOG = logging.getLogger("bergline.server")
_INTERVAL_S = 60.0


class TokenUses:
    """The uses that are not written yet; no request waits for them, or fails because of them."""

    def __init__(self, tokens: SqlTokens) -> None:
        self._tokens = tokens
        self._lock = threading.Lock()
        self._noted: dict[str, int] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bergline-token-uses", daemon=True)

    def note(self, name: str, at_s: float) -> None:
        """A token is used now."""
        with self._lock:
            self._noted[name] = int(at_s * 1000)

    def write(self) -> None:
        """Write what was noted since the last time; what cannot be written is lost."""
        with self._lock:
            noted, self._noted = self._noted, {}
        if not noted:
            return
        try:
            self._tokens.record_uses(noted)
        except BerglineError as error:
            _LOG.warning("cannot record when tokens were last used: %s", error)
        except Exception:  # noqa: BLE001  (a bug of ours must not end the thread)
            _LOG.exception("cannot record when tokens were last used")

    def start(self) -> None:
        """Write every minute."""
        self._thread.start()

    def stop(self) -> None:
        """Write for the last time."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
            self.write()

    def _run(self) -> None:
        while not self._stopping.wait(_INTERVAL_S):
            self.write()
