"""Namespaces."""

from bergline.arguments import check_texts
from bergline.catalog.identifiers import Namespace, parse_namespace
from bergline.catalog.pointer.named_pointers import check_namespace
from bergline.catalog.rest.protocol.bodies import (
    CreateNamespaceRequest,
    GetNamespaceResponse,
    ListNamespacesResponse,
    UpdateNamespacePropertiesResponse,
    UpdateNamespaceRequest,
)
from bergline.catalog.rest.protocol.names import UNIT_SEPARATOR, join_levels, split_levels
from bergline.errors import NotFoundError
from bergline.server.handlers.context import ServerContext
from bergline.server.http.errors import RequestRefused
from bergline.server.http.paging import page_token, wanted_page
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, Response, answer_json

_LOCATION = "location"
_WITH_ROWS = "+"


def list_namespaces(context: ServerContext, call: Request) -> Response:
    """Those directly below one, or at the top."""
    text = call.query.get("parent")
    parent: Namespace = parse_namespace(split_levels(text, call.separator)) if text else ()
    wanted = wanted_page(call.query, 2)
    if wanted is None:
        below = [n for n in context.catalog.list_namespaces(parent) if len(n) == len(parent) + 1]
        return answer_json(ListNamespacesResponse(tuple(below), None))
    if parent:
        check_namespace(context.store, parent)
    after = (wanted.after[0] == _WITH_ROWS, wanted.after[1]) if wanted.after else None
    page = context.store.namespaces_after(parent, after, wanted.size)
    token = page.mark and page_token(_WITH_ROWS if page.mark[0] else "", page.mark[1])
    return answer_json(ListNamespacesResponse(tuple(page.namespaces), token))


def create_namespace(context: ServerContext, call: Request) -> Response:
    """A new namespace."""
    asked: CreateNamespaceRequest = call.read()
    namespace, properties = parse_namespace(asked.namespace), check_texts(asked.properties or {}, "property")
    for separator in {call.separator, UNIT_SEPARATOR}:
        join_levels(namespace, separator)  # a level that holds one could never be asked for
    context.check_place(properties.get(_LOCATION) or None)
    answer = call.foretell(_described(context, namespace, properties))
    context.catalog.create_namespace(namespace, properties)
    return answer


def load_namespace(context: ServerContext, call: Request) -> Response:
    """A namespace with its properties."""
    namespace = call.namespace
    return _described(context, namespace, context.catalog.namespace_properties(namespace))


def namespace_exists(context: ServerContext, call: Request) -> Response:
    """Whether it exists."""
    namespace = call.namespace
    if not context.catalog.namespace_exists(namespace):
        name = ".".join(namespace)
        raise NotFoundError(f"no namespace `{name}`", kind="namespace", name=name)
    return NO_CONTENT


def drop_namespace(context: ServerContext, call: Request) -> Response:
    """Remove an empty one."""
    context.catalog.drop_namespace(call.namespace)
    return NO_CONTENT


def update_namespace(context: ServerContext, call: Request) -> Response:
    """Set and remove properties."""
    asked: UpdateNamespaceRequest = call.read()
    namespace, changes = call.namespace, check_texts(asked.updates or {}, "property")
    removals = tuple(dict.fromkeys(asked.removals or ()))
    if both := sorted(set(changes) & set(removals)):
        raise RequestRefused(
            422,
            "UnprocessableEntityException",
            f"expected properties either set or removed, found `{both[0][:80]}` in both",
        )
    context.check_place(changes.get(_LOCATION) or None)
    known = context.catalog.namespace_properties(namespace)
    told = UpdateNamespacePropertiesResponse(
        updated=tuple(changes),
        removed=tuple(k for k in removals if k in known),
        missing=tuple(k for k in removals if k not in known),
    )
    answer = call.foretell(answer_json(told))
    context.catalog.update_namespace(namespace, changes, removals)
    return answer


def _described(context: ServerContext, namespace: Namespace, properties: dict[str, str]) -> Response:
    """A namespace with the location of its new tables, also where none was set: Trino puts new tables below it."""
    if not properties.get(_LOCATION) and (home := context.catalog.namespace_location(namespace, properties)):
        properties = properties | {_LOCATION: home}
    return answer_json(GetNamespaceResponse(namespace, properties))
