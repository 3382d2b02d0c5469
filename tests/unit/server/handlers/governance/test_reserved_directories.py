"""Directories are reserved for tables and views, in the transaction of the change."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.directories.reserved_directories import Claim, DirectoryKind
from bergline.errors import RefusedError
from bergline.server.context.context import ServerContext
from bergline.server.credentials.vending import StaticVending
from support.servers.asgi_client import SCHEMA, AsgiClient, AsgiResponse, set_property
from support.servers.granted_server import GrantedServer

TABLES, VIEWS = "/v1/namespaces/db/tables", "/v1/namespaces/db/views"
FORBIDDEN = (403, "ForbiddenException")
WISH = {"X-Iceberg-Access-Delegation": "vended-credentials"}
VERSION = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "default-namespace": ["db"],
    "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
}


@pytest.fixture
def lake(granted: GrantedServer) -> GrantedServer:
    """`ann` and `bob` may create in `db`, and see nothing of each other."""
    granted("root", "POST", "/v1/namespaces", {"namespace": ["db", "inner"]})
    for who in ("ann", "bob"):
        granted.grant("create", "namespace db", who)
    return granted


def at(lake: GrantedServer, *levels: str) -> str:
    return "/".join([lake.context.settings.warehouse or "", "db", *levels])


def create(
    lake: GrantedServer, who: str, name: str, location: str | None = None, *, staged: bool = False
) -> AsgiResponse:
    """A table, or a staged one with keys."""
    body: dict[str, Any] = {"name": name, "schema": SCHEMA, "stage-create": staged}
    return lake(
        who, "POST", TABLES, body | ({"location": location} if location else {}), headers=WISH if staged else {}
    )


def create_view(lake: GrantedServer, who: str, name: str, location: str | None = None) -> AsgiResponse:
    body = {"name": name, "schema": SCHEMA, "view-version": VERSION, "properties": {}}
    return lake(who, "POST", VIEWS, body | ({"location": location} if location else {}))


def set_location(location: str) -> dict[str, str]:
    return {"action": "set-location", "location": location}


def is_hidden_refusal(response: AsgiResponse) -> bool:
    return response.error == FORBIDDEN and "found one with files of another table or view" in response.message


def test_directory_of_a_hidden_view_is_not_to_be_had(lake: GrantedServer) -> None:
    assert create_view(lake, "bob", "secret", at(lake, "of-bob")).status == 200
    for place in (at(lake, "of-bob"), at(lake, "of-bob", "x")):
        refused = create(lake, "ann", "t", place)
        assert is_hidden_refusal(refused)
        assert "secret" not in refused.body.decode()
    assert create(lake, "ann", "t").status == 200
    assert is_hidden_refusal(lake.commit("ann", set_location(at(lake, "of-bob")), table="t"))
    assert is_hidden_refusal(create_view(lake, "ann", "v", at(lake, "of-bob", "x")))
    assert create(lake, "ann", "u", at(lake, "of-bob2")).status == 200


def test_directory_of_a_view_that_another_program_made_counts_too(lake: GrantedServer) -> None:
    assert create_view(lake, "bob", "secret").status == 200
    store, name = lake.context.store, TableName(("db",), "secret")
    with store.database.changing() as connection:
        connection.exec_driver_sql("DELETE FROM bergline_reserved_directories")
    assert store.views is not None
    assert store.views.read(name)
    assert is_hidden_refusal(create(lake, "ann", "t", at(lake, "secret")))


def test_former_directories_stay_reserved(lake: GrantedServer) -> None:
    assert create(lake, "bob", "moving", at(lake, "first")).status == 200
    assert lake.commit("bob", set_property("write.data.path", at(lake, "data")), table="moving").status == 200
    removal = {"action": "remove-properties", "removals": ["write.data.path"]}
    assert lake.commit("bob", set_location(at(lake, "second")), removal, table="moving").status == 200
    for place in ("first", "second", "data"):
        assert is_hidden_refusal(create(lake, "ann", "t", at(lake, place, "x"))), place
    names = {"source": {"namespace": ["db"], "name": "moving"}, "destination": {"namespace": ["db"], "name": "moved"}}
    assert lake("bob", "POST", "/v1/tables/rename", names).status == 204
    assert is_hidden_refusal(create(lake, "ann", "moving", at(lake, "first")))
    assert lake.commit("bob", set_location(at(lake, "first")), table="moved").status == 200


def test_location_lies_below_the_directory_of_its_namespace(lake: GrantedServer) -> None:
    outside = [at(lake), at(lake, "..", "x"), at(lake, "..", "db2", "t"), at(lake, "inner"), at(lake, "inner", "t")]
    assert create(lake, "ann", "t").status == 200
    for place in outside:
        assert create(lake, "ann", "u", place).error == FORBIDDEN, place
        assert create(lake, "ann", "u", place, staged=True).error == FORBIDDEN, place
        assert create_view(lake, "ann", "v", place).error == FORBIDDEN, place
        assert lake.commit("ann", set_location(place), table="t").error == FORBIDDEN, place
        assert lake.commit("ann", set_property("write.data.path", place), table="t").error == FORBIDDEN, place
    assert lake.commit("ann", set_property("write.data.path", at(lake, "t", "files")), table="t").status == 200
    assert create(lake, "root", "u", at(lake, "..", "x")).status == 200
    assert lake.commit("root", set_property("write.data.path", at(lake, "..", "y")), table="t").status == 200
    assert lake.commit("ann", set_property("a", "b"), table="t").status == 200


def test_namespace_stays_in_its_own_directory(lake: GrantedServer) -> None:
    lake.grant("write,create", "namespace db", "ann")
    for place in (at(lake, "inner", "x"), at(lake, ".."), at(lake, "..", "other")):
        body = {"namespace": ["db", "new"], "properties": {"location": place}}
        assert lake("ann", "POST", "/v1/namespaces", body).error == FORBIDDEN
    body = {"namespace": ["db", "new"], "properties": {"location": at(lake, "new", "here")}}
    assert lake("ann", "POST", "/v1/namespaces", body).status == 200
    change = {"updates": {"location": at(lake, "inner")}}
    assert lake("ann", "POST", "/v1/namespaces/db%1Fnew/properties", change).error == FORBIDDEN
    assert lake("root", "POST", "/v1/namespaces/db%1Fnew/properties", change).status == 200


def test_default_location_gives_way_to_what_is_there(lake: GrantedServer) -> None:
    inner = create(lake, "ann", "inner").json["metadata"]["location"]
    assert inner.startswith(f"{at(lake, 'inner')}-")
    assert create_view(lake, "bob", "v", at(lake, "t", "deep")).status == 200
    assert create(lake, "ann", "t").json["metadata"]["location"].startswith(f"{at(lake, 't')}-")


@pytest.fixture
def vending(lake: GrantedServer) -> GrantedServer:
    """The server hands out keys, as one that assumes a role does."""
    lake.context.credentials.vending = StaticVending({"s3.access-key-id": "k", "s3.secret-access-key": "s"})
    lake.context.credentials.vending.is_for_one_table = True
    return lake


def test_staged_directories_are_for_whoever_staged_them(vending: GrantedServer) -> None:
    staged = create(vending, "ann", "t", at(vending, "prefix"), staged=True)
    assert staged.status == 200
    assert is_hidden_refusal(create(vending, "bob", "u", at(vending, "prefix", "u")))
    assert is_hidden_refusal(create(vending, "bob", "t", at(vending, "prefix")))
    assert create(vending, "ann", "t", at(vending, "prefix")).status == 200
    assert is_hidden_refusal(create(vending, "bob", "u", at(vending, "prefix", "u")))


def test_table_made_elsewhere_leaves_what_was_staged_to_its_credentials(vending: GrantedServer) -> None:
    assert create(vending, "ann", "t", at(vending, "prefix"), staged=True).status == 200
    assert create(vending, "ann", "t", at(vending, "elsewhere")).status == 200
    assert is_hidden_refusal(create(vending, "bob", "u", at(vending, "prefix", "u")))


def test_table_that_was_staged_is_renamed_and_moved(vending: GrantedServer) -> None:
    where = create(vending, "ann", "t", staged=True).json["metadata"]["location"]
    assert create(vending, "ann", "t", where).status == 200
    names = {"source": {"namespace": ["db"], "name": "t"}, "destination": {"namespace": ["db"], "name": "u"}}
    assert vending("ann", "POST", "/v1/tables/rename", names).status == 204
    vending.context.claims.check_apart(TableName(("db",), "u"), [where])
    assert vending.commit("ann", set_property("write.data.path", f"{where}/files"), table="u").status == 200


def test_default_location_is_beside_a_staged_table_of_another(vending: GrantedServer) -> None:
    for who in ("ann", "ann", "bob"):
        staged = create(vending, who, "t", staged=True)
        is_beside = staged.json["metadata"]["location"] != at(vending, "t")
        assert is_beside is (who == "bob")


def test_dropped_directories_are_for_the_former_owner(lake: GrantedServer) -> None:
    where = create(lake, "ann", "t").json["metadata"]["location"]
    assert lake("ann", "DELETE", f"{TABLES}/t").status == 204
    assert is_hidden_refusal(create(lake, "bob", "t", f"{where}/data"))
    assert create(lake, "bob", "t").json["metadata"]["location"] != where
    assert create(lake, "ann", "u", f"{where}/data").status == 200
    assert create(lake, "root", "w", f"{where}/other").status == 200


def test_purged_directories_are_free(lake: GrantedServer) -> None:
    where = create(lake, "ann", "t").json["metadata"]["location"]
    assert lake("ann", "DELETE", f"{TABLES}/t", query={"purgeRequested": "true"}).status == 204
    assert create(lake, "bob", "t", where).status == 200


def test_table_that_comes_back_has_its_directories(lake: GrantedServer) -> None:
    context = lake.context
    context.settings = msgspec.structs.replace(context.settings, drop_retention_s=3600)
    where = create(lake, "ann", "t").json["metadata"]["location"]
    assert lake("ann", "DELETE", f"{TABLES}/t").status == 204
    assert is_hidden_refusal(create(lake, "bob", "x", where))
    to = {"destination": {"namespace": ["db"], "name": "back"}}
    assert lake("root", "POST", "/bergline/v1/namespaces/db/tables/t/undrop", to).status == 200
    assert is_hidden_refusal(create(lake, "bob", "x", where))
    lake.grant("write", "table db.back", "ann")
    assert lake.commit("ann", set_property("write.data.path", f"{where}/files"), table="back").status == 200


def test_transaction_refuses_what_was_reserved_meanwhile(lake: GrantedServer) -> None:
    """What another server has reserved since the request was checked."""
    context = lake.context
    claim = Claim(DirectoryKind.TABLE, TableName(("db",), "orders"))
    other = Claim(DirectoryKind.VIEW, TableName(("db",), "v"), by=frozenset({"bob"}))
    with context.records.database.changing() as connection:
        context.claims.directories.reserved.reserve(connection, claim, ["s3://b/w/t"])
        with pytest.raises(RefusedError, match="found one with files of another"):
            context.claims.check_reserved(
                connection, msgspec.structs.replace(other, administers=True), ["s3a://b/w/t/x"]
            )
        context.claims.check_reserved(connection, msgspec.structs.replace(other, administers=True), ["s3a://b/w/t2"])


def test_without_grants_and_keys_tables_may_share_directories(client: AsgiClient, context: ServerContext) -> None:
    client.namespace("db")
    place = f"{context.settings.warehouse}/anywhere"
    for name in ("t", "u"):
        body = {"name": name, "schema": SCHEMA, "location": f"{place}/{name}"}
        assert client("POST", TABLES, body).status == 200
    moved = {"requirements": [], "updates": [set_location(f"{place}/u")]}
    assert client("POST", f"{TABLES}/t", moved).status == 200
    assert Path(f"{place}/u".removeprefix("file://")).exists()
