"""Metadata files of others are not registered."""

import shutil
from pathlib import Path

from asgi_client import SCHEMA
from granted_server import GrantedServer

from bergline.catalog.identifiers import TableName

REGISTER = "/v1/namespaces/mine/register"


def register(granted: GrantedServer, who: str, location: str) -> int:
    return granted(who, "POST", REGISTER, {"name": "t", "metadata-location": location}).status


def test_file_of_a_table_that_may_not_be_read_is_refused(granted: GrantedServer) -> None:
    granted("root", "POST", "/v1/namespaces", {"namespace": ["mine"]})
    granted.grant("create", "namespace mine", "ann")
    location = granted.context.catalog.pointer(TableName(("db",), "orders"))
    refused = granted("ann", "POST", REGISTER, {"name": "t", "metadata-location": location})
    assert refused.error == (403, "ForbiddenException")
    assert "db.orders" not in refused.message
    other = location.replace("/orders/metadata/", "/elsewhere/")
    source, target = (text.removeprefix("file://") for text in (location, other))
    Path(target).parent.mkdir()
    shutil.copy(source, target)
    assert register(granted, "ann", other) == 403  # it names the location of `db.orders`
    granted.grant("read", "table db.orders", "ann")
    assert register(granted, "ann", location) == 200


def test_file_of_nobody_is_registered(granted: GrantedServer) -> None:
    granted("root", "POST", "/v1/namespaces", {"namespace": ["mine"]})
    granted.grant("create", "namespace mine", "ann")
    granted("root", "POST", "/v1/namespaces/mine/tables", {"name": "old", "schema": SCHEMA})
    location = granted.context.catalog.pointer(TableName(("mine",), "old"))
    assert register(granted, "ann", location) == 403
    assert granted("root", "DELETE", "/v1/namespaces/mine/tables/old").status == 204
    assert register(granted, "ann", location) == 200
