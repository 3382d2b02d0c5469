"""Classifies boto3's exceptions by whether the request can have changed something.

Only errors listed here are certain, and only from Glue itself: an error body with its type, and a 4xx status. boto3 is
imported only when Glue is used, so its exceptions are recognized by name.
"""

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

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
_INVALID = frozenset({"InvalidInputException", "SerializationException", "ValidationException"})
_REFUSED = frozenset(
    {
        "AccessDeniedException",
        "AlreadyExistsException",
        "ConcurrentModificationException",
        "EntityNotFoundException",
        "OperationNotSupportedException",
        "ResourceNumberLimitExceededException",
    }
)
_BAD_ARGUMENTS = "ParamValidationError"
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
_OK, _CLIENT, _SERVER = 200, 400, 500
_LONGEST_REASON = 300
_IN_GLUES_WORDS = "bergline.in-glues-words"


class GlueFailure(Enum):
    """The kind of a failure; after all but the last three, certainly nothing was changed."""

    PUT_OFF = "asked to slow down"
    NOT_SENT = "could not be reached"
    IDENTITY = "does not accept who asks"
    INVALID = "does not accept what was asked"
    REFUSED = "refused"
    NOT_GLUE = "is something else"
    NOT_KNOWN = "gave a reason that says nothing about the outcome"
    IN_DOUBT = "gave no answer"


def mark_response(
    parsed_response: dict[str, Any] | None, response_dict: dict[str, Any] | None, **_event: object
) -> None:
    """Record whether a response came from Glue: boto3 parses any web page as an empty response."""
    if parsed_response is not None and response_dict is not None:
        is_glues = _is_glues(response_dict["status_code"], response_dict["headers"], response_dict["body"])
        parsed_response.setdefault("ResponseMetadata", {})[_IN_GLUES_WORDS] = is_glues


def is_glue_response(response: Mapping[str, Any]) -> bool:
    """Whether a response, also that in an error, came from Glue itself."""
    return bool(response.get("ResponseMetadata", {}).get(_IN_GLUES_WORDS))


def code_of(error: Exception) -> str | None:
    """Glue's error code; None without a response, "" if it did not come from Glue."""
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        return None
    return str(response.get("Error", {}).get("Code", "")) if is_glue_response(response) else ""


def failure_of(error: Exception) -> GlueFailure:
    """Classify an exception."""
    code, kinds = code_of(error), {c.__name__ for c in type(error).__mro__}
    if code in _PUT_OFF:
        return GlueFailure.PUT_OFF
    if code in _IDENTITY or kinds & _NO_CREDENTIALS:
        return GlueFailure.IDENTITY
    if code in _INVALID or _BAD_ARGUMENTS in kinds:
        return GlueFailure.INVALID
    if code in _REFUSED:
        return GlueFailure.REFUSED
    if kinds & _NOT_SENT:
        return GlueFailure.NOT_SENT
    if isinstance(error, StorageError):
        return GlueFailure.NOT_GLUE
    if code is None or code in _IN_DOUBT or _status(error) >= _SERVER:
        return GlueFailure.IN_DOUBT
    return GlueFailure.NOT_KNOWN if code else GlueFailure.NOT_GLUE


def not_glue(place: str) -> StorageError:
    """The error for a response that did not come from Glue."""
    return StorageError(f"expected {place}, found another server", hints=["check the endpoint"])


def glue_error(place: str, what: str, error: Exception, *, changes: bool) -> BerglineError:
    """The error to raise; `changes` says whether the request would have changed something."""
    text = f"{place} {what}: {_reason(error)}"
    match failure_of(error):
        case GlueFailure.PUT_OFF:
            return UnavailableError(text, hints=["nothing was changed; try again"])
        case GlueFailure.NOT_SENT:
            return UnavailableError(text, hints=["nothing was changed; check the region, the endpoint and the network"])
        case GlueFailure.IDENTITY:
            return AuthenticationError(text, hints=["give credentials as properties or in the environment"])
        case GlueFailure.INVALID:
            return InvalidInputError(text)
        case GlueFailure.REFUSED:
            return RefusedError(text)
        case GlueFailure.NOT_GLUE:
            return not_glue(place)
        case GlueFailure.NOT_KNOWN:
            return StorageError(text) if changes else RefusedError(text)
        case GlueFailure.IN_DOUBT:
            return StorageError(text) if changes else UnavailableError(text)


def _is_glues(status: int, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether a response came from the service: a success, or a client error that names its type."""
    if status != _OK and not _CLIENT <= status < _SERVER:
        return False
    if not body:
        return status == _OK and "x-amzn-requestid" in headers
    try:
        content = json.loads(body)
    except ValueError:
        return False
    return isinstance(content, dict) and (status == _OK or isinstance(content.get("__type"), str))


def _status(error: Exception) -> int:
    response = getattr(error, "response", {})
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", _SERVER))


def _reason(error: Exception) -> str:
    response = getattr(error, "response", None)
    details = response.get("Error", {}) if isinstance(response, dict) else {}
    message = f"{details['Code']}: {details.get('Message', '')}" if details.get("Code") else str(error)
    return " ".join(message.split())[:_LONGEST_REASON]
