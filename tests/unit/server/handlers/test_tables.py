"""Tables over the protocol."""

from pathlib import Path
from urllib.parse import urlparse

import pyarrow as pa
import pytest
from asgi_client import SCHEMA, AsgiClient, set_branch, set_property, snapshot

from bergline.catalog.identifiers import TableName
from bergline.errors import UnsupportedError
from bergline.lake.lake import Lake
from bergline.server.handlers.context import ServerContext
from bergline.server.opening import open_server

ORDERS = "/v1/namespaces/db/tables/orders"


@pytest.fixture(autouse=True)
def _db(ask: AsgiClient) -> None:
    ask.namespace("db")


def test_table_is_created_as_asked(ask: AsgiClient) -> None:
    made = ask.table(
        properties={"owner": "ann"},
        **{
            "partition-spec": {"fields": [{"name": "d", "transform": "day", "source-id": 2}]},
            "write-order": {
                "order-id": 1,
                "fields": [{"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-last"}],
            },
        },
    ).json
    metadata = made["metadata"]
    assert metadata["properties"]["owner"] == "ann"
    assert metadata["partition-specs"][0]["fields"][0]["field-id"] == 1000
    assert metadata["default-sort-order-id"] == 1
    loaded = ask("GET", ORDERS)
    assert loaded.json == made
    assert loaded.headers["content-type"] == "application/json"
    assert ask("GET", "/v1/namespaces/db/tables").json["identifiers"] == [{"namespace": ["db"], "name": "orders"}]


def test_staged_table_exists_only_after_its_commit(ask: AsgiClient) -> None:
    staged = ask.table(**{"stage-create": True}).json
    assert "metadata-location" not in staged
    assert ask("HEAD", ORDERS).status == 404
    metadata = staged["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    ]
    create = [{"type": "assert-create"}]
    assert ask.commit(*updates, requirements=create).json["metadata"]["table-uuid"] == metadata["table-uuid"]
    again = ask.commit(*updates, requirements=create)
    assert again.error == (409, "AlreadyExistsException")
    assert again.message.startswith("Requirement failed: table already exists")


def test_load_answers_304_until_the_table_changes(ask: AsgiClient) -> None:
    tag = ask.table().headers["etag"]
    assert ask("GET", ORDERS).headers["etag"] == tag
    same = ask("GET", ORDERS, headers={"If-None-Match": tag})
    assert (same.status, same.body) == (304, b"")
    refs = ask("GET", ORDERS, query={"snapshots": "refs"}, headers={"If-None-Match": tag})
    assert refs.status == 200
    assert refs.headers["etag"] != tag
    ask.commit(set_property("a", "b"))
    assert ask("GET", ORDERS, headers={"If-None-Match": tag}).status == 200


def test_load_shows_all_snapshots_or_those_of_refs(ask: AsgiClient) -> None:
    ask.table()
    ask.commit(snapshot(1, 1), set_branch("main", 1))
    ask.commit(snapshot(2, 2, 1), set_branch("main", 2))
    every, named = (ask("GET", ORDERS, query={"snapshots": mode}).json for mode in ("all", "refs"))
    assert [s["snapshot-id"] for s in every["metadata"]["snapshots"]] == [1, 2]
    assert [s["snapshot-id"] for s in named["metadata"]["snapshots"]] == [2]
    assert len(named["metadata"]["snapshot-log"]) == 2
    assert ask("GET", ORDERS, query={"snapshots": "some"}).status == 400


def test_names_are_taken_once(ask: AsgiClient) -> None:
    ask.table()
    again = ask("POST", "/v1/namespaces/db/tables", {"name": "orders", "schema": SCHEMA})
    assert again.error == (409, "AlreadyExistsException")
    staged = ask("POST", "/v1/namespaces/db/tables", {"name": "orders", "schema": SCHEMA, "stage-create": True})
    assert staged.error == (409, "AlreadyExistsException")
    missing = ask("POST", "/v1/namespaces/no/tables", {"name": "orders", "schema": SCHEMA})
    assert missing.error == (404, "NoSuchNamespaceException")


def test_table_of_a_missing_namespace_is_a_missing_table(ask: AsgiClient) -> None:
    told = ask("GET", "/v1/namespaces/no/tables/orders")
    assert told.error == (404, "NoSuchTableException")
    assert told.message == "Table does not exist: no.orders; no namespace `no`"


def test_table_is_renamed(ask: AsgiClient) -> None:
    ask.table()
    ask.table("other")
    source = {"namespace": ["db"], "name": "orders"}
    taken = ask("POST", "/v1/tables/rename", {"source": source, "destination": {"namespace": ["db"], "name": "other"}})
    assert taken.error == (409, "AlreadyExistsException")
    body = {"source": source, "destination": {"namespace": ["db"], "name": "new"}}
    assert ask("POST", "/v1/tables/rename", body).status == 204
    assert ask("POST", "/v1/tables/rename", body).error == (404, "NoSuchTableException")
    assert ask("HEAD", "/v1/namespaces/db/tables/new").status == 204


def test_dropped_table_leaves_its_files_and_a_purged_one_does_not(ask: AsgiClient) -> None:
    kept = ask.table().json["metadata-location"]
    assert ask("DELETE", ORDERS, query={"purgeRequested": "perhaps"}).status == 400
    assert ask("DELETE", ORDERS).status == 204
    assert Path(urlparse(kept).path).exists()
    gone = ask.table("other").json["metadata-location"]
    assert ask("DELETE", "/v1/namespaces/db/tables/other", query={"purgeRequested": "true"}).status == 204
    assert not Path(urlparse(gone).path).exists()
    assert ask("DELETE", ORDERS).error == (404, "NoSuchTableException")


def test_table_is_unregistered_and_registered_again(ask: AsgiClient) -> None:
    made = ask.table().json
    gone = ask("POST", f"{ORDERS}/unregister").json
    assert gone["metadata-location"] == made["metadata-location"]
    assert gone["metadata"] == made["metadata"]
    register = {"name": "again", "metadata-location": gone["metadata-location"]}
    assert ask("POST", "/v1/namespaces/db/register", register).json["metadata"] == made["metadata"]
    assert ask("POST", "/v1/namespaces/db/register", register).error == (409, "AlreadyExistsException")
    assert ask("POST", "/v1/namespaces/db/register", {**register, "name": "third", "overwrite": True}).status == 200


def test_registering_over_a_table_points_it_elsewhere(ask: AsgiClient) -> None:
    first = ask.table().json["metadata-location"]
    ask.commit(set_property("a", "b"))
    over = {"name": "orders", "metadata-location": first, "overwrite": True}
    assert ask("POST", "/v1/namespaces/db/register", over).status == 200
    assert ask("GET", ORDERS).json["metadata-location"] == first


def test_missing_file_is_not_hidden_by_the_cache(ask: AsgiClient) -> None:
    told = ask.table()
    Path(urlparse(told.json["metadata-location"]).path).unlink()
    assert ask("GET", ORDERS).error == (404, "NotFoundException")
    assert ask("GET", ORDERS, headers={"If-None-Match": told.headers["etag"]}).status == 404


def test_credentials_are_none_and_metrics_are_taken(ask: AsgiClient) -> None:
    ask.table()
    assert ask("GET", f"{ORDERS}/credentials").json == {"storage-credentials": []}
    assert ask("GET", "/v1/namespaces/db/tables/no/credentials").status == 404
    report = {"report-type": "scan-report", "table-name": "orders", "snapshot-id": 1, "metrics": {}}
    assert ask("POST", f"{ORDERS}/metrics", report).status == 204
    assert ask("POST", f"{ORDERS}/metrics", {}).status == 400


def broken_table(tmp_path: Path, ask: AsgiClient, context: ServerContext, how: str) -> None:
    """A table `db.broken` whose metadata cannot be read; `outside` nothing says where it lies."""
    pointer = ask.table("broken").json["metadata-location"]
    file = Path(pointer.removeprefix("file://"))
    match how:
        case "gone":
            file.unlink()
        case "garbage":
            file.write_text("{")
        case _:
            (tmp_path / "outside").mkdir()
            file.rename(tmp_path / "outside" / file.name)
            context.catalog.store.swap(TableName(("db",), "broken"), pointer, f"file://{tmp_path}/outside/{file.name}")


@pytest.mark.parametrize("how", ["gone", "garbage"])
def test_table_elsewhere_that_cannot_be_read_does_not_stop_a_purge(
    tmp_path: Path, ask: AsgiClient, context: ServerContext, how: str
) -> None:
    ask.table()
    broken_table(tmp_path, ask, context, how)
    fresh = open_server(f"sqlite:///{tmp_path}/lake/catalog.db")
    with AsgiClient(fresh) as ask_fresh:
        assert ask_fresh("DELETE", ORDERS, query={"purgeRequested": "true"}).status == 204
        assert ask_fresh("HEAD", ORDERS).status == 404
        assert ask_fresh("HEAD", "/v1/namespaces/db/tables/broken").status == 204
    fresh.catalog.close()


def test_purge_is_refused_while_a_table_cannot_be_read_that_may_lie_there_until_that_is_dropped(
    tmp_path: Path, ask: AsgiClient, context: ServerContext
) -> None:
    ask.table()
    broken_table(tmp_path, ask, context, "outside")
    fresh = open_server(f"sqlite:///{tmp_path}/lake/catalog.db")
    with AsgiClient(fresh) as ask_fresh:
        purge = "DELETE", ORDERS
        no = ask_fresh(*purge, query={"purgeRequested": "true"})
        assert no.error == (403, "ForbiddenException")
        assert no.message.startswith("cannot purge table `db.orders`: what `db.broken` uses cannot be read: ")
        way_out = "; make `db.broken` readable again, or drop it without purging it if it is no longer needed"
        assert no.message.endswith(way_out)
        assert ask_fresh("GET", ORDERS).status == 200
        broken = "/v1/namespaces/db/tables/broken"
        assert ask_fresh("POST", f"{broken}/unregister").status == 403
        assert ask_fresh("HEAD", broken).status == 204  # what cannot be said is not done either
        assert ask_fresh("DELETE", broken).status == 204
        assert ask_fresh(*purge, query={"purgeRequested": "true"}).status == 204
    fresh.catalog.close()


def test_table_that_moves_on_while_it_is_unregistered_is_told_as_it_is_last(
    ask: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask.table()
    drop, moved = context.catalog.drop_table, []

    def drop_late(name: TableName, expected: str | None = None) -> None:
        if not moved:
            moved.append(ask.commit(set_property("late", "yes")).json["metadata-location"])
        drop(name, expected)

    monkeypatch.setattr(context.catalog, "drop_table", drop_late)
    told = ask("POST", f"{ORDERS}/unregister").json
    assert told["metadata-location"] == moved[0]
    assert told["metadata"]["properties"]["late"] == "yes"
    assert ask("HEAD", ORDERS).status == 404


def test_reports_of_clients_are_counted_by_kind(ask: AsgiClient) -> None:
    ask.table()
    name = "bergline_client_reports_total"

    def counted() -> list[str]:
        lines = ask("GET", "/metrics").body.decode().splitlines()
        return [line.removeprefix(name) for line in lines if line.startswith(name)]

    assert counted() == ['{kind="scan"} 0', '{kind="commit"} 0', '{kind="other"} 0']
    for kind in ("scan-report", "commit-report", "scan-report", 'any"text\n', "other"):
        assert ask("POST", f"{ORDERS}/metrics", {"report-type": kind}).status == 204
    assert ask("POST", "/v1/namespaces/db/tables/none/metrics", {"report-type": "scan-report"}).status == 404
    assert ask("POST", f"{ORDERS}/metrics", {"report-type": 1}).status == 400
    assert counted() == ['{kind="scan"} 2', '{kind="commit"} 1', '{kind="other"} 2']


@pytest.mark.parametrize(
    "body",
    [
        {"location": "file:///etc/orders"},
        {"location": "/etc/orders"},
        {"location": "s3://elsewhere/orders"},
        {"location": "file:///etc/../etc"},
    ],
)
def test_places_outside_the_warehouse_are_refused(ask: AsgiClient, body: dict[str, str]) -> None:
    told = ask("POST", "/v1/namespaces/db/tables", {"name": "orders", "schema": SCHEMA, **body})
    assert told.error == (403, "ForbiddenException")
    assert ask("GET", "/v1/namespaces/db/tables").json["identifiers"] == []


def test_steps_out_of_the_warehouse_are_refused_everywhere(ask: AsgiClient, context: ServerContext) -> None:
    ask.table()
    out = f"{context.settings.warehouse}/../../out"
    forbidden = (403, "ForbiddenException")
    assert ask.commit({"action": "set-location", "location": out}).error == forbidden
    assert ask.commit(set_property("write.metadata.path", out)).error == forbidden
    register = {"name": "r", "metadata-location": f"{context.settings.warehouse}/../catalog.db"}
    assert ask("POST", "/v1/namespaces/db/register", register).error == forbidden
    assert ask("POST", "/v1/namespaces/db/properties", {"updates": {"location": out}}).error == forbidden
    assert ask("POST", "/v1/namespaces", {"namespace": ["x"], "properties": {"location": out}}).error == forbidden
    assert ask("GET", ORDERS).json["metadata"]["properties"].keys() == {"write.parquet.compression-codec"}


@pytest.mark.parametrize("stage", [True, False])
@pytest.mark.parametrize("key", ["write.metadata.path", "write.data.path", "write.object-storage.path"])
def test_new_table_writes_nowhere_else(ask: AsgiClient, key: str, stage: bool) -> None:
    for place, status in (("/etc/x", 403), ("s3://other/x", 403), ("beside/it", 400)):
        body = {"name": "x", "schema": SCHEMA, "stage-create": stage, "properties": {key: place}}
        assert ask("POST", "/v1/namespaces/db/tables", body).status == status


def test_only_metadata_files_are_registered(ask: AsgiClient, context: ServerContext) -> None:
    home = context.settings.warehouse
    for name, status in (("", 400), ("/data.parquet", 400), ("/no.metadata.json", 404), ("/x.metadata.json/y", 400)):
        body = {"name": "x", "metadata-location": f"{home}{name}"}
        assert ask("POST", "/v1/namespaces/db/register", body).status == status
    assert ask("POST", "/v1/namespaces/db/register", {"name": "x", "metadata-location": "/etc/passwd"}).status == 403


def test_location_that_no_disk_can_have_is_refused(ask: AsgiClient, context: ServerContext) -> None:
    for stage, more in ((True, "d" * 300), (False, "d" * 300), (True, "d/" * 3000), (False, "d/" * 3000)):
        place = f"{context.settings.warehouse}/{more}"
        body = {"name": "x", "schema": SCHEMA, "stage-create": stage, "location": place}
        assert ask("POST", "/v1/namespaces/db/tables", body).error == (400, "IllegalArgumentException")


def test_struct_without_fields_is_accepted_and_not_written(ask: AsgiClient, context: ServerContext) -> None:
    inner = {"id": 2, "name": "s", "type": {"type": "struct", "fields": []}, "required": False}
    schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}, inner]}
    made = ask("POST", "/v1/namespaces/db/tables", {"name": "t", "schema": schema})
    assert made.status == 200, made
    assert made.json["metadata"]["schemas"][0]["fields"][1]["type"] == {"type": "struct", "fields": []}
    table = Lake(context.catalog, "lake").load_table("db.t")
    rows = pa.table({"id": [1]})
    with pytest.raises(UnsupportedError, match="which Parquet has no form for, found in column `s`"):
        table.append(rows)
    assert table.scan().to_arrow().num_rows == 0
    with table.update_schema() as change:
        change.add_column("s.x", "int")
    table.append(rows)
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "s": None}]
