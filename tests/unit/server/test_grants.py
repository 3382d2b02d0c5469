"""Grants as clients meet them: PyIceberg and bergline, each with the tokens of several callers."""

from collections.abc import Iterator

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import ForbiddenError, NoSuchNamespaceError, NoSuchTableError

import bergline
from bergline import Lake
from bergline.errors import NotFoundError, RefusedError
from bergline.server.context.context import ServerContext
from support.fixtures.rows import ORDERS, order_rows
from support.servers.granted_server import GrantedServer
from support.servers.server_on_socket import on_socket

pytestmark = pytest.mark.long


@pytest.fixture
def granted(context: ServerContext) -> Iterator[GrantedServer]:
    """`ann` may create in `db`."""
    server = GrantedServer(context, "ann", "bob", "eve")
    server("root", "POST", "/v1/namespaces", {"namespace": ["db"]})
    server.grant("create", "namespace db", "ann")
    yield server
    server.client.application.close()


def test_pyiceberg_is_refused_and_allowed(granted: GrantedServer) -> None:
    with on_socket(granted.context) as port:

        def catalog(who: str) -> Catalog:
            return load_catalog(who, type="rest", uri=f"http://127.0.0.1:{port}", token=f"bl_{who}")

        ann, bob, eve = map(catalog, ("ann", "bob", "eve"))
        ann.create_table("db.orders", ORDERS).append(order_rows(1, 2))
        granted.grant("read", "table db.orders", "bob")
        orders = bob.load_table("db.orders")
        assert orders.scan().to_arrow().num_rows == 2
        with pytest.raises(ForbiddenError, match=r"expected the privilege `write` on table .* for ref `main`"):
            orders.append(order_rows(3))
        with pytest.raises(ForbiddenError, match=r"an owner of table `db\.orders` or an administrator of the catalog"):
            bob.drop_table("db.orders")
        head = ann.load_table("db.orders").metadata.current_snapshot_id
        assert head is not None
        granted.grant("manage-refs", "table db.orders", "bob", "v*")
        bob.load_table("db.orders").manage_snapshots().create_tag(head, "v1").commit()
        with pytest.raises(ForbiddenError, match="for ref `latest`"):
            bob.load_table("db.orders").manage_snapshots().create_tag(head, "latest").commit()
        assert eve.list_namespaces() == []
        with pytest.raises(NoSuchNamespaceError):
            eve.list_tables("db")
        with pytest.raises(NoSuchTableError):
            eve.load_table("db.orders")


def test_bergline_is_refused_and_allowed(granted: GrantedServer) -> None:
    with on_socket(granted.context) as port:

        def lake_of(who: str) -> Lake:
            return bergline.connect(f"http://127.0.0.1:{port}", properties={"token": f"bl_{who}"})

        with lake_of("ann") as lake:
            with lake.stage_table("db.staged", ORDERS) as staged:
                staged.append(order_rows(1))
            lake.rename_table("db.staged", "db.orders")
            orders = lake.load_table("db.orders")
            orders.append(order_rows(2), branch="load/monday")
            assert str(lake.access.owner("table db.orders")) == "ann"
            lake.access.grant("read,publish", on="table db.orders", to="bob")
            with pytest.raises(RefusedError, match="expected the privilege `create` on the catalog"):
                lake.create_namespace("more")
        with lake_of("bob") as lake:
            assert lake.list_tables() == ["db.orders"]
            with pytest.raises(RefusedError, match=r"`write` on table `db\.orders` for ref `load/monday`"):
                lake.load_table("db.orders").append(order_rows(3), branch="load/monday")
            with pytest.raises(RefusedError, match="`manage-refs`"):
                lake.publish("load/monday")  # and drop the branch
            lake.load_table("db.orders").refs.fast_forward("main", to="load/monday")
            assert lake.load_table("db.orders").scan().to_arrow().num_rows == 2
            with pytest.raises(RefusedError, match="expected the privilege `drop`"):
                lake.drop_table("db.orders")
        with lake_of("eve") as lake:
            assert lake.list_namespaces() == []
            with pytest.raises(NotFoundError):
                lake.load_table("db.orders")
