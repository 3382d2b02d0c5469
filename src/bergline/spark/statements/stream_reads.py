"""Rows that are appended to a table as a stream: `spark.readStream` and `FROM STREAM t`."""

from collections.abc import Mapping

from pyspark.sql import DataFrame

from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.metadata.refs import MAIN
from bergline.lake.lake import Lake
from bergline.spark.runtime.executors import prepare_executors
from bergline.spark.runtime.types import read_schema
from bergline.spark.statements.session_text import session_name
from bergline.spark.statements.tables import SessionTables
from bergline.spark.streaming.options import parse_stream_options
from bergline.spark.streaming.planner import StreamedTable, StreamPlanner
from bergline.spark.streaming.source import stream_source
from bergline.spark.writes.target import session_branch
from bergline.sql.names.resolve import Target
from bergline.sql.text.tokens import Name


def stream_table(tables: SessionTables, name: str, options: Mapping[str, str]) -> DataFrame | None:
    """The rows that are appended to a table, as a streaming frame; None if it is not ours."""
    parts = session_name(name, tables.backend)
    target = tables.lakes.resolve(parts)
    return None if target is None else stream_rows(tables, parts, target, options)


def stream_rows(tables: SessionTables, name: Name, target: Target, options: Mapping[str, str]) -> DataFrame:
    """The rows that are appended to a table that was looked up, as a streaming frame."""
    chosen, table = parse_stream_options(options), target.table
    branch = _read_branch(tables, target, chosen.branch)
    lake = lake_of(tables, name)
    streamed = StreamedTable(
        table.name,
        table.metadata.table_uuid,
        branch,
        table.schema,
        chosen.rules,
        prepare_executors(tables.backend, table.metadata.location),
    )
    columns = read_schema(table.schema)
    planner = StreamPlanner(lake, streamed)
    source = stream_source(str(table.name), planner, is_limited=chosen.rules.is_limited)
    tables.spark.dataSource.register(source)
    return tables.spark.readStream.format(source.name()).schema(columns).load()


def lake_of(tables: SessionTables, name: Name) -> Lake:
    """The lake that a table's name belongs to."""
    placed = tables.lakes.place(name)
    if placed is None:
        raise NotFoundError(f"no table `{'.'.join(name)}` in the attached lakes", kind="table", name=".".join(name))
    return placed[0]


def _read_branch(tables: SessionTables, target: Target, option: str | None) -> str:
    """The branch that is read: tags, snapshots, moments and metadata tables have nothing to come."""
    table, selector = target.table, target.selector
    if selector.metadata_table or selector.ref or selector.snapshot_id or selector.as_of_ms:
        raise UnsupportedError(
            f"cannot stream `{table.name}` with time travel, nor its metadata tables",
            hints=["a stream reads a branch; `stream-from-timestamp` says from when on"],
        )
    named = selector.branch
    if option is not None and named is not None and option != named:
        raise InvalidInputError(
            f"expected one branch, found `{named}` in the name and `{option}` in the option `branch`"
        )
    asked = named if option is None else option
    if asked is None:
        wanted = session_branch(tables.spark, tables.scope, table)
        return wanted if wanted is not None and wanted in table.refs else MAIN
    ref = table.metadata.refs.get(asked)
    if ref is None and asked != MAIN:
        raise table.metadata.missing_ref(asked, "branch", table.refs)
    if ref is not None and not ref.is_branch:
        raise UnsupportedError(f"expected a branch of `{table.name}` to stream, found the tag `{asked}`")
    return asked
