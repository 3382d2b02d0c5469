"""Signing in with an issuer: the way there and the way back, bound to one browser by a cookie."""

import secrets
from urllib.parse import quote, unquote

import msgspec

from bergline.console.host import Host, SignInIssuers
from bergline.errors import AuthenticationError, InvalidInputError, NotFoundError
from bergline.server.console.sign_in import SignIn
from bergline.server.console.visit import Visit, is_our_address, redirect
from bergline.server.http.response import Response

START, CALLBACK = "sign-in/issuer", "sign-in/callback"
_SECRET_BYTES = 32
_LONGEST_NEXT = 1500


class SignedIn(msgspec.Struct, frozen=True):
    """A browser that an issuer has just signed in."""

    token: str
    seconds: int
    next: str
    """The page that it wanted."""


def start_sign_in(host: Host, visit: Visit, sign_in: SignIn) -> Response:
    """Send a browser to an issuer."""
    ways, name, after = _ways(host, visit), visit.query.get("issuer", ""), visit.query.get("next", "/")
    after = after if is_our_address(after) and len(quote(after)) <= _LONGEST_NEXT else "/"
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    address = ways.address(name, secret, _redirect_uri(host, visit))
    return redirect(address, sign_in.flow_cookie(f"{name}.{secret}.{quote(after)}"))


def finish_sign_in(host: Host, visit: Visit, sign_in: SignIn) -> SignedIn:
    """Whom the issuer has signed in; AuthenticationError for an answer that this browser has not asked for."""
    ways = _ways(host, visit)
    name, secret, after = [*(sign_in.flow or "").split(".", 2), "", ""][:3]
    if not secret:
        raise AuthenticationError("this browser has not begun to sign in, or it took too long: sign in again")
    token, seconds = ways.finish(name, secret, _redirect_uri(host, visit), visit.query)
    after = unquote(after)
    return SignedIn(token, seconds, after if is_our_address(after) else "/")


def _ways(host: Host, visit: Visit) -> SignInIssuers:
    if host.browser_sign_in is None:
        raise NotFoundError(f"no page at `/{visit.path}`", kind="page", name=visit.path)
    return host.browser_sign_in


def _redirect_uri(host: Host, visit: Visit) -> str:
    """Where the issuer sends browsers back to, as it is registered there."""
    name = visit.headers.get("host", "")
    if host.public_url is None and not name:
        raise InvalidInputError("expected a header `host`, found none")
    return f"{host.public_url or ('https://' if visit.is_secure else 'http://') + name}/{CALLBACK}"
