"""Requests to AWS Glue and their retries."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bergline.catalog.glue.glue_store import GluePointerStore
from bergline.catalog.glue.settings import glue_settings
from bergline.catalog.identifiers import TableName
from bergline.errors import AuthenticationError, InvalidInputError, RefusedError, StorageError, UnavailableError
from support.servers.glue_server import ANSWER_LOST, LATE_ERROR, NEVER_ARRIVES, THROTTLED, Fault, GlueProxy, refused

ORDERS = TableName(("db",), "orders")


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def store(glue: GlueProxy, waits: list[float]) -> Iterator[GluePointerStore]:
    opened = GluePointerStore(glue_settings("glue://", glue.properties), sleep=waits.append)
    opened.create_namespace(("db",), {})
    yield opened
    opened.close()


@pytest.fixture
def orders(store: GluePointerStore) -> TableName:
    store.create(ORDERS, "a")
    return ORDERS


def test_changes_that_were_put_off_are_sent_again_after_longer_and_longer_waits(
    glue: GlueProxy, store: GluePointerStore, orders: TableName, waits: list[float]
) -> None:
    glue.fail("UpdateTable", THROTTLED, refused("TooManyRequestsException"), THROTTLED)
    assert store.swap(orders, "a", "b")
    assert len(waits) == 3
    assert all(w <= 0.1 * 2**n for n, w in enumerate(waits))


def test_change_that_is_put_off_for_ever_is_unavailable(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    glue.fail("UpdateTable", *[THROTTLED] * 11)
    with pytest.raises(UnavailableError, match="ThrottlingException"):
        store.swap(orders, "a", "b")
    assert store.read(orders) == "a"
    assert glue.calls["UpdateTable"] == 11


@pytest.mark.parametrize("fault", [ANSWER_LOST, NEVER_ARRIVES, LATE_ERROR, THROTTLED])
def test_reading_is_tried_again(glue: GlueProxy, store: GluePointerStore, orders: TableName, fault: Fault) -> None:
    glue.fail("GetTable", fault, fault)
    assert store.read(orders) == "a"


def test_reading_that_fails_each_time_is_unavailable(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    glue.fail("GetTable", *[NEVER_ARRIVES] * 3)
    with pytest.raises(UnavailableError, match="did not answer get_table"):
        store.read(orders)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("UnrecognizedClientException", AuthenticationError),
        ("ExpiredTokenException", AuthenticationError),
        ("AccessDeniedException", RefusedError),
        ("ResourceNumberLimitExceededException", RefusedError),
        ("InvalidInputException", InvalidInputError),
    ],
)
@pytest.mark.parametrize("action", ["GetTable", "UpdateTable"])
def test_refusal_says_why_and_is_not_asked_again(
    glue: GlueProxy, store: GluePointerStore, orders: TableName, code: str, error: type[Exception], action: str
) -> None:
    glue.fail(action, refused(code))
    with pytest.raises(error, match=code):
        store.swap(orders, "a", "b")
    assert glue.calls[action] == 1
    assert store.read(orders) == "a"


def test_long_lists_come_page_by_page(store: GluePointerStore) -> None:
    tables = [TableName(("db",), f"t{n}") for n in range(5)]
    for table in tables:
        store.create(table, "a")
        store.create_namespace((table.name,), {})
    assert store.list_names(("db",)) == tables
    assert store.list_namespaces() == [("db",), *((t.name,) for t in tables)]


def test_list_that_never_ends_is_given_up(glue: GlueProxy, store: GluePointerStore) -> None:
    for name in ("t1", "t2", "t3"):
        store.create_namespace((name,), {})
    glue.repeat_pages = True
    with pytest.raises(StorageError, match="found another server"):
        store.list_namespaces()


def test_forked_processes_have_connections_of_their_own(glue: GlueProxy, store: GluePointerStore) -> None:
    program = """
import json, os, sys
from bergline.catalog.glue.glue_store import GluePointerStore
from bergline.catalog.glue.settings import glue_settings

store = GluePointerStore(glue_settings("glue://", json.loads(sys.argv[1])))
assert store.namespace_exists(("db",))
if not (child := os.fork()):
    os._exit(0 if store.namespace_exists(("db",)) else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    glue.clients.clear()
    command = [sys.executable, "-c", program, json.dumps(glue.properties)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert len(glue.clients) == 2
