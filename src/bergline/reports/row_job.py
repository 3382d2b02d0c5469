"""Reading rows as a plain value, so that a separate process, which may be killed, can do it."""

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO

JobResult = TypeVar("JobResult")
_Found_co = TypeVar("_Found_co", covariant=True)


class RowJob(Protocol[_Found_co]):
    """A job that reads rows: plain values, which can be sent to another process."""

    @property
    def io(self) -> FileIO:
        """The files that may be read."""
        ...

    @property
    def metadata(self) -> TableMetadata:
        """The table that they belong to."""
        ...

    def reading(self, io: FileIO) -> Self:
        """The same job with another storage."""
        ...

    def found_type(self) -> type[_Found_co]:
        """The type of the result, which survives JSON unchanged."""
        ...

    def run(self, check: Callable[[], None]) -> _Found_co:
        """Read the rows; `check` is called in between, and may raise."""
        ...


class RowReader(Protocol):
    """Reads rows for a page."""

    def __call__(self, job: RowJob[JobResult], /) -> JobResult:
        """The result of the job.

        RefusedError if it takes too much memory, UnavailableError if it takes too long, and the errors of the job.
        """
        ...


def read_here(job: RowJob[JobResult], /) -> JobResult:
    """Read in this process, without limits: for those who read their own files."""
    return job.run(lambda: None)
