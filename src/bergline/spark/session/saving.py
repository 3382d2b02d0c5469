"""`df.write`: insertInto, saveAsTable and save for lake tables."""

from collections.abc import Sequence
from typing import Any, assert_never

from pyspark.sql import DataFrame, DataFrameWriter

from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.spark.runtime.requests import SaveRequest
from bergline.spark.statements.tables import SessionTables
from bergline.spark.writes.assignment import assign
from bergline.spark.writes.evolution import frame_write
from bergline.spark.writes.insert import overwrite_rows
from bergline.spark.writes.new_table import NewTableWrite, write_new_table
from bergline.spark.writes.options import parse_write_options
from bergline.sql.names.resolve import Target
from bergline.sql.text.tokens import Name
from bergline.table.table import Table

# what Spark puts where no format was given; a lake's namespace says more than that
DEFAULT_SOURCES = ("iceberg", "parquet")


def written_with(
    writer: DataFrameWriter,
    format: str | None = None,  # noqa: A002  (Spark's names)
    mode: str | None = None,
    partitionBy: str | list[str] | None = None,  # noqa: N803
    **options: Any,
) -> DataFrameWriter:
    """The writer with what was said in the call that writes."""
    writer.mode(mode).options(**options)
    if partitionBy is not None:
        writer.partitionBy(partitionBy)
    return writer if format is None else writer.format(format)


def insert_into(tables: SessionTables, frame: DataFrame, name: Name, saving: SaveRequest) -> None:
    """Columns go by position, as in INSERT, or by name with `mergeSchema`; `overwrite` goes by the session's mode."""
    if saving.partition_by or saving.buckets:
        raise InvalidInputError(
            "expected no partitionBy, bucketBy, sortBy or clusterBy with insertInto: the table says how it is laid out"
        )
    options = parse_write_options(saving.options)
    with frame_write(tables, tables.resolve_write(name), frame, options) as (table, write):
        rows = assign(frame, table.schema, by_name=options.merge_schema)
        if saving.mode == "overwrite":
            overwrite_rows(tables.spark, write, rows, options)
        else:
            write.append(rows)


def save_as_table(tables: SessionTables, frame: DataFrame, name: Name, saving: SaveRequest) -> None:
    """Columns go by name; mode `overwrite` begins the table again with the frame's columns."""
    _check_source(saving)
    target = _existing(tables, name)
    match saving.mode:
        case "append" if target is not None:
            _append(tables, frame, target, saving)
        case "ignore" if target is not None:
            return
        case "errorifexists" if target is not None:
            raise _exists(target)
        case "append" | "ignore" | "errorifexists" | "overwrite":
            _create(tables, frame, name, saving, replace=saving.mode == "overwrite")
        case _:
            assert_never(saving.mode)


def save(tables: SessionTables, frame: DataFrame, name: Name, saving: SaveRequest) -> None:
    """As saveAsTable, but mode `overwrite` replaces rows of an existing table, whose columns stay."""
    _check_source(saving)
    target = _existing(tables, name)
    if target is None or saving.mode != "overwrite":
        save_as_table(tables, frame, name, saving)
        return
    check_layout(target.table, saving.partition_by)
    options = parse_write_options(_write_options(saving))
    with frame_write(tables, target, frame, options) as (table, write):
        rows = assign(frame, table.schema, by_name=True)
        if options.overwrite_mode == "dynamic":
            write.overwrite_partitions(rows)
        else:
            write.overwrite(rows)


def _append(tables: SessionTables, frame: DataFrame, target: Target, saving: SaveRequest) -> None:
    check_layout(target.table, saving.partition_by)
    options = parse_write_options(_write_options(saving))
    with frame_write(tables, target, frame, options) as (table, write):
        write.append(assign(frame, table.schema, by_name=True))


def _create(tables: SessionTables, frame: DataFrame, name: Name, saving: SaveRequest, *, replace: bool) -> None:
    lake, table = tables.place_new(name)
    new = NewTableWrite(table, saving.partition_by)
    options = parse_write_options(_write_options(saving))
    write_new_table(tables, lake, new, frame, options, replace=replace)


def _existing(tables: SessionTables, name: Name) -> Target | None:
    try:
        return tables.resolve_write(name)
    except NotFoundError as error:
        if error.kind != "table":
            raise
        return None


def _write_options(saving: SaveRequest) -> dict[str, str]:
    """The options without the place that `save` was given as one."""
    return {k: v for k, v in saving.options.items() if k.lower() != "path"}


def _check_source(saving: SaveRequest) -> None:
    if saving.source not in DEFAULT_SOURCES:
        raise UnsupportedError(f"expected the format `iceberg` for a table of a lake, found `{saving.source}`")
    if saving.buckets:
        raise UnsupportedError(
            "cannot run bucketBy, sortBy or clusterBy on lake tables",
            hints=['df.writeTo(…).partitionedBy(partitioning.bucket(16, "id")) makes buckets'],
        )


def check_layout(table: Table, partition_by: Sequence[str]) -> None:
    """A table that exists keeps its partitions: what was said of them must be true."""
    found = [table.schema.names_by_id[f.source_id] for f in table.spec.fields]
    if partition_by and list(partition_by) != found:
        raise InvalidInputError(
            f"expected the partitions of `{table.name}` ({', '.join(found) or 'none'}), "
            f"found {', '.join(partition_by)} in partitionBy"
        )


def _exists(target: Target) -> AlreadyExistsError:
    name = str(target.table.name)
    return AlreadyExistsError(
        f"table `{name}` exists already",
        kind="table",
        name=name,
        hints=['mode("append") adds rows, mode("overwrite") replaces them'],
    )
