"""Answers that are no success: what the server says in them, and which of our errors that is."""

from typing import NamedTuple

import msgspec

from bergline.catalog.rest.bodies import ErrorAnswer
from bergline.catalog.rest.client_auth import Authorization
from bergline.catalog.rest.client_settings import RestSettings
from bergline.catalog.rest.client_transport import Answer
from bergline.catalog.rest.errors_table import error_of
from bergline.errors import AuthenticationError, BerglineError, StorageError, UnavailableError

PUT_OFF = 429
_FIRST_ERROR = 400
_LONGEST_MESSAGE = 2000


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

    def message(self, answer: Answer) -> str:
        """What the server says."""
        return self._said(answer)[0]

    def error(self, answer: Answer, about: About) -> BerglineError:
        """What the refusal of a call means."""
        message, kind = self._said(answer)
        if answer.status < _FIRST_ERROR:
            return _redirection(answer, about)
        if answer.status == PUT_OFF:
            return UnavailableError(f"{self._settings.uri} put off {about}: {message}")
        error = error_of(answer.status, kind, message, name=about.name, thing=about.kind)
        if isinstance(error, AuthenticationError):
            return AuthenticationError(message, hints=[self._authorization.advice()])
        return error

    def _said(self, answer: Answer) -> tuple[str, str | None]:
        """The server's message, and its type; a status with any other body will do."""
        try:
            found = msgspec.json.decode(answer.body, type=ErrorAnswer).error
            message, kind = found.message, found.type
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            message, kind = f"status {answer.status}", None
        return self._settings.hide(message)[:_LONGEST_MESSAGE], kind


def _redirection(answer: Answer, about: About) -> StorageError:
    """Nobody is followed elsewhere with a token; whoever wants to can connect there."""
    there = answer.headers.get("Location", "")[:_LONGEST_MESSAGE]
    return StorageError(
        f"expected an answer for {about}, found status {answer.status}",
        hints=[f"the server says that it is elsewhere, connect there: {there}"]
        if there.isprintable() and there
        else [],
    )
