"""The server's own document."""

import json

from bergline.governance.endpoints import ENDPOINTS
from support.servers.asgi_client import AsgiClient


def test_document_names_every_endpoint_once_and_no_type_that_it_has_not(client: AsgiClient) -> None:
    document = client("GET", "/openapi.json").json
    operations = [o["operationId"] for methods in document["paths"].values() for o in methods.values()]
    assert sorted(operations) == sorted(e.name for e in ENDPOINTS)
    text = json.dumps(document)
    assert "_bergline" not in text
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= document["components"]["schemas"].keys()
