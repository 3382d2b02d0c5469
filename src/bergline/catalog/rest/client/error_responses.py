"""Error responses: the server's message, the matching error, and whether the refusal is certain.

A refusal is certain only if it follows the protocol: one of its statuses, with an error body that names the same
status. Proxies respond with pages and statuses of their own, even for requests that they have forwarded.
"""

from typing import NamedTuple

import msgspec

from bergline.catalog.rest.client.auth import Authorization
from bergline.catalog.rest.client.settings import RestSettings
from bergline.catalog.rest.client.transport import HttpResponse
from bergline.catalog.rest.protocol.bodies import ErrorModel, ErrorResponse
from bergline.catalog.rest.protocol.errors import error_of
from bergline.errors import AuthenticationError, BerglineError, StorageError, UnavailableError

_ERRORS = msgspec.json.Decoder(ErrorResponse)

TOO_MANY_REQUESTS = 429
_FIRST_ERROR = 400
_NOT_FOUND = 404
_REFUSING = frozenset({400, 401, 403, 404, 405, 406, 409, 411, 413, 415, 419, 422, TOO_MANY_REQUESTS})
_LONGEST_MESSAGE = 2000


class RetryLaterError(UnavailableError):
    """The catalog asks to retry later: a certain refusal, unlike a call that may not have been sent."""


class CallSubject(NamedTuple):
    """The kind and name of what a call refers to, for messages."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} `{self.name}`" if self.name else self.kind


class ResponseErrors:
    """Interprets the error responses of a server; secrets in them are hidden."""

    def __init__(self, settings: RestSettings, authorization: Authorization) -> None:
        self._settings = settings
        self._authorization = authorization

    def message(self, response: HttpResponse) -> str:
        """The server's message, or that the response does not follow the protocol."""
        return self._said(response)[0] if is_of_protocol(response) else "without an error of the protocol"

    def is_certain(self, response: HttpResponse) -> bool:
        """Whether a response follows the protocol and says that the change was not made."""
        return response.status in _REFUSING and is_of_protocol(response)

    def error(self, response: HttpResponse, about: CallSubject, *, by_status: bool = False) -> BerglineError:
        """The error of a response; `by_status` if the status alone is enough."""
        message, kind = self._said(response)
        if response.status == _NOT_FOUND and not by_status and not is_of_protocol(response):
            return _not_of_catalog(self._settings.uri, response, about)
        if response.status < _FIRST_ERROR:
            return _redirection(response, about)
        if response.status == TOO_MANY_REQUESTS:
            return RetryLaterError(f"{self._settings.uri} asks to retry later for {about}: {message}")
        error = error_of(response.status, kind, message, name=about.name, thing=about.kind)
        if isinstance(error, AuthenticationError):
            return AuthenticationError(message, hints=[self._authorization.advice()])
        return error

    def _said(self, response: HttpResponse) -> tuple[str, str | None]:
        """The server's message and error type; just the status if the body has none."""
        found = _error_model(response)
        message, kind = (f"status {response.status}", None) if found is None else (found.message, found.type)
        return self._settings.hide(message)[:_LONGEST_MESSAGE], kind


def is_of_protocol(response: HttpResponse) -> bool:
    """Whether a response has an error body of the protocol that names its status."""
    found = _error_model(response)
    return found is not None and found.code == response.status


def _error_model(response: HttpResponse) -> ErrorModel | None:
    try:
        return _ERRORS.decode(response.body).error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _not_of_catalog(uri: str, response: HttpResponse, about: CallSubject) -> UnavailableError:
    """The error for a 404 that did not come from the catalog."""
    return UnavailableError(
        f"expected a response of the catalog for {about}, found status {response.status} without an error of the "
        f"protocol at {uri}",
        hints=["a proxy in between may have responded: does it reach the catalog, for all paths below the address?"],
    )


def _redirection(response: HttpResponse, about: CallSubject) -> StorageError:
    """The error for a redirect, which is not followed because it would pass on the token."""
    there = response.headers.get("Location", "")[:_LONGEST_MESSAGE]
    return StorageError(
        f"expected a response for {about}, found status {response.status}",
        hints=[f"the server says that it is elsewhere, connect there: {there}"]
        if there.isprintable() and there
        else [],
    )
