"""What each endpoint needs: one row for every endpoint of the protocol.

Commits need what they do to the table, which `granted_changes` finds from the metadata before and after them.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec
from starlette.datastructures import QueryParams

from bergline.catalog.identifiers import Namespace, TableName, parse_namespace, parse_table_name
from bergline.catalog.pointer.named_pointers import check_namespace
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.rest.protocol import endpoints
from bergline.catalog.rest.protocol.bodies import (
    CommitTableRequest,
    CommitTransactionRequest,
    CreateNamespaceRequest,
    CreateTableRequest,
    CreateViewRequest,
    RegisterTableRequest,
    RegisterViewRequest,
    RenameRequest,
)
from bergline.catalog.rest.protocol.names import split_levels
from bergline.catalog.rest.protocol.trash import UndropRequest
from bergline.errors import RefusedError
from bergline.format.metadata.requirements import AssertCreate
from bergline.format.metadata.updates_json import WireUpdate
from bergline.governance.events.protocol import LIST_EVENTS
from bergline.governance.grants import protocol as grants_protocol
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import (
    ALL_REFS,
    CATALOG,
    Securable,
    SecurableKind,
    namespace_of,
    table_of,
    view_of,
)
from bergline.governance.lake_branches import protocol as lake_branches_protocol
from bergline.governance.pull_requests import protocol as pull_requests_protocol
from bergline.governance.reviews import protocol as reviews_protocol
from bergline.governance.rules import protocol as rules_protocol
from bergline.governance.webhooks import protocol as webhooks_protocol
from bergline.server.access.access import Access
from bergline.server.http.request import Request


class NeededPrivilege(msgspec.Struct, frozen=True):
    """A privilege that a request needs; None if it is enough to see the thing."""

    privilege: Privilege | None
    securable: Securable
    seen: Securable | None = None
    """What is there already, for something that is to be made."""


class EndpointAccess(msgspec.Struct, frozen=True):
    """What an endpoint needs, and how that is found in a request."""

    described: str
    """For people: `read` on the table."""
    needs: Callable[[Request], Iterable[NeededPrivilege]]
    at_once: Privilege | None = None
    """The privilege on the table in the path, where nothing else is needed."""


def on_table(privilege: Privilege) -> EndpointAccess:
    """A privilege on the table in the path."""
    return EndpointAccess(
        f"`{privilege}` on the table", lambda r: (NeededPrivilege(privilege, table_of(r.table)),), privilege
    )


def on_view(privilege: Privilege) -> EndpointAccess:
    """A privilege on the view in the path."""
    return EndpointAccess(f"`{privilege}` on the view", lambda r: (NeededPrivilege(privilege, view_of(r.table)),))


def on_namespace(privilege: Privilege) -> EndpointAccess:
    """A privilege on the namespace in the path."""
    return EndpointAccess(
        f"`{privilege}` on the namespace", lambda r: (NeededPrivilege(privilege, namespace_of(r.namespace)),)
    )


def on_catalog(privilege: Privilege) -> EndpointAccess:
    """A privilege on the catalog."""
    return EndpointAccess(f"`{privilege}` on the catalog", lambda _: (NeededPrivilege(privilege, CATALOG),))


OPEN: Final = EndpointAccess("nothing", lambda _: ())
"""For everybody who comes in; the handler shows what the caller may see, or decides itself."""

SEE_NAMESPACE: Final = EndpointAccess(
    "to see the namespace", lambda r: (NeededPrivilege(None, namespace_of(r.namespace)),)
)


def check_request(access: Access, catalog: PointerCatalog, request: Request) -> None:
    """RefusedError without a privilege that a request needs; NotFoundError for what may not be seen or is not there."""
    if not access.is_active:
        return
    for need in ENDPOINT_ACCESS[request.endpoint.name].needs(request):
        try:
            access.check(request.principal, request.groups, need.privilege, need.securable, need.seen)
        except RefusedError:
            _check_there(catalog, need.seen or need.securable)
            raise


def is_allowed_at_once(access: Access, request: Request) -> bool:
    """Whether a request for a table is certainly allowed, without a look at the database."""
    privilege = ENDPOINT_ACCESS[request.endpoint.name].at_once
    return privilege is not None and access.allows_at_once(
        request.principal, request.groups, privilege, table_of(request.table)
    )


def created_tables(request: Request) -> list[TableName]:
    """The tables that a commit creates after they were staged; those of the console have no body, and create none."""
    return [name for name, creates in _committed(request) if creates] if request.body else []


def _check_there(catalog: PointerCatalog, securable: Securable) -> None:
    """NotFoundError for something that does not exist."""
    match securable.kind:
        case SecurableKind.TABLE:
            catalog.pointer(securable.table_name)
        case SecurableKind.VIEW:
            catalog.view_pointer(securable.table_name)
        case SecurableKind.NAMESPACE:
            check_namespace(catalog.store, securable.namespace)


def _create(securable: Securable) -> NeededPrivilege:
    return NeededPrivilege(Privilege.CREATE, securable, securable.parent)


def _parent_namespace(request: Request) -> Iterable[NeededPrivilege]:
    text = request.query.get("parent")
    levels: Namespace = parse_namespace(split_levels(text, request.separator)) if text else ()
    return (NeededPrivilege(None, namespace_of(levels)),) if levels else ()


def _new_namespace(request: Request) -> Iterable[NeededPrivilege]:
    body: CreateNamespaceRequest = request.read()
    return (_create(namespace_of(parse_namespace(body.namespace))),)


def _new_table(request: Request) -> Iterable[NeededPrivilege]:
    body: CreateTableRequest = request.read()
    return (_create(table_of(TableName(request.namespace, body.name))),)


def _new_view(request: Request) -> Iterable[NeededPrivilege]:
    body: CreateViewRequest | RegisterViewRequest = request.read()
    return (_create(view_of(TableName(request.namespace, body.name))),)


def _registered_table(request: Request) -> Iterator[NeededPrivilege]:
    body: RegisterTableRequest = request.read()
    new = table_of(TableName(request.namespace, body.name))
    yield _create(new)
    if body.overwrite:
        yield NeededPrivilege(Privilege.DROP, new, new.parent)


def _renamed(of: Callable[[TableName], Securable]) -> Callable[[Request], Iterator[NeededPrivilege]]:
    def find(request: Request) -> Iterator[NeededPrivilege]:
        body: RenameRequest = request.read()
        source = of(parse_table_name(body.source))
        yield NeededPrivilege(Privilege.DROP, source)
        yield NeededPrivilege(Privilege.READ, source)  # which the caller may have wherever it goes
        yield _create(of(parse_table_name(body.destination)))

    return find


def _undropped(of: Callable[[TableName], Securable]) -> Callable[[Request], Iterator[NeededPrivilege]]:
    def find(request: Request) -> Iterator[NeededPrivilege]:
        body: UndropRequest = request.read()
        dropped = of(request.table)
        yield NeededPrivilege(Privilege.DROP, dropped, dropped.parent)
        yield NeededPrivilege(Privilege.READ, dropped, dropped.parent)
        yield _create(dropped if body.destination is None else of(parse_table_name(body.destination)))

    return find


def _signed(request: Request) -> Iterable[NeededPrivilege]:
    """What is signed for a table that was staged is for those who may create it."""
    of = table_of(request.table)
    return (_create(of) if "staged" in request.query else NeededPrivilege(Privilege.READ, of),)


def _told_events(request: Request) -> Iterator[NeededPrivilege]:
    """Events of tables are for those who may read them, and all others for administrators."""
    query = request.query
    subjects = list(query.getlist("subject")) if isinstance(query, QueryParams) else []
    names = [table_of_subject(subject) for subject in subjects]
    if not names or None in names:
        yield NeededPrivilege(Privilege.ADMINISTER, CATALOG)
        return
    for name in names:
        if name is not None:
            yield NeededPrivilege(Privilege.READ, table_of(name))


def table_of_subject(subject: str) -> TableName | None:
    """The table that a subject names alone; None for all others, and for patterns."""
    kind, _, rest = subject.partition("/")
    namespace, slash, name = rest.rpartition("/")
    if kind != "table" or not slash or "*" in subject:
        return None
    return parse_table_name(TableName(tuple(namespace.split(".")), name))


def _reviewed(request: Request) -> Iterable[NeededPrivilege]:
    of = table_of(request.table)
    return NeededPrivilege(Privilege.READ, of), NeededPrivilege(Privilege.PUBLISH, of.at(ALL_REFS))


def _unregistered(request: Request) -> Iterable[NeededPrivilege]:
    of = table_of(request.table)
    return NeededPrivilege(Privilege.DROP, of), NeededPrivilege(Privilege.READ, of)


def _committed_tables(request: Request) -> Iterator[NeededPrivilege]:
    for name, creates in _committed(request):
        yield _create(table_of(name)) if creates else NeededPrivilege(Privilege.READ, table_of(name))


def _committed(request: Request) -> Iterator[tuple[TableName, bool]]:
    """The tables of a commit, each with whether it is created; read as the handler reads them."""
    if request.endpoint is endpoints.COMMIT_TABLE:
        body: CommitTableRequest[WireUpdate] = request.read()
        yield request.table, _creates(body)
        return
    changes: CommitTransactionRequest[WireUpdate] = request.read()
    for change in changes.table_changes:
        if change.identifier is not None:
            yield parse_table_name(change.identifier), _creates(change)


def _creates(change: CommitTableRequest[WireUpdate]) -> bool:
    return any(isinstance(requirement, AssertCreate) for requirement in change.requirements)


_LIST, _READ, _WRITE, _DROP = Privilege.LIST, Privilege.READ, Privilege.WRITE, Privilege.DROP
_COMMIT = EndpointAccess(
    "`read` on the table, and what the commit does to it: `write`, `publish` or `manage-refs` on its refs; "
    "`create` for a table that was staged",
    _committed_tables,
)
_ADMINISTER = on_catalog(Privilege.ADMINISTER)
_REVIEW = EndpointAccess("`read` on the table, and `publish` on all its refs", _reviewed)

ENDPOINT_ACCESS: Final[dict[str, EndpointAccess]] = {
    endpoints.GET_CONFIG.name: OPEN,
    endpoints.GET_TOKEN.name: OPEN,
    endpoints.LIST_NAMESPACES.name: EndpointAccess("to see the parent", _parent_namespace),
    endpoints.CREATE_NAMESPACE.name: EndpointAccess("`create` on the parent", _new_namespace),
    endpoints.LOAD_NAMESPACE.name: SEE_NAMESPACE,
    endpoints.NAMESPACE_EXISTS.name: SEE_NAMESPACE,
    endpoints.DROP_NAMESPACE.name: on_namespace(_DROP),
    endpoints.UPDATE_NAMESPACE.name: on_namespace(_WRITE),
    endpoints.LIST_TABLES.name: SEE_NAMESPACE,
    endpoints.CREATE_TABLE.name: EndpointAccess("`create` on the namespace", _new_table),
    endpoints.LOAD_TABLE.name: on_table(_READ),
    endpoints.TABLE_EXISTS.name: on_table(_LIST),
    endpoints.COMMIT_TABLE.name: _COMMIT,
    endpoints.DROP_TABLE.name: on_table(_DROP),
    endpoints.REGISTER_TABLE.name: EndpointAccess(
        "`create` on the namespace; `drop` on the table too to register over it", _registered_table
    ),
    endpoints.UNREGISTER_TABLE.name: EndpointAccess("`drop` and `read` on the table", _unregistered),
    endpoints.RENAME_TABLE.name: EndpointAccess(
        "`drop` and `read` on the table, `create` on the namespace it goes to", _renamed(table_of)
    ),
    endpoints.LOAD_CREDENTIALS.name: on_table(_READ),
    endpoints.REPORT_METRICS.name: on_table(_READ),
    endpoints.PLAN_TABLE_SCAN.name: on_table(_READ),
    endpoints.FETCH_PLANNING_RESULT.name: on_table(_READ),
    endpoints.CANCEL_PLANNING.name: on_table(_READ),
    endpoints.FETCH_SCAN_TASKS.name: on_table(_READ),
    endpoints.COMMIT_TRANSACTION.name: _COMMIT,
    endpoints.LIST_VIEWS.name: SEE_NAMESPACE,
    endpoints.CREATE_VIEW.name: EndpointAccess("`create` on the namespace", _new_view),
    endpoints.LOAD_VIEW.name: on_view(_READ),
    endpoints.VIEW_EXISTS.name: on_view(_LIST),
    endpoints.COMMIT_VIEW.name: on_view(_WRITE),
    endpoints.DROP_VIEW.name: on_view(_DROP),
    endpoints.REGISTER_VIEW.name: EndpointAccess("`create` on the namespace", _new_view),
    endpoints.RENAME_VIEW.name: EndpointAccess(
        "`drop` and `read` on the view, `create` on the namespace it goes to", _renamed(view_of)
    ),
    endpoints.LIST_DROPPED_TABLES.name: OPEN,
    endpoints.UNDROP_TABLE.name: EndpointAccess(
        "`drop` and `read` on the table, `create` on the namespace it comes back to", _undropped(table_of)
    ),
    endpoints.LIST_DROPPED_VIEWS.name: OPEN,
    endpoints.UNDROP_VIEW.name: EndpointAccess(
        "`drop` and `read` on the view, `create` on the namespace it comes back to", _undropped(view_of)
    ),
    endpoints.SIGN_REQUEST.name: EndpointAccess(
        "`read` on the table, and `write` for what changes files; `create` for a table that was staged", _signed
    ),
    endpoints.TAKE_TURN.name: on_table(_WRITE),
    endpoints.GIVE_BACK_TURN.name: on_table(_WRITE),
    # events
    LIST_EVENTS.name: EndpointAccess(
        "`read` on the tables that it names as subjects, else `administer` on the catalog", _told_events
    ),
    webhooks_protocol.LIST_WEBHOOKS.name: _ADMINISTER,
    webhooks_protocol.CREATE_WEBHOOK.name: _ADMINISTER,
    webhooks_protocol.DELETE_WEBHOOK.name: _ADMINISTER,
    webhooks_protocol.PAUSE_WEBHOOK.name: _ADMINISTER,
    webhooks_protocol.RESUME_WEBHOOK.name: _ADMINISTER,
    webhooks_protocol.REPLAY_WEBHOOK.name: _ADMINISTER,
    webhooks_protocol.TEST_WEBHOOK.name: _ADMINISTER,
    webhooks_protocol.LIST_DELIVERIES.name: _ADMINISTER,
    # rules and reviews
    endpoints.LIST_REF_RULES.name: OPEN,
    rules_protocol.SET_REF_RULE.name: _ADMINISTER,
    rules_protocol.REMOVE_REF_RULE.name: _ADMINISTER,
    endpoints.LIST_NAMESPACE_REF_RULES.name: SEE_NAMESPACE,
    rules_protocol.SET_NAMESPACE_REF_RULE.name: on_namespace(Privilege.ADMINISTER),
    rules_protocol.REMOVE_NAMESPACE_REF_RULE.name: on_namespace(Privilege.ADMINISTER),
    reviews_protocol.LIST_SNAPSHOT_CHECKS.name: on_table(_READ),
    reviews_protocol.REPORT_SNAPSHOT_CHECK.name: _REVIEW,
    reviews_protocol.LIST_SNAPSHOT_APPROVALS.name: on_table(_READ),
    reviews_protocol.APPROVE_SNAPSHOT.name: _REVIEW,
    reviews_protocol.WITHDRAW_APPROVAL.name: on_table(_READ),
    # branches of the lake: by their owners, in `governance/lake_branches/granted.py`
    lake_branches_protocol.LIST_LAKE_BRANCHES.name: OPEN,
    lake_branches_protocol.CREATE_LAKE_BRANCH.name: OPEN,
    lake_branches_protocol.LOAD_LAKE_BRANCH.name: OPEN,
    lake_branches_protocol.DROP_LAKE_BRANCH.name: OPEN,
    # pull requests: by their tables, in `governance/pull_requests/granted.py`
    pull_requests_protocol.LIST_PULL_REQUESTS.name: OPEN,
    pull_requests_protocol.OPEN_PULL_REQUEST.name: OPEN,
    pull_requests_protocol.LOAD_PULL_REQUEST.name: OPEN,
    pull_requests_protocol.EDIT_PULL_REQUEST.name: OPEN,
    pull_requests_protocol.COMMENT_PULL_REQUEST.name: OPEN,
    pull_requests_protocol.APPROVE_PULL_REQUEST.name: OPEN,
    pull_requests_protocol.WITHDRAW_PULL_REQUEST.name: OPEN,
    pull_requests_protocol.CHECK_PULL_REQUEST.name: OPEN,
    pull_requests_protocol.PUBLISH_PULL_REQUEST.name: OPEN,
    pull_requests_protocol.CLOSE_PULL_REQUEST.name: OPEN,
    pull_requests_protocol.REOPEN_PULL_REQUEST.name: OPEN,
    # grants
    grants_protocol.LIST_GRANTS.name: OPEN,
    grants_protocol.CREATE_GRANTS.name: OPEN,
    grants_protocol.REVOKE_GRANT.name: OPEN,
    grants_protocol.LIST_ROLES.name: on_catalog(Privilege.ADMINISTER),
    grants_protocol.CREATE_ROLE.name: on_catalog(Privilege.ADMINISTER),
    grants_protocol.CHANGE_ROLE.name: on_catalog(Privilege.ADMINISTER),
    grants_protocol.DROP_ROLE.name: on_catalog(Privilege.ADMINISTER),
    grants_protocol.LIST_OWNERS.name: OPEN,
    grants_protocol.SET_OWNER.name: OPEN,
}
"""By name of the endpoint. A new endpoint gets its row here: a test fails for one that has none."""
