"""The server's own OpenAPI document, made from its endpoints and the types of their bodies."""

import re
from functools import cache
from typing import Any

import msgspec

from bergline.catalog.rest.protocol.bodies import ErrorResponse, OAuthError
from bergline.catalog.rest.protocol.endpoints import GET_TOKEN, LOAD_TABLE, Endpoint
from bergline.catalog.rest.protocol.errors import ERRORS
from bergline.format.partition.transforms import Transform
from bergline.format.types.types import IcebergType
from bergline.format.view.view_metadata import ViewRepresentation
from bergline.governance.endpoints import ENDPOINTS
from bergline.server.cache.load_responses import SNAPSHOT_MODES

_JSON = "application/json"
_FORM = "application/x-www-form-urlencoded"
_SERVER_STATUSES = (405, 408, 413, 415, 504)
_OAUTH2_STATUSES = {"400", "401"}
_HOOKED: dict[Any, dict[str, Any]] = {
    IcebergType: {"oneOf": [{"type": "string"}, {"type": "object"}]},
    Transform: {"type": "string"},
    ViewRepresentation: {"type": "object", "required": ["type"]},
    msgspec.Raw: {"type": "object"},
}
_QUERIES: dict[str, dict[str, Any]] = {
    "after": {"type": "integer", "minimum": 0},
    "limit": {"type": "integer", "minimum": 1},
    "pageSize": {"type": "integer", "minimum": 1},
    "purgeRequested": {"type": "boolean"},
    "snapshots": {"type": "string", "enum": list(SNAPSHOT_MODES)},
    "wait": {"type": "integer", "minimum": 0},
}


@cache
def openapi_document() -> bytes:
    """The document as JSON."""
    types = [t for e in ENDPOINTS for t in (e.body, e.response) if t is not None]
    schemas, components = msgspec.json.schema_components(
        [*types, ErrorResponse, OAuthError], schema_hook=_hook, ref_template="#/components/schemas/{name}"
    )
    known = dict(zip(map(repr, [*types, ErrorResponse, OAuthError]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        path = endpoint.path.replace("/{prefix}", "")
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, known)
    document = msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "bergline: an Iceberg REST catalog", "version": "1"},
            "paths": paths,
            "components": {
                "schemas": components,
                "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            },
            "security": [{}, {"bearer": []}],
        }
    ).decode()
    for name in components:
        document = document.replace(f'{name}"', f'{_short(name)}"')
    return document.encode()


def _operation(endpoint: Endpoint, known: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "parameters": _parameters(endpoint),
        "responses": _responses(endpoint, known),
    }
    if endpoint is GET_TOKEN:
        operation["requestBody"] = {"required": True, "content": {_FORM: {"schema": {"type": "object"}}}}
        operation["security"] = [{}]
    elif endpoint.body is not None:
        content = {_JSON: {"schema": known[repr(endpoint.body)]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    names = [name for name in re.findall(r"{([\w-]+)}", endpoint.path) if name != "prefix"]
    text = {"type": "string", "minLength": 1}
    parameters = [{"name": name, "in": "path", "required": True, "schema": text} for name in names]
    parameters += [
        {"name": name, "in": "query", "required": False, "schema": _QUERIES.get(name, {"type": "string"})}
        for name in endpoint.queries
    ]
    if endpoint.takes_key:
        uuid = {"type": "string", "format": "uuid"}
        parameters.append({"name": "Idempotency-Key", "in": "header", "required": False, "schema": uuid})
    if endpoint is LOAD_TABLE:
        parameters.append({"name": "If-None-Match", "in": "header", "required": False, "schema": {"type": "string"}})
    return parameters


def _responses(endpoint: Endpoint, known: dict[str, Any]) -> dict[str, Any]:
    statuses = sorted({*(row.status for row in ERRORS), *_SERVER_STATUSES})
    responses: dict[str, Any] = {str(status): {"description": "why not"} for status in statuses}
    for status, wrong in responses.items() if endpoint.method != "HEAD" else ():
        in_oauth2 = endpoint is GET_TOKEN and status in _OAUTH2_STATUSES
        wrong["content"] = {_JSON: {"schema": known[repr(OAuthError if in_oauth2 else ErrorResponse)]}}
    right: dict[str, Any] = {"description": "done"}
    if endpoint.response is not None:
        right["content"] = {endpoint.media: {"schema": known[repr(endpoint.response)]}}
    responses[str(endpoint.status)] = right
    if endpoint is LOAD_TABLE:
        responses["304"] = {"description": "as the client knows it"}
    return responses


def _short(name: str) -> str:
    """The name of a type without its parameters."""
    return re.sub(r"_bergline\..*", "", name).lstrip("_")


def _hook(kind: type) -> dict[str, Any]:
    for known, schema in _HOOKED.items():
        if kind is known or (isinstance(kind, type) and issubclass(kind, known)):
            return schema
    raise NotImplementedError(kind)
