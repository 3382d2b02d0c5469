"""AWS Glue as a store: the suite, and what happens when requests and answers get lost."""

import contextlib
import json
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from glue_server import ANSWER_LOST, LATE_ERROR, NEVER_ARRIVES, THROTTLED, Fault, GlueProxy, refused

from bergline.catalog.glue.glue_store import GluePointerStore
from bergline.catalog.glue.requests import GlueResponse
from bergline.catalog.glue.settings import glue_settings
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_store import PointerStore, PointerSwap
from bergline.errors import (
    AlreadyExistsError,
    AuthenticationError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    StorageError,
    UnavailableError,
    UnsupportedError,
)
from bergline.testing.pointer_store_suite import PointerStoreSuite

ORDERS = TableName(("db",), "orders")
MOVED = TableName(("db",), "moved")


class TestGluePointerStore(PointerStoreSuite):
    @pytest.fixture(autouse=True)
    def _glue(self, glue: GlueProxy) -> Iterator[None]:
        self._settings = glue_settings("glue://", glue.properties)
        self._stores: list[PointerStore] = []
        yield
        for store in self._stores:
            store.close()

    def make_store(self) -> PointerStore:
        self._stores.append(GluePointerStore(self._settings))
        return self._stores[-1]


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


def set_parameters(glue: GlueProxy, name: str = "orders", **parameters: str) -> None:
    """As another tool would: it reads, and writes everything back."""
    table = glue.table("db", name)
    kept = {k: table[k] for k in ("Name", "TableType", "StorageDescriptor") if k in table}
    glue.ask("UpdateTable", DatabaseName="db", TableInput={**kept, "Parameters": table["Parameters"] | parameters})


@pytest.mark.parametrize(
    "fault", [ANSWER_LOST, LATE_ERROR, Fault(arrives=True, status=400, code="OperationTimeoutException")]
)
def test_swap_that_landed_without_an_answer_is_in_doubt(
    glue: GlueProxy, store: GluePointerStore, orders: TableName, fault: Fault
) -> None:
    glue.fail("UpdateTable", fault)
    with pytest.raises(StorageError, match="did not do update_table"):
        store.swap(orders, "a", "b")
    assert store.read(orders) == "b"
    assert glue.calls["UpdateTable"] == 1  # never sent twice


def test_swap_that_never_arrived_is_in_doubt_and_can_be_sent_again(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    glue.fail("UpdateTable", NEVER_ARRIVES)
    with pytest.raises(StorageError):
        store.swap(orders, "a", "b")
    assert store.read(orders) == "a"
    assert store.swap(orders, "a", "b")


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


def test_parameters_that_another_tool_sets_in_between_are_kept_and_the_swap_still_wins(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    glue.before("UpdateTable", lambda: set_parameters(glue, classification="iceberg"))
    assert store.swap(orders, "a", "b")
    parameters = glue.table("db", "orders")["Parameters"]
    assert parameters == {
        "table_type": "ICEBERG",
        "metadata_location": "b",
        "previous_metadata_location": "a",
        "classification": "iceberg",
    }


def test_commit_of_another_tool_in_between_wins(glue: GlueProxy, store: GluePointerStore, orders: TableName) -> None:
    glue.before("UpdateTable", lambda: set_parameters(glue, metadata_location="theirs"))
    assert not store.swap(orders, "a", "b")
    assert store.read(orders) == "theirs"


def test_table_that_is_dropped_in_between_is_not_swapped(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    glue.before("UpdateTable", lambda: glue.ask("DeleteTable", DatabaseName="db", Name="orders"))
    assert not store.swap(orders, "a", "b")
    assert store.read(orders) is None


def test_table_that_others_change_all_the_time_is_unavailable(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    glue.fail("UpdateTable", *[refused("ConcurrentModificationException")] * 11)
    with pytest.raises(UnavailableError, match="again and again"):
        store.swap(orders, "a", "b")
    assert store.read(orders) == "a"


def test_everything_else_that_others_keep_in_the_table_stays(glue: GlueProxy, store: GluePointerStore) -> None:
    columns = [{"Name": "id", "Type": "bigint", "Comment": "the key"}]
    theirs = {
        "Name": "orders",
        "Description": "all orders",
        "Owner": "sales",
        "Retention": 7,
        "TableType": "EXTERNAL_TABLE",
        "PartitionKeys": [],
        "StorageDescriptor": {"Columns": columns, "Location": "s3://b/orders", "SerdeInfo": {"Name": "x"}},
        "Parameters": {"table_type": "iceberg", "metadata_location": "a", "team": "blue"},
    }
    glue.ask("CreateTable", DatabaseName="db", TableInput=theirs)
    assert store.swap(ORDERS, "a", "b")
    table = glue.table("db", "orders")
    assert {k: table[k] for k in theirs if k != "Parameters"} == {k: v for k, v in theirs.items() if k != "Parameters"}
    assert table["Parameters"]["team"] == "blue"


def test_tables_that_are_not_iceberg_are_neither_listed_nor_touched(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    for name, parameters in {"hive": {}, "delta": {"table_type": "DELTA"}, "half": {"table_type": "ICEBERG"}}.items():
        glue.ask("CreateTable", DatabaseName="db", TableInput={"Name": name, "Parameters": parameters})
        other = TableName(("db",), name)
        assert store.read(other) is None
        assert not store.swap(other, "a", "b")
        assert not store.drop(other)
        assert not store.rename(other, MOVED)
        with pytest.raises(AlreadyExistsError, match=rf"`db\.{name}` already, not an Iceberg table"):
            store.create(other, "a")
        with pytest.raises(AlreadyExistsError, match="not an Iceberg table"):
            store.rename(orders, other)
    assert store.list_names(("db",)) == [orders]
    assert not store.drop_namespace(("db",))


def test_table_needs_its_namespace(store: GluePointerStore) -> None:
    with pytest.raises(NotFoundError, match="no namespace `nope`"):
        store.create(TableName(("nope",), "orders"), "a")


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


def test_several_tables_at_once_are_refused(store: GluePointerStore) -> None:
    with pytest.raises(UnsupportedError, match="found 2"):
        store.swap_all([PointerSwap(ORDERS, "a", "b"), PointerSwap(MOVED, "a", "b")])


def test_nested_namespaces_are_refused_and_hold_nothing(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    nested, inside = ("db", "raw"), TableName(("db", "raw"), "t")
    glue.calls.clear()
    for refused_call in (
        lambda: store.create_namespace(nested, {}),
        lambda: store.create(inside, "a"),
        lambda: store.rename(orders, inside),
    ):
        with pytest.raises(UnsupportedError, match=r"one level like `db`, found `db\.raw`"):
            refused_call()
    assert not store.namespace_exists(nested)
    assert not store.drop_namespace(nested)
    assert not store.update_namespace(nested, {"a": "b"}, ())
    assert store.namespace_properties(nested) is None
    assert (store.read(inside), store.list_names(nested), store.list_namespaces(("db",))) == (None, [], [])
    assert not glue.calls


@pytest.mark.parametrize("name", ["Orders", "my-table", "a b", "", "ü", "x" * 256, "tab\tle", "a.b"])
def test_new_names_follow_the_rules_of_glue(
    glue: GlueProxy, store: GluePointerStore, orders: TableName, name: str
) -> None:
    glue.calls.clear()
    for call in (
        lambda: store.create(TableName(("db",), name), "a"),
        lambda: store.rename(orders, TableName(("db",), name)),
        lambda: store.create_namespace((name,), {}),
    ):
        with pytest.raises(InvalidInputError, match="lowercase letters, digits and underscores"):
            call()
    assert not glue.calls


def test_existing_names_are_read_whatever_they_are(glue: GlueProxy, store: GluePointerStore) -> None:
    glue.ask("CreateDatabase", DatabaseInput={"Name": "my-db"})
    store.create(theirs := TableName(("my-db",), "orders"), "a")
    assert store.swap(theirs, "a", "b")
    assert store.list_names(("my-db",)) == [theirs]


def test_names_are_not_checked_where_the_user_says_so(glue: GlueProxy) -> None:
    properties = {**glue.properties, "glue.skip-name-validation": "true"}
    store = GluePointerStore(glue_settings("glue://", properties))
    assert store.create_namespace(("my-db",), {})
    assert store.create(TableName(("my-db",), "my-table"), "a")
    with pytest.raises(InvalidInputError):
        store.create(TableName(("my-db",), "MyTable"), "a")
    store.close()


def test_comment_and_location_of_a_namespace_stand_where_java_keeps_them(
    glue: GlueProxy, store: GluePointerStore
) -> None:
    store.create_namespace(("sales",), {"comment": "ours", "location": "s3://b/sales", "owner": "us"})
    database = glue.ask("GetDatabase", Name="sales")["Database"]
    assert (database["Description"], database["LocationUri"], database["Parameters"]) == (
        "ours",
        "s3://b/sales",
        {"owner": "us"},
    )
    store.update_namespace(("sales",), {"owner": "them"}, {"comment"})
    assert store.namespace_properties(("sales",)) == {"location": "s3://b/sales", "owner": "them"}


def test_commit_while_a_table_is_renamed_is_not_lost(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    glue.before("UpdateTable", lambda: set_parameters(glue, metadata_location="theirs"))
    assert store.rename(orders, MOVED)
    assert (store.read(orders), store.read(MOVED)) == (None, "theirs")


def test_commit_while_a_table_of_an_expected_pointer_is_dropped_keeps_the_table(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    glue.before("UpdateTable", lambda: set_parameters(glue, metadata_location="theirs"))
    assert not store.drop(orders, "a")
    assert store.read(orders) == "theirs"


@pytest.mark.parametrize("end", [lambda s: s.drop(ORDERS, "a"), lambda s: s.rename(ORDERS, MOVED)])
def test_deletion_that_meets_another_change_is_sent_again(
    glue: GlueProxy, store: GluePointerStore, orders: TableName, end: Callable[[GluePointerStore], bool]
) -> None:
    glue.fail("DeleteTable", *[refused("ConcurrentModificationException")] * 3)
    assert end(store)
    assert store.create(orders, "x")


ENDS: list[Callable[[GluePointerStore], bool]] = [lambda s: s.drop(ORDERS, "a"), lambda s: s.rename(ORDERS, MOVED)]


@pytest.mark.parametrize("end", ENDS)
def test_what_is_left_when_deleting_never_arrives_is_no_table_and_says_what_it_is(
    glue: GlueProxy, store: GluePointerStore, orders: TableName, end: Callable[[GluePointerStore], bool]
) -> None:
    glue.fail("DeleteTable", NEVER_ARRIVES)
    assert end(store)
    assert store.read(orders) is None
    assert orders not in store.list_names(("db",))
    with pytest.raises(AlreadyExistsError, match="left of a table that was dropped or renamed"):
        store.create(orders, "x")


@pytest.mark.parametrize("end", ENDS)
def test_table_that_may_not_be_deleted_stays_as_it_was(
    glue: GlueProxy, store: GluePointerStore, orders: TableName, end: Callable[[GluePointerStore], bool]
) -> None:
    before = glue.table("db", "orders")["Parameters"]
    glue.fail("DeleteTable", refused("AccessDeniedException"), refused("AccessDeniedException"))
    with pytest.raises(RefusedError, match="AccessDeniedException"):
        end(store)
    assert glue.table("db", "orders")["Parameters"] == before
    assert store.list_names(("db",)) == [orders]


def test_table_that_could_neither_be_deleted_nor_restored_leaves_the_outcome_in_doubt(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    def refuse_from_here_on() -> None:
        glue.fail("UpdateTable", refused("AccessDeniedException"))

    glue.before("DeleteTable", refuse_from_here_on)
    glue.fail("DeleteTable", refused("AccessDeniedException"))
    with pytest.raises(StorageError, match="could neither be deleted"):
        store.drop(orders, "a")


def test_rename_that_may_not_change_the_old_name_takes_the_new_one_back(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    glue.fail("UpdateTable", refused("AccessDeniedException"))
    with pytest.raises(RefusedError):
        store.rename(orders, MOVED)
    assert store.list_names(("db",)) == [orders]


def test_rename_that_cannot_be_taken_back_leaves_the_outcome_in_doubt(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    glue.fail("UpdateTable", *[refused("AccessDeniedException")] * 2)
    with pytest.raises(StorageError, match=r"renaming `db\.orders` to `db\.moved` stopped half way"):
        store.rename(orders, MOVED)


@pytest.mark.parametrize("action", ["CreateTable", "UpdateTable"])
@pytest.mark.parametrize("fault", [ANSWER_LOST, NEVER_ARRIVES])
def test_rename_that_stopped_half_way_is_finished_by_the_next(
    glue: GlueProxy, store: GluePointerStore, orders: TableName, action: str, fault: Fault
) -> None:
    glue.fail(action, fault)
    with contextlib.suppress(StorageError):
        store.rename(orders, MOVED)
    assert [store.read(orders), store.read(MOVED)].count("a") == 1
    assert store.rename(orders, MOVED) or store.read(orders) is None
    assert (store.read(orders), store.read(MOVED)) == (None, "a")
    assert store.swap(MOVED, "a", "b")
    assert set(glue.table("db", "moved")["Parameters"]) == {
        "table_type",
        "metadata_location",
        "previous_metadata_location",
    }


def test_second_name_for_a_table_is_not_taken_for_a_rename(store: GluePointerStore, orders: TableName) -> None:
    store.create(MOVED, "a")
    assert not store.rename(orders, MOVED)
    assert (store.read(orders), store.read(MOVED)) == ("a", "a")


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("action", ["CreateTable", "UpdateTable", "DeleteTable"])
@pytest.mark.parametrize("arrives", [True, False])
def test_rename_killed_at_any_step_leaves_one_name_that_takes_commits(
    glue: GlueProxy, store: GluePointerStore, orders: TableName, action: str, *, arrives: bool
) -> None:
    _kill_at(store, action, arrives=arrives)
    with pytest.raises(Killed):
        store.rename(orders, MOVED)
    other = GluePointerStore(glue_settings("glue://", glue.properties))
    assert len(other.list_names(("db",))) == 1
    assert [other.swap(name, "a", "b") for name in (MOVED, orders)].count(True) == 1
    assert other.rename(orders, MOVED) or other.read(orders) is None
    assert (other.list_names(("db",)), other.read(MOVED)) == ([MOVED], "b")
    other.close()


def _kill_at(store: GluePointerStore, action: str, *, arrives: bool) -> None:
    send = store._calls.change
    operation = {"CreateTable": "create_table", "UpdateTable": "update_table", "DeleteTable": "delete_table"}[action]

    def change(name: str, **arguments: Any) -> GlueResponse:
        if name == operation and not arrives:
            raise Killed
        answer = send(name, **arguments)
        if name == operation:
            raise Killed
        return answer

    store._calls.change = change  # type: ignore[method-assign]


def test_update_that_a_proxy_delivers_twice_has_landed(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    def deliver_first() -> None:
        set_parameters(glue, metadata_location="b", previous_metadata_location="a")

    glue.before("UpdateTable", deliver_first)
    assert store.swap(orders, "a", "b")
    assert not store.swap(orders, "a", "b")
    assert store.read(orders) == "b"


def test_drop_whose_answer_is_lost_leaves_nothing(glue: GlueProxy, store: GluePointerStore, orders: TableName) -> None:
    glue.fail("UpdateTable", ANSWER_LOST)
    assert store.drop(orders, "a")
    assert store.create(orders, "x")


def test_what_was_left_long_ago_is_in_nobodys_way(
    glue: GlueProxy, store: GluePointerStore, orders: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    glue.fail("DeleteTable", NEVER_ARRIVES)
    assert store.drop(orders, "a")
    assert not store.drop_namespace(("db",))
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    assert store.create(orders, "x")
    assert store.read(orders) == "x"
    glue.fail("DeleteTable", NEVER_ARRIVES)
    assert store.drop(orders, "x")
    monkeypatch.setattr(time, "time", lambda: now + 7200)
    assert store.drop_namespace(("db",))


def test_old_name_given_to_another_table_does_not_hide_the_new_one(glue: GlueProxy, orders: TableName) -> None:
    uuids = {"a": "one", "x": "two"}
    store = GluePointerStore(
        glue_settings("glue://", glue.properties),
        load=lambda pointer: types.SimpleNamespace(table_uuid=uuids[pointer]),  # type: ignore[arg-type,return-value]
    )
    assert store.rename(orders, MOVED)
    set_parameters(glue, "moved", **{"bergline.renamed-from": "db.orders"})
    glue.ask(
        "CreateTable",
        DatabaseName="db",
        TableInput={"Name": "orders", "Parameters": {"table_type": "ICEBERG", "metadata_location": "x"}},
    )
    assert store.list_names(("db",)) == [MOVED, orders]
    store.close()
