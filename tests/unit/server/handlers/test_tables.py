"""Tables over the protocol."""

from pathlib import Path
from urllib.parse import urlparse

import pytest

from bergline.catalog.identifiers import TableName
from bergline.server.context.context import ServerContext
from bergline.server.opening import open_server
from support.servers.asgi_client import SCHEMA, AsgiClient, set_branch, set_property, snapshot

ORDERS = "/v1/namespaces/db/tables/orders"


@pytest.fixture(autouse=True)
def _db(client: AsgiClient) -> None:
    client.namespace("db")


def test_staged_table_exists_only_after_its_commit(client: AsgiClient) -> None:
    staged = client.table(**{"stage-create": True}).json
    assert "metadata-location" not in staged
    assert client("HEAD", ORDERS).status == 404
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
    assert client.commit(*updates, requirements=create).json["metadata"]["table-uuid"] == metadata["table-uuid"]
    again = client.commit(*updates, requirements=create)
    assert again.error == (409, "AlreadyExistsException")
    assert again.message.startswith("Requirement failed: table already exists")


def test_load_answers_304_until_the_table_changes(client: AsgiClient) -> None:
    tag = client.table().headers["etag"]
    assert client("GET", ORDERS).headers["etag"] == tag
    same = client("GET", ORDERS, headers={"If-None-Match": tag})
    assert (same.status, same.body) == (304, b"")
    refs = client("GET", ORDERS, query={"snapshots": "refs"}, headers={"If-None-Match": tag})
    assert refs.status == 200
    assert refs.headers["etag"] != tag
    client.commit(set_property("a", "b"))
    assert client("GET", ORDERS, headers={"If-None-Match": tag}).status == 200


def test_load_shows_all_snapshots_or_those_of_refs(client: AsgiClient) -> None:
    client.table()
    client.commit(snapshot(1, 1), set_branch("main", 1))
    client.commit(snapshot(2, 2, 1), set_branch("main", 2))
    every, named = (client("GET", ORDERS, query={"snapshots": mode}).json for mode in ("all", "refs"))
    assert [s["snapshot-id"] for s in every["metadata"]["snapshots"]] == [1, 2]
    assert [s["snapshot-id"] for s in named["metadata"]["snapshots"]] == [2]
    assert len(named["metadata"]["snapshot-log"]) == 2
    assert client("GET", ORDERS, query={"snapshots": "some"}).status == 400


def test_names_are_taken_once(client: AsgiClient) -> None:
    client.table()
    again = client("POST", "/v1/namespaces/db/tables", {"name": "orders", "schema": SCHEMA})
    assert again.error == (409, "AlreadyExistsException")
    staged = client("POST", "/v1/namespaces/db/tables", {"name": "orders", "schema": SCHEMA, "stage-create": True})
    assert staged.error == (409, "AlreadyExistsException")
    missing = client("POST", "/v1/namespaces/no/tables", {"name": "orders", "schema": SCHEMA})
    assert missing.error == (404, "NoSuchNamespaceException")


def test_table_of_a_missing_namespace_is_a_missing_table(client: AsgiClient) -> None:
    response = client("GET", "/v1/namespaces/no/tables/orders")
    assert response.error == (404, "NoSuchTableException")
    assert response.message == "Table does not exist: no.orders; no namespace `no`"


def test_table_is_renamed(client: AsgiClient) -> None:
    client.table()
    client.table("other")
    source = {"namespace": ["db"], "name": "orders"}
    taken = client(
        "POST", "/v1/tables/rename", {"source": source, "destination": {"namespace": ["db"], "name": "other"}}
    )
    assert taken.error == (409, "AlreadyExistsException")
    body = {"source": source, "destination": {"namespace": ["db"], "name": "new"}}
    assert client("POST", "/v1/tables/rename", body).status == 204
    assert client("POST", "/v1/tables/rename", body).error == (404, "NoSuchTableException")
    assert client("HEAD", "/v1/namespaces/db/tables/new").status == 204


def test_dropped_table_leaves_its_files_and_a_purged_one_does_not(client: AsgiClient) -> None:
    kept = client.table().json["metadata-location"]
    assert client("DELETE", ORDERS, query={"purgeRequested": "perhaps"}).status == 400
    assert client("DELETE", ORDERS).status == 204
    assert Path(urlparse(kept).path).exists()
    gone = client.table("other").json["metadata-location"]
    assert client("DELETE", "/v1/namespaces/db/tables/other", query={"purgeRequested": "true"}).status == 204
    assert not Path(urlparse(gone).path).exists()
    assert client("DELETE", ORDERS).error == (404, "NoSuchTableException")


def test_table_is_unregistered_and_registered_again(client: AsgiClient) -> None:
    made = client.table().json
    gone = client("POST", f"{ORDERS}/unregister").json
    assert gone["metadata-location"] == made["metadata-location"]
    assert gone["metadata"] == made["metadata"]
    register = {"name": "again", "metadata-location": gone["metadata-location"]}
    assert client("POST", "/v1/namespaces/db/register", register).json["metadata"] == made["metadata"]
    assert client("POST", "/v1/namespaces/db/register", register).error == (409, "AlreadyExistsException")
    assert client("POST", "/v1/namespaces/db/register", {**register, "name": "third", "overwrite": True}).status == 200


def test_registering_over_a_table_points_it_elsewhere(client: AsgiClient) -> None:
    first = client.table().json["metadata-location"]
    client.commit(set_property("a", "b"))
    over = {"name": "orders", "metadata-location": first, "overwrite": True}
    assert client("POST", "/v1/namespaces/db/register", over).status == 200
    assert client("GET", ORDERS).json["metadata-location"] == first


def test_missing_file_is_not_hidden_by_the_cache(client: AsgiClient) -> None:
    response = client.table()
    Path(urlparse(response.json["metadata-location"]).path).unlink()
    assert client("GET", ORDERS).error == (404, "NotFoundException")
    assert client("GET", ORDERS, headers={"If-None-Match": response.headers["etag"]}).status == 404


def test_credentials_are_none_and_metrics_are_taken(client: AsgiClient) -> None:
    client.table()
    assert client("GET", f"{ORDERS}/credentials").json == {"storage-credentials": []}
    assert client("GET", "/v1/namespaces/db/tables/no/credentials").status == 404
    report = {"report-type": "scan-report", "table-name": "orders", "snapshot-id": 1, "metrics": {}}
    assert client("POST", f"{ORDERS}/metrics", report).status == 204
    assert client("POST", f"{ORDERS}/metrics", {}).status == 400


def broken_table(tmp_path: Path, client: AsgiClient, context: ServerContext, how: str) -> None:
    """A table `db.broken` whose metadata cannot be read; `outside` nothing says where it lies."""
    pointer = client.table("broken").json["metadata-location"]
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
    tmp_path: Path, client: AsgiClient, context: ServerContext, how: str
) -> None:
    client.table()
    broken_table(tmp_path, client, context, how)
    fresh = open_server(f"sqlite:///{tmp_path}/lake/catalog.db")
    with AsgiClient(fresh) as ask_fresh:
        assert ask_fresh("DELETE", ORDERS, query={"purgeRequested": "true"}).status == 204
        assert ask_fresh("HEAD", ORDERS).status == 404
        assert ask_fresh("HEAD", "/v1/namespaces/db/tables/broken").status == 204
    fresh.catalog.close()


def test_purge_is_refused_while_a_table_cannot_be_read_that_may_lie_there_until_that_is_dropped(
    tmp_path: Path, client: AsgiClient, context: ServerContext
) -> None:
    client.table()
    broken_table(tmp_path, client, context, "outside")
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
    client: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.table()
    drop, moved = context.catalog.drop_table, []

    def drop_late(name: TableName, expected: str | None = None) -> None:
        if not moved:
            moved.append(client.commit(set_property("late", "yes")).json["metadata-location"])
        drop(name, expected)

    monkeypatch.setattr(context.catalog, "drop_table", drop_late)
    response = client("POST", f"{ORDERS}/unregister").json
    assert response["metadata-location"] == moved[0]
    assert response["metadata"]["properties"]["late"] == "yes"
    assert client("HEAD", ORDERS).status == 404
