"""Tables by name."""

import time

from bergline.catalog.catalog import LoadedTable
from bergline.catalog.identifiers import TableName, parse_table_name
from bergline.catalog.pointer.named_pointers import check_namespace
from bergline.catalog.rest.protocol.bodies import (
    CreateTableRequest,
    ListTablesResponse,
    MetricsRequest,
    RegisterTableRequest,
    RenameRequest,
)
from bergline.catalog.rest.protocol.messages import renamed_onto
from bergline.catalog.sql.pointers import SqlPointers
from bergline.errors import AlreadyExistsError, ConflictError, NotFoundError
from bergline.io.local import is_gone, make_directory
from bergline.io.locations import join
from bergline.server.cache.loads import check_mode, entity_tag, matches
from bergline.server.cache.responses import CachedResponse
from bergline.server.handlers.context import ServerContext
from bergline.server.handlers.credentials import end_for, keys_for, known_keys_for, made_with_keys, wants_keys
from bergline.server.handlers.load_responses import load_answer, not_modified, waits_for_packing
from bergline.server.handlers.new_tables import new_name, new_table
from bergline.server.http.paging import page_token, wanted_page
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, Response, answer_json
from bergline.table.orphans.purge import purge_table

_TRIES = 100


def list_tables(context: ServerContext, call: Request) -> Response:
    """Those in a namespace."""
    return names_answer(context, context.store, call)


def create_table(context: ServerContext, call: Request) -> Response:
    """A new table, or one that is only staged."""
    asked: CreateTableRequest = call.read()
    name = new_name(call.namespace, asked.name)
    context.catalog.check_free(name)
    metadata = new_table(context, name, asked, time.time_ns() // 1_000_000)
    context.check_table(name, metadata)
    if asked.stage_create:
        make_directory(join(metadata.location, "metadata"))  # DuckDB writes there, and makes none
        staged = Response(200, context.loads.render_table(None, metadata))
        return made_with_keys(context, call, name, staged, metadata)
    made = context.catalog.create_table(name, metadata)
    return made_with_keys(context, call, name, table_answer(context, made), made.metadata)


def load_table(context: ServerContext, call: Request) -> Response:
    """A table, or that it is as the client knows it."""
    name, mode = call.table, check_mode(call.query.get("snapshots"))
    while True:
        pointer = context.catalog.pointer(name)
        if is_gone(pointer):
            _check_moved(context, name, pointer)
            continue
        try:
            keys = keys_for(context, name, pointer) if wants_keys(context, call) else None
            tag = entity_tag(pointer, mode, keys)
            if matches(tag, call.headers.get("if-none-match")):
                return not_modified(tag)
            kept = _load(context, pointer, mode)
            return load_answer(context, call, kept, tag=tag, end=end_for(context, name, keys))
        except NotFoundError:
            _check_moved(context, name, pointer)


def load_at_once(context: ServerContext, call: Request) -> Response | None:
    """The answer of a load where it takes no waiting: a row of SQLite, and bytes in memory; None where it would."""
    name = call.table
    pointer = context.store.read_at_once(name)
    if pointer is None or is_gone(pointer):
        return None
    mode = check_mode(call.query.get("snapshots"))
    keys = None
    if wants_keys(context, call) and (keys := known_keys_for(context, pointer)) is None:
        return None
    tag = entity_tag(pointer, mode, keys)
    if matches(tag, call.headers.get("if-none-match")):
        return not_modified(tag)
    known = context.loads.known_table(pointer, mode, unless=lambda kept: waits_for_packing(call, kept))
    return None if known is None else load_answer(context, call, known, tag=tag, end=end_for(context, name, keys))


def table_exists(context: ServerContext, call: Request) -> Response:
    """Whether it exists."""
    context.catalog.pointer(call.table)
    return NO_CONTENT


def drop_table(context: ServerContext, call: Request) -> Response:
    """Forget a table, and delete its files if that is asked for."""
    if call.flag("purgeRequested"):
        purge_table(context.catalog, call.table)
    else:
        context.catalog.drop_table(call.table)
    return NO_CONTENT


def register_table(context: ServerContext, call: Request) -> Response:
    """A table that exists, by its metadata file."""
    asked: RegisterTableRequest = call.read()
    name = new_name(call.namespace, asked.name)
    context.check_metadata(asked.metadata_location)
    context.check_table(name, context.catalog.metadata_at(asked.metadata_location))
    register = context.catalog.register_over if asked.overwrite else context.catalog.register_table
    made = register(name, asked.metadata_location)
    return made_with_keys(context, call, name, table_answer(context, made), made.metadata)


def unregister_table(context: ServerContext, call: Request) -> Response:
    """Forget a table and say what it was; one of which that cannot be said stays, and can be dropped."""
    name = call.table
    for _ in range(_TRIES):
        pointer = context.catalog.pointer(name)
        body = _load(context, pointer, "all").body
        try:
            context.catalog.drop_table(name, pointer)
        except ConflictError:  # a commit came first
            continue
        return Response(200, body)
    raise ConflictError(f"table `{name}` moved on each of {_TRIES} times that it was to be unregistered")


def rename_table(context: ServerContext, call: Request) -> Response:
    """Give a table another name."""
    asked: RenameRequest = call.read()
    source = parse_table_name(asked.source)
    try:
        context.catalog.rename_table(source, new_name(asked.destination.namespace, asked.destination.name))
    except AlreadyExistsError as error:
        raise renamed_onto(source, error) from error
    return NO_CONTENT


def report_metrics(context: ServerContext, call: Request) -> Response:
    """What a client measured is counted by its kind, and not kept."""
    report: MetricsRequest = call.read()
    context.catalog.pointer(call.table)
    context.metrics.count_report(report.report_type)
    return NO_CONTENT


def names_answer(context: ServerContext, pointers: SqlPointers | None, call: Request) -> Response:
    """Names of tables or of views in a namespace: a page of them, or all; none where the catalog has no such thing."""
    namespace, wanted = call.namespace, wanted_page(call.query, 1)
    check_namespace(context.store, namespace)
    if pointers is None:
        return answer_json(ListTablesResponse((), None))
    if wanted is None:
        return answer_json(ListTablesResponse(tuple(pointers.list_names(namespace)), None))
    found = pointers.names_after(namespace, wanted.after[0] if wanted.after else None, wanted.size + 1)
    shown = tuple(found[: wanted.size])
    return answer_json(ListTablesResponse(shown, page_token(shown[-1].name) if len(found) > wanted.size else None))


def table_answer(context: ServerContext, table: LoadedTable) -> Response:
    """A table as it is after a change."""
    location = table.metadata_location
    kept = context.loads.table(location, "all", lambda: table.metadata)
    return Response(200, kept.body, {"etag": entity_tag(location)})


def _check_moved(context: ServerContext, name: TableName, pointer: str) -> None:
    """Of a file that is gone: raise, unless the table has another by now."""
    if context.catalog.pointer(name) == pointer:
        raise NotFoundError(f"table `{name}` points to {pointer}, which does not exist", kind="file", name=pointer)


def _load(context: ServerContext, location: str, mode: str) -> CachedResponse:
    return context.loads.table(location, mode, lambda: context.catalog.metadata_at(location))
