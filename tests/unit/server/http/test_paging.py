"""Pages of a list."""

import pytest

from bergline.errors import InvalidInputError
from bergline.server.http.paging import RequestedPage, page_token, requested_page
from support.servers.asgi_client import AsgiClient


def test_pages_cover_everything_once(client: AsgiClient) -> None:
    names = [f"n{i}" for i in range(7)]
    for name in names:
        client.namespace(name)
    seen: list[str] = []
    token = ""
    while token is not None:
        page = client("GET", "/v1/namespaces", query={"pageToken": token, "pageSize": "3"}).json
        assert len(page["namespaces"]) <= 3
        seen += [n for (n,) in page["namespaces"]]
        token = page["next-page-token"]
    assert seen == names


@pytest.mark.parametrize("query", [{"pageSize": "0"}, {"pageSize": "x"}, {"pageToken": "§"}, {"pageToken": "!"}])
def test_bad_pages_are_refused(client: AsgiClient, query: dict[str, str]) -> None:
    assert client("GET", "/v1/namespaces", query=query).status == 400


def test_token_names_the_end_of_the_page_before() -> None:
    token = page_token("a b", "ü")
    assert requested_page({"pageToken": token, "pageSize": "7"}, 2) == RequestedPage(7, ("a b", "ü"))
    assert requested_page({"pageToken": ""}, 2) == RequestedPage(1000, None)
    assert requested_page({}, 2) is None
    assert requested_page({"pageSize": "999999999"}, 1) == RequestedPage(100_000, None)
    with pytest.raises(InvalidInputError, match="expected a page token"):
        requested_page({"pageToken": token}, 1)
