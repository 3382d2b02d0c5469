"""Owners follow what happens to tables, views and namespaces, in the same transaction."""

from collections.abc import Sequence

import sqlalchemy as sa

from bergline.catalog.access.grant import Grantee, principal
from bergline.catalog.access.securable import namespace_of, table_of, view_of
from bergline.catalog.identifiers import TableName, parse_namespace
from bergline.catalog.rest.protocol import endpoints
from bergline.server.access.privileges import created_tables
from bergline.server.handlers.context import ServerContext
from bergline.server.http.request import ANONYMOUS, Request

_CREATING = {
    e.name for e in (endpoints.CREATE_TABLE, endpoints.CREATE_VIEW, endpoints.REGISTER_TABLE, endpoints.REGISTER_VIEW)
}
_RENAMING = {endpoints.RENAME_TABLE.name, endpoints.RENAME_VIEW.name}
_COMMITTING = {endpoints.COMMIT_TABLE.name, endpoints.COMMIT_TRANSACTION.name}
_DROPPING = {endpoints.DROP_TABLE.name, endpoints.DROP_VIEW.name, endpoints.UNREGISTER_TABLE.name}


def follow_owners(
    context: ServerContext, request: Request, connection: sa.Connection, changed: Sequence[tuple[TableName, str | None]]
) -> None:
    """Whoever makes something owns it; owner and grants go with a new name; in the bin a table keeps its owner."""
    store, endpoint = context.access.store, request.endpoint
    of = view_of if request.kind == "view" else table_of
    names = [name for name, _ in changed]
    owner = _owner(request)
    if endpoint.name in _CREATING:
        for name in names:
            store.note_owner(connection, of(name), owner)
    elif endpoint.name in _RENAMING:
        store.note_rename(connection, of(names[0]), of(names[1]))
    elif endpoint.name in _COMMITTING:
        for name in set(created_tables(request)) & set(names):
            store.note_owner(connection, table_of(name), owner)
    elif endpoint.name in _DROPPING:
        is_kept = endpoint is endpoints.DROP_TABLE and context.settings.drop_retention_s
        for name in names if not is_kept else ():
            store.note_owner(connection, of(name), None)
    elif endpoint is endpoints.UNDROP_TABLE and names != [request.table]:
        store.note_owner(connection, table_of(names[0]), store.owner_in(connection, table_of(request.table)))
    elif endpoint is endpoints.CREATE_NAMESPACE:
        store.note_owner(connection, namespace_of(parse_namespace(request.read().namespace)), owner)
    elif endpoint is endpoints.DROP_NAMESPACE:
        store.note_owner(connection, namespace_of(request.namespace), None)


def _owner(request: Request) -> Grantee | None:
    """Whoever asks; nobody in particular, where everybody is anonymous."""
    return None if request.principal == ANONYMOUS else principal(request.principal)
