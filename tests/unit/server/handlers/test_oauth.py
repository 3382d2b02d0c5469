"""Tokens for older clients."""

import base64
from urllib.parse import urlencode

import pytest

from bergline.server.context.context import ServerContext
from support.servers.asgi_client import TOKEN, AsgiClient, bearer

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"grant_type": "client_credentials", "client_id": "ann", "client_secret": TOKEN, "scope": "catalog"}, 200),
        ({"grant_type": EXCHANGE, "subject_token": TOKEN}, 200),
        ({"grant_type": "client_credentials", "client_id": "ann", "client_secret": "no"}, 401),
        ({"grant_type": "client_credentials"}, 401),
        ({"grant_type": "password"}, 400),
        ({}, 400),
    ],
)
def test_older_clients_get_their_token_back(guarded: ServerContext, form: dict[str, str], status: int) -> None:
    with AsgiClient(guarded) as client:
        response = client("POST", "/v1/oauth/tokens", urlencode(form).encode())
        assert response.status == status
        if status == 200:
            assert response.json["access_token"] == TOKEN
            assert client("GET", "/v1/config", headers=bearer(response.json["access_token"])).status == 200
        else:
            assert response.json["error"] in {"invalid_client", "invalid_request", "unsupported_grant_type"}


def test_secret_may_come_as_a_password(guarded: ServerContext) -> None:
    form = b"grant_type=client_credentials"
    with AsgiClient(guarded) as client:
        for secret, status in ((TOKEN, 200), ("x", 401)):
            password = base64.b64encode(f"ann:{secret}".encode()).decode()
            response = client("POST", "/v1/oauth/tokens", form, headers={"Authorization": f"Basic {password}"})
            assert response.status == status
        for header in ("Basic", "Basic !!", "Basic /w==", f"Bearer {TOKEN}"):
            assert client("POST", "/v1/oauth/tokens", form, headers={"Authorization": header}).status == 401
