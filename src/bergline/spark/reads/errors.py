"""A file that is gone when a frame runs: one error of ours, whichever reader missed it and whatever the action was.

Spark's reader and our workers fail far from here, and all that comes back is the text of a Java exception. PySpark
makes every such exception a Python one in a single function, where `attach` lets this module look first.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from bergline.errors import BerglineError, NotFoundError
from bergline.io.locations import normalized
from bergline.scan.plan import ScanPlan
from bergline.scan.planned_files import paths_of
from bergline.spark.runtime.errors import spark_error
from bergline.spark.runtime.tasks import missing_file
from bergline.table.scans.scan import TableScan, find_expiry

_REMEMBERED = 64
_RECENT: deque[TableScan] = deque(maxlen=_REMEMBERED)
_FROM_WORKER = re.compile(r"NotFoundError: no (data|delete) file (.+), which snapshot (\S+) needs")
_FROM_SPARK = re.compile(r"\[FAILED_READ_FILE\.FILE_NOT_EXIST\] Encountered error while reading file (\S+)\. File does")


def remember_scan(scan: TableScan) -> None:
    """Keep what is read, to know later which snapshot needs a file; the oldest of many is forgotten."""
    _RECENT.append(scan)


def forget_scans() -> None:
    """Forget all scans."""
    _RECENT.clear()


def with_missing_files(convert: Callable[[Any], Exception]) -> Callable[[Any], Exception]:
    """PySpark's function that makes Python exceptions of Java's, with our error where a file of a table is gone."""

    def converted(java_exception: Any) -> Exception:
        error = convert(java_exception)
        found = find_missing_file(f"{getattr(error, '_desc', '')}\n{getattr(error, '_stackTrace', '')}")
        return error if found is None else spark_error(found)

    return converted


@contextmanager
def missing_files_named(plan: ScanPlan) -> Iterator[None]:
    """Our error for a file of a plan that Spark's reader misses in the block."""
    try:
        yield
    except Exception as error:  # PySpark gives what it has no class for as Py4J's
        found = _FROM_SPARK.search(str(error))
        target = normalized(unquote(found[1])) if found else None
        path = next((path for path in paths_of(plan.files) if normalized(path) == target), None)
        if path is None:
            raise
        raise missing_file("data", path, plan.snapshot_id) from error


def find_missing_file(text: str) -> NotFoundError | None:
    """The file that an exception's text says is gone, if a table needs it."""
    if found := _FROM_WORKER.search(text):
        error = missing_file(*found.groups())
        scans = (scan for scan in reversed(_RECENT) if str(scan.snapshot_id) == found[3])
        return next((expired for scan in scans if (expired := find_expiry(scan, error))), error)
    if found := _FROM_SPARK.search(text):
        return _native(found[1])
    return None


def _native(encoded: str) -> NotFoundError | None:
    """Spark names the file by its encoded path and knows no snapshot; None if no scan has the file.

    What files an expired snapshot had is no longer known: one of its table was among them.
    """
    target = normalized(unquote(encoded))
    name = target.rsplit("/", 1)[-1]
    for scan in reversed(_RECENT):
        try:
            plan = scan.plan()
        except NotFoundError as error:  # its manifests are gone too
            if error.kind == "snapshot" and target.startswith(f"{normalized(scan.metadata.location)}/"):
                return error
            continue
        except BerglineError:
            continue
        for path in paths_of(plan.files):
            if path.endswith(name) and normalized(path) == target:
                missing = missing_file("data", path, plan.snapshot_id)
                return find_expiry(scan, missing) or missing
    return None
