"""What is refused before the server listens, and how it stops."""

import signal
from pathlib import Path

import pytest
import uvicorn

from bergline.errors import InvalidInputError, RefusedError
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import VendingConfig, open_server
from bergline.server.start import _Server, check_host, fetch_keys, serve, trusted_networks
from support.servers.oidc_issuer import OidcIssuerServer

PROPERTIES = {"s3.access-key-id": "server-key", "s3.secret-access-key": "server-secret", "s3.region": "eu-west-1"}


def test_keys_are_not_handed_out_to_other_machines_without_tokens(tmp_path: Path) -> None:
    context = open_server(f"sqlite:///{tmp_path}/lake/catalog.db", properties=PROPERTIES, vend=VendingConfig())
    with pytest.raises(RefusedError, match="hand out credentials on"):
        serve(context, "0.0.0.0", 0, anonymous=True, say=print)  # noqa: S104
    context.catalog.close()


def test_issuer_without_keys_is_said(tmp_path: Path) -> None:
    with OidcIssuerServer() as issuer:
        limits = ServerSettings(issuers=(issuer.settings(),))
        context = open_server(f"sqlite:///{tmp_path}/lake/catalog.db", limits=limits)
    said: list[str] = []
    fetch_keys(context, said.append)
    assert said[0].startswith("tokens cannot be checked yet: issuer `corp`: cannot read http://127.0.0.1:")
    context.catalog.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "::", "example.com"])  # noqa: S104
def test_other_machines_need_tokens(host: str) -> None:
    with pytest.raises(RefusedError, match="without tokens"):
        check_host(host, has_tokens=False, anonymous=False)
    check_host(host, has_tokens=True, anonymous=False)
    check_host(host, has_tokens=False, anonymous=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_loopback_needs_none(host: str) -> None:
    check_host(host, has_tokens=False, anonymous=False)


def test_those_who_wait_are_told_when_the_server_is_to_stop() -> None:
    told: list[bool] = []
    server = _Server(uvicorn.Config("none"), lambda: told.append(True))
    server.handle_exit(signal.SIGTERM, None)
    assert told == [True]
    assert server.should_exit


def test_proxies_are_addresses_and_networks() -> None:
    assert trusted_networks(["127.0.0.1", "10.1.2.3/8", "::1"]) == ["127.0.0.1/32", "10.0.0.0/8", "::1/128"]
    for proxy in ("*", "proxy.internal", ""):
        with pytest.raises(InvalidInputError, match="addresses or networks of trusted proxies"):
            trusted_networks([proxy])
