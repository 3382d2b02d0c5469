"""Settling a change whose response is not certain, by reading the current state from the server.

A success or a refusal that follows the protocol is certain; a lost response, a proxy's page or a server error is not.
There are two ways to find out. One is to look at the state: a change that is visible was made, but one that is not may
still be on its way, unless something in the state keeps it from ever being made. The other is to send the change again
with the same idempotency key: the server answers as it did the first time, or makes the change now, and never twice.
Where neither tells, the outcome stays unknown, and nothing that was written may be deleted.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from bergline.catalog.rest.client.calls import RequestKey
from bergline.catalog.rest.client.error_responses import RetryLaterError
from bergline.catalog.rest.client.retries import ChangeInDoubtError
from bergline.errors import (
    AlreadyExistsError,
    AuthenticationError,
    BerglineError,
    CommitUnknownError,
    ConflictError,
    FormatError,
    NotFoundError,
    RefusedError,
    StorageError,
    UnavailableError,
)

_Result = TypeVar("_Result")
StatusWaits = Iterable[Callable[[], None]]
_NO_ANSWER = (UnavailableError, StorageError, FormatError)
"""Errors of a look that say nothing about the state: look again."""
_CAME_SECOND = (ConflictError, AlreadyExistsError)
_NOT_LET_IN = (NotFoundError, AuthenticationError, RefusedError)
"""Errors of a look that the same server also gives to a change that it never made."""


class UnsettledError(Exception):
    """The outcome could not be determined."""

    def __init__(self, cause: str, *, no_trace: bool = False) -> None:
        super().__init__(cause)
        self.no_trace = no_trace
        """Whether the state could be read, and shows nothing of the change: others may have hidden it since.

        That supports a refusal, while a response that was lost stays in doubt.
        """


def settle(
    send: Callable[[], _Result],
    look: Callable[[], _Result | None],
    *,
    may_resend: bool,
    waits: StatusWaits,
    key: RequestKey | None = None,
    looks_like_others: bool = False,
) -> _Result:
    """Make a change, and settle it if its response is lost; UnsettledError if that is impossible.

    `look` tells what the state shows. It returns the result if the change was made, and None if it was not but still
    may be; it raises ConflictError or AlreadyExistsError if it was not and never will be, and UnsettledError if the
    state does not tell. `may_resend` is for changes that cannot be applied twice: after None they are sent again. With
    a key the change is sent again for as long as the server keeps the key; first of all, if it `looks_like_others`.
    """
    try:
        return send()
    except ChangeInDoubtError as error:
        cause = str(error)
    except BerglineError as refusal:
        if _never_left(refusal) or _is_final(key):
            raise
        return _despite(refusal, look, waits)
    for wait in waits:
        # a key that the server may have forgotten would let the change be made a second time
        live = key if key is not None and key.repeatable_s > 0 else None
        try:
            found = None
            if live is not None and looks_like_others:  # others may have done the same: the key alone tells who did
                found = _answer_to_key(send, live)
            if found is None:
                found = look() if live is None else _found_or_answered(look, send, live)
            if found is None and live is not None and not looks_like_others:
                found = _answer_to_key(send, live)
            if found is None and live is None and may_resend:
                found = _sent_again(send, look)
            if found is not None:
                return found
        except ChangeInDoubtError as error:
            cause = str(error)
        except BerglineError as error:
            if _is_final(key) or isinstance(error, _CAME_SECOND):
                raise
            if not isinstance(error, _NO_ANSWER):  # dropped since, changed or not; or no longer readable for us
                raise UnsettledError(f"{cause}; {error}") from error
        wait()
    raise UnsettledError(cause)


def happened(
    send: Callable[[], None],
    look: Callable[[], bool],
    *,
    what: str,
    name: str,
    waits: StatusWaits,
    always_look: bool = False,
    doubt_refusals: bool = False,
) -> None:
    """Make a change that is visible afterwards; CommitUnknownError if its response is lost and it is not visible.

    With `always_look` no response alone is enough, since an empty one may come from anywhere; a success is believed
    only if the state cannot be read. With `doubt_refusals` a refusal is ignored if the change is visible.
    """
    cause: Exception | None = None
    try:
        send()
        if not always_look:
            return
    except ChangeInDoubtError as error:
        cause = error
    except BerglineError as refusal:
        if not doubt_refusals or _never_left(refusal) or not _shows(look):
            raise
        raise _unknown(what, name, refusal) from refusal
    for wait in waits:
        shows = _shows(look)
        if shows or (shows is None and cause is None):
            return
        wait()
    raise _unknown(what, name, cause or "the server said so, and it does not show") from cause


def _never_left(error: BerglineError) -> bool:
    """Whether the request was never sent, so that nothing can have come of it."""
    return isinstance(error, UnavailableError) and not isinstance(error, RetryLaterError)


def _unknown(what: str, name: str, cause: object) -> CommitUnknownError:
    return CommitUnknownError(f"cannot find out whether {what}: {cause}", table=name, metadata_location=None)


def _shows(look: Callable[[], bool]) -> bool | None:
    """Whether a change is visible; None if the state cannot be read."""
    try:
        return look()
    except BerglineError:
        return None


def _despite(refusal: BerglineError, look: Callable[[], _Result | None], waits: StatusWaits) -> _Result:
    """The result of a change that was made although it was refused: one that is delivered twice refuses itself.

    A conflict is in doubt if the state cannot be read; other refusals stand if reading is refused too.
    """
    cause: Exception = refusal
    for wait in waits:
        try:
            found = look()
        except _CAME_SECOND:  # it was looked for and is not visible
            raise refusal from None
        except UnsettledError as error:
            if not error.no_trace:
                raise
            raise refusal from None
        except _NOT_LET_IN as error:
            if not isinstance(refusal, _CAME_SECOND):
                raise refusal from None
            raise UnsettledError(f"{refusal}; {error}") from error
        except BerglineError as error:
            cause = error
            wait()
            continue
        if found is not None:
            return found
        if not isinstance(refusal, AlreadyExistsError):
            raise refusal
        wait()  # it exists and is not visible: a cache responded
    raise UnsettledError(f"{refusal}; {cause}") from cause


def _is_final(key: RequestKey | None) -> bool:
    return key is not None and key.is_refused


def _found_or_answered(
    look: Callable[[], _Result | None], send: Callable[[], _Result], key: RequestKey
) -> _Result | None:
    """What was found; None also if that tells nothing, while the key still may.

    A change that can no longer be made is sent all the same: once its key is refused, no request that is still on its
    way is accepted later, when what stands against it has been undone.
    """
    try:
        return look()
    except UnsettledError:
        return None
    except _CAME_SECOND:
        answer = _answer_to_key(send, key)
        if answer is None:
            raise
        return answer


def _answer_to_key(send: Callable[[], _Result], key: RequestKey) -> _Result | None:
    """Send again with the same key; None if there is no answer that holds for every request with it."""
    try:
        return send()
    except ChangeInDoubtError:
        return None
    except BerglineError:
        if key.is_refused:
            raise
        return None


def _sent_again(send: Callable[[], _Result], look: Callable[[], _Result | None]) -> _Result | None:
    """Send again: a refusal may be due to the first request, and otherwise proves nothing about it."""
    try:
        return send()
    except _NO_ANSWER:
        raise
    except BerglineError as refusal:
        found = look()
        if found is None and not isinstance(refusal, _CAME_SECOND):
            raise UnsettledError(str(refusal)) from refusal
        return found
