"""Name conflicts: tables and views share one set of names."""

import contextlib

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.protocol.endpoints import LOAD_TABLE, LOAD_VIEW, Endpoint
from bergline.errors import AlreadyExistsError, BerglineError


def name_taken_error(session: RestSession, name: TableName, *, condition: str | None = None) -> AlreadyExistsError:
    """The error for a taken name; asks the server whether a table or a view has it."""
    kind = "view" if is_view(session, name) else "table"
    return AlreadyExistsError(f"{kind} `{name}` exists already", kind=kind, name=str(name), condition=condition)


def is_view(session: RestSession, name: TableName) -> bool:
    """Whether a view has the name, as far as the server can tell."""
    return session.calls.has(LOAD_VIEW) and _is_there(session, LOAD_VIEW, name, "view")


def is_table(session: RestSession, name: TableName) -> bool:
    """Whether a table has the name, as far as the server can tell."""
    return _is_there(session, LOAD_TABLE, name, "table")


def _is_there(session: RestSession, endpoint: Endpoint, name: TableName, kind: str) -> bool:
    with contextlib.suppress(BerglineError):
        session.calls.call(endpoint, CallSubject(kind, str(name)), names=session.table_path(name, kind))
        return True
    return False
