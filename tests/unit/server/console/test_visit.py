import asyncio
from typing import Any

import pytest

from bergline.errors import InvalidInputError
from bergline.server.console.visit import Visit, is_our_address, read_visit


def visit(method: str = "GET", path: str = "/", query: bytes = b"", body: bytes = b"", cookie: str = "") -> Visit:
    async def receive() -> Any:
        return {"type": "http.request", "body": body}

    headers = [(b"cookie", cookie.encode())]
    scope = {"method": method, "raw_path": path.encode(), "query_string": query, "headers": headers}
    return asyncio.run(read_visit(scope, receive))


def test_twin_is_asked_for_by_its_path() -> None:
    assert (visit(path="/table/rows.json").path, visit(path="/table/rows.json").wants_json) == ("table/rows", True)
    assert (visit(path="/lake.json").path, visit(path="/").path) == ("", "")


def test_form_and_query_are_read_as_utf8() -> None:
    found = visit("POST", query=b"a=%C3%A4&b=", body=b"c=1+2")
    assert (found.query, found.form, found.address) == ({"a": "ä", "b": ""}, {"c": "1 2"}, "/?a=%C3%A4&b=")


@pytest.mark.parametrize("query", [b"a=%FF", b"&".join(b"a%d=1" % n for n in range(300))])
def test_fields_that_are_none_are_refused(query: bytes) -> None:
    with pytest.raises(InvalidInputError, match="fields in UTF-8"):
        visit(query=query)


def test_cookie_is_read_beside_broken_ones() -> None:
    assert visit(cookie='x={"a": [1]}; b=2; [=; @').cookies["b"] == "2"


@pytest.mark.parametrize(("address", "ours"), [("/a?b", True), ("//x", False), ("http://x", False), ("/\\x", False)])
def test_address_of_another_site_is_told(address: str, ours: bool) -> None:
    assert is_our_address(address) is ours
