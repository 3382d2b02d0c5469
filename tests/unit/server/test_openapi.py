"""The server's own document, and the server asked by it with everything that may stand in a request."""

import json
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from asked import Asking
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from bergline.catalog.rest.endpoints import ENDPOINTS
from bergline.server.app import Application
from bergline.server.opening import open_served

EXAMPLES = int(os.environ.get("BERGLINE_EXAMPLES", "3"))
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
DIRECTORY = tempfile.TemporaryDirectory(prefix="bergline-openapi-")
SERVED = open_served(f"sqlite:///{DIRECTORY.name}/catalog.db")
APPLICATION = Application(SERVED)


async def living(scope: Any, receive: Any, send: Any) -> None:
    """The application, which does not end when one of its clients does."""
    if scope["type"] == "http":
        await APPLICATION(scope, receive, send)
    else:
        await send({"type": f"{(await receive())['type']}.complete"})
        await send({"type": f"{(await receive())['type']}.complete"})


DOCUMENT = schemathesis.openapi.from_asgi("/openapi.json", living)


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    """Something to be found, and everything closed at the end."""
    ask = Asking(SERVED, APPLICATION)
    ask.namespace("0")
    ask.table("0", "0")
    yield
    ask.application.close()
    SERVED.catalog.close()
    DIRECTORY.cleanup()


@DOCUMENT.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_whatever_is_asked_gets_a_documented_answer(case: Case) -> None:
    case.call_and_validate(checks=CHECKS)


def test_document_names_every_endpoint_once_and_no_address_twice(ask: Asking) -> None:
    document = ask("GET", "/openapi.json").json
    operations = [o["operationId"] for methods in document["paths"].values() for o in methods.values()]
    assert sorted(operations) == sorted(e.name for e in ENDPOINTS)
    text = json.dumps(document)
    assert "_bergline" not in text
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= document["components"]["schemas"].keys()
