"""Retries: a request is repeated if that is safe; otherwise its outcome is reported as in doubt.

Safe to repeat are GET and HEAD, requests with an idempotency key for as long as the server keeps the key, requests that
were never sent, and those that the catalog asks to retry (429, or 503 with `Retry-After`). The outcome of a change is
certain only after a success, a refusal that follows the protocol if no earlier attempt is in doubt, or one that the
server has recorded for the request's key. Everything else is a `ChangeInDoubtError`.
"""

import contextlib
import email.utils
import random
import time
from collections.abc import Callable, Iterator, Mapping

from bergline.catalog.rest.client.auth import Authorization
from bergline.catalog.rest.client.error_responses import TOO_MANY_REQUESTS, ResponseErrors, is_of_protocol
from bergline.catalog.rest.client.settings import RestSettings
from bergline.catalog.rest.client.transport import (
    HttpResponse,
    NotSentError,
    ResponseLostError,
    Transport,
    UnusableResponseError,
)
from bergline.catalog.rest.protocol.final_refusal import IDEMPOTENCY_KEY_HEADER, REFUSED_KEY_HEADER
from bergline.errors import BerglineError, UnavailableError

READING = frozenset({"GET", "HEAD"})
SUCCESSES = range(200, 300)
_MAX_ATTEMPTS = 4
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.1, 30.0
_REFUSED_TOKENS = frozenset({401, 419})
_UNAVAILABLE = 503
_TIMED_OUT = 408
_FIRST_SERVER_ERROR = 500
_PERMANENT = frozenset({501, 505})


class ChangeInDoubtError(Exception):
    """A change that may have happened; the caller settles it."""


class RequestRetries:
    """Sends requests to one server with retries; thread-safe."""

    def __init__(
        self,
        settings: RestSettings,
        transport: Transport,
        authorization: Authorization,
        refusals: ResponseErrors,
        sleep: Callable[[float], None],
    ) -> None:
        self._settings = settings
        self._transport = transport
        self._authorization = authorization
        self._refusals = refusals
        self._sleep = sleep

    def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, *, repeatable_s: float
    ) -> HttpResponse:
        """Send with retries; a request that may have arrived is repeated only within `repeatable_s` seconds.

        Once an attempt is in doubt, only a success or the final refusal of its key tells the outcome: any other
        refusal of a later attempt says nothing about the first.
        """
        until = time.monotonic() + repeatable_s
        renewed, doubt, arrived = False, "", False
        attempt = 0
        while True:
            attempt += 1
            try:
                with _reporting_doubt(doubt):
                    identity = self._authorization.header()
                response = self._transport.send(method, url, {**headers, **identity}, body)
            except NotSentError as error:
                if attempt == _MAX_ATTEMPTS:
                    raise self._unreachable(error, doubt) from error
                self._sleep(_wait(attempt))
                continue
            except ResponseLostError as error:
                wait, message = _wait(attempt), f"no response from {self._settings.uri}: {error}"
                is_last = attempt == _MAX_ATTEMPTS or isinstance(error, UnusableResponseError)
                if is_last or time.monotonic() + wait >= until:
                    raise _lost(message, method) from error
                doubt, arrived = "" if method in READING else message, True
                self._sleep(wait)
                continue
            retry_asked = _asks_to_retry(response) and is_of_protocol(response)
            certain = method in READING or response.status in SUCCESSES or self._refusals.is_certain(response)
            if not certain:
                doubt = f"{self._settings.uri} answered {response.status}, {self._refusals.message(response)}"
                arrived = arrived or not retry_asked
            with _reporting_doubt(doubt):
                if response.status in _REFUSED_TOKENS and not renewed and self._authorization.renew(identity):
                    renewed = True
                    attempt -= 1
                    continue
            wait = _wait(attempt, response)
            again = (retry_asked and not arrived) or (method in READING and _is_transient(response))
            again = again or ((retry_asked or not certain) and time.monotonic() + wait < until)
            if again and attempt < _MAX_ATTEMPTS:
                self._sleep(wait)
                continue
            if doubt and response.status not in SUCCESSES and not (certain and _is_final(response, headers)):
                if _asks_to_retry(response):  # settling asks the same server
                    self._sleep(wait)
                raise ChangeInDoubtError(doubt)
            return response

    def _unreachable(self, error: NotSentError, doubt: str) -> Exception:
        """The error for an unreachable server; nothing was changed unless an earlier attempt is in doubt."""
        message = f"cannot reach {self._settings.uri}: {error}"
        if doubt:
            return ChangeInDoubtError(f"{doubt}; {message}")
        return UnavailableError(message, hints=[_how_to_reach(str(error))])


@contextlib.contextmanager
def _reporting_doubt(doubt: str) -> Iterator[None]:
    """Keep an earlier attempt in doubt if no token can be obtained."""
    try:
        yield
    except BerglineError as error:
        if doubt:
            raise ChangeInDoubtError(f"{doubt}; {error}") from error
        raise


def _is_final(response: HttpResponse, sent: Mapping[str, str]) -> bool:
    """Whether a refusal was recorded for the key of the request, and so holds for every attempt with it."""
    key = sent.get(IDEMPOTENCY_KEY_HEADER)
    return key is not None and response.headers.get(REFUSED_KEY_HEADER) == key


_HUNG_UP = "closed connection without response", "EOF occurred", "_ALERT_"
"""How it ends with servers that want a certificate of their clients; in TLS 1.3 after the request was sent."""
_CERTIFICATE = "does the server want a certificate of its clients? Give one: ssl.client.cert and ssl.client.key"


def _lost(message: str, method: str) -> Exception:
    """The error for a lost response; reads are never in doubt."""
    if method not in READING:
        return ChangeInDoubtError(message)
    if "https://" in message and any(text in message for text in _HUNG_UP):
        return UnavailableError(message, hints=[_CERTIFICATE])
    return UnavailableError(message, hints=[_how_to_reach(message)] if "SSL" in message else [])


def _how_to_reach(reason: str) -> str:
    """A hint for a failed connection."""
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return "name the authorities that you trust: the property ssl.cabundle=/path/ca.pem, or SSL_CERT_FILE"
    if "WRONG_VERSION_NUMBER" in reason:
        return "the server does not speak https there: is it http://?"
    return "is the server running, and is the address right? Nothing was changed"


def _is_transient(response: HttpResponse) -> bool:
    """Whether a read is worth retrying."""
    failed = response.status >= _FIRST_SERVER_ERROR and response.status not in _PERMANENT
    return failed or response.status in {_TIMED_OUT, TOO_MANY_REQUESTS}


def _asks_to_retry(response: HttpResponse) -> bool:
    """Whether the server did not process the request and asks to retry later."""
    return response.status == TOO_MANY_REQUESTS or (
        response.status == _UNAVAILABLE and bool(response.headers.get("Retry-After"))
    )


def _wait(attempt: int, response: HttpResponse | None = None) -> float:
    """Seconds before the next attempt: as the server asks, or exponential backoff."""
    asked = _retry_after(response.headers.get("Retry-After")) if response else None
    if asked is not None:
        return min(max(asked, 0.0), _LONGEST_WAIT_S)
    return random.uniform(0.5, 1) * _FIRST_WAIT_S * float(2**attempt)  # noqa: S311


def _retry_after(text: str | None) -> float | None:
    """Parse `Retry-After`: seconds or a date."""
    if text is None:
        return None
    try:
        if text.strip().isdecimal():
            return float(text)
        return email.utils.parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return None
