"""Keys from an issuer's server, as it should be and as it should not."""

import pytest

from bergline.errors import UnavailableError
from bergline.server.access.oidc.key_download import KeyDownload
from bergline.server.http.settings import OidcIssuer
from support.servers.oidc_issuer import OidcIssuerServer


def test_keys_are_found_by_discovery(issuer: OidcIssuerServer) -> None:
    assert [key["kid"] for key in KeyDownload(issuer.settings())()] == ["k1"]
    assert issuer.requests == ["/realms/corp/.well-known/openid-configuration", "/realms/corp/certs"]


def test_keys_are_found_where_the_settings_say(issuer: OidcIssuerServer) -> None:
    KeyDownload(issuer.settings(jwks_url=f"{issuer.url}/elsewhere"))()
    assert issuer.requests == ["/realms/corp/elsewhere"]


def test_redirects_are_not_followed(issuer: OidcIssuerServer) -> None:
    issuer.status, issuer.headers = 302, {"location": f"{issuer.url}/other"}
    with pytest.raises(UnavailableError, match="found 302"):
        KeyDownload(issuer.settings())()
    assert len(issuer.requests) == 1


def test_discovery_of_another_issuer_is_refused(issuer: OidcIssuerServer) -> None:
    issuer.issuer_said = f"{issuer.url}/"
    with pytest.raises(UnavailableError, match="expected the issuer"):
        KeyDownload(issuer.settings())()


def test_keys_over_plain_http_are_refused(issuer: OidcIssuerServer) -> None:
    issuer.jwks_said = "http://id.example/keys"
    with pytest.raises(UnavailableError, match="https"):
        KeyDownload(issuer.settings())()


@pytest.mark.parametrize("body", [b"", b"[]", b'{"keys": 1}', b'{"keys": [1]}', b"\xff", b'{"keys":' + b"[" * 100_000])
def test_what_is_no_key_set_is_refused(issuer: OidcIssuerServer, body: bytes) -> None:
    issuer.body = body
    with pytest.raises(UnavailableError, match="expected the JSON"):
        KeyDownload(issuer.settings())()


def test_too_much_is_not_read(issuer: OidcIssuerServer) -> None:
    issuer.body = b" " * 600_000
    with pytest.raises(UnavailableError, match="bytes"):
        KeyDownload(issuer.settings())()
    issuer.body, issuer.keys = None, issuer.keys * 101
    with pytest.raises(UnavailableError, match="100 keys"):
        KeyDownload(issuer.settings())()


def test_server_that_is_gone_is_unavailable(issuer: OidcIssuerServer) -> None:
    issuer.stop()
    with pytest.raises(UnavailableError, match="cannot read"):
        KeyDownload(issuer.settings())()
    with pytest.raises(UnavailableError, match="cannot read"):
        KeyDownload(OidcIssuer("corp", "https://nowhere.invalid", "x"))()
