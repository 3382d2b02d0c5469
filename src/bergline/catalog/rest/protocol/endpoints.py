"""The supported endpoints of the protocol, for the server's routes, the client's calls and the documentation."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from bergline.catalog.rest.protocol.bodies import (
    CommitTableRequest,
    CommitTableResponse,
    CommitTransactionRequest,
    CommitViewRequest,
    ConfigResponse,
    CreateNamespaceRequest,
    CreateTableRequest,
    CreateViewRequest,
    FetchScanTasksResult,
    FetchTasksRequest,
    GetNamespaceResponse,
    ListNamespacesResponse,
    ListTablesResponse,
    LoadCredentialsResponse,
    LoadTableResult,
    LoadViewResult,
    MetricsRequest,
    OAuthTokenResponse,
    PlanRequest,
    PlanTableScanResult,
    RegisterTableRequest,
    RegisterViewRequest,
    RenameRequest,
    UpdateNamespacePropertiesResponse,
    UpdateNamespaceRequest,
)
from bergline.catalog.rest.protocol.branch_tables import BRANCH_TABLES
from bergline.catalog.rest.protocol.ref_rules import ListRefRulesResponse
from bergline.catalog.rest.protocol.s3_signing import RemoteSignRequest, RemoteSignResponse
from bergline.catalog.rest.protocol.table_turns import TakeTurnRequest, TakeTurnResponse
from bergline.catalog.rest.protocol.trash import (
    ListDroppedTablesResponse,
    ListDroppedViewsResponse,
    UndropRequest,
)
from bergline.format.metadata.updates_json import WireUpdate
from bergline.format.view.updates import WireViewUpdate

Method = Literal["GET", "HEAD", "POST", "DELETE"]
_PREFIX = "/{prefix}"
OWN = "/bergline/v1/{prefix}"
"""Where paths of bergline's own begin."""
_NAMESPACES = "/v1/{prefix}/namespaces"
_NAMESPACE = f"{_NAMESPACES}/{{namespace}}"
_TABLES = f"{_NAMESPACE}/tables"
_TABLE = f"{_TABLES}/{{table}}"
_VIEWS = f"{_NAMESPACE}/views"
_VIEW = f"{_VIEWS}/{{view}}"


class Endpoint(msgspec.Struct, frozen=True):
    """One operation: its path, the types of request and response, and the status of a success."""

    name: str
    method: Method
    path: str
    body: Any = None
    response: Any = None
    status: int = 200
    takes_key: bool = False
    """Whether it takes an `Idempotency-Key`."""
    queries: tuple[str, ...] = ()
    """The names of its query parameters."""
    media: str = "application/json"
    """The type of its response."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def url(self, prefix: str = "", **names: str) -> str:
        """The path with names filled in, which are encoded already."""
        path = self.path.replace(_PREFIX, f"/{prefix}" if prefix else "")
        return path.format(**names)


def endpoints_in(module: Mapping[str, Any]) -> tuple[Endpoint, ...]:
    """The endpoints that a module defines, in its order."""
    return tuple(value for value in list(module.values()) if isinstance(value, Endpoint))


PAGES = ("pageToken", "pageSize")
"""The query parameters of lists that come in pages."""

GET_CONFIG = Endpoint("get_config", "GET", "/v1/config", response=ConfigResponse, queries=("warehouse",))
GET_TOKEN = Endpoint("get_token", "POST", "/v1/oauth/tokens", response=OAuthTokenResponse)
LIST_NAMESPACES = Endpoint(
    "list_namespaces", "GET", _NAMESPACES, response=ListNamespacesResponse, queries=("parent", *PAGES)
)
CREATE_NAMESPACE = Endpoint(
    "create_namespace", "POST", _NAMESPACES, CreateNamespaceRequest, GetNamespaceResponse, takes_key=True
)
LOAD_NAMESPACE = Endpoint("load_namespace", "GET", _NAMESPACE, response=GetNamespaceResponse)
NAMESPACE_EXISTS = Endpoint("namespace_exists", "HEAD", _NAMESPACE, status=204)
DROP_NAMESPACE = Endpoint("drop_namespace", "DELETE", _NAMESPACE, status=204, takes_key=True)
UPDATE_NAMESPACE = Endpoint(
    "update_namespace",
    "POST",
    f"{_NAMESPACE}/properties",
    UpdateNamespaceRequest,
    UpdateNamespacePropertiesResponse,
    takes_key=True,
)
LIST_TABLES = Endpoint("list_tables", "GET", _TABLES, response=ListTablesResponse, queries=(*PAGES, BRANCH_TABLES))
CREATE_TABLE = Endpoint("create_table", "POST", _TABLES, CreateTableRequest, LoadTableResult, takes_key=True)
LOAD_TABLE = Endpoint("load_table", "GET", _TABLE, response=LoadTableResult, queries=("snapshots",))
TABLE_EXISTS = Endpoint("table_exists", "HEAD", _TABLE, status=204)
COMMIT_TABLE = Endpoint(
    "commit_table", "POST", _TABLE, CommitTableRequest[WireUpdate], CommitTableResponse, takes_key=True
)
DROP_TABLE = Endpoint("drop_table", "DELETE", _TABLE, status=204, takes_key=True, queries=("purgeRequested",))
REGISTER_TABLE = Endpoint(
    "register_table", "POST", f"{_NAMESPACE}/register", RegisterTableRequest, LoadTableResult, takes_key=True
)
UNREGISTER_TABLE = Endpoint(
    "unregister_table", "POST", f"{_TABLE}/unregister", response=CommitTableResponse, takes_key=True
)
RENAME_TABLE = Endpoint("rename_table", "POST", "/v1/{prefix}/tables/rename", RenameRequest, status=204, takes_key=True)
LOAD_CREDENTIALS = Endpoint("load_credentials", "GET", f"{_TABLE}/credentials", response=LoadCredentialsResponse)
REPORT_METRICS = Endpoint("report_metrics", "POST", f"{_TABLE}/metrics", MetricsRequest, status=204)
PLAN_TABLE_SCAN = Endpoint("plan_table_scan", "POST", f"{_TABLE}/plan", PlanRequest, PlanTableScanResult)
FETCH_PLANNING_RESULT = Endpoint(
    "fetch_planning_result", "GET", f"{_TABLE}/plan/{{plan-id}}", response=PlanTableScanResult
)
CANCEL_PLANNING = Endpoint("cancel_planning", "DELETE", f"{_TABLE}/plan/{{plan-id}}", status=204)
FETCH_SCAN_TASKS = Endpoint("fetch_scan_tasks", "POST", f"{_TABLE}/tasks", FetchTasksRequest, FetchScanTasksResult)
COMMIT_TRANSACTION = Endpoint(
    "commit_transaction",
    "POST",
    "/v1/{prefix}/transactions/commit",
    CommitTransactionRequest[WireUpdate],
    status=204,
    takes_key=True,
)
LIST_VIEWS = Endpoint("list_views", "GET", _VIEWS, response=ListTablesResponse, queries=PAGES)
CREATE_VIEW = Endpoint("create_view", "POST", _VIEWS, CreateViewRequest, LoadViewResult)
LOAD_VIEW = Endpoint("load_view", "GET", _VIEW, response=LoadViewResult)
VIEW_EXISTS = Endpoint("view_exists", "HEAD", _VIEW, status=204)
COMMIT_VIEW = Endpoint("commit_view", "POST", _VIEW, CommitViewRequest[WireViewUpdate], LoadViewResult, takes_key=True)
DROP_VIEW = Endpoint("drop_view", "DELETE", _VIEW, status=204, takes_key=True)
REGISTER_VIEW = Endpoint(
    "register_view", "POST", f"{_NAMESPACE}/register-view", RegisterViewRequest, LoadViewResult, takes_key=True
)
RENAME_VIEW = Endpoint("rename_view", "POST", "/v1/{prefix}/views/rename", RenameRequest, status=204, takes_key=True)
LIST_DROPPED_TABLES = Endpoint(
    "list_dropped_tables", "GET", f"{OWN}/dropped-tables", response=ListDroppedTablesResponse, queries=PAGES
)
UNDROP_TABLE = Endpoint(
    "undrop_table",
    "POST",
    f"{OWN}/namespaces/{{namespace}}/tables/{{table}}/undrop",
    UndropRequest,
    LoadTableResult,
    takes_key=True,
)
LIST_DROPPED_VIEWS = Endpoint(
    "list_dropped_views", "GET", f"{OWN}/dropped-views", response=ListDroppedViewsResponse, queries=PAGES
)
UNDROP_VIEW = Endpoint(
    "undrop_view",
    "POST",
    f"{OWN}/namespaces/{{namespace}}/views/{{view}}/undrop",
    UndropRequest,
    LoadViewResult,
    takes_key=True,
)

SIGN_REQUEST = Endpoint(
    "sign_request", "POST", f"{_TABLE}/sign", RemoteSignRequest, RemoteSignResponse, queries=("staged",)
)
_TURN = f"{OWN}/namespaces/{{namespace}}/tables/{{table}}/turn"
TAKE_TURN = Endpoint("take_turn", "POST", _TURN, TakeTurnRequest, TakeTurnResponse)
GIVE_BACK_TURN = Endpoint("give_back_turn", "DELETE", _TURN, status=204, queries=("holder",))
RULES, NAMESPACE_RULES = f"{OWN}/rules", f"{OWN}/namespaces/{{namespace}}/rules"
"""The paths of rules about refs."""
LIST_REF_RULES = Endpoint("list_ref_rules", "GET", RULES, response=ListRefRulesResponse)
LIST_NAMESPACE_REF_RULES = Endpoint("list_namespace_ref_rules", "GET", NAMESPACE_RULES, response=ListRefRulesResponse)

CATALOG_ENDPOINTS = endpoints_in(vars())
"""The endpoints for tables, views and namespaces; `governance/endpoints.py` has those of governance too."""

TRASH_ENDPOINTS = (LIST_DROPPED_TABLES, UNDROP_TABLE, LIST_DROPPED_VIEWS, UNDROP_VIEW)
"""Endpoints of bergline's own, which a server lists if it keeps dropped tables and views."""

ALWAYS_THERE = (GET_CONFIG, GET_TOKEN)
"""Endpoints that servers do not list."""

DEFAULT_ENDPOINTS = frozenset(
    map(
        str,
        (
            LIST_NAMESPACES,
            CREATE_NAMESPACE,
            LOAD_NAMESPACE,
            DROP_NAMESPACE,
            UPDATE_NAMESPACE,
            LIST_TABLES,
            CREATE_TABLE,
            LOAD_TABLE,
            COMMIT_TABLE,
            DROP_TABLE,
            REGISTER_TABLE,
            REPORT_METRICS,
            RENAME_TABLE,
            COMMIT_TRANSACTION,
        ),
    )
)
"""Endpoints of a server without a list; `view-endpoints-supported` says whether it has views too."""
VIEW_ENDPOINTS = frozenset(map(str, (LIST_VIEWS, CREATE_VIEW, LOAD_VIEW, COMMIT_VIEW, DROP_VIEW, RENAME_VIEW)))
