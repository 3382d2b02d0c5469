"""A lake in AWS Glue: what Glue shows, and commits whose answers get lost."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pytest
from concurrency import run_for_each
from glue_server import ANSWER_LOST, LATE_ERROR, NEVER_ARRIVES, THROTTLED, Fault, GlueProxy, refused
from rows import ORDERS, ids, order_rows

import bergline
from bergline import Lake
from bergline.catalog.catalog import TableChange
from bergline.catalog.identifiers import TableName
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

ORDERS_NAME = TableName(("db",), "orders")


@pytest.fixture
def glue_lake(glue: GlueProxy, tmp_path: Path) -> Iterator[Lake]:
    with bergline.connect("glue://", warehouse=tmp_path, properties=glue.properties) as lake:
        lake.create_namespace("db")
        yield lake


@contextmanager
def web_server(status: int, content_type: str, body: bytes) -> Iterator[dict[str, str]]:
    """Properties that lead to a server which always says the same."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield {
            "glue.endpoint": f"http://127.0.0.1:{server.server_port}",
            "glue.region": "us-east-1",
            "glue.access-key-id": "key",
            "glue.secret-access-key": "secret",
        }
        server.shutdown()
        thread.join(timeout=5)


def shown_columns(glue: GlueProxy, name: str = "orders") -> list[tuple[str, str, str]]:
    columns = glue.table("db", name)["StorageDescriptor"]["Columns"]
    return [(c["Name"], c["Type"], c["Parameters"]["iceberg.field.current"]) for c in columns]


def metadata_files(directory: Path) -> int:
    return len(list(directory.rglob("*.metadata.json")))


def test_glue_shows_a_new_table_as_java_and_pyiceberg_do(glue: GlueProxy, glue_lake: Lake) -> None:
    orders = glue_lake.create_table("db.orders", ORDERS, properties={"comment": "all orders"})
    table = glue.table("db", "orders")
    assert table["TableType"] == "EXTERNAL_TABLE"
    assert table["Description"] == "all orders"
    assert table["Parameters"] == {"table_type": "ICEBERG", "metadata_location": orders.metadata_location}
    assert table["StorageDescriptor"]["Location"] == orders.metadata.location
    assert table["StorageDescriptor"]["Columns"][0] == {
        "Name": "id",
        "Type": "bigint",
        "Parameters": {"iceberg.field.id": "1", "iceberg.field.optional": "false", "iceberg.field.current": "true"},
    }


def test_every_type_of_column_is_shown(glue: GlueProxy, glue_lake: Lake) -> None:
    inner = pa.struct([pa.field("x", pa.int32()), pa.field("tags", pa.list_(pa.string()))])
    types = {
        "flag": (pa.bool_(), "boolean"),
        "small": (pa.int32(), "int"),
        "ratio": (pa.float32(), "float"),
        "price": (pa.decimal128(9, 2), "decimal(9,2)"),
        "day": (pa.date32(), "date"),
        "clock": (pa.time64("us"), "string"),
        "ts": (pa.timestamp("us"), "timestamp"),
        "tstz": (pa.timestamp("us", tz="UTC"), "timestamp"),
        "blob": (pa.binary(), "binary"),
        "fixed": (pa.binary(4), "binary"),
        "nested": (pa.map_(pa.string(), inner), "map<string,struct<x:int,tags:array<string>>>"),
    }
    glue_lake.create_table("db.orders", pa.schema([(n, t) for n, (t, _) in types.items()]))
    assert shown_columns(glue) == [(n, text, "true") for n, (_, text) in types.items()]


def test_columns_in_glue_follow_the_schema_and_keep_comments_of_others(glue: GlueProxy, glue_lake: Lake) -> None:
    orders = glue_lake.create_table("db.orders", ORDERS)
    table = glue.table("db", "orders")
    columns = [c | {"Comment": f"their {c['Name']}"} for c in table["StorageDescriptor"]["Columns"]]
    theirs = {k: table[k] for k in ("Name", "TableType", "Parameters")} | {"StorageDescriptor": {"Columns": columns}}
    glue.ask("UpdateTable", DatabaseName="db", TableInput=theirs)
    with orders.update_schema() as schema:
        schema.rename_column("region", "area")
        schema.set_doc("amount", "in euros " * 50)
    shown = {c["Name"]: c.get("Comment", "") for c in glue.table("db", "orders")["StorageDescriptor"]["Columns"]}
    assert list(shown) == ["id", "amount", "area", "region"]
    assert (shown["id"], shown["area"], shown["region"]) == ("their id", "", "their region")
    assert shown["amount"].startswith("in euros in euros")
    assert len(shown["amount"]) == 255


@pytest.mark.parametrize("action", ["CreateTable", "UpdateTable"])
def test_columns_that_glue_does_not_take_stop_nothing(glue: GlueProxy, glue_lake: Lake, action: str) -> None:
    glue.fail(action, refused("InvalidInputException"))
    orders = glue_lake.create_table("db.orders", ORDERS)
    assert ids(orders.append(order_rows(1)).scan().to_arrow()) == [1]


def test_names_and_comments_over_the_limits_of_glue_are_left_out_or_cut(glue: GlueProxy, glue_lake: Lake) -> None:
    columns = [("é" * 127, pa.int32()), ("é" * 128, pa.int32()), ("line\nbreak", pa.int32()), ("bell\x07", pa.int32())]
    glue_lake.create_table("db.orders", pa.schema(columns), properties={"comment": "a\n" + "é" * 2000})
    assert [name for name, _, _ in shown_columns(glue)] == ["é" * 127]
    assert glue.table("db", "orders")["Description"] == "a\n" + "é" * 1023


def test_metadata_file_that_cannot_be_read_stops_no_swap(glue: GlueProxy, glue_lake: Lake) -> None:
    glue_lake.create_table("db.orders", ORDERS)
    store, before = glue_lake.catalog.store, shown_columns(glue)
    assert store.swap(ORDERS_NAME, store.read(ORDERS_NAME), "file:///nowhere/x.metadata.json")
    assert shown_columns(glue) == before


def test_pointer_before_stands_in_glue_too(glue: GlueProxy, glue_lake: Lake) -> None:
    orders = glue_lake.create_table("db.orders", ORDERS)
    before = orders.metadata_location
    orders.append(order_rows(1))
    parameters = glue.table("db", "orders")["Parameters"]
    assert parameters["previous_metadata_location"] == before
    assert parameters["metadata_location"] == orders.metadata_location


def test_new_tables_go_where_their_database_says(glue_lake: Lake, tmp_path: Path) -> None:
    glue_lake.create_namespace("far", {"location": f"file://{tmp_path}/elsewhere/"})
    assert glue_lake.create_table("far.orders", ORDERS).metadata.location == f"file://{tmp_path}/elsewhere/orders"
    assert glue_lake.create_table("db.orders", ORDERS).metadata.location == f"file://{tmp_path}/db/orders"


@pytest.mark.parametrize("fault", [ANSWER_LOST, NEVER_ARRIVES, LATE_ERROR, THROTTLED])
def test_append_whose_answer_is_lost_is_there_once(
    glue: GlueProxy, glue_lake: Lake, tmp_path: Path, fault: Fault
) -> None:
    orders = glue_lake.create_table("db.orders", ORDERS)
    glue.fail("UpdateTable", fault)
    orders.append(order_rows(1))
    assert ids(glue_lake.load_table("db.orders").scan().to_arrow()) == [1]
    assert len(orders.metadata.snapshots) == 1
    assert metadata_files(tmp_path) == 2


@pytest.mark.parametrize("fault", [ANSWER_LOST, NEVER_ARRIVES, LATE_ERROR, THROTTLED])
def test_table_whose_creation_was_not_answered_is_there(glue: GlueProxy, glue_lake: Lake, fault: Fault) -> None:
    glue.fail("CreateTable", fault)
    orders = glue_lake.create_table("db.orders", ORDERS)
    assert glue_lake.load_table("db.orders").metadata_location == orders.metadata_location


@pytest.mark.parametrize("action", ["CreateTable", "UpdateTable", "DeleteTable"])
@pytest.mark.parametrize("fault", [ANSWER_LOST, NEVER_ARRIVES])
def test_rename_whose_answer_is_lost_is_carried_out(
    glue: GlueProxy, glue_lake: Lake, action: str, fault: Fault
) -> None:
    orders = glue_lake.create_table("db.orders", ORDERS)
    glue.fail(action, fault)
    glue_lake.rename_table("db.orders", "db.moved")
    assert glue_lake.list_tables("db") == ["db.moved"]
    assert glue_lake.load_table("db.moved").metadata_location == orders.metadata_location


def test_several_tables_at_once_are_refused_before_anything_is_written(glue_lake: Lake, tmp_path: Path) -> None:
    bases = [glue_lake.create_table(name, ORDERS) for name in ("db.a", "db.b")]
    with pytest.raises(UnsupportedError, match="this catalog moves one at a time"):
        glue_lake.catalog.commit(tuple(TableChange(glue_lake.catalog.load_table(b.name), (), ()) for b in bases))
    assert metadata_files(tmp_path) == 2


def test_append_that_is_not_allowed_says_so_at_once_and_leaves_nothing(
    glue: GlueProxy, glue_lake: Lake, tmp_path: Path
) -> None:
    orders = glue_lake.create_table("db.orders", ORDERS)
    glue.fail("UpdateTable", refused("AccessDeniedException"))
    with pytest.raises(RefusedError, match="AccessDeniedException"):
        orders.append(order_rows(1))
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == [orders.metadata_location.rpartition("/")[2]]


def test_table_is_not_created_over_one_that_is_not_iceberg(glue: GlueProxy, glue_lake: Lake, tmp_path: Path) -> None:
    glue.ask("CreateTable", DatabaseName="db", TableInput={"Name": "orders", "TableType": "EXTERNAL_TABLE"})
    with pytest.raises(AlreadyExistsError, match=r"`db\.orders` already, not an Iceberg table"):
        glue_lake.create_table("db.orders", ORDERS)
    assert metadata_files(tmp_path) == 0
    with pytest.raises(NotFoundError, match=r"no table `db\.orders`"):
        glue_lake.load_table("db.orders")


def test_name_in_capitals_finds_nothing_and_hints_at_the_right_one(glue_lake: Lake) -> None:
    glue_lake.create_table("db.orders", ORDERS)
    with pytest.raises(NotFoundError) as caught:
        glue_lake.load_table("db.Orders")
    assert caught.value.near == ("db.orders",)


def test_nothing_is_lost_when_many_append_at_once(glue: GlueProxy, glue_lake: Lake) -> None:
    glue_lake.create_table("db.orders", ORDERS)

    def work(first: int) -> None:
        table = glue_lake.load_table("db.orders")
        for number in range(3):
            table.append(order_rows(first * 100 + number))

    run_for_each(work, range(8))
    expected = sorted(first * 100 + number for first in range(8) for number in range(3))
    assert ids(glue_lake.load_table("db.orders").scan().to_arrow()) == expected
    assert glue.calls["UpdateTable"] >= 24


def test_server_that_is_not_there_is_unavailable(glue: GlueProxy, tmp_path: Path) -> None:
    properties = {**glue.properties, "glue.endpoint": "http://127.0.0.1:1"}
    with bergline.connect("glue://", warehouse=tmp_path, properties=properties) as lake:
        with pytest.raises(UnavailableError, match=r"AWS Glue at http://127\.0\.0\.1:1 did not answer get_databases"):
            lake.list_namespaces()
        with pytest.raises(UnavailableError, match="did not answer get_database"):
            lake.create_namespace("db")


@pytest.mark.parametrize(
    ("status", "content_type", "body"),
    [
        (200, "text/html", b"<html>Welcome</html>"),
        (404, "text/html", b"<html>Not here</html>"),
        (403, "application/json", b"{}"),
        (301, "text/html", b""),
        (200, "application/json", b"{}"),
        (200, "application/json", b'{"DatabaseList": [{"Name": null}]}'),
    ],
)
def test_another_server_is_not_taken_for_glue(tmp_path: Path, status: int, content_type: str, body: bytes) -> None:
    with (
        web_server(status, content_type, body) as properties,
        bergline.connect("glue://", warehouse=tmp_path, properties=properties) as lake,
    ):
        for call in (lake.list_namespaces, lambda: lake.load_table("db.orders")):
            with pytest.raises(StorageError, match=r"expected AWS Glue at http://127\S+, found another server"):
                call()
        if content_type == "text/html":
            with pytest.raises(StorageError, match="found another server"):
                lake.create_namespace("db")


def test_missing_credentials_are_asked_for(glue: GlueProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    properties = {"glue.endpoint": glue.endpoint, "glue.region": "us-east-1"}
    with (
        bergline.connect("glue://", warehouse=tmp_path, properties=properties) as lake,
        pytest.raises(AuthenticationError, match="Unable to locate credentials"),
    ):
        lake.create_namespace("db")
    assert not glue.calls


def test_wrong_credentials_are_named_once(glue: GlueProxy, glue_lake: Lake) -> None:
    glue.fail("GetTable", refused("UnrecognizedClientException"))
    glue.calls.clear()
    with pytest.raises(AuthenticationError, match="UnrecognizedClientException"):
        glue_lake.load_table("db.orders")
    assert glue.calls["GetTable"] == 1


def test_without_a_warehouse_what_is_there_can_be_used(glue: GlueProxy, glue_lake: Lake) -> None:
    glue_lake.create_table("db.orders", ORDERS).append(order_rows(1))
    with bergline.connect("glue://", properties=glue.properties) as lake:
        assert ids(lake.load_table("db.orders").append(order_rows(2)).scan().to_arrow()) == [1, 2]
        with pytest.raises(InvalidInputError, match="expected a warehouse for what is new in namespace `db`"):
            lake.create_table("db.more", ORDERS)
