"""What boto3 raises, told apart by what it says about the request: whether it can have changed something.

boto3 is loaded only when Glue is used, so its exceptions are known by their names.
"""

from enum import Enum

from bergline.errors import (
    AuthenticationError,
    BerglineError,
    InvalidInputError,
    RefusedError,
    StorageError,
    UnavailableError,
)

_PUT_OFF = frozenset(
    {
        "LimitExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "ResourceNotReadyException",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
    }
)
_IN_DOUBT = frozenset(
    {
        "FederationSourceException",
        "FederationSourceRetryableException",
        "InternalFailure",
        "InternalServiceException",
        "OperationTimeoutException",
        "RequestTimeout",
        "RequestTimeoutException",
    }
)
_IDENTITY = frozenset(
    {
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_INVALID = frozenset({"InvalidInputException", "ParamValidationError", "SerializationException", "ValidationException"})
_NOT_SENT = frozenset({"ConnectTimeoutError", "EndpointConnectionError", "ProxyConnectionError"})
_NO_CREDENTIALS = frozenset(
    {
        "CredentialRetrievalError",
        "LoginError",
        "MetadataRetrievalError",
        "NoAuthTokenError",
        "NoCredentialsError",
        "PartialCredentialsError",
        "SSOError",
        "TokenRetrievalError",
    }
)
_SERVER = 500
_LONGEST_REASON = 300


class Failure(Enum):
    """What kind of failure an exception stands for; after all but the last two certainly nothing was changed."""

    PUT_OFF = "asked to slow down"
    NOT_SENT = "could not be reached"
    IDENTITY = "does not accept who asks"
    INVALID = "does not accept what was asked"
    REFUSED = "refused"
    NOT_GLUE = "is something else"
    IN_DOUBT = "gave no answer"


def code_of(error: Exception) -> str | None:
    """The service's own code for an error; None if no answer came."""
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else None


def failure_of(error: Exception) -> Failure:
    """What became of the request."""
    code, kinds = code_of(error), {c.__name__ for c in type(error).__mro__}
    if code in _PUT_OFF:
        return Failure.PUT_OFF
    if code in _IDENTITY or kinds & _NO_CREDENTIALS:
        return Failure.IDENTITY
    if code in _INVALID or kinds & _INVALID:
        return Failure.INVALID
    if kinds & _NOT_SENT:
        return Failure.NOT_SENT
    if isinstance(error, StorageError):
        return Failure.NOT_GLUE
    if code is None or code in _IN_DOUBT or _status(error) >= _SERVER:
        return Failure.IN_DOUBT
    if code == "" or code.isdigit():  # no code of Glue, but the status of some web server
        return Failure.NOT_GLUE
    return Failure.REFUSED


def not_glue(place: str) -> StorageError:
    """The error for an answer that Glue does not give."""
    return StorageError(f"expected {place}, found another server", hints=["check the endpoint"])


def glue_error(place: str, what: str, error: Exception, *, changes: bool) -> BerglineError:
    """The error to raise; `changes` says whether the request would have changed something."""
    text = f"{place} {what}: {_reason(error)}"
    match failure_of(error):
        case Failure.PUT_OFF:
            return UnavailableError(text, hints=["nothing was changed; try again"])
        case Failure.NOT_SENT:
            return UnavailableError(text, hints=["nothing was changed; check the region, the endpoint and the network"])
        case Failure.IDENTITY:
            return AuthenticationError(text, hints=["give credentials as properties or in the environment"])
        case Failure.INVALID:
            return InvalidInputError(text)
        case Failure.REFUSED:
            return RefusedError(text)
        case Failure.NOT_GLUE:
            return not_glue(place)
        case Failure.IN_DOUBT:
            return StorageError(text) if changes else UnavailableError(text)


def _status(error: Exception) -> int:
    response = getattr(error, "response", {})
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", _SERVER))


def _reason(error: Exception) -> str:
    code = code_of(error)
    message = str(error) if code is None else f"{code}: {error.response['Error'].get('Message', '')}"  # type: ignore[attr-defined]
    return " ".join(message.split())[:_LONGEST_REASON]
