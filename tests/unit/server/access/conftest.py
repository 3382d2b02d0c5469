"""An issuer of tokens."""

from collections.abc import Iterator

import pytest

from support.servers.oidc_issuer import OidcIssuerServer


@pytest.fixture
def issuer() -> Iterator[OidcIssuerServer]:
    with OidcIssuerServer() as server:
        yield server
