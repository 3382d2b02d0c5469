"""Metadata files of others are not registered."""

import shutil
from pathlib import Path

import pytest

from bergline.catalog.identifiers import TableName
from support.servers.asgi_client import SCHEMA
from support.servers.granted_server import GrantedServer

REGISTER = "/v1/namespaces/mine/register"
TABLES = "/v1/namespaces/mine/tables"


@pytest.fixture(autouse=True)
def _mine(granted: GrantedServer) -> None:
    granted("root", "POST", "/v1/namespaces", {"namespace": ["mine"]})
    for who in ("ann", "bob"):
        granted.grant("create", "namespace mine", who)


def register(granted: GrantedServer, who: str, location: str, name: str = "t") -> int:
    return granted(who, "POST", REGISTER, {"name": name, "metadata-location": location}).status


def make(granted: GrantedServer, who: str, name: str) -> str:
    """A table's metadata file."""
    assert granted(who, "POST", TABLES, {"name": name, "schema": SCHEMA}).status == 200
    return granted.context.catalog.pointer(TableName(("mine",), name))


def copied(location: str, home: str, other_home: str) -> str:
    """A metadata file beside the directory of its table."""
    other = location.replace(home, other_home)
    source, target = (text.removeprefix("file://") for text in (location, other))
    Path(target).parent.mkdir(exist_ok=True)
    shutil.copy(source, target)
    return other


def test_file_of_a_table_that_may_not_be_read_is_refused(granted: GrantedServer) -> None:
    location = granted.context.catalog.pointer(TableName(("db",), "orders"))
    refused = granted("ann", "POST", REGISTER, {"name": "t", "metadata-location": location})
    assert refused.error == (403, "ForbiddenException")
    assert "db.orders" not in refused.message
    other = copied(location, "/orders/metadata/", "/elsewhere/")
    assert register(granted, "ann", other) == 403  # it names the location of `db.orders`


def test_table_is_not_registered_twice(granted: GrantedServer) -> None:
    location = make(granted, "ann", "once")
    assert register(granted, "ann", location) == register(granted, "root", location) == 403


def test_file_of_a_dropped_table_is_for_its_owner_and_administrators(granted: GrantedServer) -> None:
    location = make(granted, "ann", "old")
    beside = copied(location, "/old/metadata/", "/beside/")
    assert granted("root", "DELETE", f"{TABLES}/old").status == 204
    for file in (location, beside):
        refused = granted("bob", "POST", REGISTER, {"name": "old", "metadata-location": file})
        assert refused.error == (403, "ForbiddenException")
    assert register(granted, "ann", location, "back") == 200
    assert register(granted, "bob", location) == 403
    assert granted("ann", "POST", f"{TABLES}/back/unregister").status == 200
    assert register(granted, "root", location, "old") == 200


def test_owner_registers_a_dropped_table_in_another_namespace(granted: GrantedServer) -> None:
    location = make(granted, "ann", "old")
    granted("root", "POST", "/v1/namespaces", {"namespace": ["other"]})
    granted.grant("create", "namespace other", "ann")
    assert granted("ann", "DELETE", f"{TABLES}/old").status == 204
    body = {"name": "t", "metadata-location": location}
    assert granted("ann", "POST", "/v1/namespaces/other/register", body).status == 200


def test_file_of_nobody_is_registered_below_the_namespace_alone(granted: GrantedServer) -> None:
    location = make(granted, "root", "old")
    moved = location.replace("/mine/", "/loose/")
    for old, new in ((location, moved), (location, location.replace("/old/", "/new/"))):
        path = Path(new.removeprefix("file://"))
        path.parent.mkdir(parents=True)
        text = Path(old.removeprefix("file://")).read_text()
        path.write_text(text.replace("/mine/old", "/mine/new" if "/new/" in new else "/loose/old"))
    assert register(granted, "ann", moved) == 403
    assert register(granted, "ann", location.replace("/old/", "/new/")) == 200
    assert register(granted, "root", moved, "u") == 200


def test_files_that_are_there_and_that_are_not_are_refused_alike(granted: GrantedServer) -> None:
    granted("root", "POST", "/v1/namespaces", {"namespace": ["mine"]})
    granted.grant("create", "namespace mine", "ann")
    location = granted.context.catalog.pointer(TableName(("db",), "orders"))
    missing = location.replace("/metadata/", "/metadata/x")
    assert [register(granted, "ann", one) for one in (location, missing)] == [403, 403]
    assert register(granted, "root", missing) == 404
