"""What little work is: this process does it sooner than tasks would begin with it."""

from collections.abc import Collection
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from bergline.scan.plan import PlannedFile
from bergline.spark.backends.choose import backend_of

MOST_FILES: Final = 32
MOST_ROWS: Final = 10_000
MOST_BYTES = 1 << 20
"""So many bytes has all that is read of tables."""


def few_rows(frame: DataFrame) -> list[pa.RecordBatch] | None:
    """The rows of a frame that is computed from little, if they are few; None if they may be many."""
    return backend_of(frame).few_rows(frame, MOST_ROWS, MOST_BYTES)


def is_little(files: Collection[PlannedFile]) -> bool:
    """Whether reading these files, and writing them again, is little work."""
    if len(files) > MOST_FILES:
        return False
    deletes = {delete.file_path: delete.file_size_in_bytes for planned in files for delete in planned.deletes}
    return sum(planned.file.file_size_in_bytes for planned in files) + sum(deletes.values()) <= MOST_BYTES
