"""Every endpoint has a handler."""

from bergline.governance.endpoints import ENDPOINTS
from bergline.server.handlers.registry import HANDLERS


def test_every_endpoint_has_the_handler_of_its_name() -> None:
    assert {name: handler.__name__ for name, handler in HANDLERS.items()} == {e.name: e.name for e in ENDPOINTS}
