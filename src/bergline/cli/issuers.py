"""The issuers that `bergline serve` trusts, and the console as their client, from options and `bergline.toml`."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from bergline.errors import InvalidInputError
from bergline.server.http.settings import OidcClient, OidcIssuer

CLIENT_SECRET_VARIABLE = "BERGLINE_OIDC_CLIENT_SECRET"  # noqa: S105  (its name)
DEFAULT_SCOPES = "openid profile email"


def issuer_of(alias: str, given: Mapping[str, str]) -> OidcIssuer:
    """An issuer of `bergline.toml`."""
    secret_file = given.get("client-secret-file")
    return OidcIssuer(
        alias,
        given["issuer"],
        given["audience"],
        given.get("principal-claim", "sub"),
        given.get("groups-claim", "groups"),
        given.get("jwks"),
        oidc_client(
            given.get("client-id"), None if secret_file is None else Path(secret_file), given.get("scopes"), {}
        ),
    )


def oidc_client(
    client_id: str | None, secret_file: Path | None, scopes: str | None, environment: Mapping[str, str]
) -> OidcClient | None:
    """The console as a client, with its secret from a file or the environment; a public one without."""
    if client_id is None:
        if secret_file is not None or scopes is not None:
            raise InvalidInputError("expected the id of a client with its secret or scopes, found none")
        return None
    secret = environment.get(CLIENT_SECRET_VARIABLE) if secret_file is None else _secret_in(secret_file)
    return OidcClient(client_id, secret or None, scopes or DEFAULT_SCOPES)


def checked_console_url(text: str) -> str:
    """The console's address, without a slash at its end; it has no path, as the API has none."""
    url = text.rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path or parts.query or parts.fragment:
        raise InvalidInputError(f"expected a URL like https://lake.example.com for --console-url, found `{text[:200]}`")
    return url


def _secret_in(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InvalidInputError(f"cannot read the client's secret in `{file}`: {reason}") from error
    if not text:
        raise InvalidInputError(f"expected the client's secret in `{file}`, found an empty file")
    return text
