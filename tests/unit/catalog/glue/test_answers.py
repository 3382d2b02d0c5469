"""AWS Glue behind a proxy that lets a change land and then answers anything: no outcome is wrong, no live file goes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bergline
from bergline import Lake
from bergline.errors import CommitUnknownError
from support.fixtures.rows import ORDERS, ids, order_rows
from support.servers.glue_server import ANSWER_LOST, Fault, GlueProxy

PAGE = b"<html><body>Service unavailable</body></html>"
NOT_CERTAIN = {
    "lost": ANSWER_LOST,
    "200 page": Fault(arrives=True, status=200, body=PAGE, content_type="text/html"),
    "200 page as json": Fault(arrives=True, status=200, body=PAGE),
    "200 empty": Fault(arrives=True, status=200, body=b""),
    "200 cut": Fault(arrives=True, status=200, body=b'{"Tab'),
    "200 list": Fault(arrives=True, status=200, body=b"[]"),
    **{
        f"{status} page": Fault(arrives=True, status=status, body=PAGE, content_type="text/html")
        for status in (204, 301, 302, 307, 400, 403, 404, 409, 429, 500, 503, 520, 599)
    },
    **{f"{status} empty": Fault(arrives=True, status=status, body=b"") for status in (301, 403, 404)},
    **{f"{s} untyped": Fault(arrives=True, status=s, body=b'{"message": "no"}') for s in (400, 404, 409)},
    **{
        f"{status} {code}": Fault(arrives=True, status=status, code=code)
        for status, code in (
            (302, "ConcurrentModificationException"),
            (500, "ConcurrentModificationException"),
            (502, "AccessDeniedException"),
            (503, "ThrottlingException"),
            (400, "GlueEncryptionException"),
            (400, "FederationSourceException"),
            (400, "SomethingNewException"),
        )
    },
}
any_answer = pytest.mark.parametrize("fault", NOT_CERTAIN.values(), ids=NOT_CERTAIN)


@pytest.fixture
def lake(glue: GlueProxy, tmp_path: Path) -> Iterator[Lake]:
    with bergline.connect("glue://", warehouse=tmp_path, properties=glue.properties) as opened:
        opened.catalog._access.sleep = lambda _: None  # type: ignore[attr-defined]
        opened.create_namespace("db")
        yield opened


def happened(do: Callable[[], object]) -> bool:
    """Whether it is said to have happened; any other error than that this is unknown fails the test."""
    try:
        do()
    except CommitUnknownError:
        return False
    return True


@any_answer
def test_every_change_that_landed_is_done_or_unknown(glue: GlueProxy, lake: Lake, tmp_path: Path, fault: Fault) -> None:
    glue.fail("CreateTable", fault)
    assert happened(lambda: lake.create_table("db.orders", ORDERS))
    orders = lake.load_table("db.orders")
    glue.fail("UpdateTable", fault)
    orders.append(order_rows(1))
    assert ids(lake.load_table("db.orders").scan().to_arrow()) == [1]
    glue.fail("UpdateTable", fault)
    orders.overwrite(order_rows(2))
    glue.fail("CreateTable", fault)
    lake.rename_table("db.orders", "db.moved")
    glue.fail("UpdateTable", fault)
    lake.rename_table("db.moved", "db.orders")
    glue.fail("DeleteTable", fault)
    lake.rename_table("db.orders", "db.moved")
    assert ids(lake.load_table("db.moved").scan().to_arrow()) == [2]
    assert lake.list_tables("db") == ["db.moved"]
    pointer = lake.load_table("db.moved").metadata_location
    glue.fail("DeleteTable", fault)
    lake.drop_table("db.moved")
    glue.fail("CreateTable", fault)
    assert happened(lambda: lake.register_table("db.again", pointer))
    before = {p for p in tmp_path.rglob("*") if p.is_file()}
    glue.fail("UpdateTable", fault)
    purged = happened(lambda: lake.purge_table("db.again"))
    assert lake.list_tables("db") == []
    assert purged or {p for p in tmp_path.rglob("*") if p.is_file()} == before


@any_answer
def test_every_change_of_a_namespace_that_landed_is_done(glue: GlueProxy, lake: Lake, fault: Fault) -> None:
    glue.fail("CreateDatabase", fault)
    lake.create_namespace("sales", {"owner": "us"})
    glue.fail("UpdateDatabase", fault)
    lake.update_namespace("sales", {"owner": "them"})
    assert lake.namespace_properties("sales") == {"owner": "them"}
    glue.fail("DeleteDatabase", fault)
    lake.drop_namespace("sales")
    assert lake.list_namespaces() == ["db"]


@pytest.mark.parametrize("operation", ["DeleteTable", "UpdateTable"])
def test_purge_deletes_nothing_while_a_drop_that_did_not_land_looks_done(
    glue: GlueProxy, lake: Lake, tmp_path: Path, operation: str
) -> None:
    lake.create_table("db.orders", ORDERS).append(order_rows(1))
    before = {p for p in tmp_path.rglob("*") if p.is_file()}
    lying = Fault(arrives=False, status=200, body=PAGE, content_type="text/html")
    glue.fail(operation, *[lying] * 100)
    happened(lambda: lake.purge_table("db.orders"))
    glue._faults.clear()
    if "db.orders" in lake.list_tables("db"):
        assert {p for p in tmp_path.rglob("*") if p.is_file()} == before
        assert ids(lake.load_table("db.orders").scan().to_arrow()) == [1]
