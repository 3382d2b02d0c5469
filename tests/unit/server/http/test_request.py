"""What a request says: names, flags, body."""

import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.protocol.bodies import CreateNamespaceRequest
from bergline.catalog.rest.protocol.endpoints import CREATE_NAMESPACE, LOAD_TABLE, Endpoint
from bergline.errors import InvalidInputError, NotFoundError
from bergline.server.http.errors import RequestRefused
from bergline.server.http.request import Request, address_of, is_local
from support.servers.asgi_client import AsgiClient


@pytest.mark.parametrize("segment", ["%FF", "%00", "", "a%1F%1Fb", "%1F"])
def test_names_that_nothing_can_have_are_refused(client: AsgiClient, segment: str) -> None:
    assert client("GET", f"/v1/namespaces/{segment}").status == 400


def request(names: dict[str, str], body: bytes = b"", endpoint: Endpoint = LOAD_TABLE, **query: str) -> Request:
    return Request(endpoint, names, query, {}, body, "\x1f", max_values=5)


def test_names_are_decoded_from_the_path() -> None:
    asked = request({"namespace": "a%1Fb", "table": "t%2F1"})
    assert (asked.namespace, asked.table) == (("a", "b"), TableName(("a", "b"), "t/1"))
    assert (asked.kind, asked.resource) == ("table", "table/a.b/t/1")
    assert asked.parts == (("a", "b"), ("t/1",))


def test_missing_namespace_is_a_missing_table() -> None:
    error = NotFoundError("no namespace `a`", kind="namespace", name="a")
    found = request({"namespace": "a", "table": "t"}).in_path(error)
    assert isinstance(found, NotFoundError)
    assert (found.kind, found.name, found.hints) == ("table", "a.t", ("no namespace `a`",))
    assert request({"namespace": "a"}).in_path(error) is error


def test_flags_are_true_or_false() -> None:
    assert [request({}, purge=text).flag("purge") for text in ("TRUE", "false", "")] == [True, False, False]
    assert not request({}).flag("purge")
    with pytest.raises(InvalidInputError, match="expected true or false for `purge`, found `yes`"):
        request({}, purge="yes").flag("purge")


def test_bodies_are_read_as_the_endpoints_type() -> None:
    read = request({}, b'{"namespace": ["a"]}', CREATE_NAMESPACE).read()
    assert isinstance(read, CreateNamespaceRequest)
    for body, status in ((b"[]", 400), (b'{"namespace": [1,2,3,4,5,6]}', 413)):
        with pytest.raises(RequestRefused) as refused:
            request({}, body, CREATE_NAMESPACE).read()
        assert refused.value.response.status == status


def test_address_is_that_of_the_connection() -> None:
    near = {"client": ("127.0.0.1", 7), "headers": []}
    claimed = {"client": ("192.0.2.1", 7), "headers": [(b"x-forwarded-for", b"127.0.0.1")]}
    behind = {"client": ("::1", 7), "headers": [(b"x-forwarded-for", b"192.0.2.7")]}
    assert [address_of(scope) for scope in (near, claimed, behind, {"headers": []})] == [
        "127.0.0.1",
        "192.0.2.1",
        "::1",
        "",
    ]
    assert [is_local(scope) for scope in (near, claimed, behind, {"headers": []})] == [True, False, False, False]
