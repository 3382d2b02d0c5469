"""What the server is and can do."""

from bergline.catalog.rest.protocol.bodies import ConfigResponse
from bergline.catalog.rest.protocol.endpoints import ALWAYS_THERE, ENDPOINTS
from bergline.catalog.rest.protocol.names import SEPARATOR_PROPERTY, UNIT_SEPARATOR, encode_separator
from bergline.errors import NotFoundError
from bergline.io.locations import normalized
from bergline.server.handlers.context import ServerContext
from bergline.server.http.request import Request
from bergline.server.http.response import Response, answer_json


def get_config(context: ServerContext, call: Request) -> Response:
    """Settings for clients; one server has one warehouse, known by its name or its location."""
    settings = context.settings
    asked = call.query.get("warehouse")
    if asked and asked != settings.name and not _is_location(asked, settings.warehouse):
        raise NotFoundError(
            f"no warehouse `{asked[:200]}`", kind="warehouse", name=asked, hints=[f"this server has `{settings.name}`"]
        )
    own = {} if settings.separator == UNIT_SEPARATOR else {SEPARATOR_PROPERTY: encode_separator(settings.separator)}
    return answer_json(
        ConfigResponse(
            defaults=settings.storage,
            overrides=own,
            endpoints=tuple(str(e) for e in ENDPOINTS if e not in ALWAYS_THERE),
            idempotency_key_lifetime=f"PT{settings.idempotency_lifetime_s}S",
        )
    )


def _is_location(asked: str, warehouse: str | None) -> bool:
    return warehouse is not None and normalized(asked).rstrip("/") == normalized(warehouse)
