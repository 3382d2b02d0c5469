"""A server's trash, through the client."""

from collections.abc import Iterator

import pytest

import bergline
from bergline import Lake
from bergline.errors import AlreadyExistsError, NotFoundError, UnsupportedError
from support.fixtures.rows import ORDERS, order_rows
from support.servers.bergline_server import BerglineServer

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BerglineServer]:
    """A server that keeps dropped tables."""
    with BerglineServer(tmp_path_factory.mktemp("bin"), "--drop-retention", "7d") as running:
        yield running


@pytest.fixture
def lake(server: BerglineServer, request: pytest.FixtureRequest) -> Iterator[Lake]:
    """A lake over the server, with an empty namespace `db`."""
    with bergline.connect(server.uri) as opened:
        if not opened.namespace_exists("db"):
            opened.create_namespace("db")
        for name in opened.list_tables("db"):
            opened.drop_table(name)
        yield opened


def test_purged_table_comes_back_with_rows_and_refs(lake: Lake) -> None:
    orders = lake.create_table("db.orders", ORDERS)
    orders.append(order_rows(1, 2))
    orders.refs.create_tag("v1")
    assert lake.purge_table("db.orders").deleted_files == 0
    assert lake.dropped_tables()[0].purges_files
    back = lake.undrop_table("db.orders")
    assert back.scan(ref="v1").to_arrow().num_rows == 2


def test_table_comes_back_under_another_name(lake: Lake) -> None:
    lake.create_table("db.items", ORDERS)
    lake.drop_table("db.items")
    lake.create_table("db.items", ORDERS)
    with pytest.raises(AlreadyExistsError, match=r"db\.items"):
        lake.undrop_table("db.items")
    assert lake.undrop_table("db.items", to="db.old_items").name.name == "old_items"


def test_table_that_was_not_dropped_is_not_found(lake: Lake) -> None:
    with pytest.raises(NotFoundError, match=r"db\.nowhere"):
        lake.undrop_table("db.nowhere")


def test_server_without_a_bin_is_named_as_such(bergline_server: BerglineServer) -> None:
    with bergline.connect(bergline_server.uri) as plain:
        assert plain.dropped_tables() == []
        with pytest.raises(UnsupportedError, match="keeps no dropped tables"):
            plain.undrop_table("db.orders")
        assert plain.dropped_views() == []
        with pytest.raises(UnsupportedError, match="keeps no dropped views"):
            plain.undrop_view("db.v")


def test_dropped_view_comes_back(lake: Lake) -> None:
    lake.create_view("db.v", "SELECT 1 AS id", ORDERS)
    lake.drop_view("db.v")
    assert [str(view.name) for view in lake.dropped_views(1)] == ["db.v"]
    assert lake.undrop_view("db.v", to="db.w").sql() == "SELECT 1 AS id"
    with pytest.raises(NotFoundError, match=r"no dropped view `db\.v`"):
        lake.undrop_view("db.v")
    lake.drop_view("db.w")
    lake.create_view("db.w", "SELECT 2 AS id", ORDERS)
    with pytest.raises(AlreadyExistsError, match=r"`db\.w`"):
        lake.undrop_view("db.w")
    lake.drop_view("db.w")


def test_all_pages_of_the_trash_are_read(server: BerglineServer, lake: Lake) -> None:
    before = len(lake.dropped_tables())
    for _ in range(3):
        lake.create_table("db.paged", ORDERS)
        lake.drop_table("db.paged")
    with bergline.connect(server.uri, properties={"rest-page-size": "2"}) as paged:
        assert len(paged.dropped_tables()) == before + 3
        assert paged.dropped_tables(3) == paged.dropped_tables()[:3]
