"""Issuers and clients, from options and settings."""

from pathlib import Path

import pytest

from bergline.cli.issuers import CLIENT_SECRET_VARIABLE, checked_console_url, issuer_of, oidc_client
from bergline.errors import InvalidInputError
from bergline.server.http.settings import OidcClient

ISSUER = {"issuer": "https://id.example", "audience": "bergline"}


def test_secret_is_that_of_the_file_or_the_environment_and_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("of the file\n")
    environment = {CLIENT_SECRET_VARIABLE: "of the environment"}
    assert oidc_client("c", file, None, environment) == OidcClient("c", "of the file")
    assert oidc_client("c", None, "openid", environment) == OidcClient("c", "of the environment", "openid")
    assert oidc_client("c", None, None, {}) == OidcClient("c")
    assert oidc_client(None, None, None, environment) is None
    given = ISSUER | {"client-id": "c", "client-secret-file": str(file)}
    issuer = issuer_of("corp", given)
    assert issuer.client == OidcClient("c", "of the file")
    assert "of the file" not in repr(issuer)
    assert issuer_of("corp", ISSUER).client is None


def test_secret_without_a_client_and_broken_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="id of a client"):
        oidc_client(None, tmp_path / "secret", None, {})
    with pytest.raises(InvalidInputError, match="cannot read"):
        oidc_client("c", tmp_path / "secret", None, {})
    (tmp_path / "secret").write_text("\n")
    with pytest.raises(InvalidInputError, match="empty file"):
        oidc_client("c", tmp_path / "secret", None, {})


@pytest.mark.parametrize("url", ["lake.example", "https://lake.example/x", "https://", "ftp://x", "https://x?y", ""])
def test_address_of_the_console_is_one_of_a_host(url: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a URL"):
        checked_console_url(url)
    assert checked_console_url("https://lake.example:8443/") == "https://lake.example:8443"
