"""Settings of a REST catalog."""

import pytest

import bergline
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.catalog.rest.client.settings import rest_settings
from bergline.errors import InvalidInputError, RefusedError
from support.servers.scripted_rest_server import RestScript, refused

pytestmark = pytest.mark.long


SECRET = "s3cr3t-value"  # noqa: S105


def test_headers_of_the_user_stand_in_every_request_and_files_come_with_credentials(server: RestScript) -> None:
    RestCatalog(server.uri, {"header.X-Team": "ours"}).close()
    assert server.requests[-1].headers["X-Team"] == "ours"
    assert server.requests[-1].headers["X-Iceberg-Access-Delegation"] == "vended-credentials"
    RestCatalog(server.uri, {"header.x-iceberg-access-delegation": "remote-signing"}).close()
    assert server.requests[-1].headers["x-iceberg-access-delegation"] == "remote-signing"


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"tokn": SECRET}, r"found `tokn`"),
        ({"token": 7}, "expected text for property `token`"),
        ({"token": "two\nlines"}, "printable ASCII characters in property `token`"),
        ({"header.Bad Name": "x"}, r"header in property `header\.Bad Name`"),
        ({"header.Name": "x\r\nY: z"}, r"header in property `header\.Name`"),
        ({"rest-page-size": "0"}, "from 1 to"),
        ({"rest.client.socket-timeout-ms": "long"}, "from 1 to"),
        ({"rest.auth.type": "magic"}, "none or basic or oauth2"),
        ({"prefix": "a?b"}, "part of a path"),
        ({"token-refresh-enabled": "maybe"}, "true or false"),
        ({"ssl.client.key": "key.pem"}, "expected the property `ssl.client.cert` beside `ssl.client.key`"),
        ({"s3.endpont": "x"}, r"found `s3\.endpont`"),
    ],
)
def test_properties_that_mean_nothing_are_refused_and_secrets_not_shown(
    server: RestScript, properties: dict[str, str], text: str
) -> None:
    with pytest.raises(InvalidInputError, match=text) as caught:
        bergline.connect(server.uri, properties=properties)
    assert SECRET not in str(caught.value)
    assert not server.requests


@pytest.mark.parametrize("uri", ["http://", "https://user:pw@host", "http://host:99999", "http://host/a b"])
def test_bad_addresses_are_refused(uri: str) -> None:
    with pytest.raises(InvalidInputError, match="expected an address like"):
        bergline.connect(uri)


def test_secrets_stand_in_no_error(server: RestScript) -> None:
    server.on("GET /v1/config", refused(403, "ForbiddenException", f"bad token {SECRET} and {SECRET}-header"))
    with pytest.raises(RefusedError, match="bad token … and …") as caught:
        RestCatalog(server.uri, {"token": SECRET, "header.X-Key": f"{SECRET}-header"})
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value)


def test_a_server_does_not_choose_files_of_this_machine() -> None:
    given = rest_settings("https://host", None, {"ssl.cabundle": "mine.pem"})
    theirs = {"ssl.cabundle": "/etc/theirs.pem", "ssl.client.cert": "/etc/cert.pem", "scope": "all"}
    merged = given.with_response(theirs, theirs)
    assert merged.properties == {"ssl.cabundle": "mine.pem", "scope": "all"}
