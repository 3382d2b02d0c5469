"""Calls of endpoints: what may be sent again is, what must not be is reported as lost, refusals become our errors.

A GET or HEAD may be sent again, and any request with an idempotency key for as long as the server knows the key; so may
a request that never arrived, and one that the server put off (429, or 503 with `Retry-After`). Everything else happened
perhaps: `LostError`.
"""

import email.utils
import math
import random
import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode

import msgspec

from bergline.catalog.rest.bodies import ErrorAnswer
from bergline.catalog.rest.client_auth import Authorization
from bergline.catalog.rest.client_settings import RestSettings
from bergline.catalog.rest.client_transport import Answer, AnswerLostError, NotSentError, Transport
from bergline.catalog.rest.endpoints import ALWAYS_THERE, Endpoint
from bergline.catalog.rest.errors_table import error_of
from bergline.errors import (
    AuthenticationError,
    BerglineError,
    FormatError,
    StorageError,
    UnavailableError,
    UnsupportedError,
)
from bergline.format.wire import decode_json, encode_json

Body = TypeVar("Body")
NOT_MODIFIED = 304
_TRIES = 4
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.1, 30.0
_REFUSED_TOKENS = frozenset({401, 419})
_PUT_OFF = 429
_UNAVAILABLE = 503
_IN_DOUBT = frozenset({408, 500, 502, 503, 504})
_ABOUT_THE_CHANGE = frozenset({400, 404, 406, 409, 422})
_READING = frozenset({"GET", "HEAD"})
_FIRST_ERROR = 400
_SUCCESSES = range(200, 300)
_LONGEST_MESSAGE = 2000


class LostError(Exception):
    """A change that perhaps happened; the caller finds out."""


class About(NamedTuple):
    """What a call is about, for errors."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} `{self.name}`" if self.name else self.kind


class Calls:
    """One server, with its endpoints; safe to use from many threads."""

    def __init__(
        self,
        settings: RestSettings,
        transport: Transport,
        authorization: Authorization,
        *,
        endpoints: frozenset[str] = frozenset(),
        key_lifetime_s: float = 0.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings = settings
        self._transport = transport
        self._authorization = authorization
        self._endpoints = endpoints
        self._key_lifetime_s = key_lifetime_s
        self.sleep = sleep

    def has(self, endpoint: Endpoint) -> bool:
        """Whether the server offers an endpoint."""
        return str(endpoint) in self._endpoints or endpoint in ALWAYS_THERE

    def call(
        self,
        endpoint: Endpoint,
        about: About,
        *,
        names: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> Answer:
        """The answer of a success, or 304.

        Names are encoded already. Raises what the server's refusal means, UnavailableError where it cannot be reached
        and nothing changed, and LostError.
        """
        if not self.has(endpoint):
            raise UnsupportedError(f"expected a server with `{endpoint}` for {about}, found one without")
        url = self._settings.uri + endpoint.url(self._settings.text("prefix") or "", **(names or {}))
        sent = {"Accept": "application/json", **self._settings.headers, **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        repeatable_s = math.inf if endpoint.method in _READING else 0.0
        if self._key_lifetime_s and endpoint.takes_key:
            repeatable_s = self._key_lifetime_s
            sent["Idempotency-Key"] = str(_uuid7())
        answer = self._answer(
            endpoint.method,
            f"{url}?{urlencode(query)}" if query else url,
            sent,
            None if body is None else encode_json(body),
            repeatable_s=repeatable_s,
        )
        if answer.status in _SUCCESSES or answer.status == NOT_MODIFIED:
            return answer
        raise self._refusal(answer, about)

    def parsed(self, answer: Answer, as_type: type[Body], about: About) -> Body:
        """The body of an answer; FormatError if it is not what the protocol says."""
        return decode_json(answer.body, as_type, f"the server's answer for {about}")

    def changed(self, answer: Answer, as_type: type[Body], about: About) -> Body:
        """The body of the answer to a change; one that cannot be read says nothing of what happened."""
        try:
            return self.parsed(answer, as_type, about)
        except FormatError as error:
            raise LostError(str(error)) from error

    def _answer(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, *, repeatable_s: float
    ) -> Answer:
        """Send, and send again where that is allowed; what may have arrived only for so many seconds.

        Once the answer to one of several tries was lost, only one that is about the change itself tells what became of
        it: whoever cannot be reached any more, or lets us in no longer, says nothing about that.
        """
        until = time.monotonic() + repeatable_s
        renewed, lost = False, ""
        tries = 0
        while True:
            tries += 1
            try:
                identity = self._authorization.header()
                answer = self._transport.send(method, url, {**headers, **identity}, body)
                if answer.status in _REFUSED_TOKENS and not renewed and self._authorization.renew(identity):
                    renewed = True
                    tries -= 1
                    continue
            except BerglineError as error:  # no token is to be had
                if lost:
                    raise LostError(f"{lost}; {error}") from error
                raise
            except NotSentError as error:
                if tries == _TRIES:
                    raise self._unreachable(error, lost) from error
                self.sleep(_wait(tries))
                continue
            except AnswerLostError as error:
                wait, message = _wait(tries), f"no answer from {self._settings.uri}: {error}"
                if tries == _TRIES or time.monotonic() + wait >= until:
                    raise _lost(message, method) from error
                lost = "" if method in _READING else message
                self.sleep(wait)
                continue
            wait, put_off = _wait(tries, answer), _is_put_off(answer)
            in_doubt = answer.status in _IN_DOUBT
            if in_doubt and method not in _READING and (not put_off or tries == _TRIES):
                lost = f"{self._settings.uri} answered {answer.status}: {self._message(answer)[0]}"
            again = (put_off and not lost) or ((put_off or in_doubt) and time.monotonic() + wait < until)
            if again and tries < _TRIES:
                self.sleep(wait)
                continue
            if lost and answer.status not in _SUCCESSES and answer.status not in _ABOUT_THE_CHANGE:
                raise LostError(lost)
            return answer

    def _unreachable(self, error: NotSentError, lost: str) -> Exception:
        """That nothing was changed, if no earlier try may have arrived."""
        message = f"cannot reach {self._settings.uri}: {error}"
        if lost:
            return LostError(f"{lost}; {message}")
        return UnavailableError(message, hints=[_how_to_reach(str(error))])

    def _refusal(self, answer: Answer, about: About) -> BerglineError:
        message, kind = self._message(answer)
        if answer.status < _FIRST_ERROR:
            return _redirection(answer, about)
        if answer.status == _PUT_OFF:
            return UnavailableError(f"{self._settings.uri} put off {about}: {message}")
        error = error_of(answer.status, kind, message, name=about.name, thing=about.kind)
        if isinstance(error, AuthenticationError):
            return AuthenticationError(message, hints=[self._authorization.advice()])
        return error

    def _message(self, answer: Answer) -> tuple[str, str | None]:
        """What the server says, and its type; a status with any other body will do."""
        try:
            found = msgspec.json.decode(answer.body, type=ErrorAnswer).error
            message, kind = found.message, found.type
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            message, kind = f"status {answer.status}", None
        return self._settings.hide(message)[:_LONGEST_MESSAGE], kind


def _lost(message: str, method: str) -> Exception:
    """Nothing that was only to be read can be lost."""
    if method not in _READING:
        return LostError(message)
    return UnavailableError(message, hints=[_how_to_reach(message)] if "SSL" in message else [])


def _how_to_reach(reason: str) -> str:
    """What to look at where no connection comes about."""
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return "name the authorities that you trust in the environment: SSL_CERT_FILE=/path/ca.pem"
    if "WRONG_VERSION_NUMBER" in reason:
        return "the server does not speak https there: is it http://?"
    return "is the server running, and is the address right? Nothing was changed"


def _redirection(answer: Answer, about: About) -> StorageError:
    """Nobody is followed elsewhere with a token; whoever wants to can connect there."""
    there = answer.headers.get("Location", "")[:_LONGEST_MESSAGE]
    return StorageError(
        f"expected an answer for {about}, found status {answer.status}",
        hints=[f"the server says that it is elsewhere, connect there: {there}"]
        if there.isprintable() and there
        else [],
    )


def _is_put_off(answer: Answer) -> bool:
    """Whether the server did not begin, and asks for another try later."""
    return answer.status == _PUT_OFF or (answer.status == _UNAVAILABLE and bool(answer.headers.get("Retry-After")))


def _wait(tries: int, answer: Answer | None = None) -> float:
    """Seconds before the next try: what the server asks for, or ever longer."""
    asked = _retry_after(answer.headers.get("Retry-After")) if answer else None
    if asked is not None:
        return min(max(asked, 0.0), _LONGEST_WAIT_S)
    return random.uniform(0.5, 1) * _FIRST_WAIT_S * float(2**tries)  # noqa: S311


def _retry_after(text: str | None) -> float | None:
    """Seconds, or the time at a date."""
    if text is None:
        return None
    try:
        if text.strip().isdecimal():
            return float(text)
        return email.utils.parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return None


def _uuid7() -> uuid.UUID:
    """A new key: the time and chance, in the form that the protocol asks for."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds << 80) | (7 << 76) | (secrets.randbits(12) << 64) | (2 << 62) | secrets.randbits(62)
    return uuid.UUID(int=value)
