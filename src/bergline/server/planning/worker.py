"""A process that plans scans for a server: `python -m bergline.server.planning.worker FD`, with a pipe to the server.

It ends with the server, whatever becomes of that: the pipe is at its end then.
"""

import contextlib
import logging
import os
import pickle
import queue
import signal
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path

from bergline.errors import BerglineError
from bergline.server.planning.filters import FilterCache
from bergline.server.planning.pages import PlanJob, respond
from bergline.server.planning.worker_messages import (
    DONE,
    FAILED,
    OUT_OF_MEMORY,
    REFUSED,
    STOP,
    STOPPED,
    PlanStopped,
    WorkerSetup,
)

_LOG = logging.getLogger("bergline.server")
_LOOK_EVERY_S = 0.25
_MEMORY = Path("/proc/self/statm")


class _Worker:
    """Plans in the main thread, while another one listens and watches."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._is_stopped = threading.Event()
        self._is_busy = threading.Event()
        self._filters = FilterCache()

    def run(self) -> None:
        """Plan until the server is gone."""
        with contextlib.suppress(EOFError, OSError):
            self._setup: WorkerSetup = pickle.loads(self._pipe.recv_bytes())  # noqa: S301  (from the server itself)
            threading.Thread(target=self._listen, daemon=True).start()
            while True:
                response = self._response(self._jobs.get())
                self._is_busy.clear()
                self._pipe.send_bytes(response)

    def _listen(self) -> None:
        try:
            while True:
                if not self._pipe.poll(_LOOK_EVERY_S if self._is_busy.is_set() else None):
                    self._watch()
                    continue
                message = self._pipe.recv_bytes()
                if message == STOP:
                    self._is_stopped.set()
                else:
                    self._is_stopped.clear()
                    self._is_busy.set()
                    self._jobs.put(message)
        except (EOFError, OSError):
            os._exit(0)  # the server is gone: nobody wants the plan

    def _watch(self) -> None:
        if _memory() > self._setup.most_memory:
            os._exit(OUT_OF_MEMORY)

    def _response(self, message: bytes) -> bytes:
        try:
            job: PlanJob = pickle.loads(message)  # noqa: S301  (from the server itself)
            return DONE + respond(self._setup.io, job, self._filters, self._check)
        except PlanStopped:
            return STOPPED
        except BerglineError as error:
            return REFUSED + pickle.dumps(error)
        except Exception:  # noqa: BLE001  (a bug of ours fails one plan, not the worker)
            _LOG.exception("a scan could not be planned")
            return FAILED

    def _check(self) -> None:
        if self._is_stopped.is_set():
            raise PlanStopped


def _memory() -> int:
    """The resident memory of this process in bytes; 0 where the system does not say."""
    try:
        return int(_MEMORY.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def main() -> None:
    """Plan for the server at the other end of a pipe."""
    for number in (signal.SIGINT, signal.SIGTERM):  # the server finishes its requests first, and then ends this
        signal.signal(number, signal.SIG_IGN)
    _Worker(Connection(int(sys.argv[1]))).run()


if __name__ == "__main__":
    main()
