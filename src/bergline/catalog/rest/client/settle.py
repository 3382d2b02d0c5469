"""What became of a change whose answer is not certain: the server is asked for what is there now."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from bergline.catalog.rest.client.errors import PutOffError
from bergline.catalog.rest.client.retries import LostError
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
_CAME_SECOND = (ConflictError, AlreadyExistsError)
_NOT_LET_IN = (NotFoundError, AuthenticationError, RefusedError)


class UnsettledError(Exception):
    """It could not be found out."""


class ReplacedError(UnsettledError):
    """Another table has the name: whether the change came to the one before it, nobody can tell."""


def settle(
    send: Callable[[], _Result], look: Callable[[], _Result | None], *, may_resend: bool, waits: StatusWaits
) -> _Result:
    """What became of a change, found out where its answer was lost; UnsettledError if it cannot be.

    `look` gives the result if the change is there, raises ConflictError or AlreadyExistsError if it is not and cannot
    come any more, UnsettledError if nobody can tell, and gives None if it may still come. With `may_resend`, for
    changes that cannot happen twice, the change is then sent again.
    """
    try:
        return send()
    except LostError as error:
        cause = str(error)
    except BerglineError as refusal:
        if _never_left(refusal):
            raise
        return _despite(refusal, look, waits)
    for wait in waits:
        try:
            found = look()
            if found is None and may_resend:
                found = _sent_again(send, look)
            if found is not None:
                return found
        except LostError as error:
            cause = str(error)
        except _NO_ANSWER:
            pass
        except _CAME_SECOND:
            raise
        except BerglineError as error:  # gone since, whether it was changed or not; or we may look no longer
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
    """Carry out a change that shows afterwards; CommitUnknownError if its answer is lost and it does not show.

    With `always_look` no answer alone is enough, for an empty one may be anybody's; one that says that it is done is
    believed only where nobody can look. With `doubt_refusals` a refusal is none of what shows all the same.
    """
    cause: Exception | None = None
    try:
        send()
        if not always_look:
            return
    except LostError as error:
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
    return isinstance(error, UnavailableError) and not isinstance(error, PutOffError)


def _unknown(what: str, name: str, cause: object) -> CommitUnknownError:
    return CommitUnknownError(f"cannot find out whether {what}: {cause}", table=name, metadata_location=None)


def _shows(look: Callable[[], bool]) -> bool | None:
    """Whether a change shows; None where nobody can look."""
    try:
        return look()
    except BerglineError:
        return None


def _despite(refusal: BerglineError, look: Callable[[], _Result | None], waits: StatusWaits) -> _Result:
    """The result of a change that came in although it was refused: delivered twice, it is refused by its own twin.

    A conflict whose change cannot be looked for is in doubt; other refusals stand where the look is refused too.
    """
    cause: Exception = refusal
    for wait in waits:
        try:
            found = look()
        except (*_CAME_SECOND, ReplacedError):  # it was looked for, and is not there
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
        wait()  # it exists, and cannot be seen: the look was answered by a cache
    raise UnsettledError(f"{refusal}; {cause}") from cause


def _sent_again(send: Callable[[], _Result], look: Callable[[], _Result | None]) -> _Result | None:
    """Sent once more: a refusal may be because the first one landed meanwhile, and proves nothing else about it."""
    try:
        return send()
    except _NO_ANSWER:
        raise
    except BerglineError as refusal:
        found = look()
        if found is None and not isinstance(refusal, _CAME_SECOND):
            raise UnsettledError(str(refusal)) from refusal
        return found
