"""Worker processes that plan scans and read rows: started when there is work, ended when there is none, shared fairly.

They are processes so that commits, whose threads share one interpreter, never wait for a plan, and so that files that
others wrote take no more memory and time than they may.
"""

import contextlib
import os
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from enum import Enum

from bergline.errors import UnavailableError
from bergline.io.fileio import FileIO
from bergline.reports.row_job import RowJob
from bergline.server.planning.pages import PlanJob
from bergline.server.planning.worker_messages import PLANS, PlanStopped, Work, WorkerSetup
from bergline.server.planning.worker_process import WorkerProcess

_MOST_MEMORY = 2 * 2**30
_TIME_LIMIT_S = 300.0
_IDLE_S = 60.0
_MOST_WAITING, _MOST_OF_ONE = 500, 100
_MOST_WAITING_BYTES = 64 * 2**20
_MOST_PROCESSES = 4


class _State(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    OVER = "over"


class RunningPlan:
    """A plan that waits for a worker, is worked out by one, or is over."""

    def __init__(self, principal: str, job: bytes) -> None:
        self.principal = principal
        self.job = job
        self.response: Future[bytes] = Future()
        """The body; PlanStopped after the plan was cancelled, an error of ours if it failed."""
        self.state = _State.WAITING
        self.process: WorkerProcess | None = None

    def finish(self, body: bytes | None, error: Exception | None = None) -> None:
        """Answer those who wait; a second answer is of no account."""
        with contextlib.suppress(InvalidStateError):
            if error is not None:
                self.response.set_exception(error)
            elif body is not None:
                self.response.set_result(body)


class WorkerPool:
    """Up to so many worker processes, and the plans that wait for one."""

    def __init__(
        self,
        io: FileIO,
        number: int,
        work: Work = PLANS,
        *,
        idle_s: float = _IDLE_S,
        time_limit_s: float = _TIME_LIMIT_S,
        most_memory: int = _MOST_MEMORY,
        most_of_one: int = _MOST_OF_ONE,
    ) -> None:
        self._setup = WorkerSetup(io, most_memory)
        self._work_kind = work
        self._number = number if _can_be_sent(io) else 0
        self._idle_s = idle_s
        self._time_limit_s = time_limit_s
        self._most_of_one = most_of_one
        self._changed = threading.Condition()
        self._waiting: dict[str, deque[RunningPlan]] = {}
        self._running: list[RunningPlan] = []
        self._bytes = 0
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._is_closed = False

    @property
    def is_there(self) -> bool:
        """Whether plans can be handed to processes."""
        return self._number > 0

    @property
    def process_ids(self) -> list[int]:
        """The processes that are working on a plan."""
        with self._changed:
            return [plan.process.process_id for plan in self._running if plan.process is not None]

    def start(self, principal: str, job: PlanJob | RowJob[object]) -> RunningPlan:
        """Have a response worked out; UnavailableError if too many wait already."""
        plan = RunningPlan(principal, pickle.dumps(job))
        with self._changed:
            self._check_room(plan)
            self._waiting.setdefault(principal, deque()).append(plan)
            self._bytes += len(plan.job)
            waiting = sum(map(len, self._waiting.values()))
            if waiting > self._idle and len(self._threads) < self._number:
                thread = threading.Thread(target=self._work, name="bergline-planning-worker", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify()
        return plan

    def cancel(self, plan: RunningPlan) -> None:
        """Answer those who wait for a plan, and give up the work."""
        plan.finish(None, PlanStopped())
        with self._changed:
            if plan.state is _State.WAITING:
                self._remove(plan)
                plan.state, plan.job = _State.OVER, b""
            elif plan.state is _State.RUNNING and plan.process is not None:
                plan.process.stop()

    def close(self) -> None:
        """End all processes, and with them the plans under way."""
        with self._changed:
            self._is_closed = True
            plans = [*self._running, *(plan for plans in self._waiting.values() for plan in plans)]
            threads = list(self._threads)
            for plan in self._running:
                if plan.process is not None:
                    plan.process.kill()
            self._changed.notify_all()
        for plan in plans:
            self.cancel(plan)
        for thread in threads:
            thread.join()

    def _check_room(self, plan: RunningPlan) -> None:
        if self._is_closed:
            raise UnavailableError("the server is stopping: nothing was changed, try again")
        of_one = len(self._waiting.get(plan.principal, ()))
        is_full = sum(map(len, self._waiting.values())) >= _MOST_WAITING
        if of_one >= self._most_of_one or is_full or self._bytes + len(plan.job) > _MOST_WAITING_BYTES:
            raise UnavailableError(f"too many {self._work_kind.many} at once: nothing was changed, try again")

    def _remove(self, plan: RunningPlan) -> None:
        plans = self._waiting[plan.principal]
        plans.remove(plan)
        if not plans:
            del self._waiting[plan.principal]
        self._bytes -= len(plan.job)

    def _next(self) -> RunningPlan | None:
        """The next plan: of the principal with the fewest under way; None if there was none for some time."""
        end = time.monotonic() + self._idle_s
        with self._changed:
            while not self._waiting and not self._is_closed and (left := end - time.monotonic()) > 0:
                self._idle += 1
                self._changed.wait(left)
                self._idle -= 1
            if self._is_closed or not self._waiting:
                self._threads.remove(threading.current_thread())
                return None
            under_way = [plan.principal for plan in self._running]
            plan = self._waiting[min(self._waiting, key=under_way.count)][0]
            self._remove(plan)
            if plan.principal in self._waiting:  # the next turn is another's
                self._waiting[plan.principal] = self._waiting.pop(plan.principal)
            plan.state = _State.RUNNING
            self._running.append(plan)
            return plan

    def _work(self) -> None:
        process: WorkerProcess | None = None
        try:
            while (plan := self._next()) is not None:
                if process is not None and not process.is_alive:
                    process.close()
                    process = None
                process = self._run(plan, process)
        finally:
            if process is not None:
                process.close()

    def _run(self, plan: RunningPlan, process: WorkerProcess | None) -> WorkerProcess | None:
        """Work out a plan in a process, a new one if there is none; every plan gets some answer."""
        body, failed = None, None
        try:
            process = process or WorkerProcess(self._setup, self._work_kind)
            body = process.respond(plan.job, self._time_limit_s, self._started(plan, process))
        except Exception as error:  # noqa: BLE001  (whatever it is: it is this plan's, and those who wait get it)
            failed = error
        with self._changed:
            plan.state, plan.process, plan.job = _State.OVER, None, b""
            self._running.remove(plan)
        plan.finish(body, failed)
        return process

    def _started(self, plan: RunningPlan, process: WorkerProcess) -> Callable[[], bool]:
        def started() -> bool:
            with self._changed:
                plan.process = process
                return not plan.response.done() and not self._is_closed

        return started


def default_processes() -> int:
    """How many processes plan on this machine: one on a small one."""
    return max(1, min(_MOST_PROCESSES, (os.cpu_count() or 1) // 2))


def _can_be_sent(io: FileIO) -> bool:
    """Whether another process can use the same files; one in memory cannot be shared."""
    try:
        pickle.dumps(io)
    except Exception:  # noqa: BLE001  (pickling raises what it likes)
        return False
    return True
