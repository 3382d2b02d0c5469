"""Views."""

import time
from uuid import uuid4

import msgspec

from bergline.arguments import check_texts
from bergline.catalog.catalog import LoadedView
from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import requesting_caller
from bergline.catalog.rest.protocol.bodies import (
    CommitViewRequest,
    CreateViewRequest,
    RegisterViewRequest,
)
from bergline.catalog.rest.protocol.messages import check_queries
from bergline.catalog.sql.directories.reserved_directories import DirectoryKind
from bergline.errors import InvalidInputError
from bergline.format.metadata.updates import AddSchema, AssignUuid, SetLocation, SetProperties
from bergline.format.metadata.updates_json import plain_updates
from bergline.format.view.apply import apply_view_updates
from bergline.format.view.updates import AddViewVersion, SetCurrentViewVersion, WireViewUpdate
from bergline.server.cache.response_cache import CachedResponse
from bergline.server.commits.requested_commits import commit_requested_view
from bergline.server.context.context import ServerContext
from bergline.server.handlers.content_encoding import load_response
from bergline.server.handlers.new_tables import new_name, rename
from bergline.server.handlers.registered_files import check_registered_file
from bergline.server.handlers.tables import names_response
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, Response

_LAST_ADDED = -1


def list_views(context: ServerContext, request: Request) -> Response:
    """Those in a namespace."""
    return names_response(context, context.store.views, request)


def create_view(context: ServerContext, request: Request) -> Response:
    """A new view."""
    body: CreateViewRequest = request.read()
    name = new_name(request.namespace, body.name)
    context.catalog.tables.check_free(name)
    check_queries(body.view_version)
    context.locations.check_properties(body.properties or {})
    version = msgspec.structs.replace(body.view_version, schema_id=_LAST_ADDED)
    updates = (
        AssignUuid(str(uuid4())),
        SetLocation(context.claims.new_location(name, body.location)),
        SetProperties(check_texts(body.properties or {}, "property")),
        AddSchema(body.schema),
        AddViewVersion(version),
        SetCurrentViewVersion(_LAST_ADDED),
    )
    metadata = apply_view_updates(None, updates, now_ms=time.time_ns() // 1_000_000)
    _want_location(context, name, metadata.location)
    return view_response(context, context.catalog.create_view(name, metadata))


def load_view(context: ServerContext, request: Request) -> Response:
    """A view."""
    return load_response(context, request, _cached(context, context.catalog.load_view(request.table)))


def view_exists(context: ServerContext, request: Request) -> Response:
    """Whether it exists."""
    context.catalog.view_pointer(request.table)
    return NO_CONTENT


def commit_view(context: ServerContext, request: Request) -> Response:
    """Change a view."""
    body: CommitViewRequest[WireViewUpdate] = request.read()
    name, updates = request.table, plain_updates(body.updates)
    if body.identifier is not None and body.identifier != name:
        raise InvalidInputError(f"expected `{name}` as in the path, found `{body.identifier}` in the body")
    for update in updates:
        if isinstance(update, SetLocation):
            context.locations.check_directory(update.location)
            _want_location(context, name, update.location)
        if isinstance(update, SetProperties):
            context.locations.check_properties(update.updates)
    return view_response(context, commit_requested_view(context.catalog, name, body.requirements or (), updates))


def drop_view(context: ServerContext, request: Request) -> Response:
    """Drop a view."""
    context.catalog.drop_view(request.table)
    return NO_CONTENT


def register_view(context: ServerContext, request: Request) -> Response:
    """A view that exists, by its metadata file."""
    body: RegisterViewRequest = request.read()
    name = new_name(request.namespace, body.name)
    context.locations.check_metadata(body.metadata_location)
    home = context.catalog.views.metadata_at(body.metadata_location).location
    check_registered_file(context, request, body.metadata_location, home)
    _want_location(context, name, home)
    return view_response(context, context.catalog.views.register(name, body.metadata_location))


def rename_view(context: ServerContext, request: Request) -> Response:
    """Give a view another name."""
    return rename(request, context.catalog.rename_view)


def view_response(context: ServerContext, view: LoadedView) -> Response:
    """The response for a view."""
    return Response(200, _cached(context, view).body)


def _want_location(context: ServerContext, name: TableName, location: str) -> None:
    """Refuse the location of a view, or have it reserved with the change."""
    context.claims.check_new(context.claims.of(name, DirectoryKind.VIEW), [location])
    caller = requesting_caller()
    if caller is not None:
        caller.view_locations[name] = location


def _cached(context: ServerContext, view: LoadedView) -> CachedResponse:
    return context.loads.view(view.metadata_location, lambda: view.metadata)
