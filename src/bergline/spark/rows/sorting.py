"""Groups of data files written again with their rows sorted, or moved to other partitions, by Spark's own sort.

Rows go from the tasks that read them, by ranges of the order, to those that write them.
"""

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.errors import UnsupportedError
from bergline.format.partition.sort_order import UNSORTED, SortOrder
from bergline.io.fileio import FileIO
from bergline.spark.reads.scan import read_plan
from bergline.spark.rows.task import Z_VALUE, ZValueTask
from bergline.spark.runtime.arrow_tasks import map_in_arrow
from bergline.spark.runtime.backend import SparkBackend
from bergline.spark.runtime.types import is_cut, unreadable
from bergline.spark.writes.data_files import write_arranged
from bergline.spark.writes.distribution import sort_rows
from bergline.table.engine.plans import RewriteGroup, RewritePlan
from bergline.table.engine.row_engine import FileChanges
from bergline.table.engine.z_order import ZOrder


def rewrite_sorted_group(
    backend: SparkBackend, io: FileIO, plan: RewritePlan, group: RewriteGroup, what: str
) -> FileChanges:
    """New data files with the rows of a group, which are ranges of its order; an error leaves none."""
    for reason in unreadable(plan.read.schema).values():
        raise UnsupportedError(f"cannot sort rows on Spark: {reason}")
    for field in plan.read.schema.fields:
        if is_cut(field.type):
            raise UnsupportedError(
                f"cannot sort rows on Spark, which would cut the nanoseconds of column `{field.name}`",
                hints=["without an engine, Python sorts them"],
            )
    rows = read_plan(msgspec.structs.replace(plan.read, files=group.files), backend.spark, io)
    names = rows.columns
    if isinstance(group.order, ZOrder):
        rows = _with_z_values(rows, group.order)
    arranged = sort_rows(
        rows,
        plan.read.table_schema,
        group.order if isinstance(group.order, SortOrder) else UNSORTED,
        spec=group.write.spec if group.partition is None else None,
        ranges=group.sorted_files,
        last=Z_VALUE if isinstance(group.order, ZOrder) else None,
    )
    files = write_arranged(arranged.drop(Z_VALUE).toDF(*names), io, group.write, what, partition=group.partition)
    return FileChanges(tuple(files), frozenset(planned.file.file_path for planned in group.files))


def _with_z_values(rows: DataFrame, order: ZOrder) -> DataFrame:
    """The rows with their z-order value as a last column."""
    places = [rows.columns.index(name) for name in order.columns]
    # numbered columns on the way: Spark takes a dot in a name for a struct
    numbered = rows.toDF(*(f"_{i}" for i in range(len(rows.columns))))
    schema = T.StructType([*numbered.schema.fields, T.StructField(Z_VALUE, T.BinaryType())])
    return map_in_arrow(numbered, ZValueTask(places, order).run, schema).toDF(*rows.columns, Z_VALUE)
