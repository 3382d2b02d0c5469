"""What the server itself refuses, before or beside the catalog; and every error as an answer."""

from bergline.catalog.rest.protocol.bodies import ErrorModel, ErrorResponse
from bergline.catalog.rest.protocol.errors import row_of
from bergline.catalog.rest.protocol.messages import known_message
from bergline.errors import BerglineError
from bergline.server.http.response import Response, answer_json

_LONGEST = 8000
_HEADERS = {503: {"retry-after": "1"}, 401: {"www-authenticate": "Bearer"}}


class RequestRefused(Exception):  # noqa: N818  (an answer, which only looks like an error)
    """An answer that ends a request: a status of HTTP for which no error of ours stands."""

    def __init__(self, status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.answer = error_answer(status, kind, message, headers)


def error_answer(status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> Response:
    """The protocol's body for an error; a message repeats what the client sent, but not megabytes of it."""
    message = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"
    return answer_json(ErrorResponse(ErrorModel(message, kind, status)), status=status, headers=headers)


def answer_for(error: BerglineError, asked: str = "table") -> Response:
    """An error of ours in the protocol's words, its hints included; `asked` is whether it was about tables or views."""
    row = row_of(error)
    hints = "".join(f"; {hint}" for hint in error.hints)
    return error_answer(row.status, row.type, f"{known_message(error, asked)}{hints}", _HEADERS.get(row.status))
