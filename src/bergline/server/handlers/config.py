"""The configuration that clients load first."""

from bergline.catalog.rest.protocol.bodies import ConfigResponse
from bergline.catalog.rest.protocol.endpoints import ALWAYS_THERE, ENDPOINTS
from bergline.catalog.rest.protocol.names import SEPARATOR_PROPERTY, UNIT_SEPARATOR, encode_separator
from bergline.errors import NotFoundError
from bergline.io.locations import normalized
from bergline.server.handlers.context import ServerContext
from bergline.server.http.request import Request
from bergline.server.http.response import Response, json_response


def get_config(context: ServerContext, request: Request) -> Response:
    """Settings for clients; one server has one warehouse, known by its name or its location."""
    settings = context.settings
    requested = request.query.get("warehouse")
    if requested and requested != settings.name and not _is_location(requested, settings.warehouse):
        raise NotFoundError(
            f"no warehouse `{requested[:200]}`",
            kind="warehouse",
            name=requested,
            hints=[f"this server has `{settings.name}`"],
        )
    own = {} if settings.separator == UNIT_SEPARATOR else {SEPARATOR_PROPERTY: encode_separator(settings.separator)}
    return json_response(
        ConfigResponse(
            defaults=settings.storage,
            overrides=own,
            endpoints=tuple(str(e) for e in ENDPOINTS if e not in ALWAYS_THERE),
            idempotency_key_lifetime=f"PT{settings.idempotency_lifetime_s}S",
        )
    )


def _is_location(requested: str, warehouse: str | None) -> bool:
    return warehouse is not None and normalized(requested).rstrip("/") == normalized(warehouse)
