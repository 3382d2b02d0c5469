"""What a person sees of a long write: a description beside Spark's own progress, and a line in the log at the end."""

import contextlib
import logging
from collections.abc import Iterator, Sequence

from pyspark.sql import SparkSession

from bergline.format.manifest import DataFile

_LOG = logging.getLogger("bergline.spark")
_DESCRIPTION = "spark.job.description"


@contextlib.contextmanager
def described_jobs(spark: SparkSession, what: str) -> Iterator[None]:
    """Name the jobs of the block, on Spark's pages and wherever its progress is shown."""
    context = getattr(spark, "_sc", None)  # Spark Connect has none
    if context is None:
        yield
        return
    before = context.getLocalProperty(_DESCRIPTION)
    context.setJobDescription(what)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)


def log_written(what: str, files: Sequence[DataFile], seconds: float) -> None:
    """One line of what came of it."""
    rows, size = sum(f.record_count for f in files), sum(f.file_size_in_bytes for f in files)
    _LOG.info("%s: %s rows in %s files, %.1f MB, %.1f s", what, f"{rows:,}", f"{len(files):,}", size / 1e6, seconds)
