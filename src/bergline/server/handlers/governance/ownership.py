"""Owners follow what happens to tables, views and namespaces, in the same transaction."""

from collections.abc import Sequence

from bergline.catalog.identifiers import TableName, parse_namespace
from bergline.catalog.rest.protocol import endpoints
from bergline.catalog.sql.database import Connection
from bergline.errors import RefusedError
from bergline.governance.grants.grant import Grantee, principal
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import Securable, SecurableKind, namespace_of, table_of, view_of
from bergline.server.access.privileges import created_tables
from bergline.server.context.context import ServerContext
from bergline.server.http.request import ANONYMOUS, Request

_CREATING = {
    e.name for e in (endpoints.CREATE_TABLE, endpoints.CREATE_VIEW, endpoints.REGISTER_TABLE, endpoints.REGISTER_VIEW)
}
_RENAMING = {endpoints.RENAME_TABLE.name, endpoints.RENAME_VIEW.name}
_COMMITTING = {endpoints.COMMIT_TABLE.name, endpoints.COMMIT_TRANSACTION.name}
_UNDROPPING = {endpoints.UNDROP_TABLE.name, endpoints.UNDROP_VIEW.name}
_DROPPING = {endpoints.DROP_TABLE.name, endpoints.DROP_VIEW.name, endpoints.UNREGISTER_TABLE.name}


def follow_owners(
    context: ServerContext, request: Request, connection: Connection, changed: Sequence[tuple[TableName, str | None]]
) -> None:
    """Whoever makes something owns it; owner and grants go with a new name; in the trash a table keeps its owner.

    RefusedError for a name under which something is in the trash that the caller may not bring back.
    """
    store, endpoint = context.access.store, request.endpoint
    of = view_of if request.kind == "view" else table_of
    names = [name for name, _ in changed]
    owner = _owner(request)
    if endpoint.name in _CREATING:
        for name in names:
            _check_trash(context, request, connection, of(name))
            store.note_owner(connection, of(name), owner)
    elif endpoint.name in _RENAMING:
        _check_trash(context, request, connection, of(names[1]))
        store.note_rename(connection, of(names[0]), of(names[1]))
    elif endpoint.name in _COMMITTING:
        for name in set(created_tables(request)) & set(names):
            _check_trash(context, request, connection, table_of(name))
            store.note_owner(connection, table_of(name), owner)
    elif endpoint.name in _DROPPING:
        is_kept = endpoint is not endpoints.UNREGISTER_TABLE and context.settings.drop_retention_s
        for name in names if not is_kept else ():
            store.note_owner(connection, of(name), None)
    elif endpoint.name in _UNDROPPING and names != [request.table]:
        _check_trash(context, request, connection, of(names[0]))
        store.note_owner(connection, of(names[0]), store.owner_in(connection, of(request.table)))
    elif endpoint is endpoints.CREATE_NAMESPACE:
        made = namespace_of(parse_namespace(request.read().namespace))
        _check_trash(context, request, connection, made)
        store.note_owner(connection, made, owner)
    elif endpoint is endpoints.DROP_NAMESPACE:
        store.note_owner(connection, namespace_of(request.namespace), None)


def _check_trash(context: ServerContext, request: Request, connection: Connection, made: Securable) -> None:
    """Whoever owns a name owns what is in the trash under it, so nobody takes the name of what others dropped."""
    access, place = context.access, (connection, made.namespace, made.name or None)
    if not access.is_active:
        return
    found: list[Securable] = []
    if made.kind is not SecurableKind.VIEW:
        found += map(table_of, context.store.table_trash.names_in(*place))
    if made.kind is not SecurableKind.TABLE:
        found += map(view_of, context.store.view_trash.names_in(*place))
    who = request.principal, request.groups
    if not all(access.may(*who, privilege, one) for one in found for privilege in (Privilege.DROP, Privilege.READ)):
        raise RefusedError(
            f"cannot make {made.described}: the trash has something under that name that `{request.principal}` may not "
            "bring back",
            hints=["take another name, or let an administrator of the catalog make it"],
        )


def _owner(request: Request) -> Grantee | None:
    """Whoever asks; nobody in particular, where everybody is anonymous."""
    return None if request.principal == ANONYMOUS else principal(request.principal)
