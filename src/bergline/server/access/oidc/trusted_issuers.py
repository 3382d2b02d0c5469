"""Tokens that issuers signed (JWT): whose they are, if they are genuine, for this server, and of this time.

A token is parsed once, by us, and what was parsed is what was signed. Whoever sends one that is not accepted learns
nothing about why; the log says it, without the token.
"""

import base64
import binascii
import hmac
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key
from jwt import get_algorithm_by_name

from bergline.errors import AuthenticationError
from bergline.server.access.oidc.issuer_settings import check_issuers
from bergline.server.access.oidc.signing_keys import ALGORITHMS, SigningKey, SigningKeys
from bergline.server.http.errors import RequestRefused
from bergline.server.http.principal import Principal, PrincipalKind
from bergline.server.http.settings import OidcIssuer

LONGEST_JWT = 16 * 1024
_LOG = logging.getLogger("bergline.server")
_SEGMENT = re.compile(r"[A-Za-z0-9_-]+")
_TYPES = {"jwt", "at+jwt", "application/at+jwt"}
_LEEWAY_S = 60.0
_LONGEST_NAME = 255
_MAX_TIME = 2**53
_EMAIL = re.compile(r"(?:.*[./:])?email")
"""The names of claims with an address: plain, in a path, or under a namespace of the issuer's."""
_DECOY, _DECOY_SIGNATURE = derive_private_key(1, SECP256R1()).public_key(), b"\x01" * 64
"""Checked where there is no key for a token, and accepts none: so that one of an unknown issuer takes as long."""

_Seconds = Annotated[float, msgspec.Meta(ge=0, le=_MAX_TIME)]


class _Header(msgspec.Struct, frozen=True):
    alg: str
    kid: str | None = None
    typ: str = "JWT"
    crit: msgspec.Raw | None = None
    b64: msgspec.Raw | None = None


class _Claims(msgspec.Struct, frozen=True):
    iss: str
    aud: str | list[str]
    exp: _Seconds
    nbf: _Seconds = 0
    iat: _Seconds = 0


class _ParsedToken(msgspec.Struct, frozen=True):
    header: _Header
    claims: _Claims
    all_claims: dict[str, Any]
    signed: bytes
    signature: bytes


class IdToken(msgspec.Struct, frozen=True):
    """What an ID token says that was accepted."""

    principal: Principal
    expires_s: float
    token_id: str | None
    issued_s: float


class _NotAcceptedError(Exception):
    """Why a token is not accepted, for the log."""


class TrustedIssuers:
    """The issuers of a server."""

    def __init__(
        self,
        issuers: Sequence[OidcIssuer],
        clock: Callable[[], float] = time.time,
        keys: Callable[[OidcIssuer], SigningKeys] = SigningKeys,
        is_revoked: Callable[[str | None, str, float], bool] = lambda _id, _principal, _issued_s: False,
    ) -> None:
        check_issuers(issuers)
        self._clock = clock
        self._is_revoked = is_revoked
        self._by_url = {issuer.url: (issuer, keys(issuer)) for issuer in issuers}
        self._prefixes = tuple(f"{issuer.alias}:" for issuer in issuers)

    def owns(self, name: str) -> bool:
        """Whether a name is one that only principals of an issuer have."""
        return name.startswith(self._prefixes)

    def fetch_keys(self) -> list[str]:
        """Download the keys of all issuers; what is wrong with some."""
        problems = ((issuer.alias, keys.fetch()) for issuer, keys in self._by_url.values())
        return [f"issuer `{alias}`: {problem}" for alias, problem in problems if problem is not None]

    def check(self, text: str) -> tuple[Principal, float]:
        """Who sends a token, and until when it is valid.

        AuthenticationError if it is not accepted, RequestRefused if its time is over, UnavailableError if the issuer's
        keys cannot be fetched, or it cannot be known whether the token was revoked.
        """
        alias = "unknown"
        try:
            issuer, token = self._genuine(text)
            alias = issuer.alias
            principal = self._principal(issuer, token, issuer.audience)
        except _NotAcceptedError as why:
            _LOG.info("refused a token of issuer %s: %s", alias, why)
            raise AuthenticationError("the token is not accepted") from None
        self._check_time(token)
        return principal, token.claims.exp

    def claimed(self, text: str) -> str | None:
        """Whose a token says that it is, by an issuer that is trusted; nothing of it is to be believed."""
        try:
            token = parse_token(text)
            issuer, _ = self._by_url.get(token.claims.iss, (None, None))
            if issuer is None:
                return None
            return _prefixed(issuer.alias, _claim(token.all_claims, issuer.principal_claim))
        except _NotAcceptedError:
            return None

    def accepts_still(self, principal: str, token_id: str | None, issued_s: float) -> bool:
        """Whether a principal whose token was accepted is one of an issuer that is trusted, and was not revoked."""
        return self.owns(principal) and not self._is_revoked(token_id, principal, issued_s)

    def check_id_token(self, text: str, expected: OidcIssuer, client_id: str, nonce: str) -> IdToken:
        """Whom an issuer has signed in; the errors of `check`.

        The token must be that issuer's, for this client alone, and of the sign-in that sent the nonce.
        """
        try:
            issuer, token = self._genuine(text)
            claims = token.all_claims
            if issuer.url != expected.url:
                raise _NotAcceptedError("another issuer has signed it")  # noqa: TRY301
            if token.header.typ.lower() != "jwt":
                raise _NotAcceptedError("it is no ID token")  # noqa: TRY301
            if claims.get("azp", client_id) != client_id or (len(_audiences(token)) > 1 and "azp" not in claims):
                raise _NotAcceptedError("it is for another client")  # noqa: TRY301
            if not hmac.compare_digest(str(claims.get("nonce")).encode(errors="replace"), nonce.encode()):
                raise _NotAcceptedError("it is of another sign-in")  # noqa: TRY301
            principal = self._principal(issuer, token, client_id)
        except _NotAcceptedError as why:
            _LOG.info("refused an ID token of issuer %s: %s", expected.alias, why)
            raise AuthenticationError("the sign-in is not accepted") from None
        self._check_time(token)
        return IdToken(principal, token.claims.exp, _id_of(token), token.claims.iat)

    def _genuine(self, text: str) -> tuple[OidcIssuer, _ParsedToken]:
        """A token that an issuer whom the server trusts has signed."""
        token = parse_token(text)
        issuer, keys = self._by_url.get(token.claims.iss, (None, None))
        key = keys.find(token.header.kid, token.header.alg) if keys and token.header.alg in ALGORITHMS else None
        is_signed = _is_signed(token, key)
        if issuer is None or key is None or not is_signed:
            named = "an issuer that is not trusted" if issuer is None else issuer.alias
            raise _NotAcceptedError(f"nobody whom the server trusts has signed it; it names {named}")
        return issuer, token

    def _check_time(self, token: _ParsedToken) -> None:
        if self._clock() >= token.claims.exp:
            raise RequestRefused(419, "AuthenticationTimeoutException", "the token's time is over")

    def _principal(self, issuer: OidcIssuer, token: _ParsedToken, audience: str) -> Principal:
        """The principal of a token that is signed."""
        claims, now = token.claims, self._clock()
        if audience not in _audiences(token):
            raise _NotAcceptedError("it is for another audience")
        if max(claims.nbf, claims.iat) > now + _LEEWAY_S:
            raise _NotAcceptedError("its time has not come")
        name = _verified_claim(token.all_claims, issuer.principal_claim)
        groups = _verified_claim(token.all_claims, issuer.groups_claim)
        listed = [] if groups is None else groups if isinstance(groups, list) else [groups]
        principal = Principal(
            _prefixed(issuer.alias, name),
            frozenset(_prefixed(issuer.alias, group) for group in listed),
            PrincipalKind.OIDC,
        )
        if self._is_revoked(_id_of(token), principal.name, claims.iat):
            raise _NotAcceptedError("it was revoked")
        return principal


def _id_of(token: _ParsedToken) -> str | None:
    """The token's own id, if its issuer gives it one."""
    found = token.all_claims.get("jti")
    return str(found) if isinstance(found, str | int) else None


def is_jwt(text: str) -> bool:
    """Whether a token looks like one of an issuer; ours have no dots."""
    return text.count(".") == 2  # noqa: PLR2004  (header, claims, signature)


def parse_token(text: str) -> _ParsedToken:
    """A token in its parts, of which nothing is to be believed yet."""
    if len(text) > LONGEST_JWT:
        raise _NotAcceptedError("it is too long")
    segments = text.split(".")
    if len(segments) != 3:  # noqa: PLR2004
        raise _NotAcceptedError("it is no JWT")
    header, claims, signature = map(_decoded, segments)
    try:
        parsed = _ParsedToken(
            msgspec.json.decode(header, type=_Header),
            msgspec.json.decode(claims, type=_Claims),
            msgspec.json.decode(claims, type=dict[str, Any]),
            text.rpartition(".")[0].encode(),
            signature,
        )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _NotAcceptedError("its header or claims are not as they should be") from None
    if parsed.header.crit is not None or parsed.header.b64 is not None or parsed.header.typ.lower() not in _TYPES:
        raise _NotAcceptedError("its header asks for something that is not supported")
    return parsed


def _decoded(segment: str) -> bytes:
    """A segment; only the one spelling that encoding its bytes gives."""
    if not _SEGMENT.fullmatch(segment):
        raise _NotAcceptedError("it is not in base64url")
    try:
        decoded = base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
    except (binascii.Error, ValueError):
        raise _NotAcceptedError("it is not in base64url") from None
    if base64.urlsafe_b64encode(decoded).decode().rstrip("=") != segment:
        raise _NotAcceptedError("it is not in base64url")
    return decoded


def _is_signed(token: _ParsedToken, key: SigningKey | None) -> bool:
    """Whether the key has signed the token by the algorithm of its header, which the key allows."""
    if key is None:
        get_algorithm_by_name("ES256").verify(token.signed, _DECOY, _DECOY_SIGNATURE)
        return False
    algorithm = token.header.alg
    return algorithm in key.algorithms and get_algorithm_by_name(algorithm).verify(
        token.signed, key.key, token.signature
    )


def _verified_claim(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name; an e-mail address only if the claim beside it says that the issuer has verified it."""
    found = _claim(claims, name)
    if found is not None and _EMAIL.fullmatch(name):
        verified = _claim(claims, f"{name}_verified")
        if verified is not True and verified != "true":  # some issuers say it in a text
            raise _NotAcceptedError(f"its claim `{name}_verified` does not say that the address is verified")
    return found


def _audiences(token: _ParsedToken) -> list[str]:
    audience = token.claims.aud
    return [audience] if isinstance(audience, str) else audience


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or by a path of names as in `realm_access.roles`."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _prefixed(alias: str, name: object) -> str:
    """The name of a principal or group, which no token and no other issuer can give."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise _NotAcceptedError("it names nobody, or a group has no name")
    prefixed = f"{alias}:{name}"
    if len(prefixed) > _LONGEST_NAME:
        raise _NotAcceptedError("a name in it is too long")
    return prefixed
