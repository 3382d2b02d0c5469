"""The list of endpoints."""

import re

from bergline.catalog.rest.protocol.endpoints import (
    COMMIT_TRANSACTION,
    CREATE_VIEW,
    DEFAULT_ENDPOINTS,
    LIST_NAMESPACES,
    LOAD_TABLE,
    VIEW_ENDPOINTS,
)
from bergline.governance.endpoints import ENDPOINTS


def test_names_and_addresses_are_unique() -> None:
    assert len({e.name for e in ENDPOINTS}) == len(ENDPOINTS)
    assert len({str(e) for e in ENDPOINTS}) == len(ENDPOINTS)


def test_address_is_as_the_protocol_lists_it() -> None:
    assert str(LOAD_TABLE) == "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}"
    assert {str(e) for e in ENDPOINTS} >= VIEW_ENDPOINTS
    assert {str(e) for e in ENDPOINTS} >= DEFAULT_ENDPOINTS


def test_address_of_a_call_has_the_prefix_where_there_is_one() -> None:
    assert LOAD_TABLE.url(namespace="a%1Fb", table="t") == "/v1/namespaces/a%1Fb/tables/t"
    assert LOAD_TABLE.url("ws/1", namespace="a", table="t") == "/v1/ws/1/namespaces/a/tables/t"
    assert LIST_NAMESPACES.url() == "/v1/namespaces"


def test_changes_take_a_key_and_nothing_else_does() -> None:
    reading = {"GET", "HEAD"}
    assert not [e.name for e in ENDPOINTS if e.takes_key and e.method in reading]
    without = {e.name for e in ENDPOINTS if e.method not in reading and not e.takes_key}
    without -= {"create_grants", "revoke_grant", "create_role", "change_role", "drop_role", "set_owner"}  # idempotent
    without -= {"take_turn", "give_back_turn"}  # by the name of the holder
    webhooks = {f"{verb}_webhook" for verb in ("create", "delete", "pause", "resume", "replay", "test")}
    others = {"get_token", "report_metrics", "plan_table_scan", "cancel_planning", "fetch_scan_tasks"}
    others |= {"sign_request", CREATE_VIEW.name}
    assert without == others | webhooks  # a secret is kept in no record of responses
    assert COMMIT_TRANSACTION.takes_key


def test_names_in_addresses_are_known() -> None:
    names = {name for e in ENDPOINTS for name in re.findall(r"{(\w+)}", e.path)}
    assert names == {"prefix", "namespace", "table", "view", "webhook", "snapshot", "number", "grant", "role", "branch"}
