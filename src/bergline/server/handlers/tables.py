"""Tables: list, create, load, register, rename."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from bergline.catalog.at_ref.catalog_at_ref import check_created_on, check_still_joins, created_on
from bergline.catalog.at_ref.landing import created_at
from bergline.catalog.at_ref.seen import of_branch
from bergline.catalog.attempts import attempts
from bergline.catalog.catalog import LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.named_pointers import check_namespace
from bergline.catalog.rest.protocol.bodies import (
    CreateTableRequest,
    ListTablesResponse,
    MetricsRequest,
    RegisterTableRequest,
)
from bergline.catalog.rest.protocol.branch_tables import BRANCH_TABLES
from bergline.catalog.sql.pointers import SqlPointers
from bergline.errors import ConflictError, NotFoundError
from bergline.format.metadata.refs import CREATED_ON
from bergline.governance.grants.securable import SecurableKind
from bergline.io.local import is_gone, make_directory
from bergline.io.locations import join
from bergline.lake.at_ref import joining
from bergline.server.cache.load_responses import EVERYTHING, ShownState, entity_tag, matches, shown_state
from bergline.server.cache.response_cache import CachedResponse
from bergline.server.commits.requested_commits import LandingAt
from bergline.server.context.context import ServerContext
from bergline.server.handlers.content_encoding import load_response, needs_compression, not_modified
from bergline.server.handlers.credentials import (
    STAGED_MS,
    cached_credentials_for,
    credentials_for,
    note_vended,
    suffix_for,
    with_credentials,
)
from bergline.server.handlers.new_tables import new_name, new_table, rename
from bergline.server.handlers.registered_files import check_registered_file
from bergline.server.http.paging import page_token, requested_page
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, Response, json_response

_Read = TypeVar("_Read")


def list_tables(context: ServerContext, request: Request) -> Response:
    """Those in a namespace."""
    if request.flag(BRANCH_TABLES):
        if request.at is not None:  # its own are in its lists, and others' are not for it
            return json_response(ListTablesResponse((), None))
        return names_response(context, context.store.branch_tables, request)
    of_branch = () if request.at is None else created_on(context.catalog, request.at, request.namespace)
    return names_response(context, context.store, request, of_branch)


def create_table(context: ServerContext, request: Request) -> Response:
    """A new table, or one that is only staged."""
    body: CreateTableRequest = request.read()
    name = new_name(request.namespace, body.name)
    context.catalog.tables.check_free(name)
    metadata = new_table(context, name, body, time.time_ns() // 1_000_000)
    at = landing_at(context, request)
    if at is not None:
        at.check_new(name)
        metadata = created_at(metadata, at.ref)
    context.claims.check_table(name, metadata)
    if body.stage_create:
        if context.credentials.are_wanted(request):
            until_ms = time.time_ns() // 1_000_000 + STAGED_MS
            context.claims.reserve_staged(name, metadata, until_ms)
        make_directory(join(metadata.location, "metadata"))  # DuckDB writes there, and makes none
        staged = Response(200, context.loads.render_table(None, request.seen(metadata, name)))
        return with_credentials(context, request, name, staged, metadata, is_staged=True)
    made = context.catalog.create_table(name, metadata)
    if at is not None:
        check_still_joins(context.catalog, made, at.check_joins)
    return with_credentials(context, request, name, table_response(context, request, made), made.metadata)


def load_table(context: ServerContext, request: Request) -> Response:
    """A table, or 304 if the client has it already."""
    name, shown = request.table, shown_state(request.query.get("snapshots"), request.at)
    context.overtaken.begin_turn(request)
    while True:
        pointer = context.catalog.pointer(name)
        if is_gone(pointer):
            _check_moved(context, name, pointer)
            continue
        try:
            vended = (
                credentials_for(context, request, name, pointer) if context.credentials.are_wanted(request) else None
            )
            tag = entity_tag(pointer, shown, vended)
            if matches(tag, request.headers.get("if-none-match")):
                return not_modified(tag)
            cached = _load(context, request, pointer, shown)
            if cached.on_branch and not _sees_branch_tables(request):
                raise of_branch(name, cached.on_branch)
            return load_response(context, request, cached, tag=tag, suffix=suffix_for(context, name, vended))
        except NotFoundError as error:
            if error.kind != "file":
                raise
            _check_moved(context, name, pointer)


def load_from_cache(context: ServerContext, request: Request) -> Response | None:
    """The response to a load that needs no waiting: a row in SQLite, and bytes in memory; None if it would."""
    name = request.table
    pointer = context.store.read_at_once(name)
    if pointer is None or is_gone(pointer):
        return None
    shown = shown_state(request.query.get("snapshots"), request.at)
    vended = None
    if (
        context.credentials.are_wanted(request)
        and (vended := cached_credentials_for(context, request, name, pointer)) is None
    ):
        return None
    tag = entity_tag(pointer, shown, vended)
    if matches(tag, request.headers.get("if-none-match")):
        return not_modified(tag)
    known = context.loads.cached_table(pointer, shown, unless=lambda response: needs_compression(request, response))
    if known is None or (known.on_branch and not _sees_branch_tables(request)):
        return None
    if vended is not None:
        note_vended(context, request, name, vended)
    return load_response(context, request, known, tag=tag, suffix=suffix_for(context, name, vended))


def table_exists(context: ServerContext, request: Request) -> Response:
    """Whether it exists, for whom it can be loaded."""
    context.catalog.pointer(request.table)
    if not _sees_branch_tables(request):
        _check_on_main(context, request.table)
    return NO_CONTENT


def register_table(context: ServerContext, request: Request) -> Response:
    """A table that exists, by its metadata file."""
    body: RegisterTableRequest = request.read()
    name = new_name(request.namespace, body.name)
    context.locations.check_metadata(body.metadata_location)
    check_registered_file(context, request, body.metadata_location, "")  # before it is read: an error tells of it
    metadata = context.catalog.tables.metadata_at(body.metadata_location)
    check_registered_file(context, request, body.metadata_location, metadata.location)
    context.claims.check_table(name, metadata)
    context.named_files.check_registered((request.principal, request.groups), name, metadata)
    register = context.catalog.tables.register_over if body.overwrite else context.catalog.register_table
    made = register(name, body.metadata_location)
    return with_credentials(context, request, name, table_response(context, request, made), made.metadata)


def unregister_table(context: ServerContext, request: Request) -> Response:
    """Drop a table and return it as it was; one that cannot be loaded stays."""

    def read(pointer: str) -> bytes:
        check_own_name(context, request, request.table, "unregister")
        return _load(context, request, pointer).body

    return Response(200, drop_as_read(context, request.table, read))


def drop_as_read(context: ServerContext, name: TableName, read: Callable[[str], _Read]) -> _Read:
    """Drop a table at the very pointer that `read` was given, and return what it read."""
    tries = attempts(f"table `{name}` moved on whenever it was to be dropped")
    while True:
        next(tries)
        pointer = context.catalog.pointer(name)
        found = read(pointer)
        try:
            context.catalog.drop_table(name, pointer)
        except ConflictError:  # a commit came first
            continue
        return found


def rename_table(context: ServerContext, request: Request) -> Response:
    """Give a table another name."""

    def move(name: TableName, new: TableName) -> None:
        check_own_name(context, request, name, "rename")
        context.catalog.rename_table(name, new)

    return rename(request, move)


def report_metrics(context: ServerContext, request: Request) -> Response:
    """Count a client's report by its kind; its content is not stored."""
    report: MetricsRequest = request.read()
    context.catalog.pointer(request.table)
    context.metrics.count_report(report.report_type)
    return NO_CONTENT


def landing_at(context: ServerContext, request: Request) -> LandingAt | None:
    """The ref of the lake at which a request changes tables."""
    return None if request.at is None else LandingAt(request.at, joining(context.catalog, request.at))


def check_own_name(context: ServerContext, request: Request, name: TableName, what: str) -> None:
    """Refuse to drop or rename, at a ref of the lake, a table that is not of this branch alone.

    On `main`, those of branches are there for clients alone that know them.
    """
    if request.at is not None:
        check_created_on(context.catalog.load_table(name).metadata, request.at, name, what)
    elif not _sees_branch_tables(request):
        _check_on_main(context, name)


def _check_on_main(context: ServerContext, name: TableName) -> None:
    """NotFoundError for a table that is on a branch alone; one that cannot be read is on `main`."""
    pointers = context.store.branch_tables
    if pointers is not None and pointers.lists(name):
        raise of_branch(name, str(context.catalog.load_table(name).metadata.properties.get(CREATED_ON)))


def names_response(
    context: ServerContext, pointers: SqlPointers | None, request: Request, more: Sequence[TableName] = ()
) -> Response:
    """Names of tables or of views in a namespace: a page of them, or all; empty where the catalog has none of them.

    `more` are names that are listed among those of the catalog.
    """
    namespace, page = request.namespace, requested_page(request.query, 1)
    check_namespace(context.store, namespace)
    if pointers is None:
        return json_response(ListTablesResponse((), None))
    kind = SecurableKind.VIEW if request.kind == "view" else SecurableKind.TABLE
    seen = context.access.newest(request.principal, request.groups).names_seen(kind, namespace)
    more = [name for name in more if seen is None or name.name in seen]
    if page is None:
        found = pointers.list_names(namespace) if seen is None else pointers.names_among(namespace, seen, None, None)
        return json_response(ListTablesResponse((*found, *more), None))
    after, most = page.after[0] if page.after else None, page.size + 1
    if seen is None:
        found = pointers.names_after(namespace, after, most)
    else:  # a token never names what the caller may not see
        found = pointers.names_among(namespace, seen, after, most)
    if more:
        found = sorted((*found, *(name for name in more if after is None or name.name > after)))
    names = tuple(found[: page.size])
    return json_response(ListTablesResponse(names, page_token(names[-1].name) if len(found) > page.size else None))


def table_response(context: ServerContext, request: Request, table: LoadedTable) -> Response:
    """A table after a change."""
    location, shown = table.metadata_location, shown_state(None, request.at)
    cached = context.loads.table(location, shown, lambda: request.seen(table.metadata, table.name))
    return Response(200, cached.body, {"etag": entity_tag(location, shown)})


def _sees_branch_tables(request: Request) -> bool:
    return request.at is not None or request.headers.get(BRANCH_TABLES) == "true"


def _check_moved(context: ServerContext, name: TableName, pointer: str) -> None:
    """Raise for a missing metadata file, unless the table has another by now."""
    if context.catalog.pointer(name) == pointer:
        raise NotFoundError(f"table `{name}` points to {pointer}, which does not exist", kind="file", name=pointer)


def _load(context: ServerContext, request: Request, location: str, shown: ShownState = EVERYTHING) -> CachedResponse:
    return context.loads.table(location, shown, lambda: request.seen(context.catalog.tables.metadata_at(location)))
