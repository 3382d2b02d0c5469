"""The mapping between our errors and the protocol's: one table for both directions."""

from collections.abc import Callable

import msgspec

from bergline.errors import (
    AlreadyExistsError,
    AuthenticationError,
    BerglineError,
    CommitUnknownError,
    ConflictError,
    FormatError,
    InvalidInputError,
    MetadataChangedError,
    NotEmptyError,
    NotFoundError,
    RefusedError,
    StorageError,
    UnavailableError,
    UnsupportedError,
)


class ErrorRow(msgspec.Struct, frozen=True):
    """An error class, its kind if the protocol distinguishes kinds, and its status and type."""

    error: type[BerglineError]
    status: int
    type: str
    kind: str | None = None


ERRORS: tuple[ErrorRow, ...] = (
    ErrorRow(NotFoundError, 404, "NoSuchNamespaceException", "namespace"),
    ErrorRow(NotFoundError, 404, "NoSuchTableException", "table"),
    ErrorRow(NotFoundError, 404, "NoSuchViewException", "view"),
    ErrorRow(NotFoundError, 404, "NoSuchWarehouseException", "warehouse"),
    ErrorRow(NotFoundError, 404, "NoSuchPlanIdException", "plan"),
    ErrorRow(NotFoundError, 404, "NoSuchPlanTaskException", "plan task"),
    ErrorRow(NotFoundError, 410, "EventsGoneException", "event position"),
    ErrorRow(NotFoundError, 404, "NotFoundException"),
    ErrorRow(AlreadyExistsError, 409, "AlreadyExistsException"),
    ErrorRow(NotEmptyError, 409, "NamespaceNotEmptyException"),
    ErrorRow(NotEmptyError, 400, "NamespaceNotEmptyException"),
    ErrorRow(ConflictError, 409, "CommitFailedException"),
    ErrorRow(AuthenticationError, 401, "NotAuthorizedException"),
    ErrorRow(AuthenticationError, 419, "AuthenticationTimeoutException"),
    ErrorRow(RefusedError, 403, "ForbiddenException"),
    ErrorRow(UnsupportedError, 406, "UnsupportedOperationException"),
    ErrorRow(FormatError, 422, "FormatException"),
    ErrorRow(InvalidInputError, 400, "IllegalArgumentException"),
    ErrorRow(InvalidInputError, 400, "BadRequestException"),
    ErrorRow(InvalidInputError, 422, "UnprocessableEntityException"),
    ErrorRow(InvalidInputError, 400, "ValidationException"),
    ErrorRow(CommitUnknownError, 500, "CommitStateUnknownException"),
    ErrorRow(UnavailableError, 503, "ServiceUnavailableException"),
    ErrorRow(MetadataChangedError, 500, "MetadataChangedException"),
    ErrorRow(StorageError, 500, "InternalServerError"),
)
"""The first matching row encodes an error; further rows are only for decoding variants of other servers."""

_BY_STATUS: dict[int, type[BerglineError]] = {
    401: AuthenticationError,
    403: RefusedError,
    404: NotFoundError,
    405: UnsupportedError,
    406: UnsupportedError,
    409: ConflictError,
    419: AuthenticationError,
    429: UnavailableError,
    501: UnsupportedError,
    503: UnavailableError,
}
_FIRST_SERVER_ERROR = 500


def row_of(error: BerglineError) -> ErrorRow:
    """The row that encodes an error."""
    kind = getattr(error, "kind", None)
    fitting = (row for row in ERRORS if isinstance(error, row.error) and row.kind in {None, kind})
    return next(fitting, ERRORS[-1])


def error_of(status: int, kind: str | None, message: str, *, name: str, thing: str = "name") -> BerglineError:
    """Decode the status and type of a response; `name` and `thing` say what the call referred to.

    The status alone is enough: proxies and other servers have types of their own.
    """
    for row in ERRORS:
        if (row.status, row.type) == (status, kind):
            return _make(row.error, message, row.kind or thing, name)
    default = StorageError if status >= _FIRST_SERVER_ERROR else InvalidInputError
    return _make(_BY_STATUS.get(status, default), message, thing, name)


def _make(error: type[BerglineError], message: str, kind: str, name: str) -> BerglineError:
    maker: Callable[[], BerglineError] | None = {
        NotFoundError: lambda: NotFoundError(message, kind=kind, name=name),
        AlreadyExistsError: lambda: AlreadyExistsError(message, kind=kind, name=name),
        CommitUnknownError: lambda: CommitUnknownError(message, table=name, metadata_location=None),
    }.get(error)
    return error(message) if maker is None else maker()
