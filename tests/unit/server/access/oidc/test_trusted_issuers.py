"""Whose tokens are accepted: only genuine ones, for this server and of this time."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from bergline.errors import AuthenticationError, UnavailableError
from bergline.server.access.oidc.trusted_issuers import LONGEST_JWT, TrustedIssuers
from bergline.server.http.errors import RequestRefused
from bergline.server.http.principal import Principal, PrincipalKind
from support.servers.oidc_issuer import OidcIssuerServer, private_key, public_jwk

ALICE = Principal("corp:alice", frozenset({"corp:eng"}), PrincipalKind.OIDC)


@pytest.fixture
def trusted(issuer: OidcIssuerServer) -> TrustedIssuers:
    return TrustedIssuers([issuer.settings()])


@pytest.fixture
def other() -> Iterator[OidcIssuerServer]:
    with OidcIssuerServer() as server:
        server.rotate(2)
        yield server


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def unsigned(header: dict[str, Any], claims: dict[str, Any]) -> str:
    return f"{encoded(json.dumps(header).encode())}.{encoded(json.dumps(claims).encode())}"


def check_refused(trusted: TrustedIssuers, token: str) -> None:
    with pytest.raises(AuthenticationError) as error:
        trusted.check(token)
    assert str(error.value) == "the token is not accepted"
    assert error.value.hints == ()


def test_token_says_who_and_which_groups(issuer: OidcIssuerServer, trusted: TrustedIssuers) -> None:
    principal, until = trusted.check(issuer.token())
    assert principal == ALICE
    assert 500 < until - time.time() <= 600
    assert trusted.check(issuer.token(aud=["x", "bergline"], groups="one"))[0].groups == {"corp:one"}
    assert trusted.check(issuer.token(groups=None))[0].groups == frozenset()


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [
        *(("RSA", name) for name in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")),
        ("P-256", "ES256"),
        ("P-384", "ES384"),
        ("P-521", "ES512"),
        ("Ed25519", "EdDSA"),
    ],
)
def test_asymmetric_algorithms_are_accepted(
    issuer: OidcIssuerServer, trusted: TrustedIssuers, kind: str, algorithm: str
) -> None:
    issuer.keys = [public_jwk(kind, 1, "k1"), public_jwk("P-256", 2, "k2")]
    assert trusted.check(issuer.token(kind=kind, algorithm=algorithm))[0] == ALICE
    check_refused(trusted, issuer.token(kind=kind, algorithm=algorithm, number=2))


def test_claims_are_chosen_by_the_settings(issuer: OidcIssuerServer) -> None:
    settings = issuer.settings(principal_claim="email", groups_claim="realm_access.roles")
    trusted = TrustedIssuers([settings])
    claims = {"email": "a@example", "realm_access": {"roles": ["r"]}}
    assert trusted.check(issuer.token(**claims, email_verified=True))[0] == Principal(
        "corp:a@example", frozenset({"corp:r"}), PrincipalKind.OIDC
    )
    dotted = TrustedIssuers([issuer.settings(groups_claim="https://example.com/groups")])
    assert dotted.check(issuer.token(**{"https://example.com/groups": ["g"]}))[0].groups == {"corp:g"}


@pytest.mark.parametrize("setting", ["principal_claim", "groups_claim"])
@pytest.mark.parametrize("claim", ["email", "user.email", "https://example.com/email", "urn:example:email"])
def test_email_counts_only_where_the_issuer_says_that_it_is_verified(
    issuer: OidcIssuerServer, claim: str, setting: str
) -> None:
    trusted = TrustedIssuers([issuer.settings(**{setting: claim})])

    def token(**verified: Any) -> str:
        said = {"email": "a@example"} | {f"email{key}": value for key, value in verified.items()}
        nested = {claim.replace("email", key): value for key, value in said.items()}
        return issuer.token(**({"user": said} if claim == "user.email" else nested))

    for unverified in (None, False, "false", "", "True", 1, [], [True], {"true": True}):
        check_refused(trusted, token(_verified=unverified))
    check_refused(trusted, token())
    for verified in (True, "true"):
        principal, _ = trusted.check(token(_verified=verified))
        assert "corp:a@example" in {principal.name, *principal.groups}


def test_token_without_an_email_needs_none_to_be_verified(issuer: OidcIssuerServer) -> None:
    trusted = TrustedIssuers([issuer.settings(groups_claim="email")])
    assert trusted.check(issuer.token())[0].groups == frozenset()
    assert TrustedIssuers([issuer.settings()]).check(issuer.token(email="a@example"))[0] == ALICE


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://id.example"},
        {"aud": "other"},
        {"aud": ["other", "berg"]},
        {"aud": []},
        {"aud": None},
        {"aud": 7},
        {"iss": None},
        {"exp": None},
        {"exp": "soon"},
        {"exp": True},
        {"exp": 1e300},
        {"nbf": int(time.time()) + 86400},
        {"iat": int(time.time()) + 86400},
        {"sub": None},
        {"sub": ""},
        {"sub": "  "},
        {"sub": 7},
        {"sub": ["alice"]},
        {"sub": "a\0b"},
        {"sub": "a\nb"},
        {"sub": "a" * 255},
        {"groups": {"eng": True}},
        {"groups": [7]},
        {"groups": ["g" * 255]},
        {"groups": [""]},
    ],
)
def test_token_with_wrong_claims_is_refused(
    issuer: OidcIssuerServer, trusted: TrustedIssuers, claims: dict[str, Any]
) -> None:
    check_refused(trusted, issuer.token(**claims))


def test_clocks_may_differ_by_a_minute(issuer: OidcIssuerServer, trusted: TrustedIssuers) -> None:
    soon = int(time.time()) + 50
    assert trusted.check(issuer.token(nbf=soon, iat=soon))[0] == ALICE


def test_time_of_a_token_is_over_only_if_it_is_genuine(issuer: OidcIssuerServer, trusted: TrustedIssuers) -> None:
    past = int(time.time()) - 1
    with pytest.raises(RequestRefused) as over:
        trusted.check(issuer.token(exp=past))
    assert over.value.response.status == 419
    check_refused(trusted, issuer.token(exp=past, number=2))
    check_refused(trusted, issuer.token(exp=past, aud="other"))


def test_algorithm_is_never_the_tokens_choice(issuer: OidcIssuerServer, trusted: TrustedIssuers) -> None:
    issuer.keys = [public_jwk("RSA", 1, "k1", alg="RS256")]
    claims = issuer.claims()
    for name in ("none", "None", "NONE", ""):
        text = unsigned({"alg": name, "kid": "k1"}, claims)
        for signature in ("", "AA"):
            check_refused(trusted, f"{text}.{signature}")
    public = private_key("RSA", 1).public_key()
    secrets = [
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.PEM, PublicFormat.PKCS1),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        json.dumps(issuer.keys[0]).encode(),
    ]
    for secret in secrets:
        for name in ("HS256", "RS256"):
            text = unsigned({"alg": name, "kid": "k1"}, claims)
            check_refused(trusted, f"{text}.{encoded(hmac.digest(secret, text.encode(), hashlib.sha256))}")
    check_refused(trusted, issuer.token(kind="RSA", algorithm="PS256"))  # the issuer says that the key is for RS256
    assert trusted.check(issuer.token(kind="RSA", algorithm="RS256"))[0] == ALICE


def test_key_in_the_token_is_not_used(
    issuer: OidcIssuerServer, trusted: TrustedIssuers, other: OidcIssuerServer
) -> None:
    for headers in (
        {"jwk": other.keys[0]},
        {"jku": f"{other.url}/certs"},
        {"x5u": f"{other.url}/certs"},
    ):
        check_refused(trusted, issuer.token(number=2, headers=headers))
        check_refused(trusted, issuer.token(number=2, kid=None, headers=headers))
    assert other.requests == []


def test_headers_that_must_be_understood_are_not(issuer: OidcIssuerServer, trusted: TrustedIssuers) -> None:
    key = private_key("P-256", 1)
    for more in ({"crit": ["exp"]}, {"crit": []}, {"b64": True}, {"typ": "secevent+jwt"}):
        header = {"alg": "ES256", "kid": "k1", **more}
        text = unsigned(header, issuer.claims())
        signature = jwt.get_algorithm_by_name("ES256").sign(text.encode(), key)
        check_refused(trusted, f"{text}.{encoded(signature)}")
    assert trusted.check(issuer.token(headers={"typ": "at+jwt"}))[0] == ALICE


def test_issuers_do_not_speak_for_each_other(issuer: OidcIssuerServer, other: OidcIssuerServer) -> None:
    trusted = TrustedIssuers([issuer.settings(), other.settings(alias="ci", audience="ci")])
    assert trusted.check(other.token(number=2, kid="k2", aud="ci"))[0].name == "ci:alice"
    assert trusted.check(issuer.token())[0].name == "corp:alice"
    check_refused(trusted, other.token(number=2, kid="k2", iss=issuer.url))
    check_refused(trusted, other.token(number=2, kid="k1", iss=issuer.url))
    check_refused(trusted, issuer.token(aud="ci"))
    check_refused(trusted, issuer.token(iss=f"{issuer.url}/"))
    assert trusted.owns("ci:alice")
    assert not trusted.owns("alice")
    assert not trusted.owns("cif:alice")


def test_only_one_spelling_of_a_token_is_accepted(issuer: OidcIssuerServer, trusted: TrustedIssuers) -> None:
    token = issuer.token()
    assert trusted.check(token)
    for wrong in (
        f"{token}=",
        f"{token}.",
        f".{token}",
        f"{token}A",
        f" {token}",
        token.replace(".", "..", 1),
        token.replace("_", "/").replace("-", "+") + "+",
        f"{token}é",
        "",
        "..",
        "a.b.c",
    ):
        check_refused(trusted, wrong)


def test_long_and_deep_tokens_are_refused(issuer: OidcIssuerServer, trusted: TrustedIssuers) -> None:
    check_refused(trusted, issuer.token(more="x" * LONGEST_JWT))
    deep = encoded(b"[" * 5000)
    check_refused(trusted, f"{deep}.{deep}.AA")
    head = encoded(b'{"alg":"ES256"}')
    nested = encoded(b'{"iss":"x","aud":"x","exp":9,"a":' + b"[" * 5000 + b"]" * 5000 + b"}")
    check_refused(trusted, f"{head}.{nested}.AA")
    assert issuer.requests == []


def test_keys_that_cannot_be_fetched_are_not_the_tokens_fault(
    issuer: OidcIssuerServer, trusted: TrustedIssuers
) -> None:
    issuer.stop()
    (problem,) = trusted.fetch_keys()
    assert problem.startswith("issuer `corp`: cannot read")
    with pytest.raises(UnavailableError, match="try again later") as error:
        trusted.check(issuer.token())
    assert issuer.url not in str(error.value)


def test_log_says_why_without_the_token(
    issuer: OidcIssuerServer, trusted: TrustedIssuers, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "bergline.server")
    token = issuer.token(aud="other", sub="mallory")
    check_refused(trusted, token)
    assert "issuer corp: it is for another audience" in caplog.text
    assert "mallory" not in caplog.text
    assert not any(part in caplog.text for part in token.split("."))
