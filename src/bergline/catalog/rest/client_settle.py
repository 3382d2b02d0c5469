"""What happened to a change whose answer was lost: the server is asked for what is there now."""

import contextlib
from collections.abc import Callable, Iterable
from typing import TypeVar

from bergline.catalog.rest.client_tries import LostError
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    CommitUnknownError,
    ConflictError,
    StorageError,
    UnavailableError,
)

Result = TypeVar("Result")
Waits = Iterable[Callable[[], None]]
_NO_ANSWER = (UnavailableError, StorageError)


class UnsettledError(Exception):
    """It could not be found out."""


def settle(send: Callable[[], Result], look: Callable[[], Result | None], *, may_resend: bool, waits: Waits) -> Result:
    """What became of a change, found out where its answer was lost; UnsettledError if it cannot be.

    `look` gives the result if the change is there, raises ConflictError or AlreadyExistsError if it is not and cannot
    come any more, UnsettledError if nobody can tell, and gives None if it may still come. With `may_resend`, for
    changes that cannot happen twice, the change is then sent again.
    """
    try:
        return send()
    except LostError as error:
        cause = str(error)
    except (ConflictError, AlreadyExistsError) as refusal:
        return _of_twin(look, refusal)
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
        except (ConflictError, AlreadyExistsError):
            raise
        except BerglineError as error:  # gone since, whether it was changed or not; or we may look no longer
            raise UnsettledError(f"{cause}; {error}") from error
        wait()
    raise UnsettledError(cause)


def happened(send: Callable[[], None], look: Callable[[], bool], *, what: str, name: str, waits: Waits) -> None:
    """Carry out a change that shows afterwards; CommitUnknownError if its answer is lost and it does not show."""
    try:
        send()
    except LostError as error:
        for wait in waits:
            with contextlib.suppress(BerglineError):
                if look():
                    return
            wait()
        raise CommitUnknownError(
            f"cannot find out whether {what}: {error}", table=name, metadata_location=None
        ) from error


def _of_twin(look: Callable[[], Result | None], refusal: BerglineError) -> Result:
    """The result of a change that was refused because it was delivered twice, and its twin came first."""
    try:
        found = look()
    except (BerglineError, UnsettledError):
        raise refusal from None
    if found is None:
        raise refusal
    return found


def _sent_again(send: Callable[[], Result], look: Callable[[], Result | None]) -> Result | None:
    """Sent once more: a refusal may be because the first one landed meanwhile."""
    try:
        return send()
    except _NO_ANSWER:
        raise
    except BerglineError:
        found = look()
        if found is None:
            raise
        return found
