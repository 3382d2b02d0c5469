"""What obstore raises, as errors of ours.

Its messages hold whole requests, addresses with signatures included, so only the server's own words are taken over.
"""

import contextlib
import re
from collections.abc import Iterator
from enum import Enum

from bergline.errors import (
    AlreadyExistsError,
    AuthenticationError,
    BerglineError,
    NotFoundError,
    StorageError,
    UnavailableError,
)

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([A-Za-z0-9._-]{1,80})</Code>")
_MESSAGE = re.compile(r"<Message>([^<]{1,300})</Message>")
_ADDRESS = re.compile(r"\S*://\S*")
# where the clouds' machines ask for credentials when nobody gave any
_CREDENTIAL_SERVICES = ("//169.254.169.254/", "//metadata.google.internal/", "//metadata/computeMetadata")
_BUCKET_CODES = frozenset({"NoSuchBucket", "ContainerNotFound"})
_IDENTITY_CODES = frozenset(
    {
        "AccessDenied",
        "AuthenticationFailed",
        "AuthorizationFailure",
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidToken",
        "SignatureDoesNotMatch",
        "XAdminUserNotFound",
    }
)
_CONFLICT_CODES = frozenset({"ConditionalRequestConflict", "OperationAborted"})
_NOT_AUTHORIZED = frozenset({401, 403})
_TRY_LATER = frozenset({408, 429})
_RANGE = 416
_RANGE_WORDS = ("non-partial response", "Invalid range")
_SERVER = 500
_LONGEST_REASON = 300


class Failure(Enum):
    """What kind of failure an exception stands for."""

    NO_OBJECT = "no object"
    NO_BUCKET = "no bucket"
    EXISTS = "exists"
    CONFLICT = "another request for the same object is under way; nothing was changed"
    NO_IDENTITY = "not allowed"
    NOT_REACHED = "the request did not arrive"
    TRANSIENT = "the answer is lost, or the server asks to try later"
    BAD_RANGE = "the range lies outside the object"
    OTHER = "something else"


def failure_of(error: Exception) -> Failure:
    """The kind of failure."""
    text = str(error)
    kind = type(error).__name__
    code, status = _server_code(text), _server_status(text)
    if any(service in text for service in _CREDENTIAL_SERVICES):
        return Failure.NO_IDENTITY
    if code in _BUCKET_CODES:
        return Failure.NO_BUCKET
    if code in _IDENTITY_CODES or status in _NOT_AUTHORIZED or kind == "UnauthenticatedError":
        return Failure.NO_IDENTITY
    if code in _CONFLICT_CODES:
        return Failure.CONFLICT
    if isinstance(error, FileNotFoundError):
        return Failure.NO_OBJECT
    if kind == "AlreadyExistsError":
        return Failure.EXISTS
    if status == _RANGE or kind == "NotSupportedError" or any(words in text for words in _RANGE_WORDS):
        return Failure.BAD_RANGE
    if status is not None:
        return Failure.TRANSIENT if status >= _SERVER or status in _TRY_LATER else Failure.OTHER
    if "kind: Connect" in text:
        return Failure.NOT_REACHED
    return Failure.TRANSIENT if "HTTP error" in text or "reqwest::Error" in text else Failure.OTHER


def storage_error(verb: str, location: str, error: Exception, *, changes: bool) -> BerglineError:
    """The error to raise; `changes` says whether this request or a try before it could have changed something."""
    failure = failure_of(error)
    what = f"cannot {verb} {location}: {_reason(failure, str(error))}"
    match failure:
        case Failure.NO_OBJECT:
            return NotFoundError(f"no file {location}", kind="file", name=location)
        case Failure.NO_BUCKET:
            return NotFoundError(f"no bucket for {location}", kind="bucket", name=location)
        case Failure.EXISTS:
            return exists_error(location)
        case Failure.NO_IDENTITY:
            return AuthenticationError(what, hints=["give credentials as properties or in the environment"])
        case Failure.CONFLICT | Failure.NOT_REACHED | Failure.TRANSIENT:
            return StorageError(what) if changes else UnavailableError(what)
        case Failure.BAD_RANGE | Failure.OTHER:
            return StorageError(what)


def exists_error(location: str) -> AlreadyExistsError:
    """The error for a location that is taken."""
    return AlreadyExistsError(f"file {location} exists already", kind="file", name=location)


@contextlib.contextmanager
def object_errors(verb: str, location: str, *, changes: bool = False) -> Iterator[None]:
    """Turn whatever obstore raises into an error of ours that names the location."""
    try:
        yield
    except BerglineError:
        raise
    except Exception as error:  # noqa: BLE001  (obstore raises its own, OSError and ValueError; none may escape)
        raise storage_error(verb, location, error, changes=changes) from None


def _server_code(text: str) -> str | None:
    found = _CODE.search(text)
    return found[1] if found else None


def _server_status(text: str) -> int | None:
    found = _STATUS.search(text)
    return int(found[1]) if found else None


def _reason(failure: Failure, text: str) -> str:
    if any(service in text for service in _CREDENTIAL_SERVICES):
        return "no credentials found"
    code, message, status = _server_code(text), _MESSAGE.search(text), _server_status(text)
    if code:
        return f"{code}: {message[1].strip()}" if message else code
    if status:
        return f"the server answered with status {status}"
    if failure is Failure.NOT_REACHED:
        return "the server cannot be reached"
    if failure is Failure.TRANSIENT:
        return "the connection was lost or timed out"
    return _ADDRESS.sub("…", text.split("\n", 1)[0])[:_LONGEST_REASON]
