"""What the client raises, as errors of ours."""

import pytest
from obstore.exceptions import (
    AlreadyExistsError as Exists,
)
from obstore.exceptions import (
    GenericError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from bergline.errors import (
    AlreadyExistsError,
    AuthenticationError,
    BerglineError,
    NotFoundError,
    StorageError,
    UnavailableError,
)
from bergline.io.object_errors import object_errors

PLACE = "s3://bucket/x"
SIGNED = "https://account.blob.core.windows.net/c/x?sv=1&sig=hush-hush"


def answer(status: str, code: str = "", message: str = "") -> str:
    body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>" if code else ""
    return (
        f"Generic S3 error: Error performing GET {SIGNED} in 1ms - Server returned non-2xx status code: {status}: "
        f"{body}\n\nDebug source:\nuri: Some({SIGNED})"
    )


def network(kind: str) -> str:
    return (
        f"Generic S3 error: Error performing GET {SIGNED} in 4.8s, after 10 retries - HTTP error: error sending request"
        f"\n\nDebug source:\nHttpError {{ kind: {kind}, source: reqwest::Error {{ url: {SIGNED} }} }}"
    )


@pytest.mark.parametrize(
    ("raised", "error", "text"),
    [
        (FileNotFoundError(answer("404 Not Found", "NoSuchKey")), NotFoundError, f"no file {PLACE}"),
        (FileNotFoundError(answer("404 Not Found")), NotFoundError, f"no file {PLACE}"),
        (FileNotFoundError(answer("404 Not Found", "NoSuchBucket")), NotFoundError, f"no bucket for {PLACE}"),
        (GenericError(answer("404 Not Found", "NoSuchBucket")), NotFoundError, f"no bucket for {PLACE}"),
        (Exists(answer("412 Precondition Failed", "PreconditionFailed")), AlreadyExistsError, f"file {PLACE} exists"),
        (
            PermissionDeniedError(answer("403 Forbidden", "AccessDenied", "Access Denied.")),
            AuthenticationError,
            f"cannot read {PLACE}: AccessDenied: Access Denied.",
        ),
        (
            UnauthenticatedError(answer("401 Unauthorized")),
            AuthenticationError,
            "core.windows.net answered with status 401",
        ),
        (GenericError("Error performing PUT http://169.254.169.254/x - 403"), AuthenticationError, "no credentials"),
        (
            GenericError(network("Connect")),
            UnavailableError,
            "the server https://account.blob.core.windows.net cannot be",
        ),
        (GenericError(network("Timeout")), UnavailableError, "core.windows.net was lost or timed out"),
        (GenericError(answer("503 Slow Down", "SlowDown", "Slow.")), UnavailableError, "SlowDown: Slow."),
        (GenericError(answer("429 Too Many Requests")), UnavailableError, "status 429"),
        (GenericError(answer("400 Bad Request", "InvalidRequest")), StorageError, "InvalidRequest"),
        (GenericError(f"Cannot do {SIGNED} because"), StorageError, "Cannot do … because"),
        (
            GenericError(answer("400 Bad", "Odd", "&lt;b&gt;\n &amp; https://u:hush-hush@h")),
            StorageError,
            "Odd: <b> & …",
        ),
        (FileNotFoundError(f"{answer('404 Not Found')}<html>"), StorageError, "404, and not like an object store"),
        (ValueError("Could not parse path"), StorageError, "Could not parse path"),
        (OSError("Writer already closed."), StorageError, "Writer already closed."),
    ],
)
def test_each_failure_of_a_read_has_its_error(raised: Exception, error: type[BerglineError], text: str) -> None:
    with pytest.raises(error) as caught, object_errors("read", PLACE):
        raise raised
    assert text in str(caught.value)
    assert PLACE in str(caught.value)
    assert "hush-hush" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("text", [network("Connect"), network("Timeout"), answer("503 Slow Down")])
def test_write_that_may_have_arrived_is_never_called_unchanged(text: str) -> None:
    with pytest.raises(StorageError), object_errors("write", PLACE, changes=True):
        raise GenericError(text)


@pytest.mark.parametrize(
    ("raised", "text"),
    [
        (FileNotFoundError(answer("404 Not Found")), "answered with status 404, and not like an object store"),
        (FileNotFoundError("gone"), "the server does not answer like an object store"),
        (FileNotFoundError(answer("404 Not Found", "NoSuchUpload")), "cannot write s3://bucket/x: NoSuchUpload"),
    ],
)
def test_write_never_says_that_there_is_no_file(raised: Exception, text: str) -> None:
    with pytest.raises(StorageError, match=text), object_errors("write", PLACE, changes=True):
        raise raised


def test_wrong_protocol_has_a_hint() -> None:
    with pytest.raises(UnavailableError, match="does not speak TLS") as caught, object_errors("read", PLACE):
        raise GenericError(f"{network('Connect')} InvalidMessage(InvalidContentType)")
    assert caught.value.hints == ("write http:// instead of https:// if that is what the server speaks",)
    with pytest.raises(StorageError) as caught, object_errors("read", PLACE):
        raise GenericError(f"{answer('400 Bad Request')} Client sent an HTTP request to an HTTPS server.")
    assert caught.value.hints == ("write https:// instead of http://: that is what the server expects",)


class PanicException(BaseException):
    """What a library in Rust raises where its own code is wrong."""


def test_panic_of_the_client_is_an_error() -> None:
    with pytest.raises(StorageError, match="cannot read s3://bucket/x: the client stopped: unwrap"):  # noqa: SIM117
        with object_errors("read", PLACE):
            raise PanicException("unwrap")


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_a_program_passes(raised: type[BaseException]) -> None:
    with pytest.raises(raised), object_errors("read", PLACE):
        raise raised


def test_errors_of_ours_pass() -> None:
    mine = StorageError("mine")
    with pytest.raises(StorageError) as caught, object_errors("read", PLACE):
        raise mine
    assert caught.value is mine
