"""Answers that are no success: what the server says in them, which of our errors that is, and whether it is certain.

A refusal is certain only in the protocol's own words: one of its statuses with an error body of its own that names the
same status. Proxies answer with pages, and with statuses of their own, for requests that they have passed on.
"""

from typing import NamedTuple

import msgspec

from bergline.catalog.rest.client.auth import Authorization
from bergline.catalog.rest.client.settings import RestSettings
from bergline.catalog.rest.client.transport import HttpResponse
from bergline.catalog.rest.protocol.bodies import ErrorModel, ErrorResponse
from bergline.catalog.rest.protocol.errors import error_of
from bergline.errors import AuthenticationError, BerglineError, StorageError, UnavailableError

PUT_OFF = 429
_FIRST_ERROR = 400
_NOT_FOUND = 404
_REFUSING = frozenset({400, 401, 403, 404, 405, 406, 409, 411, 413, 415, 419, 422, PUT_OFF})
_LONGEST_MESSAGE = 2000


class PutOffError(UnavailableError):
    """The catalog itself asks for another try later: a refusal like its others, unlike a call that never left."""


class About(NamedTuple):
    """What a call is about, for errors."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} `{self.name}`" if self.name else self.kind


class Refusals:
    """Reads what one server answers; secrets that it repeats are hidden."""

    def __init__(self, settings: RestSettings, authorization: Authorization) -> None:
        self._settings = settings
        self._authorization = authorization

    def message(self, answer: HttpResponse) -> str:
        """What the server says, or that whoever answered does not speak the protocol."""
        return self._said(answer)[0] if is_of_protocol(answer) else "without an error of the protocol"

    def is_certain(self, answer: HttpResponse) -> bool:
        """Whether an answer says, in the protocol's own words, that the change was not carried out."""
        return answer.status in _REFUSING and is_of_protocol(answer)

    def error(self, answer: HttpResponse, about: About, *, by_status: bool = False) -> BerglineError:
        """What the refusal of a call means; `by_status` where none but that can be had, or is worth much."""
        message, kind = self._said(answer)
        if answer.status == _NOT_FOUND and not by_status and not is_of_protocol(answer):
            return _not_of_catalog(self._settings.uri, answer, about)
        if answer.status < _FIRST_ERROR:
            return _redirection(answer, about)
        if answer.status == PUT_OFF:
            return PutOffError(f"{self._settings.uri} put off {about}: {message}")
        error = error_of(answer.status, kind, message, name=about.name, thing=about.kind)
        if isinstance(error, AuthenticationError):
            return AuthenticationError(message, hints=[self._authorization.advice()])
        return error

    def _said(self, answer: HttpResponse) -> tuple[str, str | None]:
        """The server's message, and its type; a status with any other body will do."""
        found = _error_model(answer)
        message, kind = (f"status {answer.status}", None) if found is None else (found.message, found.type)
        return self._settings.hide(message)[:_LONGEST_MESSAGE], kind


def is_of_protocol(answer: HttpResponse) -> bool:
    """Whether an answer has an error body of the protocol, about its own status."""
    found = _error_model(answer)
    return found is not None and found.code == answer.status


def _error_model(answer: HttpResponse) -> ErrorModel | None:
    try:
        return msgspec.json.decode(answer.body, type=ErrorResponse).error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _not_of_catalog(uri: str, answer: HttpResponse, about: About) -> UnavailableError:
    """A page that was not found says nothing of what the catalog has."""
    return UnavailableError(
        f"expected an answer of the catalog for {about}, found status {answer.status} without an error of the "
        f"protocol at {uri}",
        hints=["a proxy in between may have answered: does it reach the catalog, for all paths below the address?"],
    )


def _redirection(answer: HttpResponse, about: About) -> StorageError:
    """Nobody is followed elsewhere with a token; whoever wants to can connect there."""
    there = answer.headers.get("Location", "")[:_LONGEST_MESSAGE]
    return StorageError(
        f"expected an answer for {about}, found status {answer.status}",
        hints=[f"the server says that it is elsewhere, connect there: {there}"]
        if there.isprintable() and there
        else [],
    )
