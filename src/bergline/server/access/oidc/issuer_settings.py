"""What may be said about issuers, checked before the first token comes."""

import ipaddress
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from bergline.errors import InvalidInputError
from bergline.server.http.settings import OidcClient, OidcIssuer

_ALIAS = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")


def check_issuers(issuers: Sequence[OidcIssuer]) -> None:
    """InvalidInputError for settings that leave open whose tokens are accepted, or that others could listen to."""
    for issuer in issuers:
        if not _ALIAS.fullmatch(issuer.alias):
            raise InvalidInputError(
                f"expected lower-case letters, digits and `-` as an issuer's alias, found `{issuer.alias[:80]}`"
            )
        check_url(issuer.url, f"issuer `{issuer.alias}`")
        if issuer.jwks_url is not None:
            check_url(issuer.jwks_url, f"the keys of issuer `{issuer.alias}`")
        for text, what in (
            (issuer.audience, "an audience"),
            (issuer.principal_claim, "a claim for names"),
            (issuer.groups_claim, "a claim for groups"),
        ):
            if not text.strip():
                raise InvalidInputError(f"expected {what} of issuer `{issuer.alias}`, found empty text")
        if issuer.client is not None:
            _check_client(issuer.alias, issuer.client)
    for what, found in (("alias", [i.alias for i in issuers]), ("URL", [i.url for i in issuers])):
        if twice := {one for one in found if found.count(one) > 1}:
            raise InvalidInputError(f"expected one issuer for each {what}, found `{min(twice)}` twice")


def _check_client(alias: str, client: OidcClient) -> None:
    if not client.client_id.strip() or (client.secret is not None and not client.secret):
        raise InvalidInputError(f"expected a client id of issuer `{alias}`, and no secret or one, found empty text")
    if "openid" not in client.scopes.split():
        raise InvalidInputError(f"expected `openid` among the scopes of issuer `{alias}`, found `{client.scopes[:80]}`")


def check_url(url: str, what: str) -> None:
    """InvalidInputError unless it is one of HTTPS, or of this machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if host is None or parts.username is not None or parts.fragment or parts.scheme not in {"http", "https"}:
        raise InvalidInputError(f"expected a URL like https://host/path for {what}, found another text")
    if parts.scheme == "http" and not is_loopback(host):
        raise InvalidInputError(
            f"expected a URL with https for {what}, found `http://{host[:200]}`: others could answer in its place"
        )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
