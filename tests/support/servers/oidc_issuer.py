"""An OpenID Connect issuer for tests: it serves discovery and keys, which rotate, signs tokens, and lets browsers in.

Its codes are good once, for the client, redirect URI and PKCE challenge that they were asked for with.
"""

import base64
import hashlib
import json
import secrets
import threading
import time
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from bergline.server.http.settings import OidcIssuer

AUDIENCE = "bergline"
CLIENT_SECRET = "secret-of-etl"  # noqa: S105
CONSOLE, CONSOLE_SECRET = "console", "secret of the:console"
_DISCOVERY = "/.well-known/openid-configuration"


@cache
def private_key(kind: str, number: int) -> Any:
    """A key; RSA keys take a while to make, so tests share them."""
    match kind:
        case "RSA":
            return rsa.generate_private_key(65537, 2048)
        case "short RSA":
            return rsa.generate_private_key(65537, 1024)  # noqa: S505  (that is the point)
        case "Ed25519":
            return ed25519.Ed25519PrivateKey.generate()
        case _:
            curves: dict[str, ec.EllipticCurve] = {
                "P-256": ec.SECP256R1(),
                "P-384": ec.SECP384R1(),
                "P-521": ec.SECP521R1(),
            }
            return ec.generate_private_key(curves[kind])


def public_jwk(kind: str, number: int, kid: str | None, **more: str) -> dict[str, Any]:
    """The public half of a key, as a JWKS has it."""
    public = private_key(kind, number).public_key()
    name = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "Ed25519": "EdDSA"}.get(kind, "RS256")
    data: dict[str, Any] = jwt.get_algorithm_by_name(name).to_jwk(public, as_dict=True)
    return {**data, **({} if kid is None else {"kid": kid}), "use": "sig", **more}


class OidcIssuerServer:
    """Answers on a free port; what it answers can be changed while it runs."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        """The paths that were asked for."""
        self.status = 200
        self.body: bytes | None = None
        """In place of the keys, if set."""
        self.headers: dict[str, str] = {}
        self.issuer_said: str | None = None
        self.jwks_said: str | None = None
        self.keys = [public_jwk("P-256", 1, "k1")]
        self.discovery_said: dict[str, Any] = {}
        """In place of what discovery says, or beside it."""
        self.id_claims: dict[str, Any] = {}
        """In place of the claims of ID tokens, or beside them."""
        self.id_token: str | None = None
        """In place of a new ID token, if set."""
        self.is_public = False
        """Whether the console comes without a secret."""
        self.answer: dict[str, str] = {}
        """In place of the parameters that browsers bring back, or beside them."""
        self.delay_s = 0.0
        """Before each answer to a code."""
        self._codes: dict[str, dict[str, str]] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                if urlsplit(self.path).path.endswith("/authorize"):
                    self.send_response(302)
                    self.send_header("location", outer._authorized(urlsplit(self.path).query))
                    self.send_header("content-length", "0")
                    self.end_headers()
                    return
                body = outer._answer(self.path)
                self.send_response(outer.status)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
                if form.get("grant_type") == ["authorization_code"]:
                    time.sleep(outer.delay_s)
                    found = outer._redeemed({k: v for k, (v,) in form.items()}, self.headers.get("authorization", ""))
                    self._send(400 if found is None else outer.status, found or {"error": "invalid_grant"})
                    return
                is_known = form.get("client_id") == ["etl"] and form.get("client_secret") == [CLIENT_SECRET]
                said = {"access_token": outer.token(sub="etl"), "token_type": "Bearer", "expires_in": 600}
                self._send(200 if is_known else 401, said if is_known else {"error": "invalid_client"})

            def _send(self, status: int, said: dict[str, Any]) -> None:
                body = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/realms/corp"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Be gone; again does nothing."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def rotate(self, number: int) -> None:
        """Have another key in place of all others: `k2` for 2."""
        self.keys = [public_jwk("P-256", number, f"k{number}")]

    def settings(self, **more: Any) -> OidcIssuer:
        """How a server is told to trust this issuer."""
        return OidcIssuer(**{"alias": "corp", "url": self.url, "audience": AUDIENCE, **more})

    def claims(self, **more: Any) -> dict[str, Any]:
        """The claims of a valid token; None leaves one out."""
        now = int(time.time())
        claims = {"iss": self.url, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + 600, "groups": ["eng"]}
        return {name: value for name, value in (claims | more).items() if value is not None}

    def token(
        self,
        *,
        kind: str = "P-256",
        number: int = 1,
        algorithm: str = "ES256",
        kid: str | None = "k1",
        headers: dict[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """A signed token."""
        more = {**({} if kid is None else {"kid": kid}), **(headers or {})}
        return jwt.encode(self.claims(**claims), private_key(kind, number), algorithm, more)

    def jwks_requests(self) -> int:
        """How often the keys were asked for."""
        return sum(not path.endswith(_DISCOVERY) for path in self.requests)

    def _answer(self, path: str) -> bytes:
        if path.endswith(_DISCOVERY):
            said = {
                "issuer": self.issuer_said or self.url,
                "jwks_uri": self.jwks_said or f"{self.url}/certs",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
            }
            return json.dumps(said | self.discovery_said).encode()
        return json.dumps({"keys": self.keys}).encode() if self.body is None else self.body

    def _authorized(self, query: str) -> str:
        """Where a browser goes whose user agreed."""
        asked = {key: value for key, (value,) in parse_qs(query).items()}
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
        assert asked["client_id"] == CONSOLE
        code = secrets.token_urlsafe(12)
        self._codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']} | self.answer)}"

    def _redeemed(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """The tokens for a code; None for one that is not good, or any more."""
        asked = self._codes.pop(form["code"], None)
        proof = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        if asked is None or (proof, form["redirect_uri"]) != (asked["code_challenge"], asked["redirect_uri"]):
            return None
        if not self.is_public and _client_of(authorization, form) != [CONSOLE, CONSOLE_SECRET]:
            return None
        token = self.id_token or self.token(**{"aud": CONSOLE, "nonce": asked["nonce"]} | self.id_claims)
        return {"access_token": "opaque", "token_type": "Bearer", "id_token": token}


def _client_of(authorization: str, form: dict[str, str]) -> list[str]:
    if not authorization:
        return [form["client_id"], form.get("client_secret", "")]
    return [unquote(part) for part in base64.b64decode(authorization.removeprefix("Basic ")).decode().split(":")]
