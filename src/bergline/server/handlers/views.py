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
from bergline.server.cache.responses import KeptAnswer
from bergline.server.commits.requested_commits import commit_asked_view
from bergline.server.handlers.context import Served
from bergline.server.handlers.load_responses import load_answer
from bergline.server.handlers.new_tables import new_name
from bergline.server.handlers.tables import names_answer
from bergline.server.http.request import Call
from bergline.server.http.response import NO_CONTENT, Answer

_LAST_ADDED = -1


def list_views(served: Served, call: Call) -> Answer:
    """Those in a namespace."""
    return names_answer(served, served.store.views, call)


def create_view(served: Served, call: Call) -> Answer:
    """A new view."""
    asked: CreateViewRequest = call.read()
    name = new_name(call.namespace, asked.name)
    served.catalog.check_free(name)
    check_queries(asked.view_version)
    served.check_properties(asked.properties or {})
    version = msgspec.structs.replace(asked.view_version, schema_id=_LAST_ADDED)
    updates = (
        AssignUuid(str(uuid4())),
        SetLocation(served.new_location(name, asked.location)),
        SetProperties(check_texts(asked.properties or {}, "property")),
        AddSchema(asked.schema),
        AddViewVersion(version),
        SetCurrentViewVersion(_LAST_ADDED),
    )
    metadata = apply_view_updates(None, updates, now_ms=time.time_ns() // 1_000_000)
    return view_answer(served, served.catalog.create_view(name, metadata))


def load_view(served: Served, call: Call) -> Answer:
    """A view."""
    return load_answer(served, call, _kept(served, served.catalog.load_view(call.table)))


def view_exists(served: Served, call: Call) -> Answer:
    """Whether it exists."""
    served.catalog.view_pointer(call.table)
    return NO_CONTENT


def commit_view(served: Served, call: Call) -> Answer:
    """Change a view."""
    asked: CommitViewRequest[WireViewUpdate] = call.read()
    name, updates = call.table, plain_updates(asked.updates)
    if asked.identifier is not None and asked.identifier != name:
        raise InvalidInputError(f"expected `{name}` as in the path, found `{asked.identifier}` in the body")
    for update in updates:
        if isinstance(update, SetLocation):
            served.check_place(update.location)
        if isinstance(update, SetProperties):
            served.check_properties(update.updates)
    return view_answer(served, commit_asked_view(served.catalog, name, asked.requirements or (), updates))


def drop_view(served: Served, call: Call) -> Answer:
    """Forget a view."""
    served.catalog.drop_view(call.table)
    return NO_CONTENT


def register_view(served: Served, call: Call) -> Answer:
    """A view that exists, by its metadata file."""
    asked: RegisterViewRequest = call.read()
    name = new_name(call.namespace, asked.name)
    served.check_metadata(asked.metadata_location)
    return view_answer(served, served.catalog.register_view(name, asked.metadata_location))


def rename_view(served: Served, call: Call) -> Answer:
    """Give a view another name."""
    asked: RenameRequest = call.read()
    source = parse_table_name(asked.source)
    try:
        served.catalog.rename_view(source, new_name(asked.destination.namespace, asked.destination.name))
    except AlreadyExistsError as error:
        raise renamed_onto(source, error) from error
    return NO_CONTENT


def view_answer(served: Served, view: LoadedView) -> Answer:
    """A view as it is."""
    return Answer(200, _kept(served, view).body)


def _kept(served: Served, view: LoadedView) -> KeptAnswer:
    return served.loads.view(view.metadata_location, lambda: view.metadata)
