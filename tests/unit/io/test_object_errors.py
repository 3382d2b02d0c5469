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
        (UnauthenticatedError(answer("401 Unauthorized")), AuthenticationError, "the server answered with status 401"),
        (GenericError("Error performing PUT http://169.254.169.254/x - 403"), AuthenticationError, "no credentials"),
        (GenericError(network("Connect")), UnavailableError, "the server cannot be reached"),
        (GenericError(network("Timeout")), UnavailableError, "the connection was lost or timed out"),
        (GenericError(answer("503 Slow Down", "SlowDown", "Slow.")), UnavailableError, "SlowDown: Slow."),
        (GenericError(answer("429 Too Many Requests")), UnavailableError, "status 429"),
        (GenericError(answer("400 Bad Request", "InvalidRequest")), StorageError, "InvalidRequest"),
        (GenericError(f"Cannot do {SIGNED} because"), StorageError, "Cannot do … because"),
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


def test_errors_of_ours_pass() -> None:
    mine = StorageError("mine")
    with pytest.raises(StorageError) as caught, object_errors("read", PLACE):
        raise mine
    assert caught.value is mine
