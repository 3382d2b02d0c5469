"""Names that are taken: by a table or by a view, which share them."""

import contextlib

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.errors import About
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.protocol.endpoints import LOAD_TABLE, LOAD_VIEW, Endpoint
from bergline.errors import AlreadyExistsError, BerglineError


def taken(session: RestSession, name: TableName) -> AlreadyExistsError:
    """That a table or a view has the name; the server is asked which."""
    kind = "view" if is_view(session, name) else "table"
    return AlreadyExistsError(f"{kind} `{name}` exists already", kind=kind, name=str(name))


def is_view(session: RestSession, name: TableName) -> bool:
    """Whether a view has the name, as far as the server tells."""
    return session.calls.has(LOAD_VIEW) and _is_there(session, LOAD_VIEW, name, "view")


def is_table(session: RestSession, name: TableName) -> bool:
    """Whether a table has the name, as far as the server tells."""
    return _is_there(session, LOAD_TABLE, name, "table")


def _is_there(session: RestSession, endpoint: Endpoint, name: TableName, kind: str) -> bool:
    with contextlib.suppress(BerglineError):
        session.calls.call(endpoint, About(kind, str(name)), names=session.table_path(name, kind))
        return True
    return False
