"""One worker process as the server sees it."""

import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import Pipe
from pathlib import Path

import bergline
from bergline.errors import BerglineError, RefusedError, StorageError, UnavailableError
from bergline.server.planning.worker_messages import (
    DONE,
    OUT_OF_MEMORY,
    PLANS,
    REFUSED,
    STOP,
    STOPPED,
    PlanStopped,
    Work,
    WorkerSetup,
)

_LOOK_EVERY_S = 0.5
_GRACE_S = 2.0
_START_S = 60.0  # which a busy machine may take; what a job takes is counted from then on
_MODULE = "bergline.server.planning.worker"
_ROOT = str(Path(bergline.__file__).parent.parent)


class WorkerProcess:
    """A process that works out one response after the other; each call is made by one thread alone, but `stop`."""

    def __init__(self, setup: WorkerSetup, work: Work = PLANS) -> None:
        self._work = work
        self._most_memory = setup.most_memory
        self._pipe, theirs = Pipe()
        self._sending = threading.Lock()
        self._stopped_at: float | None = None
        self._has_started = False
        path = os.pathsep.join(p for p in (_ROOT, os.environ.get("PYTHONPATH")) if p)
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(  # noqa: S603  (our own module)
                [sys.executable, "-P", "-m", _MODULE, str(number)],
                stdin=subprocess.DEVNULL,
                pass_fds=[number],
                env=os.environ | {"PYTHONPATH": path, "ARROW_DEFAULT_MEMORY_POOL": "system"},  # no reserve: see worker
            )
        self._send(pickle.dumps(setup))

    @property
    def process_id(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def respond(self, job: bytes, time_limit_s: float, started: Callable[[], bool]) -> bytes:
        """The response to a pickled job; PlanStopped if it was stopped, an error of ours if there is none.

        `started` is called once the process has the job, and says whether it is still wanted.
        """
        self._stopped_at = None
        try:
            self._send(job)
            if not started():
                self.stop()
            if not self._has_started:
                self._receive(_START_S)
                self._has_started = True
            return self._result(self._receive(time_limit_s))
        except (EOFError, OSError):
            raise self._end() from None

    def stop(self) -> None:
        """Give up the job under way, from any thread."""
        self._stopped_at = time.monotonic()
        try:
            self._send(STOP)
        except OSError:
            return  # it has died: the thread that waits finds out

    def kill(self) -> None:
        """End the process in the middle of its job, from any thread."""
        self._stopped_at = time.monotonic()
        self._process.kill()

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.kill()
        self._process.wait()

    def _receive(self, time_limit_s: float) -> bytes:
        deadline = time.monotonic() + time_limit_s
        while not self._pipe.poll(min(_LOOK_EVERY_S, time_limit_s)):
            self._check_time(deadline, time_limit_s)
        return self._pipe.recv_bytes()

    def _send(self, message: bytes) -> None:
        with self._sending:
            self._pipe.send_bytes(message)

    def _check_time(self, deadline: float, time_limit_s: float) -> None:
        now = time.monotonic()
        if self._stopped_at is not None and now > self._stopped_at + _GRACE_S:
            self._process.kill()  # it is in the middle of a manifest
            self._process.wait()
            raise PlanStopped
        if now > deadline:
            self._process.kill()
            self._process.wait()
            raise UnavailableError(f"cannot {self._work.doing} in {time_limit_s:g} seconds", hints=self._work.hints)

    def _end(self) -> BerglineError | PlanStopped:
        """The error for a process that has ended."""
        self._process.kill()
        status = self._process.wait()
        if self._stopped_at is not None:
            return PlanStopped()
        if status == OUT_OF_MEMORY:
            most = self._most_memory // 2**20
            return RefusedError(f"cannot {self._work.doing} in {most:,} MiB of memory", hints=self._work.hints)
        return UnavailableError(f"the process that was to {self._work.doing} has died: nothing was changed, try again")

    def _result(self, message: bytes) -> bytes:
        kind, content = message[:1], message[1:]
        if kind == DONE:
            return content
        if kind == STOPPED:
            raise PlanStopped
        if kind == REFUSED:
            error: BerglineError = pickle.loads(content)  # noqa: S301  (from our own process)
            raise error
        raise StorageError(f"cannot {self._work.doing}; the server's log says why")
