"""Errors as responses, and what the server itself refuses."""

import msgspec

from bergline.catalog.rest.protocol.bodies import ErrorModel, ErrorResponse
from bergline.catalog.rest.protocol.errors import row_of
from bergline.catalog.rest.protocol.messages import known_message
from bergline.errors import BerglineError
from bergline.governance.grants.refusals import HiddenError
from bergline.server.http.response import Response, json_response

_LONGEST = 8000
_HEADERS = {503: {"retry-after": "1"}, 401: {"www-authenticate": "Bearer"}}


class RequestRefused(Exception):  # noqa: N818  (carries a response)
    """Ends a request with an HTTP status that none of our errors stands for."""

    def __init__(self, status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.response = error_response(status, kind, message, headers)


def error_response(status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> Response:
    """The protocol's body for an error; a message repeats what the client sent, but not megabytes of it."""
    message = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"
    return json_response(ErrorResponse(ErrorModel(message, kind, status)), status=status, headers=headers)


def response_for(error: BerglineError, kind: str = "table") -> Response:
    """The protocol's response for an error, with its hints; `kind` is what the request was about: table or view."""
    row = row_of(error)
    hints = "".join(f"; {hint}" for hint in error.hints)
    response = error_response(row.status, row.type, f"{known_message(error, kind)}{hints}", _HEADERS.get(row.status))
    return msgspec.structs.replace(response, is_hidden=True) if _is_hidden(error) else response


def _is_hidden(error: BaseException | None) -> bool:
    """Whether an error, or one that it was made of, hides something."""
    looked_at: set[int] = set()
    while error is not None and id(error) not in looked_at:  # an error may be raised from itself
        if isinstance(error, HiddenError):
            return True
        looked_at.add(id(error))
        error = error.__cause__
    return False
