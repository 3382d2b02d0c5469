"""Views."""

import time
from uuid import uuid4

import msgspec

from bergline.arguments import check_texts
from bergline.catalog.catalog import LoadedView
from bergline.catalog.identifiers import parse_table_name
from bergline.catalog.rest.protocol.bodies import (
    CommitViewRequest,
    CreateViewRequest,
    RegisterViewRequest,
    RenameRequest,
)
from bergline.catalog.rest.protocol.messages import check_queries, renamed_onto
from bergline.errors import AlreadyExistsError, InvalidInputError
from bergline.format.metadata.updates import AddSchema, AssignUuid, SetLocation, SetProperties
from bergline.format.metadata.updates_json import plain_updates
from bergline.format.view.apply import apply_view_updates
from bergline.format.view.updates import AddViewVersion, SetCurrentViewVersion, WireViewUpdate
from bergline.server.cache.responses import CachedResponse
from bergline.server.commits.requested_commits import commit_asked_view
from bergline.server.handlers.context import ServerContext
from bergline.server.handlers.load_responses import load_answer
from bergline.server.handlers.new_tables import new_name
from bergline.server.handlers.tables import names_answer
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, Response

_LAST_ADDED = -1


def list_views(context: ServerContext, call: Request) -> Response:
    """Those in a namespace."""
    return names_answer(context, context.store.views, call)


def create_view(context: ServerContext, call: Request) -> Response:
    """A new view."""
    asked: CreateViewRequest = call.read()
    name = new_name(call.namespace, asked.name)
    context.catalog.check_free(name)
    check_queries(asked.view_version)
    context.check_properties(asked.properties or {})
    version = msgspec.structs.replace(asked.view_version, schema_id=_LAST_ADDED)
    updates = (
        AssignUuid(str(uuid4())),
        SetLocation(context.new_location(name, asked.location)),
        SetProperties(check_texts(asked.properties or {}, "property")),
        AddSchema(asked.schema),
        AddViewVersion(version),
        SetCurrentViewVersion(_LAST_ADDED),
    )
    metadata = apply_view_updates(None, updates, now_ms=time.time_ns() // 1_000_000)
    return view_answer(context, context.catalog.create_view(name, metadata))


def load_view(context: ServerContext, call: Request) -> Response:
    """A view."""
    return load_answer(context, call, _kept(context, context.catalog.load_view(call.table)))


def view_exists(context: ServerContext, call: Request) -> Response:
    """Whether it exists."""
    context.catalog.view_pointer(call.table)
    return NO_CONTENT


def commit_view(context: ServerContext, call: Request) -> Response:
    """Change a view."""
    asked: CommitViewRequest[WireViewUpdate] = call.read()
    name, updates = call.table, plain_updates(asked.updates)
    if asked.identifier is not None and asked.identifier != name:
        raise InvalidInputError(f"expected `{name}` as in the path, found `{asked.identifier}` in the body")
    for update in updates:
        if isinstance(update, SetLocation):
            context.check_place(update.location)
        if isinstance(update, SetProperties):
            context.check_properties(update.updates)
    return view_answer(context, commit_asked_view(context.catalog, name, asked.requirements or (), updates))


def drop_view(context: ServerContext, call: Request) -> Response:
    """Forget a view."""
    context.catalog.drop_view(call.table)
    return NO_CONTENT


def register_view(context: ServerContext, call: Request) -> Response:
    """A view that exists, by its metadata file."""
    asked: RegisterViewRequest = call.read()
    name = new_name(call.namespace, asked.name)
    context.check_metadata(asked.metadata_location)
    return view_answer(context, context.catalog.register_view(name, asked.metadata_location))


def rename_view(context: ServerContext, call: Request) -> Response:
    """Give a view another name."""
    asked: RenameRequest = call.read()
    source = parse_table_name(asked.source)
    try:
        context.catalog.rename_view(source, new_name(asked.destination.namespace, asked.destination.name))
    except AlreadyExistsError as error:
        raise renamed_onto(source, error) from error
    return NO_CONTENT


def view_answer(context: ServerContext, view: LoadedView) -> Response:
    """A view as it is."""
    return Response(200, _kept(context, view).body)


def _kept(context: ServerContext, view: LoadedView) -> CachedResponse:
    return context.loads.view(view.metadata_location, lambda: view.metadata)
