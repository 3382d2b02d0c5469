"""Namespaces of a REST catalog."""

import pytest

from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.errors import CommitUnknownError, NotFoundError
from bergline.governance.endpoints import ENDPOINTS
from support.servers.scripted_rest_server import NO_ANSWER, Reply, RestScript, refused

pytestmark = pytest.mark.long


def test_server_without_head_is_asked_in_another_way() -> None:
    without = [str(e) for e in ENDPOINTS if e.method != "HEAD"]
    with RestScript(endpoints=without) as server:
        catalog = RestCatalog(server.uri, {})
        server.on("GET /v1/namespaces/db", Reply(body={"namespace": ["db"]}))
        assert catalog.namespace_exists(("db",))
        assert not catalog.namespace_exists(("other",))
        catalog.close()


@pytest.mark.parametrize(
    ("method", "path", "change", "look", "done"),
    [
        ("POST", "", "create", Reply(body={"namespace": ["db"], "properties": {"a": "1"}}), True),
        ("POST", "", "create", refused(404, "NoSuchNamespaceException"), False),
        ("POST", "", "create", Reply(body={"namespace": ["db"], "properties": {"a": "2"}}), False),
        ("DELETE", "/db", "drop", refused(404, "NoSuchNamespaceException"), True),
        ("DELETE", "/db", "drop", Reply(body={"namespace": ["db"]}), False),
        ("POST", "/db/properties", "update", Reply(body={"namespace": ["db"], "properties": {"a": "1"}}), True),
        ("POST", "/db/properties", "update", Reply(body={"namespace": ["db"], "properties": {"b": "1"}}), False),
    ],
)
def test_lost_answers_about_namespaces_are_settled_by_looking(
    server: RestScript, catalog: RestCatalog, method: str, path: str, change: str, look: Reply, *, done: bool
) -> None:
    server.on(f"{method} /v1/namespaces{path}", NO_ANSWER)
    server.on("GET /v1/namespaces/db", look)
    calls = {
        "create": lambda: catalog.create_namespace(("db",), {"a": "1"}),
        "drop": lambda: catalog.drop_namespace(("db",)),
        "update": lambda: catalog.update_namespace(("db",), {"a": "1"}, ("b",)),
    }
    if done:
        calls[change]()
    else:
        with pytest.raises(CommitUnknownError):
            calls[change]()
    assert len(server.sent(f"{method} /v1/namespaces{path}")) == 1


@pytest.mark.parametrize("answer", [Reply(200, b"<html>"), Reply(204), Reply(302), Reply(530), Reply(404, b"<html>")])
def test_answers_about_namespaces_that_are_not_of_the_protocol_are_settled_by_looking(
    server: RestScript, catalog: RestCatalog, answer: Reply
) -> None:
    here, gone = Reply(body={"namespace": ["db"], "properties": {"a": "1"}}), refused(404, "NoSuchNamespaceException")
    for address, look, change in (
        ("POST /v1/namespaces", here, lambda: catalog.create_namespace(("db",), {"a": "1"})),
        ("POST /v1/namespaces/db/properties", here, lambda: catalog.update_namespace(("db",), {"a": "1"}, ())),
        ("DELETE /v1/namespaces/db", gone, lambda: catalog.drop_namespace(("db",))),
    ):
        server.on(address, answer)
        server.on("GET /v1/namespaces/db", look)
        change()
        server.on("GET /v1/namespaces/db", gone if look is here else here)
        with pytest.raises((CommitUnknownError, NotFoundError)):
            change()
