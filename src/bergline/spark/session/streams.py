"""`df.writeStream` for lake tables."""

import uuid
from typing import Any, cast

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.spark.runtime.requests import StreamRequest
from bergline.spark.runtime.types import stored_schema
from bergline.spark.session.saving import DEFAULT_SOURCES, check_layout
from bergline.spark.statements.stream_reads import lake_of
from bergline.spark.statements.tables import SessionTables
from bergline.spark.statements.write_scopes import find_scope
from bergline.spark.streaming.sink import OutputMode, StreamSink, StreamTarget
from bergline.spark.writes.assignment import assign
from bergline.spark.writes.options import parse_write_options
from bergline.spark.writes.target import resolve_write_target
from bergline.sql.names.resolve import Target
from bergline.sql.names.selector import VersionSelector
from bergline.sql.text.tokens import Name
from bergline.table.commits.isolation import NO_ISOLATION

_CHECKPOINT = "checkpointLocation"
_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
_OUTPUT_MODES = ("append", "complete")
_SPARKS_OWN = {"path", _CHECKPOINT.lower()}


def streamed_with(
    writer: DataStreamWriter,
    format: str | None = None,  # noqa: A002  (Spark's names)
    outputMode: str | None = None,  # noqa: N803
    partitionBy: str | list[str] | None = None,  # noqa: N803
    queryName: str | None = None,  # noqa: N803
    **options: Any,
) -> DataStreamWriter:
    """The writer with what was said in the call that starts it."""
    writer.options(**options)
    if format is not None:
        writer.format(format)
    if outputMode is not None:
        writer.outputMode(outputMode)
    if partitionBy is not None:
        writer.partitionBy(partitionBy)
    return writer if queryName is None else writer.queryName(queryName)


def start_stream(tables: SessionTables, writer: DataStreamWriter, name: Name) -> StreamingQuery:
    """Start a query whose batches go to a table, which is created if it does not exist."""
    request = tables.backend.requests.stream(writer)
    _check_request(request)
    options = parse_write_options({k: v for k, v in request.options.items() if k.lower() not in _SPARKS_OWN})
    if options.isolation is not None or options.validate_from is not None or options.overwrite_mode is not None:
        raise InvalidInputError("expected options of appends, found those of an overwrite, for a stream")
    if options.merge_schema:
        raise UnsupportedError(
            "cannot merge the schema in a stream",
            hints=[
                "write the batches by foreachBatch, as in `batch.writeTo(…).option('mergeSchema', 'true').append()`"
            ],
        )
    checkpoint = _checkpoint(tables, request)
    frame = tables.backend.requests.streamed_frame(writer)
    lake, target = lake_of(tables, name), _existing_or_new(tables, frame, name, request)
    write_target = resolve_write_target(tables, target, options.branch)
    if write_target.wap_id is not None:
        raise UnsupportedError(
            f"cannot stream to `{target.table.name}` under WAP id `{write_target.wap_id}`: each batch would be staged "
            "by itself, and a repeated one could not be recognized",
            hints=["spark.wap.branch, or the option `branch`, stages the rows of a stream on a branch"],
        )
    assign(frame, target.table.schema, by_name=True)  # what does not fit is known before the query starts
    stream = StreamTarget(
        target.table.name,
        target.table.metadata.table_uuid,
        write_target,
        cast("OutputMode", request.output_mode),
        msgspec.structs.replace(options, isolation=NO_ISOLATION),
        checkpoint,
    )
    sink = StreamSink(lake, stream, find_scope)
    return tables.backend.requests.sinking_writer(writer, sink).option(_CHECKPOINT, checkpoint).start()


def _check_request(request: StreamRequest) -> None:
    if request.source not in DEFAULT_SOURCES:
        raise UnsupportedError(f"expected the format `iceberg` for a table of a lake, found `{request.source}`")
    if request.clusters:
        raise UnsupportedError(
            "cannot run clusterBy on lake tables", hints=["partition the table, or give it an order"]
        )
    if request.output_mode not in _OUTPUT_MODES:
        raise UnsupportedError(
            f"expected the output mode append or complete for a table of a lake, found `{request.output_mode}`",
            hints=["foreachBatch with MERGE INTO updates rows by a key"],
        )


def _checkpoint(tables: SessionTables, request: StreamRequest) -> str:
    """Where the query keeps how far it has come, as Spark chooses it."""
    given = {key.lower(): value for key, value in request.options.items()}.get(_CHECKPOINT.lower())
    if given:
        return given
    parent = tables.spark.conf.get(_CHECKPOINTS, None)
    if not parent:
        raise InvalidInputError(
            f"expected the option `{_CHECKPOINT}` for a stream to a table, found none",
            hints=[f"the setting `{_CHECKPOINTS}` has a directory for all queries"],
        )
    return f"{parent.rstrip('/')}/{request.query_name or uuid.uuid4()}"


def _existing_or_new(tables: SessionTables, frame: DataFrame, name: Name, request: StreamRequest) -> Target:
    try:
        target = tables.resolve_write(name)
    except NotFoundError as error:
        if error.kind != "table" or tables.scope is not None:
            raise
        lake, table_name = tables.place_new(name)
        table = lake.create_table(table_name, stored_schema(frame.schema), partition_by=request.partition_by)
        return Target(table, VersionSelector())
    check_layout(target.table, request.partition_by)
    return target
