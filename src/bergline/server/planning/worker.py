"""A process that plans scans and reads rows: `python -m bergline.server.planning.worker FD`, with a pipe to the server.

It ends with the server, whatever becomes of that: the pipe is at its end then. Its memory is bounded twice: a thread
looks at what it really has, and the system gives no more than twice that to a step which is quicker than the thread.
"""

import contextlib
import logging
import os
import pickle
import queue
import resource
import signal
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from bergline.errors import BerglineError
from bergline.reports.row_job import RowJob
from bergline.server.planning.filters import FilterCache
from bergline.server.planning.pages import PlanJob, respond
from bergline.server.planning.worker_messages import (
    DONE,
    FAILED,
    OUT_OF_MEMORY,
    REFUSED,
    STARTED,
    STOP,
    STOPPED,
    PlanStopped,
    WorkerSetup,
)

_LOG = logging.getLogger("bergline.server")
_LOOK_EVERY_S = 0.1
_MEMORY = Path("/proc/self/statm")
_RESIDENT, _DATA = 1, 5
_FOR_THREADS = 64 * 2**20 + 16 * 2**20 * (os.cpu_count() or 1)
"""Memory that the stacks of threads may have, which hardly use it."""


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
            _limit_memory(self._setup.most_memory)
            self._pipe.send_bytes(STARTED)
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
        if _memory(_RESIDENT) > self._setup.most_memory:
            os._exit(OUT_OF_MEMORY)

    def _response(self, message: bytes) -> bytes:
        try:
            job: PlanJob | RowJob[object] = pickle.loads(message)  # noqa: S301  (from the server itself)
            if isinstance(job, PlanJob):
                return DONE + respond(self._setup.io, job, self._filters, self._check)
            return DONE + msgspec.json.encode(job.run(self._check))
        except PlanStopped:
            return STOPPED
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        except BerglineError as error:
            if isinstance(error.__cause__, MemoryError):  # what asks for too much is taken for a damaged file
                os._exit(OUT_OF_MEMORY)
            return REFUSED + pickle.dumps(error)
        except Exception:  # noqa: BLE001  (a bug of ours fails one job, not the worker)
            _LOG.exception("a scan could not be planned, or its rows not be read")
            return FAILED

    def _check(self) -> None:
        if self._is_stopped.is_set():
            raise PlanStopped


def _limit_memory(more: int) -> None:
    """Have the system refuse memory beyond what this process has now and twice so many bytes, where it can.

    Twice, for what was allocated counts, used or not.
    """
    with contextlib.suppress(OSError, ValueError):
        most = _memory(_DATA) + 2 * more + _FOR_THREADS
        resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def _memory(field: int) -> int:
    """The resident memory of this process in bytes, or that of its data; 0 where the system does not say."""
    try:
        return int(_MEMORY.read_text().split()[field]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def main() -> None:
    """Plan for the server at the other end of a pipe."""
    for number in (signal.SIGINT, signal.SIGTERM):  # the server finishes its requests first, and then ends this
        signal.signal(number, signal.SIG_IGN)
    _Worker(Connection(int(sys.argv[1]))).run()


if __name__ == "__main__":
    main()
