"""One request, tried until an answer tells: what may be sent again is, what must not be is reported as lost.

A GET or HEAD may be sent again, and any request with an idempotency key for as long as the server knows the key; so may
a request that never arrived, and one that the server put off (429, or 503 with `Retry-After`). Everything else happened
perhaps: `LostError`.
"""

import email.utils
import random
import time
from collections.abc import Callable, Mapping

from bergline.catalog.rest.client_auth import Authorization
from bergline.catalog.rest.client_refusals import PUT_OFF, Refusals
from bergline.catalog.rest.client_settings import RestSettings
from bergline.catalog.rest.client_transport import Answer, AnswerLostError, NotSentError, Transport, UselessAnswerError
from bergline.errors import BerglineError, UnavailableError

READING = frozenset({"GET", "HEAD"})
SUCCESSES = range(200, 300)
_TRIES = 4
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.1, 30.0
_REFUSED_TOKENS = frozenset({401, 419})
_UNAVAILABLE = 503
_IN_DOUBT = frozenset({408, 500, 502, 503, 504})
_ABOUT_THE_CHANGE = frozenset({400, 404, 406, 409, 422})


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
                self._sleep(_wait(tries))
                continue
            except AnswerLostError as error:
                wait, message = _wait(tries), f"no answer from {self._settings.uri}: {error}"
                is_last = tries == _TRIES or isinstance(error, UselessAnswerError)
                if is_last or time.monotonic() + wait >= until:
                    raise _lost(message, method) from error
                lost = "" if method in READING else message
                self._sleep(wait)
                continue
            wait, put_off = _wait(tries, answer), _is_put_off(answer)
            in_doubt = answer.status in _IN_DOUBT
            if in_doubt and method not in READING and (not put_off or tries == _TRIES):
                lost = f"{self._settings.uri} answered {answer.status}: {self._refusals.message(answer)}"
            again = (put_off and not lost) or ((put_off or in_doubt) and time.monotonic() + wait < until)
            if again and tries < _TRIES:
                self._sleep(wait)
                continue
            if lost and answer.status not in SUCCESSES and answer.status not in _ABOUT_THE_CHANGE:
                raise LostError(lost)
            return answer

    def _unreachable(self, error: NotSentError, lost: str) -> Exception:
        """That nothing was changed, if no earlier try may have arrived."""
        message = f"cannot reach {self._settings.uri}: {error}"
        if lost:
            return LostError(f"{lost}; {message}")
        return UnavailableError(message, hints=[_how_to_reach(str(error))])


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


def _is_put_off(answer: Answer) -> bool:
    """Whether the server did not begin, and asks for another try later."""
    return answer.status == PUT_OFF or (answer.status == _UNAVAILABLE and bool(answer.headers.get("Retry-After")))


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
