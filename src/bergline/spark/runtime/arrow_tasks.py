"""Functions of Arrow batches that run in Spark's Python workers, and what makes the tasks of a worker cheap.

Workers import this: it imports nothing of ours. Why: docs/decisions/0035-cheap-python-tasks.md
"""

import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from zipimport import zipimporter

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

ArrowFunction = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_seen_modules = 0


def map_in_arrow(frame: DataFrame, run: ArrowFunction, schema: T.StructType | str) -> DataFrame:
    """`frame.mapInArrow`, for functions of ours: what a worker imports for them makes its later tasks no slower."""
    return frame.mapInArrow(after_imports(run), schema)


def after_imports(run: ArrowFunction) -> ArrowFunction:
    """The function, which first sees to it that its worker's later tasks are no slower by its imports."""

    def run_after_imports(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_imports()
        return run(batches)

    return run_after_imports


def keep_imports() -> None:
    """Spare later tasks of this worker from looking up its packages again, and from collecting garbage among them.

    Before each task PySpark has all finders forget what they know, after it collects garbage among all objects.
    """
    global _seen_modules  # noqa: PLW0603  (a worker is a process)
    if _seen_modules == len(sys.modules):
        return
    for finder in list(sys.path_importer_cache.values()):
        if isinstance(finder, zipimporter) and "invalidate_caches" not in vars(finder):
            read_when_changed(finder)
    gc.freeze()
    _seen_modules = len(sys.modules)


def read_when_changed(finder: zipimporter) -> None:
    """Let a finder read its archive's directory again only if that is another file by now."""
    known = _version(finder.archive)

    def invalidate_caches() -> None:
        nonlocal known
        if (found := _version(finder.archive)) != known:
            zipimporter.invalidate_caches(finder)
            known = found

    as_any: Any = finder  # each directory in a zip has a finder of its own, and each reads the whole zip
    as_any.invalidate_caches = invalidate_caches


def _version(archive: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(archive)  # noqa: PTH116  (many times in each task)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
