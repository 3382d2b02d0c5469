"""The REST catalog as a whole."""

import pytest

from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.errors import UnavailableError
from support.servers.scripted_rest_server import RestScript

pytestmark = pytest.mark.long


def test_closed_catalog_takes_no_calls(server: RestScript) -> None:
    catalog = RestCatalog(server.uri, {})
    catalog.close()
    with pytest.raises(UnavailableError, match="closed"):
        catalog.list_namespaces()
