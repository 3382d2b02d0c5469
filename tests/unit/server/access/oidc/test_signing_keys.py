"""Keys of an issuer over time."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bergline.errors import UnavailableError
from bergline.server.access.oidc.signing_keys import ALGORITHMS, SigningKeys, usable_key
from support.servers.oidc_issuer import OidcIssuerServer, public_jwk


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(issuer: OidcIssuerServer, clock: Clock) -> Iterator[SigningKeys]:
    made = SigningKeys(issuer.settings(), clock)
    yield made
    made._pool.shutdown()


def test_keys_are_downloaded_once_and_kept(issuer: OidcIssuerServer, keys: SigningKeys) -> None:
    for _ in range(3):
        assert keys.find("k1", "ES256")
    assert issuer.jwks_requests() == 1


def test_new_key_is_found_when_a_token_names_it(issuer: OidcIssuerServer, keys: SigningKeys, clock: Clock) -> None:
    assert keys.find("k1", "ES256")
    issuer.rotate(2)
    assert keys.find("k2", "ES256") is None  # a moment after the last download
    clock.now += 31
    assert keys.find("k2", "ES256")
    assert keys.find("k1", "ES256") is None


def test_storm_of_unknown_keys_is_one_download(issuer: OidcIssuerServer, keys: SigningKeys, clock: Clock) -> None:
    assert keys.find("k1", "ES256")
    clock.now += 31
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: keys.find(f"x{number}", "ES256"), range(400)))
    assert not any(found)
    assert issuer.jwks_requests() == 2


def test_keys_are_renewed_in_the_background(issuer: OidcIssuerServer, keys: SigningKeys, clock: Clock) -> None:
    assert keys.find("k1", "ES256")
    issuer.rotate(2)
    clock.now += 601
    assert keys.find("k1", "ES256")  # nobody waits for the download
    keys._ask().result()
    assert keys.find("k1", "ES256") is None
    assert keys.find("k2", "ES256")


def test_known_keys_outlive_their_server_for_an_hour(issuer: OidcIssuerServer, keys: SigningKeys, clock: Clock) -> None:
    assert keys.find("k1", "ES256")
    issuer.status = 500
    for _ in range(5):
        clock.now += 700
        assert keys.find("k1", "ES256")
        keys._ask().result()
    with pytest.raises(UnavailableError, match="`corp`"):
        keys.find("k9", "ES256")  # it may be new: nobody can say
    clock.now += 700
    for _ in range(2):
        with pytest.raises(UnavailableError, match="cannot be fetched"):
            keys.find("k1", "ES256")
    issuer.status = 200
    clock.now += 31
    assert keys.find("k1", "ES256")


def test_server_that_was_never_there_is_unavailable(issuer: OidcIssuerServer, keys: SigningKeys) -> None:
    issuer.stop()
    assert "cannot read" in (keys.fetch() or "")
    with pytest.raises(UnavailableError):
        keys.find("k1", "ES256")


def test_nobody_waits_long_for_a_server_that_hangs(issuer: OidcIssuerServer, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = threading.Event()

    def download() -> list[dict[str, Any]]:
        hanging.wait(60)
        return issuer.keys

    monkeypatch.setattr("bergline.server.access.oidc.signing_keys._WAIT_S", 0.01)
    keys = SigningKeys(issuer.settings(), download=download)
    with pytest.raises(UnavailableError):
        keys.find("k1", "ES256")
    hanging.set()
    assert keys.fetch() is None
    assert keys.find("k1", "ES256")


def test_failure_of_our_own_does_not_end_the_keys(issuer: OidcIssuerServer, caplog: pytest.LogCaptureFixture) -> None:
    def download() -> list[dict[str, Any]]:
        raise ZeroDivisionError

    assert "log" in (SigningKeys(issuer.settings(), download=download).fetch() or "")
    assert "corp" in caplog.text


def test_token_without_a_key_id_needs_a_single_key(issuer: OidcIssuerServer, keys: SigningKeys, clock: Clock) -> None:
    assert keys.find(None, "ES256")
    assert keys.find(None, "RS256") is None
    issuer.keys = [*issuer.keys, public_jwk("P-256", 2, "k2")]
    clock.now += 601
    keys._ask().result()
    assert keys.find(None, "ES256") is None


@pytest.mark.parametrize(
    ("kind", "algorithms"),
    [
        ("RSA", {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
        ("P-256", {"ES256"}),
        ("P-384", {"ES384"}),
        ("P-521", {"ES512"}),
        ("Ed25519", {"EdDSA"}),
    ],
)
def test_type_of_a_key_decides_on_its_algorithms(kind: str, algorithms: set[str]) -> None:
    key = usable_key(public_jwk(kind, 1, "k"))
    assert key is not None
    assert key.algorithms == algorithms <= ALGORITHMS
    said = usable_key(public_jwk(kind, 1, "k", alg=max(algorithms)))
    assert said is not None
    assert said.algorithms == {max(algorithms)}
    assert usable_key(public_jwk(kind, 1, "k", alg="HS256")) is None


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": "oct", "k": "c2VjcmV0", "alg": "RS256"},
        {"kty": "RSA", "n": "AQ", "e": "AQAB"},
        {"kty": "RSA", "n": 7, "e": "AQAB"},
        {"kty": "EC", "crv": "secp256k1", "x": "AQ", "y": "AQ"},
        {"kty": "EC", "crv": "P-256", "x": "AQ", "y": "AQ"},
        {"kty": ["RSA"]},
        public_jwk("short RSA", 1, "k"),
        public_jwk("P-256", 1, "k") | {"use": "enc"},
        public_jwk("P-256", 1, "k") | {"kid": 7},
        public_jwk("P-256", 1, "k") | {"alg": 7},
        public_jwk("P-256", 1, "k") | {"key_ops": ["sign"]},
        public_jwk("P-256", 1, "k") | {"key_ops": "verify"},
    ],
)
def test_what_is_no_key_for_signatures_is_left_out(data: dict[str, Any]) -> None:
    assert usable_key(data) is None
