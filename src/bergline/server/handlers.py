"""The handler of each endpoint, by its name."""

from bergline.catalog.rest.endpoints import ENDPOINTS
from bergline.server import (
    handlers_commits,
    handlers_config,
    handlers_credentials,
    handlers_namespaces,
    handlers_planning,
    handlers_tables,
    handlers_tokens,
    handlers_views,
)
from bergline.server.served import Handler

_MODULES = (
    handlers_config,
    handlers_tokens,
    handlers_namespaces,
    handlers_tables,
    handlers_credentials,
    handlers_commits,
    handlers_planning,
    handlers_views,
)


def _find(name: str) -> Handler:
    found: Handler = next(getattr(module, name) for module in _MODULES if hasattr(module, name))
    return found


HANDLERS: dict[str, Handler] = {endpoint.name: _find(endpoint.name) for endpoint in ENDPOINTS}
