"""The handler of each endpoint, by its name."""

from bergline.catalog.rest.protocol.endpoints import ENDPOINTS
from bergline.server.handlers import commits, config, credentials, namespaces, oauth, planning, tables, views
from bergline.server.handlers.context import Handler

_MODULES = (config, oauth, namespaces, tables, credentials, commits, planning, views)


def _find(name: str) -> Handler:
    found: Handler = next(getattr(module, name) for module in _MODULES if hasattr(module, name))
    return found


HANDLERS: dict[str, Handler] = {endpoint.name: _find(endpoint.name) for endpoint in ENDPOINTS}
