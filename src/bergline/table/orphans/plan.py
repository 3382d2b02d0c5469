"""What is known about orphan files before any is deleted: a value to inspect, print, or pass to the sweep."""

import datetime as dt
from collections.abc import Iterator
from enum import Enum

import msgspec
import pyarrow as pa

from bergline.catalog.identifiers import TableName
from bergline.io.fileio import ListedFile
from bergline.sizes import render_size

_SHOWN = 20


class PrefixMismatch(Enum):
    """What happens to files that metadata may reference under another scheme, authority or encoding."""

    ERROR = "error"
    IGNORE = "ignore"
    DELETE = "delete"


class OrphanRequest(msgspec.Struct, frozen=True):
    """The caller's options; None means the default."""

    older_than_ms: int | None = None
    location: str | None = None
    equal_schemes: dict[str, str] = {}
    equal_authorities: dict[str, str] = {}
    prefix_mismatch: PrefixMismatch = PrefixMismatch.ERROR
    allow_recent: bool = False
    read_all_tables: bool = False


class OrphanPlan(msgspec.Struct, frozen=True):
    """The files to delete, and how many stay for which reason; `print(plan)` shows it."""

    table: TableName
    table_uuid: str | None
    metadata_location: str
    request: OrphanRequest
    locations: tuple[str, ...]
    """The directories that were listed."""
    cutoff_ms: int
    files: tuple[ListedFile, ...] = ()
    in_doubt: tuple[ListedFile, ...] = ()
    """Files that are kept because metadata may reference them under another scheme, authority or encoding."""
    needed: int = 0
    recent: int = 0
    hidden: int = 0

    @property
    def size(self) -> int:
        """The total size of the files to delete."""
        return sum(f.size for f in self.files)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def to_arrow(self) -> pa.Table:
        """One row for each file to delete."""
        return pa.table(
            {
                "location": pa.array([printable(f.location) for f in self.files], pa.string()),
                "size_in_bytes": pa.array([f.size for f in self.files], pa.int64()),
                "last_modified": pa.array([f.modified_ms for f in self.files], pa.timestamp("ms", "UTC")),
            }
        )

    def _lines(self) -> Iterator[str]:
        yield f"orphan files of `{self.table}` from before {_moment(self.cutoff_ms)}"
        yield from (f"  in {printable(place)}" for place in self.locations)
        yield f"{len(self.files):,} may go ({render_size(self.size)}):"
        for file in self.files[:_SHOWN]:
            yield f"  {_moment(file.modified_ms)}  {render_size(file.size):>10}  {printable(file.location)}"
        if len(self.files) > _SHOWN:
            yield f"  and {len(self.files) - _SHOWN:,} more"
        yield (
            f"{self.needed:,} are needed, {self.recent:,} are too recent, {self.hidden:,} are hidden, "
            f"{len(self.in_doubt):,} are in doubt"
        )


def printable(location: str) -> str:
    """A location as text that can be printed: names on a local disk may be arbitrary bytes."""
    return location.encode(errors="backslashreplace").decode()


def _moment(ms: int) -> str:
    return dt.datetime.fromtimestamp(ms // 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
