"""Few rows that the driver has already, such as those of VALUES: written in this process, without a task for it."""

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame

from bergline.format.manifest.manifest import DataFile
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.parquet.write.write_spec import write_spec
from bergline.parquet.write.writer import DataFileWriter
from bergline.spark.backends.choose import backend_of
from bergline.spark.writes.distribution import arrange_here

MOST_ROWS = 10_000
"""More rows than these are left to Spark's tasks."""


def is_at_hand(frame: DataFrame) -> bool:
    """Whether a frame is a list of few rows, computed already: Spark needs no task to give them."""
    return backend_of(frame).is_at_hand(frame, MOST_ROWS)


def write_here(frame: DataFrame, io: FileIO, metadata: TableMetadata, job: str) -> list[DataFile]:
    """The files of a frame whose rows are at hand, in the table's order."""
    arranged = arrange_here(frame, metadata)
    spec = msgspec.structs.replace(write_spec(metadata), sort_order_id=arranged.sort_order_id)
    # `toArrow` casts what Spark gives, and fails where a struct of required fields is null
    batches = arranged.frame._collect_as_arrow()  # type: ignore[operator]  # noqa: SLF001
    with DataFileWriter(io, spec, f"00000-0-{job}") as writer:
        if batches:
            writer.write(pa.Table.from_batches(batches))
        return writer.finish()
