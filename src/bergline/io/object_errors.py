"""Converts obstore's exceptions to bergline's errors.

Its messages contain entire requests, including signed URLs, so only the server's own message is taken over.
"""

import contextlib
import html
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
_SERVER_ADDRESS = re.compile(
    r"Error performing [A-Z]+ (https?://)(?:[^/\s@]*@)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\])(:\d+)?"
)
_WEB_PAGE = re.compile(r"<(!doctype html|html)[\s>]", re.IGNORECASE)
_WANTS_TLS = re.compile("HTTP request (was sent )?to (an )?HTTPS (server|port)")
_NO_TLS_WORDS = ("InvalidContentType", "NotTls", "received corrupt message")
# instance metadata endpoints, asked for credentials when none are configured
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
_CLIENT, _SERVER = 400, 500
_LONGEST_REASON = 300
_CHECK_ENDPOINT = "check the endpoint: another server responds there, or it has no such bucket"


class StoreFailure(Enum):
    """The kind of failure that an exception represents."""

    NO_OBJECT = "no object"
    NO_BUCKET = "no bucket"
    EXISTS = "exists"
    CHANGED = "the object is not the one that was named"
    CONFLICT = "another request for the same object is under way; nothing was changed"
    NO_IDENTITY = "not allowed"
    NOT_REACHED = "the request did not arrive"
    NO_TLS = "the server responded to a TLS handshake with something else"
    NO_STORE = "the server does not respond like an object store"
    TRANSIENT = "the response was lost, or the server asks to retry later"
    BAD_RANGE = "the range lies outside the object"
    OTHER = "something else"


# without a status there was no response: it was not sent, or the store is in memory
_WITHOUT_STATUS = frozenset(
    {
        StoreFailure.NO_IDENTITY,
        StoreFailure.NOT_REACHED,
        StoreFailure.NO_TLS,
        StoreFailure.EXISTS,
        StoreFailure.CHANGED,
    },
)
_SAID_NO = frozenset(
    {
        StoreFailure.EXISTS,
        StoreFailure.CHANGED,
        StoreFailure.CONFLICT,
        StoreFailure.NO_BUCKET,
        StoreFailure.NO_IDENTITY,
    },
)


def failure_of(error: Exception) -> StoreFailure:
    """Classify an exception."""
    text = str(error)
    kind = type(error).__name__
    code, status = _server_code(text), _server_status(text)
    if any(service in text for service in _CREDENTIAL_SERVICES):
        return StoreFailure.NO_IDENTITY
    if code in _BUCKET_CODES:
        return StoreFailure.NO_BUCKET
    if code is None and status is not None and status < _SERVER and _WEB_PAGE.search(text):
        return StoreFailure.NO_STORE
    if status is not None and status >= _SERVER:
        return StoreFailure.TRANSIENT
    if code in _IDENTITY_CODES or status in _NOT_AUTHORIZED or kind == "UnauthenticatedError":
        return StoreFailure.NO_IDENTITY
    if code in _CONFLICT_CODES:
        return StoreFailure.CONFLICT
    if kind == "PreconditionError":
        return StoreFailure.CHANGED
    if isinstance(error, FileNotFoundError):
        return StoreFailure.NO_OBJECT
    if kind == "AlreadyExistsError":
        return StoreFailure.EXISTS
    if status == _RANGE or kind == "NotSupportedError" or any(words in text for words in _RANGE_WORDS):
        return StoreFailure.BAD_RANGE
    if status is not None:
        return StoreFailure.TRANSIENT if status in _TRY_LATER else StoreFailure.OTHER
    if "kind: Connect" in text:
        return StoreFailure.NO_TLS if any(words in text for words in _NO_TLS_WORDS) else StoreFailure.NOT_REACHED
    return StoreFailure.TRANSIENT if "HTTP error" in text or "reqwest::Error" in text else StoreFailure.OTHER


def is_certain(error: Exception) -> bool:
    """Whether a write with this failure certainly changed nothing.

    Either nothing was sent, or the store says so: an error document with a code, and a 4xx status. A response from a
    proxy, with just a status or a page, says nothing about the store.
    """
    text = str(error)
    failure, code, status = failure_of(error), _server_code(text), _server_status(text)
    if status is None:
        return failure in _WITHOUT_STATUS
    is_typed = code is not None and _CLIENT <= status < _SERVER
    return is_typed and failure in _SAID_NO and (failure is not StoreFailure.NO_IDENTITY or code in _IDENTITY_CODES)


def storage_error(verb: str, location: str, error: Exception, *, changes: bool) -> BerglineError:
    """The error to raise; `changes` says whether this request or an earlier attempt could have changed something."""
    failure = failure_of(error)
    if failure is StoreFailure.NO_OBJECT and verb == "write" and _server_code(str(error)) is None:
        failure = StoreFailure.NO_STORE  # there is always room for a new object, or the store says why not
    what = f"cannot {verb} {location}: {_reason(failure, str(error))}"
    match failure:
        case StoreFailure.NO_OBJECT if verb == "write":
            return StorageError(what)
        case StoreFailure.NO_OBJECT:
            return NotFoundError(f"no file {location}", kind="file", name=location)
        case StoreFailure.NO_BUCKET:
            return NotFoundError(f"no bucket for {location}", kind="bucket", name=location)
        case StoreFailure.EXISTS:
            return exists_error(location)
        case StoreFailure.NO_IDENTITY:
            return AuthenticationError(what, hints=["give credentials as properties or in the environment"])
        case StoreFailure.CONFLICT | StoreFailure.NOT_REACHED | StoreFailure.TRANSIENT:
            return StorageError(what) if changes else UnavailableError(what)
        case StoreFailure.NO_TLS:
            hints = ["write http:// instead of https:// if that is what the server speaks"]
            return StorageError(what, hints=hints) if changes else UnavailableError(what, hints=hints)
        case StoreFailure.NO_STORE:
            return StorageError(what, hints=[_CHECK_ENDPOINT, *_tls_hints(str(error))])
        case StoreFailure.BAD_RANGE | StoreFailure.CHANGED | StoreFailure.OTHER:
            return StorageError(what, hints=_tls_hints(str(error)))


def exists_error(location: str) -> AlreadyExistsError:
    """The error for a location that exists."""
    return AlreadyExistsError(f"file {location} exists already", kind="file", name=location)


class ClientPanicError(Exception):
    """The client panicked."""


@contextlib.contextmanager
def panics_contained() -> Iterator[None]:
    """Convert a panic of the client, which is not an Exception and has a different class in every library."""
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        if any(c.__name__ == "PanicException" for c in type(error).__mro__):
            raise ClientPanicError(f"the client stopped: {error}") from None
        raise


@contextlib.contextmanager
def object_errors(verb: str, location: str, *, changes: bool = False) -> Iterator[None]:
    """Convert whatever obstore raises to an error that names the location."""
    try:
        with panics_contained():
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


def _reason(failure: StoreFailure, text: str) -> str:
    if any(service in text for service in _CREDENTIAL_SERVICES):
        return "no credentials found"
    code, message, status = _server_code(text), _MESSAGE.search(text), _server_status(text)
    if code:
        return f"{code}: {_plain_words(message[1])}" if message else code
    if status:
        like = ", and not like an object store" if failure is StoreFailure.NO_STORE else ""
        return f"{_server(text)} answered with status {status}{like}"
    match failure:
        case StoreFailure.NOT_REACHED:
            return f"{_server(text)} cannot be reached"
        case StoreFailure.NO_TLS:
            return f"{_server(text)} does not speak TLS"
        case StoreFailure.NO_STORE:
            return f"{_server(text)} does not answer like an object store"
        case StoreFailure.TRANSIENT:
            return f"the connection to {_server(text)} was lost or timed out"
    return _ADDRESS.sub("…", text.split("\n", 1)[0])[:_LONGEST_REASON]


def _tls_hints(text: str) -> list[str]:
    return ["write https:// instead of http://: that is what the server expects"] if _WANTS_TLS.search(text) else []


def _plain_words(text: str) -> str:
    """A server's XML error on one line, without URLs."""
    return _ADDRESS.sub("…", " ".join(html.unescape(text).split()))


def _server(text: str) -> str:
    """The server's address without path and query, which may contain secrets."""
    found = _SERVER_ADDRESS.search(text)
    return f"the server {found[1]}{found[2]}{found[3] or ''}" if found else "the server"
