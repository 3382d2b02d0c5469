"""Reading of rows as a value, so that a process that may be ended can do it."""

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO

JobResult = TypeVar("JobResult")
_Found_co = TypeVar("_Found_co", covariant=True)


class RowJob(Protocol[_Found_co]):
    """What rows are read from: plain values, which another process can have."""

    @property
    def io(self) -> FileIO:
        """The files that may be read."""
        ...

    @property
    def metadata(self) -> TableMetadata:
        """The table that they are of."""
        ...

    def reading(self, io: FileIO) -> Self:
        """The same, reading by another way."""
        ...

    def found_type(self) -> type[_Found_co]:
        """The type of what is found, which JSON keeps as it is."""
        ...

    def run(self, check: Callable[[], None]) -> _Found_co:
        """Read; `check` is called in between, and may raise."""
        ...


class RowReader(Protocol):
    """Whoever reads rows for a page."""

    def __call__(self, job: RowJob[JobResult], /) -> JobResult:
        """What the job finds.

        RefusedError if it takes too much memory, UnavailableError if it takes too long, and the errors of the job.
        """
        ...


def read_here(job: RowJob[JobResult], /) -> JobResult:
    """Read in this process, without bounds: for those who read their own files."""
    return job.run(lambda: None)
