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
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import namespace_of
from bergline.server.context.context import ServerContext
from bergline.server.http.errors import RequestRefused
from bergline.server.http.paging import RequestedPage, page_token, requested_page
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, Response, json_response

_LOCATION = "location"
_WITH_ROWS = "+"
_ASKED_AT_ONCE = 500


def list_namespaces(context: ServerContext, request: Request) -> Response:
    """Those directly below one, or at the top."""
    text = request.query.get("parent")
    parent: Namespace = parse_namespace(split_levels(text, request.separator)) if text else ()
    page_request = requested_page(request.query, 2)
    by = context.access.newest(request.principal, request.groups) if context.access.is_active else None
    seen = by.namespaces_seen(parent) if by else None
    if seen is not None:
        if parent:
            check_namespace(context.store, parent)
        return _those_seen(context, seen, page_request)
    if page_request is None:
        below = [n for n in context.catalog.list_namespaces(parent) if len(n) == len(parent) + 1]
        return json_response(ListNamespacesResponse(tuple(below), None))
    if parent:
        check_namespace(context.store, parent)
    after = (page_request.after[0] == _WITH_ROWS, page_request.after[1]) if page_request.after else None
    page = context.store.namespaces_after(parent, after, page_request.size)
    token = page.mark and page_token(_WITH_ROWS if page.mark[0] else "", page.mark[1])
    return json_response(ListNamespacesResponse(tuple(page.namespaces), token))


def create_namespace(context: ServerContext, request: Request) -> Response:
    """A new namespace."""
    body: CreateNamespaceRequest = request.read()
    namespace, properties = parse_namespace(body.namespace), check_texts(body.properties or {}, "property")
    for separator in {request.separator, UNIT_SEPARATOR}:
        join_levels(namespace, separator)  # a level that contains one could never be requested
    context.claims.check_namespace_location(namespace, properties.get(_LOCATION) or None)
    response = request.precompute(_described(context, namespace, properties))
    context.catalog.create_namespace(namespace, properties)
    return response


def load_namespace(context: ServerContext, request: Request) -> Response:
    """A namespace with its properties."""
    namespace = request.namespace
    properties = context.catalog.namespace_properties(namespace)
    of = namespace_of(namespace)
    if not context.access.may(request.principal, request.groups, Privilege.LIST, of):
        return json_response(GetNamespaceResponse(namespace, {}))  # it only leads to something that may be seen
    return _described(context, namespace, properties)


def namespace_exists(context: ServerContext, request: Request) -> Response:
    """Whether it exists."""
    namespace = request.namespace
    if not context.catalog.namespace_exists(namespace):
        name = ".".join(namespace)
        raise NotFoundError(f"no namespace `{name}`", kind="namespace", name=name)
    return NO_CONTENT


def drop_namespace(context: ServerContext, request: Request) -> Response:
    """Remove an empty one."""
    context.catalog.drop_namespace(request.namespace)
    return NO_CONTENT


def update_namespace(context: ServerContext, request: Request) -> Response:
    """Set and remove properties."""
    body: UpdateNamespaceRequest = request.read()
    namespace, changes = request.namespace, check_texts(body.updates or {}, "property")
    removals = tuple(dict.fromkeys(body.removals or ()))
    if both := sorted(set(changes) & set(removals)):
        raise RequestRefused(
            422,
            "UnprocessableEntityException",
            f"expected properties either set or removed, found `{both[0][:80]}` in both",
        )
    context.claims.check_namespace_location(namespace, changes.get(_LOCATION) or None)
    known = context.catalog.namespace_properties(namespace)
    result = UpdateNamespacePropertiesResponse(
        updated=tuple(changes),
        removed=tuple(k for k in removals if k in known),
        missing=tuple(k for k in removals if k not in known),
    )
    response = request.precompute(json_response(result))
    context.catalog.update_namespace(namespace, changes, removals)
    return response


def _those_seen(context: ServerContext, seen: set[Namespace], page: RequestedPage | None) -> Response:
    """Those of the namespaces that the caller may see that exist, or a page of them."""
    after = page.after[1] if page and page.after else ""
    asked = sorted(n for n in seen if ".".join(n) > after)
    shown: list[Namespace] = []
    for start in range(0, len(asked), _ASKED_AT_ONCE):
        some = asked[start : start + _ASKED_AT_ONCE]
        there = context.store.existing_namespaces(some)
        shown += (n for n in some if n in there)
        if page and len(shown) > page.size:
            token = page_token(_WITH_ROWS, ".".join(shown[page.size - 1]))
            return json_response(ListNamespacesResponse(tuple(shown[: page.size]), token))
    return json_response(ListNamespacesResponse(tuple(shown), None))


def _described(context: ServerContext, namespace: Namespace, properties: dict[str, str]) -> Response:
    """A namespace with the location of its new tables, also where none was set: Trino puts new tables below it."""
    if not properties.get(_LOCATION) and (default := context.catalog.locations.of_namespace(namespace, properties)):
        properties = properties | {_LOCATION: default}
    return json_response(GetNamespaceResponse(namespace, properties))
