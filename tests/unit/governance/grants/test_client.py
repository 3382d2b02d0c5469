"""Grants, roles and owners through the client, and in the database."""

from collections.abc import Iterator

import pytest

import bergline
from bergline import Lake
from bergline.errors import AlreadyExistsError, NotFoundError, RefusedError, UnsupportedError
from bergline.server.opening import open_server
from support.servers.granted_server import GrantedServer
from support.servers.server_on_socket import on_socket


@pytest.fixture(params=["server", "database"])
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A lake as its administrator has it, with a table."""
    uri = f"sqlite:///{tmp_path_factory.mktemp('access')}/catalog.db"
    context = open_server(uri)
    GrantedServer(context, "ann").client.application.close()
    Lake(context.catalog, "lake").create_namespace("db")
    with on_socket(context) as port:
        on_server = f"http://127.0.0.1:{port}", {"token": "bl_root"}
        at, properties = on_server if request.param == "server" else (uri, {})
        with bergline.connect(at, properties=properties) as opened:
            yield opened
    context.catalog.close()


def test_grants_roles_and_owners_are_changed_and_listed(lake: Lake) -> None:
    access = lake.access
    access.create_role("etl", ["ann", "group:loaders"])
    with pytest.raises(AlreadyExistsError):
        access.create_role("etl")
    access.grant(["write", "publish"], on="table db.orders", to="role:etl", ref="release/*")
    access.grant("read", on="namespace db", to="group:all")
    assert [str(grant) for grant in access.grants(to="role:etl")] == [
        "publish on table db.orders ref release/* to role:etl",
        "write on table db.orders ref release/* to role:etl",
    ]
    assert [str(grant) for grant in access.grants(on="namespace db")] == ["read on namespace db to group:all"]
    access.add_to_role("etl", "bob")
    access.remove_from_role("etl", "ann")
    (role,) = access.roles()
    assert [str(member) for member in role.members] == ["group:loaders", "bob"]
    access.revoke("write", on="table db.orders", from_="role:etl", ref="release/*")
    with pytest.raises(NotFoundError, match="no grant"):
        access.revoke("write", on="table db.orders", from_="role:etl", ref="release/*")
    access.drop_role("etl")
    assert len(access.grants()) == 2
    assert access.owner("namespace db") is None
    access.set_owner("namespace db", to="ann")
    assert str(access.owner("namespace db")) == "ann"
    with pytest.raises(NotFoundError):
        access.drop_role("etl")


def test_last_administrator_stays_while_there_are_grants(lake: Lake) -> None:
    lake.access.grant("read", on="catalog", to="ann")
    with pytest.raises(RefusedError, match="cannot remove the last"):
        lake.access.revoke("administer", on="catalog", from_="root")


def test_catalog_without_a_server_has_no_grants() -> None:
    with bergline.connect("memory:") as lake, pytest.raises(UnsupportedError, match="to have grants"):
        lake.access.grants()
