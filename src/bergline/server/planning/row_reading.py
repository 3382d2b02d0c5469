"""Rows for the pages of the console, read by a worker process: it is ended if they take too much memory or time."""

from typing import Final

import msgspec

from bergline.errors import UnavailableError
from bergline.io.fileio import FileIO
from bergline.reports.row_job import JobResult, RowJob, read_here
from bergline.server.planning.worker_messages import ROWS, PlanStopped
from bergline.server.planning.worker_pool import WorkerPool

MOST_MEMORY: Final = 768 * 2**20
TIME_LIMIT_S: Final = 20.0
_IDLE_S = 300.0  # people look at one page after the other
_MOST_OF_ONE = 2


class RowReading:
    """One process that reads rows for everybody, in turns."""

    def __init__(self, io: FileIO, *, most_memory: int = MOST_MEMORY, time_limit_s: float = TIME_LIMIT_S) -> None:
        self._workers = WorkerPool(
            io,
            1,
            ROWS,
            idle_s=_IDLE_S,
            time_limit_s=time_limit_s,
            most_memory=most_memory,
            most_of_one=_MOST_OF_ONE,
        )

    def read(self, caller: str, job: RowJob[JobResult]) -> JobResult:
        """The rows, once it is the caller's turn.

        RefusedError if they take too much memory, UnavailableError if they take too long or too many calls wait, and
        what the job raises. Files in memory, which no other process has, are read here.
        """
        if not self._workers.is_there:
            return read_here(job)
        try:
            return msgspec.json.decode(self._workers.start(caller, job).response.result(), type=job.found_type())
        except PlanStopped:
            raise UnavailableError("the server is stopping: try again") from None

    def close(self) -> None:
        """End the process, and with it the reading under way."""
        self._workers.close()
