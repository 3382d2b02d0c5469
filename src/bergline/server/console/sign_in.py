"""Who a browser is: the token in a cookie that scripts cannot read, and the secret that our own forms carry.

The cookies have the server's port in their names, for browsers send those of one port to all.
"""

import hashlib
import hmac
import secrets

from bergline.errors import AuthenticationError, RefusedError
from bergline.server.console.visit import Visit

_NONCE_BYTES = 18
_MAX_AGE_S = 12 * 3600
"""How long a token that was typed in stays: a working day."""
_FLOW_AGE_S = 600
_LONGEST_TOKEN = 4000  # with its name, a cookie has 4,096 characters in every browser


class SignIn:
    """The cookies of one visit."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        port = visit.headers.get("host", "").rpartition(":")[2]
        suffix = port if port.isdecimal() else "default"
        prefix = "__Host-" if visit.is_secure else ""  # no other host can set such cookies, in the same domain either
        names = (f"{prefix}bergline-{what}-{suffix}" for what in ("token", "form", "flow"))
        self._token_name, self._nonce_name, self._flow_name = names
        known = visit.cookies.get(self._nonce_name, "")
        self.is_new = not known
        self._nonce = known or secrets.token_urlsafe(_NONCE_BYTES)

    @property
    def token(self) -> str | None:
        """The token: of the cookie, or for programs that of the Authorization header."""
        scheme, _, given = self._visit.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and given.strip():
            return given.strip()
        return self._visit.cookies.get(self._token_name) or None

    @property
    def csrf(self) -> str:
        """What forms of this browser carry; others can neither read nor compute it."""
        who = self._visit.cookies.get(self._token_name, "")
        return hmac.new(self._nonce.encode(), who.encode(), hashlib.sha256).hexdigest()

    def check_form(self) -> None:
        """RefusedError unless the form is one of ours, in this browser."""
        origin = self._visit.headers.get("origin")
        site = self._visit.headers.get("sec-fetch-site", "same-origin")
        if origin is not None and origin.partition("://")[2] != self._visit.headers.get("host", ""):
            raise _refused("it came from another site")
        if site not in {"same-origin", "none"}:
            raise _refused("it came from another site")
        given = self._visit.form.get("csrf", "").encode()
        if self.is_new or not hmac.compare_digest(given, self.csrf.encode()):
            raise _refused("it does not belong to this browser, or is from before signing in")

    def form_cookies(self) -> tuple[str, ...]:
        """Sets the secret of forms in a browser that has none yet."""
        return (self._cookie(self._nonce_name, self._nonce),) if self.is_new else ()

    def token_cookie(self, token: str, seconds: int = _MAX_AGE_S) -> str:
        """Sets the token."""
        return self._cookie(self._token_name, token, seconds)

    @property
    def flow(self) -> str | None:
        """What this browser keeps while an issuer asks who it is."""
        return self._visit.cookies.get(self._flow_name) or None

    def flow_cookie(self, flow: str | None) -> str:
        """Sets it, or removes it; it comes along when the issuer sends the browser back."""
        cookie = self._cookie(self._flow_name, flow or "", _FLOW_AGE_S if flow else 0)
        return cookie.replace("SameSite=Strict", "SameSite=Lax")

    def signed_out_cookies(self) -> tuple[str, ...]:
        """Removes token and secret."""
        return tuple(self._cookie(name, "", 0) for name in (self._token_name, self._nonce_name))

    def _cookie(self, name: str, value: str, max_age: int | None = None) -> str:
        parts = [f"{name}={value}", "Path=/", "HttpOnly", "SameSite=Strict"]
        parts += ["Secure"] if self._visit.is_secure else []
        parts += [] if max_age is None else [f"Max-Age={max_age}"]
        return "; ".join(parts)


def is_cookie_text(token: str) -> bool:
    """Whether a cookie can hold a token as it is; ours are of letters, digits, `_` and `-`."""
    allowed = set("!#$%&'()*+-./:<=>?@[]^_`{|}~")
    return len(token) <= _LONGEST_TOKEN and all(c.isascii() and (c.isalnum() or c in allowed) for c in token)


def check_cookie_length(token: str) -> None:
    """AuthenticationError for a token that browsers would not keep."""
    if len(token) > _LONGEST_TOKEN:
        raise AuthenticationError(
            f"expected a token of up to {_LONGEST_TOKEN:,} characters, found {len(token):,}: browsers keep no "
            "longer ones; let the issuer put fewer groups or claims into it"
        )


def _refused(why: str) -> RefusedError:
    return RefusedError(f"the form was not accepted: {why}", hints=["open the page again, and send its form"])
