"""Deletes many files in parallel, in batches of the size that object stores accept."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from bergline.errors import BerglineError
from bergline.io.fileio import FileIO

Progress = Callable[[int, int], object]
"""Called with the number of files done and of all files; an exception ends the deletion."""

DEFAULT_THREADS = 8
_FEW, _MANY = 100, 1000  # object stores delete up to a thousand in one request


def delete_files(
    io: FileIO, locations: Sequence[str], *, threads: int = DEFAULT_THREADS, progress: Progress | None = None
) -> list[str]:
    """Delete files with up to this many threads; missing ones count as deleted. Returns those that remain."""
    size = min(max(_FEW, -(-len(locations) // threads)), _MANY)
    batches = [locations[start : start + size] for start in range(0, len(locations), size)]
    failed: list[str] = []
    done = 0
    pool = ThreadPoolExecutor(min(threads, len(batches)) or 1, thread_name_prefix="bergline-delete")
    try:
        under_way = {pool.submit(_delete, io, batch): len(batch) for batch in batches}
        for future in as_completed(under_way):
            failed += future.result()
            done += under_way[future]
            if progress is not None:
                progress(done, len(locations))
    finally:
        pool.shutdown(cancel_futures=True)
    return failed


def _delete(io: FileIO, locations: Sequence[str]) -> list[str]:
    """A batch; if storage refuses it as a whole, one file after the other."""
    try:
        return io.delete(locations)
    except BerglineError:
        if len(locations) == 1:
            return list(locations)
        return [failed for location in locations for failed in _delete(io, [location])]
