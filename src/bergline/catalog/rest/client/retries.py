"""One request, tried until an answer tells: what may be sent again is, what must not be is reported as lost.

A GET or HEAD may be sent again, and any request with an idempotency key for as long as the server knows the key; so may
a request that never arrived, and one that the catalog itself put off (429, or 503 with `Retry-After`). What became of a
change is certain only after a success, or a refusal in the protocol's own words where no earlier try is in doubt.
Everything else happened perhaps: `LostError`.
"""

import contextlib
import email.utils
import random
import time
from collections.abc import Callable, Iterator, Mapping

from bergline.catalog.rest.client.auth import Authorization
from bergline.catalog.rest.client.errors import PUT_OFF, Refusals, is_of_protocol
from bergline.catalog.rest.client.settings import RestSettings
from bergline.catalog.rest.client.transport import (
    HttpResponse,
    NotSentError,
    ResponseLostError,
    Transport,
    UnusableResponseError,
)
from bergline.errors import BerglineError, UnavailableError

READING = frozenset({"GET", "HEAD"})
SUCCESSES = range(200, 300)
_TRIES = 4
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.1, 30.0
_REFUSED_TOKENS = frozenset({401, 419})
_UNAVAILABLE = 503
_TIMED_OUT = 408
_FIRST_SERVER_ERROR = 500
_FOR_GOOD = frozenset({501, 505})


class LostError(Exception):
    """A change that perhaps happened; the caller finds out."""


class Tries:
    """Sends to one server; safe to use from many threads."""

    def __init__(
        self,
        settings: RestSettings,
        transport: Transport,
        authorization: Authorization,
        refusals: Refusals,
        sleep: Callable[[float], None],
    ) -> None:
        self._settings = settings
        self._transport = transport
        self._authorization = authorization
        self._refusals = refusals
        self._sleep = sleep

    def answer(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, *, repeatable_s: float
    ) -> HttpResponse:
        """Send, and send again where that is allowed; what may have arrived only for so many seconds.

        Once one of several tries is in doubt, only a success tells what became of the change: a refusal of a later try
        says nothing about the first.
        """
        until = time.monotonic() + repeatable_s
        renewed, doubt, arrived = False, "", False
        tries = 0
        while True:
            tries += 1
            try:
                with _minding(doubt):
                    identity = self._authorization.header()
                answer = self._transport.send(method, url, {**headers, **identity}, body)
            except NotSentError as error:
                if tries == _TRIES:
                    raise self._unreachable(error, doubt) from error
                self._sleep(_wait(tries))
                continue
            except ResponseLostError as error:
                wait, message = _wait(tries), f"no answer from {self._settings.uri}: {error}"
                is_last = tries == _TRIES or isinstance(error, UnusableResponseError)
                if is_last or time.monotonic() + wait >= until:
                    raise _lost(message, method) from error
                doubt, arrived = "" if method in READING else message, True
                self._sleep(wait)
                continue
            put_off = _is_put_off(answer) and is_of_protocol(answer)
            certain = method in READING or answer.status in SUCCESSES or self._refusals.is_certain(answer)
            if not certain:
                doubt = f"{self._settings.uri} answered {answer.status}, {self._refusals.message(answer)}"
                arrived = arrived or not put_off
            with _minding(doubt):
                if answer.status in _REFUSED_TOKENS and not renewed and self._authorization.renew(identity):
                    renewed = True
                    tries -= 1
                    continue
            wait = _wait(tries, answer)
            again = (put_off and not arrived) or (method in READING and _may_go_better(answer))
            again = again or ((put_off or not certain) and time.monotonic() + wait < until)
            if again and tries < _TRIES:
                self._sleep(wait)
                continue
            if doubt and answer.status not in SUCCESSES:
                if _is_put_off(answer):  # whoever looks what became of it asks the same server
                    self._sleep(wait)
                raise LostError(doubt)
            return answer

    def _unreachable(self, error: NotSentError, doubt: str) -> Exception:
        """That nothing was changed, if no earlier try may have arrived."""
        message = f"cannot reach {self._settings.uri}: {error}"
        if doubt:
            return LostError(f"{doubt}; {message}")
        return UnavailableError(message, hints=[_how_to_reach(str(error))])


@contextlib.contextmanager
def _minding(doubt: str) -> Iterator[None]:
    """A token that is not to be had says nothing of an earlier try that is in doubt."""
    try:
        yield
    except BerglineError as error:
        if doubt:
            raise LostError(f"{doubt}; {error}") from error
        raise


def _lost(message: str, method: str) -> Exception:
    """Nothing that was only to be read can be lost."""
    if method not in READING:
        return LostError(message)
    return UnavailableError(message, hints=[_how_to_reach(message)] if "SSL" in message else [])


def _how_to_reach(reason: str) -> str:
    """What to look at where no connection comes about."""
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return "name the authorities that you trust in the environment: SSL_CERT_FILE=/path/ca.pem"
    if "WRONG_VERSION_NUMBER" in reason:
        return "the server does not speak https there: is it http://?"
    return "is the server running, and is the address right? Nothing was changed"


def _may_go_better(answer: HttpResponse) -> bool:
    """Whether reading is worth another try."""
    failed = answer.status >= _FIRST_SERVER_ERROR and answer.status not in _FOR_GOOD
    return failed or answer.status in {_TIMED_OUT, PUT_OFF}


def _is_put_off(answer: HttpResponse) -> bool:
    """Whether the server did not begin, and asks for another try later."""
    return answer.status == PUT_OFF or (answer.status == _UNAVAILABLE and bool(answer.headers.get("Retry-After")))


def _wait(tries: int, answer: HttpResponse | None = None) -> float:
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
