"""What the methods of an attached session do instead of Spark's: lake tables are ours, the rest is the original's.

Each takes the session and the method that it replaces, then the arguments of the call.
"""

import functools
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.spark.backends.choose import backend_of
from bergline.spark.merge.writer import LakeMergeWriter
from bergline.spark.runtime.backend import PatchedClasses
from bergline.spark.runtime.requests import DEFAULT_SOURCE, LoadRequest
from bergline.spark.session import catalog_listings as listings
from bergline.spark.session.saving import insert_into, save, save_as_table, written_with
from bergline.spark.session.session import LakeSession
from bergline.spark.session.streams import start_stream, streamed_with
from bergline.spark.session.writer import LakeWriter
from bergline.spark.statements.stream_reads import stream_table
from bergline.spark.statements.write_scopes import note_clone

Replacement = Callable[..., Any]
_FORMAT = "iceberg"

_LISTINGS: dict[str, Replacement] = {
    "currentCatalog": listings.current_catalog,
    "setCurrentCatalog": listings.set_current_catalog,
    "listCatalogs": listings.list_catalogs,
    "refreshTable": listings.refresh_table,
    "isCached": listings.is_cached,
    "cacheTable": listings.cache_table,
    "uncacheTable": listings.uncache_table,
    "currentDatabase": listings.current_database,
    "setCurrentDatabase": listings.set_current_database,
    "listDatabases": listings.list_databases,
    "getDatabase": listings.get_database,
    "databaseExists": listings.database_exists,
    "listTables": listings.list_tables,
    "getTable": listings.get_table,
    "tableExists": listings.table_exists,
    "listColumns": listings.list_columns,
}


def lake_methods(classes: PatchedClasses) -> dict[tuple[type[Any], str], Replacement]:
    """What takes the place of methods, by class and name."""
    methods: dict[tuple[type[Any], str], Replacement] = {
        (classes.session, "sql"): _sql,
        (classes.session, "table"): _table,
        (classes.reader, "table"): _reader_table,
        (classes.reader, "load"): _reader_load,
        (classes.frame, "writeTo"): _write_to,
        (classes.writer, "saveAsTable"): _save_as_table,
        (classes.writer, "insertInto"): _insert_into,
        (classes.writer, "save"): _save,
        (classes.stream_reader, "table"): _stream_table,
        (classes.stream_reader, "load"): _stream_load,
        (classes.stream_writer, "toTable"): _to_table,
        (classes.stream_writer, "start"): _start,
    }
    if hasattr(classes.frame, "mergeInto"):  # from Spark 4.0 on
        methods[classes.frame, "mergeInto"] = _merge_into
    if hasattr(classes.session, "cloneSession"):  # Spark Connect has it from 4.1 on
        methods[classes.session, "cloneSession"] = _clone_session
    return methods | {(classes.catalog, method): replacement for method, replacement in _LISTINGS.items()}


def _sql(session: LakeSession, _: Any, spark: SparkSession, sqlQuery: str, args: Any = None, **frames: Any) -> Any:  # noqa: ARG001, N803
    return session.sql(sqlQuery, args, **frames)


def _table(session: LakeSession, original: Any, spark: SparkSession, tableName: str) -> Any:  # noqa: N803
    frame = session.queries.table(tableName)
    return original(spark, tableName) if frame is None else frame


def _clone_session(session: LakeSession, original: Any, spark: SparkSession, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG001
    clone = original(spark, *args, **kwargs)
    note_clone(backend_of(clone).session_id, backend_of(spark).session_id)
    return clone


def _reader_table(session: LakeSession, original: Any, reader: DataFrameReader, tableName: str) -> Any:  # noqa: N803
    frame = session.queries.table(tableName, session.backend.requests.load(reader).options)
    return original(reader, tableName) if frame is None else frame


def _reader_load(
    session: LakeSession, original: Any, reader: DataFrameReader, path: Any = None, *args: Any, **kwargs: Any
) -> Any:
    request = _sourced(session, session.backend.requests.load(reader))
    frame = _load(session.queries.table, request, path, *args, **kwargs)
    return original(reader, path, *args, **kwargs) if frame is None else frame


def _sourced(session: LakeSession, request: LoadRequest) -> LoadRequest:
    return request if request.source else request._replace(source=session.backend.spark.conf.get(DEFAULT_SOURCE))


def _load(
    read: Callable[[str, dict[str, str]], DataFrame | None],
    request: LoadRequest,
    path: Any = None,
    format: str | None = None,  # noqa: A002  (Spark's name)
    schema: Any = None,
    **options: Any,
) -> DataFrame | None:
    """The table that `load` names, at once or as a stream; None if another format is asked for."""
    named = _named_table(request, path, format, schema, options)
    if named is None:
        return None
    frame = read(*named)
    if frame is None:
        raise NotFoundError(f"no table `{named[0]}` in the attached lakes", kind="table", name=named[0])
    return frame


def _named_table(
    request: LoadRequest, path: Any, source: str | None, schema: Any, options: dict[str, Any]
) -> tuple[str, dict[str, str]] | None:
    """The table that a `load` names, and the options for it; None if another format is asked for."""
    if str(request.source if source is None else source).lower() != _FORMAT:
        return None
    given = request.options | {key.lower(): str(value) for key, value in options.items()}
    name = given.pop("path", None) if path is None else path
    if not isinstance(name, str) or not name:
        raise InvalidInputError(f"expected the name of one table to load, found {name!r}")
    if schema is not None or request.has_schema:
        raise UnsupportedError(f"expected no schema for `{name}`: a table has its own")
    if "/" in name.split(".", maxsplit=1)[0]:
        raise UnsupportedError(
            f"expected a table name like `db.orders`, found the path `{name}`",
            hints=["register its metadata file with lake.register_table, and load it by name"],
        )
    return name, given


def _stream_table(session: LakeSession, original: Any, reader: DataStreamReader, tableName: str) -> Any:  # noqa: N803
    frame = stream_table(session.tables, tableName, session.backend.requests.stream_load(reader).options)
    return original(reader, tableName) if frame is None else frame


def _stream_load(
    session: LakeSession, original: Any, reader: DataStreamReader, path: Any = None, *args: Any, **kwargs: Any
) -> Any:
    request = _sourced(session, session.backend.requests.stream_load(reader))
    frame = _load(functools.partial(stream_table, session.tables), request, path, *args, **kwargs)
    return original(reader, path, *args, **kwargs) if frame is None else frame


def _to_table(
    session: LakeSession,
    original: Any,
    writer: DataStreamWriter,
    tableName: str,  # noqa: N803  (Spark's name)
    *args: Any,
    **settings: Any,
) -> Any:
    name = session.tables.lake_name(tableName)
    if name is None:
        session.backend.requests.tell_sources(writer)
        return original(writer, tableName, *args, **settings)
    return start_stream(session.tables, streamed_with(writer, *args, **settings), name)


def _start(
    session: LakeSession, original: Any, writer: DataStreamWriter, path: str | None = None, *args: Any, **settings: Any
) -> Any:
    streamed_with(writer, *args, **settings)
    request = session.backend.requests.stream(writer)
    place = path or {key.lower(): value for key, value in request.options.items()}.get("path")
    name = session.tables.lake_name(place) if request.source == _FORMAT and place else None
    if name is not None:
        return start_stream(session.tables, writer, name)
    session.backend.requests.tell_sources(writer)
    return original(writer, path)


def _write_to(session: LakeSession, original: Any, frame: DataFrame, table: str) -> Any:
    name = session.tables.lake_name(table)
    return original(frame, table) if name is None else LakeWriter(session.tables, frame, name)


def _merge_into(session: LakeSession, original: Any, frame: DataFrame, table: str, condition: Any) -> Any:
    name = session.tables.lake_name(table)
    return (
        original(frame, table, condition) if name is None else LakeMergeWriter(session.tables, frame, name, condition)
    )


def _insert_into(
    session: LakeSession,
    original: Any,
    writer: DataFrameWriter,
    tableName: str,  # noqa: N803  (Spark's name)
    overwrite: bool | None = None,
) -> None:
    name = session.tables.lake_name(tableName)
    if name is None:
        original(writer, tableName, overwrite)
        return
    if overwrite is not None:
        writer.mode("overwrite" if overwrite else "append")
    insert_into(
        session.tables, session.backend.requests.written_frame(writer), name, session.backend.requests.save(writer)
    )


def _save_as_table(
    session: LakeSession, original: Any, writer: DataFrameWriter, name: str, *args: Any, **settings: Any
) -> None:
    ours = session.tables.lake_name(name)
    if ours is None:
        original(writer, name, *args, **settings)
        return
    requests = session.backend.requests
    saving = requests.save(written_with(writer, *args, **settings))
    save_as_table(session.tables, requests.written_frame(writer), ours, saving)


def _save(
    session: LakeSession, original: Any, writer: DataFrameWriter, path: str | None = None, *args: Any, **settings: Any
) -> None:
    saving = session.backend.requests.save(written_with(writer, *args, **settings))
    place = path or saving.options.get("path")
    name = session.tables.lake_name(place) if saving.source == _FORMAT and place else None
    if name is None:
        original(writer, path, *args, **settings)
        return
    save(session.tables, session.backend.requests.written_frame(writer), name, saving)
