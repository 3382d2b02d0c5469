"""Tokens that nobody signed: refused, whatever they look like, and never a failure of the server."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bergline.server.access.authenticator import Authenticator
from bergline.server.opening import open_server
from support.servers.asgi_client import AsgiClient, bearer
from support.servers.oidc_issuer import OidcIssuerServer, public_jwk

NAMES = ["alg", "kid", "typ", "crit", "b64", "jwk", "jku", "iss", "aud", "exp", "nbf", "iat", "sub", "groups"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["ES256", "none", "HS256"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | st.text(), inner, max_size=3),
    max_leaves=6,
)
PARTS = st.binary(max_size=60) | st.dictionaries(st.sampled_from(NAMES), JSON, max_size=6) | JSON


class Asked:
    """A server that trusts an issuer, and a token that it accepts."""

    def __init__(self, client: AsgiClient, issuer: OidcIssuerServer) -> None:
        self._client = client
        self.issuer = issuer
        self.valid = issuer.token()
        self.claims, self.header = issuer.claims(), {"alg": "ES256", "kid": "k1", "typ": "JWT"}
        assert self.status(self.valid) == 200

    def status(self, token: str) -> int:
        return self._client("GET", "/v1/config", headers=bearer(token)).status


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with OidcIssuerServer() as issuer:
        issuer.keys = [public_jwk("P-256", 1, "k1"), public_jwk("RSA", 1, "k2"), public_jwk("Ed25519", 1, "k3")]
        context = open_server(f"sqlite:///{tmp_path_factory.mktemp('tokens')}/catalog.db")
        context.authenticator = Authenticator(context.records, issuers=[issuer.settings()], max_failed_logins=0)
        with AsgiClient(context) as client:
            yield Asked(client, issuer)
        context.catalog.close()


def segment(part: Any) -> str:
    data = part if isinstance(part, bytes) else json.dumps(part).encode(errors="surrogatepass")
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@given(st.text(max_size=200) | st.from_regex(r"[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*", fullmatch=True))
@example("")
@example("..")
@example("\ud800.a.b".encode(errors="replace").decode())
def test_text_is_no_token(asked: Asked, text: str) -> None:
    assert asked.status(text) in {401, 419, 503}


@given(st.data())
def test_changed_token_is_refused(asked: Asked, data: st.DataObject) -> None:
    valid = asked.valid
    start = data.draw(st.integers(0, len(valid)), "start")
    end = data.draw(st.integers(start, min(start + 4, len(valid))), "end")
    put = data.draw(st.text("ABCXYZabcxyz019-_.=", max_size=4), "put")
    changed = valid[:start] + put + valid[end:]
    if changed != valid:
        assert asked.status(changed) == 401


@given(PARTS, PARTS, st.binary(max_size=140))
def test_parts_of_any_kind_are_refused(asked: Asked, header: Any, claims: Any, signature: bytes) -> None:
    assert asked.status(f"{segment(header)}.{segment(claims)}.{segment(signature)}") == 401


@given(
    st.dictionaries(st.sampled_from(NAMES), JSON, max_size=3),
    st.dictionaries(st.sampled_from(NAMES), JSON, max_size=3),
    st.sampled_from(["k1", "k2", "k3"]),
    st.sampled_from(["ES256", "RS256", "PS512", "EdDSA", "HS256", "none", "ES384"]),
    st.binary(min_size=64, max_size=64) | st.binary(min_size=256, max_size=256) | st.binary(max_size=3),
)
def test_signature_of_nobody_is_refused(
    asked: Asked, header: dict[str, Any], claims: dict[str, Any], kid: str, algorithm: str, signature: bytes
) -> None:
    head = asked.header | {"kid": kid, "alg": algorithm} | header
    token = f"{segment(head)}.{segment(asked.claims | claims)}.{segment(signature)}"
    assert asked.status(token) == 401


@given(st.dictionaries(st.sampled_from(NAMES[7:]), JSON, max_size=4))
def test_signed_claims_of_any_kind_are_no_failure(asked: Asked, claims: dict[str, Any]) -> None:
    kept = {name: value for name, value in claims.items() if name != "iss"}
    try:
        token = asked.issuer.token(**kept)
    except (TypeError, ValueError, UnicodeEncodeError):  # what not even the issuer's library signs
        return
    assert asked.status(token) in {200, 401, 419}
