"""A table that is created or replaced with the columns and rows of a DataFrame, in one commit."""

import msgspec
from pyspark.sql import DataFrame

from bergline.catalog.identifiers import TableName
from bergline.lake.lake import Lake
from bergline.spark.pushdown.provenance import branch_reads
from bergline.spark.runtime.types import stored_schema
from bergline.spark.writes.assignment import assign
from bergline.spark.writes.options import WriteOptions
from bergline.spark.writes.rows import TableWrite
from bergline.spark.writes.scope import WritingSession
from bergline.spark.writes.store_assignment import AssignmentRules
from bergline.spark.writes.target import check_replaceable, resolve_write_target
from bergline.sql.names.resolve import Target
from bergline.sql.names.selector import VersionSelector


class NewTableWrite(msgspec.Struct, frozen=True):
    """A new table but for its columns, which are those of the rows."""

    name: TableName
    partition_by: tuple[str, ...] = ()
    properties: dict[str, str] = {}
    location: str | None = None


def write_new_table(
    session: WritingSession, lake: Lake, new: NewTableWrite, frame: DataFrame, options: WriteOptions, *, replace: bool
) -> None:
    """Create the table and its rows in one commit; AlreadyExistsError if it exists and is not to be replaced."""
    if replace:
        check_replaceable(session, lake, new.name, options.branch)
    with lake.stage_table(
        new.name,
        stored_schema(frame.schema),
        partition_by=new.partition_by,
        properties=new.properties,
        location=new.location,
        replace=replace,
        isolation=options.isolation,
        validate_from=options.validate_from,
        reads=branch_reads(frame) if replace and options.goes_by_reads else (),
    ) as table:
        write_target = resolve_write_target(session, Target(table, VersionSelector()), options.branch)
        rows = assign(frame, table.schema, by_name=True, rules=AssignmentRules())
        TableWrite(session.spark, table, write_target, options).append(rows)
