"""Files that metadata names: whether each exists, has its recorded size and, in a deep check, its rows.

One listing of the table's directory covers most files; the others are looked up one by one.
"""

import io as streams
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

import msgspec
import polars as pl

from bergline.datafiles.delete.delete_files import DeleteFiles
from bergline.datafiles.file.footer import read_footer
from bergline.datafiles.formats.data_input import open_data_file
from bergline.errors import BerglineError, FormatError, NotFoundError
from bergline.format.deletes.puffin import FOOTER_TAIL_SIZE, footer_size, parse_footer
from bergline.format.manifest.manifest import DataFile, FileContent, is_deletion_vector
from bergline.format.metadata.table_metadata import PartitionStatisticsFile, StatisticsFile, TableMetadata
from bergline.io.fileio import FileIO
from bergline.reports.check.findings import RESTORE, Findings
from bergline.reports.check.manifests import READERS, PhaseProgress
from bergline.table.expiry.path_rules import PathRules

_AT_ONCE = 256
_Item = TypeVar("_Item")
_NUM_ROWS = 3  # field of a Parquet footer
_CONTENTS = {
    FileContent.DATA: "data file",
    FileContent.POSITION_DELETES: "position delete file",
    FileContent.EQUALITY_DELETES: "equality delete file",
}


class NamedFile(msgspec.Struct, frozen=True, gc=False):
    """A file by its location: what it is, its recorded size, and the snapshots that need it."""

    location: str
    what: str
    size: int | None
    snapshots: frozenset[int] = frozenset()
    is_beside: bool = False
    """Whether reads do not need it."""


def content_files(entries: pl.DataFrame, needed: Sequence[set[int]]) -> list[NamedFile]:
    """The data and delete files of entries, each once."""
    once: dict[str, NamedFile] = {}
    columns = entries.select("file_path", "content", "file_size_in_bytes", "manifest")
    for path, content, size, manifest in columns.iter_rows():
        known = once.get(path)
        if known is None:
            once[path] = NamedFile(path, _CONTENTS[FileContent(content)], size, frozenset(needed[manifest]))
        elif not needed[manifest] <= known.snapshots:
            once[path] = msgspec.structs.replace(known, snapshots=known.snapshots | needed[manifest])
    return list(once.values())


def files_beside(metadata: TableMetadata) -> list[NamedFile]:
    """Statistics and earlier metadata files."""
    statistics: list[StatisticsFile | PartitionStatisticsFile] = [*metadata.statistics, *metadata.partition_statistics]
    found = [
        NamedFile(one.statistics_path, "statistics file", one.file_size_in_bytes, is_beside=True) for one in statistics
    ]
    earlier = (NamedFile(e.metadata_file, "earlier metadata file", None, is_beside=True) for e in metadata.metadata_log)
    return [*found, *earlier]


def check_files(
    io: FileIO, metadata: TableMetadata, files: Sequence[NamedFile], findings: Findings, progress: PhaseProgress
) -> None:
    """Compare files with those that exist."""
    rules = PathRules({}, {})
    wanted = {rules.exact(file.location): file for file in files}
    unseen = dict(wanted)
    total, done = len(wanted), 0
    if len(wanted) > 1:
        try:
            for listed in io.list_files(metadata.location):
                file = unseen.pop(rules.exact(listed.location), None)
                if file is not None:
                    _check_size(file, listed.size, findings)
                    done += 1
                    if done % _AT_ONCE == 0:
                        progress("files", done, total)
        except BerglineError:  # files that were not listed are looked up
            pass
    _in_threads(lambda file: _look_up(io, file, findings), list(unseen.values()), progress, "files", total)
    progress("files", total, total)


def check_statistics(io: FileIO, metadata: TableMetadata, findings: Findings) -> None:
    """Compare the footers of Puffin files with the blobs that metadata records."""
    for one in metadata.statistics:
        try:
            _check_puffin(io, one)
        except NotFoundError:
            continue  # found among the files
        except BerglineError as error:
            mend = "compute the statistics of the table again"
            findings.warning("statistics-unreadable", one.statistics_path, str(error), mend)


def check_contents(
    io: FileIO, entries: pl.DataFrame, needed: Sequence[set[int]], findings: Findings, progress: PhaseProgress
) -> None:
    """Open every data and delete file once, and compare its rows with the record count of its entry."""
    deletes = DeleteFiles(io, cache_bytes=0)
    once = entries.unique(["file_path", "content_offset"], maintain_order=True)

    def check(row: tuple[object, ...]) -> None:
        named = dict(zip(once.columns, row, strict=True))
        file = _data_file(named)
        if named["encrypted"]:
            findings.warning("file-unsupported", file.file_path, "the file is encrypted", "check it with its engine")
            return
        manifest = named["manifest"]
        snapshots = needed[manifest] if isinstance(manifest, int) else set()
        what = _CONTENTS[file.content]
        try:
            rows = _rows(io, file, deletes)
        except NotFoundError:
            return  # found among the files
        except BerglineError as error:
            findings.unreadable(what, file.file_path, error, snapshots=snapshots)
            return
        if rows is not None and rows != file.record_count:
            message = f"expected {file.record_count:,} rows, found {rows:,} in the {what}"
            findings.error("record-count", file.file_path, message, RESTORE, snapshots=snapshots, expiry_helps=True)

    _in_threads(check, once.iter_rows(), progress, "contents", once.height)


def _data_file(named: dict[str, object]) -> DataFile:
    fields: dict[str, Any] = {name: named[name] for name in DataFile.__struct_fields__ if name in named}
    return DataFile(**{**fields, "content": FileContent(fields["content"]), "partition": ()})


def _rows(io: FileIO, file: DataFile, deletes: DeleteFiles) -> int | None:
    if is_deletion_vector(file):
        return len(deletes.positions(file, file.referenced_data_file or ""))
    if file.file_format.upper() == "PARQUET":
        with io.open_input(file.file_path) as stream:
            try:
                rows = read_footer(stream).get(_NUM_ROWS)
            except FormatError as error:
                raise FormatError(f"{error} in {file.file_path}") from error
        return rows if isinstance(rows, int) else None
    with open_data_file(io, file) as opened:
        return sum(opened.group_rows)


def _look_up(io: FileIO, file: NamedFile, findings: Findings) -> None:
    try:
        with io.open_input(file.location) as stream:
            size = stream.seek(0, streams.SEEK_END)
    except NotFoundError:
        _missing(file, findings)
        return
    except BerglineError as error:
        if file.is_beside:
            findings.warning(_code(file, "unreadable"), file.location, str(error), RESTORE)
        else:
            findings.unreadable(file.what, file.location, error, snapshots=file.snapshots)
        return
    _check_size(file, size, findings)


def _missing(file: NamedFile, findings: Findings) -> None:
    message = f"the {file.what} does not exist"
    if not file.is_beside:
        findings.error(
            _code(file, "missing"), file.location, message, RESTORE, snapshots=file.snapshots, expiry_helps=True
        )
        return
    mend = "compute the statistics of the table again" if "statistics" in file.what else "none is needed for reads"
    findings.warning(_code(file, "missing"), file.location, message, mend)


def _check_size(file: NamedFile, size: int, findings: Findings) -> None:
    if file.size is None or size == file.size:
        return
    message = f"expected {file.size:,} bytes, found {size:,} in the {file.what}"
    if file.is_beside:
        findings.warning(_code(file, "size"), file.location, message, "compute the statistics of the table again")
        return
    findings.error(_code(file, "size"), file.location, message, RESTORE, snapshots=file.snapshots, expiry_helps=True)


def _code(file: NamedFile, what: str) -> str:
    return f"{file.what.replace(' ', '-')}-{what}"


def _check_puffin(io: FileIO, stated: StatisticsFile) -> None:
    path = stated.statistics_path
    with io.open_input(path) as stream:
        size = stream.seek(0, streams.SEEK_END)
        stream.seek(max(size - FOOTER_TAIL_SIZE, 0))
        length = footer_size(stream.read(), size, path)
        stream.seek(size - length)
        footer = parse_footer(stream.read(), size, path)
    if length != stated.file_footer_size_in_bytes:
        raise FormatError(f"expected a footer of {stated.file_footer_size_in_bytes} bytes, found {length} in {path}")
    if len(footer.blobs) != len(stated.blob_metadata):
        raise FormatError(f"expected {len(stated.blob_metadata)} blobs, found {len(footer.blobs)} in {path}")


def _in_threads(
    check: Callable[[_Item], None], items: Iterable[_Item], progress: PhaseProgress, what: str, total: int
) -> None:
    left = iter(items)
    done = 0
    with ThreadPoolExecutor(READERS, thread_name_prefix="bergline-check") as threads:
        while some := list(islice(left, _AT_ONCE)):
            for _ in threads.map(check, some):
                done += 1
            progress(what, min(done, total), total)
