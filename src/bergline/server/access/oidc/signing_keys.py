"""The public keys of one issuer, kept for a time, each with the algorithms that it is for.

A key is for one family of algorithms, which its type decides and never the token: a public key is no secret for HMAC.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from typing import Any, cast

import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK
from jwt.algorithms import AllowedPublicKeys
from jwt.exceptions import PyJWTError

from bergline.errors import BerglineError, UnavailableError
from bergline.server.access.oidc.key_download import JsonWebKey, KeyDownload
from bergline.server.http.settings import OidcIssuer

_LOG = logging.getLogger("bergline.server")
_FRESH_S = 600.0
_KEPT_S = 3600.0
"""How long keys are used while the issuer's server does not respond."""
_INTERVAL_S = 30.0
"""Between two downloads, however many unknown keys tokens name."""
_WAIT_S = 3.0
_SHORTEST_RSA_BITS = 2048
_RSA = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_CURVES = {
    ("EC", "P-256"): "ES256",
    ("EC", "P-384"): "ES384",
    ("EC", "P-521"): "ES512",
    ("OKP", "Ed25519"): "EdDSA",
}
ALGORITHMS = _RSA | frozenset(_CURVES.values())
_PUBLIC = {"kty", "crv", "n", "e", "x", "y"}


class SigningKey(msgspec.Struct, frozen=True):
    """A key that verifies signatures."""

    kid: str | None
    algorithms: frozenset[str]
    key: Any


class _KnownKeys(msgspec.Struct, frozen=True):
    keys: tuple[SigningKey, ...] = ()
    at: float = float("-inf")


class SigningKeys:
    """The keys of one issuer; they are downloaded by a thread of their own, for all who wait."""

    def __init__(
        self,
        issuer: OidcIssuer,
        clock: Callable[[], float] = time.monotonic,
        download: Callable[[], list[dict[str, Any]]] | None = None,
    ) -> None:
        self._alias = issuer.alias
        self._clock = clock
        self._download = download or KeyDownload(issuer)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="bergline-server-keys")
        self._lock = threading.Lock()
        self._known = _KnownKeys()
        self._asked_at = float("-inf")
        self._asked: Future[None] | None = None
        self._problem: str | None = None

    def find(self, kid: str | None, algorithm: str) -> SigningKey | None:
        """The key that a token names; None if the issuer has none such, UnavailableError if nobody can say."""
        found = self._match(kid, algorithm)
        if found is None or self._clock() >= self._known.at + _FRESH_S:
            asked = self._ask()
            if found is None or self._is_too_old:
                self._wait(asked)
                found = self._match(kid, algorithm)
        if self._is_too_old or (found is None and self._problem is not None):
            raise self._unavailable()
        return found

    def fetch(self) -> str | None:
        """Download the keys now, if that was not tried a moment ago; what is wrong, if anything."""
        self._ask().result()
        return self._problem

    @property
    def _is_too_old(self) -> bool:
        return self._clock() >= self._known.at + _KEPT_S

    def _match(self, kid: str | None, algorithm: str) -> SigningKey | None:
        known = self._known.keys
        if kid is None:  # allowed where there is nothing to choose
            return known[0] if len(known) == 1 and algorithm in known[0].algorithms else None
        return next((key for key in known if key.kid == kid and algorithm in key.algorithms), None)

    def _ask(self) -> Future[None]:
        """The download that is under way, or was a moment ago; else a new one."""
        with self._lock:
            now = self._clock()
            if self._asked is None or (self._asked.done() and now >= self._asked_at + _INTERVAL_S):
                self._asked_at = now
                self._asked = self._pool.submit(self._refresh)
            return self._asked

    def _wait(self, asked: Future[None]) -> None:
        try:
            asked.result(_WAIT_S)
        except NotYetError:
            raise self._unavailable() from None

    def _refresh(self) -> None:
        try:
            keys = _usable_keys(self._download())
        except BerglineError as error:
            self._problem = str(error)
            _LOG.warning("cannot get the keys of issuer %s: %s", self._alias, error)
        except Exception:  # noqa: BLE001  (a bug of ours: known keys go on working)
            self._problem = "the server failed; its log says why"
            _LOG.exception("cannot get the keys of issuer %s", self._alias)
        else:
            self._known, self._problem = _KnownKeys(keys, self._clock()), None

    def _unavailable(self) -> UnavailableError:
        return UnavailableError(
            f"cannot check tokens of the issuer `{self._alias}` now: its keys cannot be fetched; try again later"
        )


def _usable_keys(found: Iterable[JsonWebKey]) -> tuple[SigningKey, ...]:
    keys = tuple(key for data in found if (key := usable_key(data)) is not None)
    if not keys:
        raise UnavailableError("expected a key for signatures that is supported, found none")
    return keys


def usable_key(data: JsonWebKey) -> SigningKey | None:
    """A key of a JWKS, without its private parts; None if it is not for signatures, too short or not supported."""
    algorithms, kid, operations = _algorithms(data), data.get("kid"), data.get("key_ops", ["verify"])
    if not algorithms or data.get("use", "sig") != "sig" or not isinstance(kid, str | None):
        return None
    if not isinstance(operations, list) or "verify" not in operations:
        return None
    public = {name: value for name, value in data.items() if name in _PUBLIC}
    try:
        key = cast("AllowedPublicKeys", PyJWK(public, min(algorithms)).key)
    except (PyJWTError, ValueError, TypeError, OverflowError):
        return None
    if isinstance(key, RSAPublicKey) and key.key_size < _SHORTEST_RSA_BITS:
        return None
    return SigningKey(kid, algorithms, key)


def _algorithms(data: JsonWebKey) -> frozenset[str]:
    """What the type of a key allows, or of that the one that the issuer says."""
    kind, said = data.get("kty"), data.get("alg")
    curve = _CURVES.get((str(kind), str(data.get("crv"))))
    allowed = _RSA if kind == "RSA" else frozenset() if curve is None else frozenset({curve})
    return allowed if said is None else allowed & {said} if isinstance(said, str) else frozenset()
