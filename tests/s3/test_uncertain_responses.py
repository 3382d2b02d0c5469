"""S3 behind a proxy that lets a change land and then answers anything: no outcome is wrong, no live file goes."""

from collections.abc import Callable, Iterator

import pytest

import bergline
from bergline import Lake
from bergline.errors import CommitUnknownError, StorageError
from bergline.io import conditional_writes, open_store
from bergline.io.object_store import ObjectStoreFileIO
from support.fixtures.rows import ORDERS, ids, order_rows
from support.proxies.s3_proxy import Proxy
from support.servers.s3_server import S3Server

PAGE = b"<html><body>Bad gateway</body></html>"


def answer(status: int, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Said", *headers, f"Content-Length: {len(body)}", "Connection: close", "", ""]
    return "\r\n".join(lines).encode() + body


def error(status: int, code: str) -> bytes:
    return answer(status, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode())


NOT_CERTAIN = {
    "none": b"",
    "cut": b"HTTP/1.1 200 OK\r\nContent-Le",
    "200 page": answer(200, PAGE, "Content-Type: text/html"),
    "200 page with a tag": answer(200, PAGE, "Content-Type: text/html", 'ETag: "5f8a1c2b-264"'),
    "200 page with its digest": answer(200, PAGE, 'ETag: "0cc175b9c0f1b6a831c399e269772661"'),
    "204 without a tag": answer(204),
    **{f"{s} empty": answer(s) for s in (300, 301, 304, 307, 400, 401, 403, 404, 405, 409, 410, 412, 429, 500, 599)},
    **{f"{s} page": answer(s, PAGE) for s in (400, 401, 403, 404, 409, 412, 502)},
    "403 json": answer(403, b'{"message": "no"}'),
    "404 of a key": error(404, "NoSuchKey"),
    "412 of its twin": error(412, "PreconditionFailed"),
    "500 typed": error(500, "AccessDenied"),
    "400 typed": error(400, "SomethingNew"),
}
any_answer = pytest.mark.parametrize("said", NOT_CERTAIN.values(), ids=NOT_CERTAIN)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_store, "RETRY_SECONDS", 2)
    monkeypatch.setattr(conditional_writes, "RETRY_SECONDS", 2)


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[Proxy]:
    with Proxy(s3_server.port) as proxy:
        yield proxy


@pytest.fixture
def far(s3_server: S3Server, proxy: Proxy) -> dict[str, str]:
    return {**s3_server.properties, "s3.endpoint": proxy.endpoint}


def happened(do: Callable[[], object]) -> bool:
    """Whether it is said to have happened; any other error than that this is unknown fails the test."""
    try:
        do()
    except CommitUnknownError:
        return False
    return True


def open_lake(uri: str, properties: dict[str, str]) -> Lake:
    lake = bergline.connect(uri, properties=properties, create=True)
    lake.catalog._access.sleep = lambda _: None  # type: ignore[attr-defined]
    return lake


@any_answer
def test_changes_of_a_catalog_in_objects_are_done(proxy: Proxy, far: dict[str, str], bucket: str, said: bytes) -> None:
    with open_lake(f"{bucket}/lake", far) as lake:
        proxy.answer_instead("PUT", "/catalog/namespaces/", said)
        lake.create_namespace("db", {"owner": "us"})
        proxy.answer_instead("PUT", "/catalog/pointers/", said)
        orders = lake.create_table("db.orders", ORDERS)
        proxy.answer_instead("PUT", "/catalog/pointers/", said)
        orders.append(order_rows(1))
        proxy.answer_instead("PUT", "/catalog/pointers/", said)
        orders.overwrite(order_rows(2))
        assert ids(lake.load_table("db.orders").scan().to_arrow()) == [2]
        proxy.answer_instead("PUT", "/catalog/commits/", said)
        lake.rename_table("db.orders", "db.moved")
        assert lake.list_tables("db") == ["db.moved"]
        assert ids(lake.load_table("db.moved").scan().to_arrow()) == [2]
        before = lake.catalog.io.list(f"{bucket}/lake/warehouse")
        proxy.answer_instead("PUT", "/catalog/pointers/", said)
        purged = happened(lambda: lake.purge_table("db.moved"))
        assert lake.list_tables("db") == []
        assert purged or lake.catalog.io.list(f"{bucket}/lake/warehouse") == before
        assert proxy.all_answered()


@any_answer
def test_changes_of_version_files_are_done(proxy: Proxy, far: dict[str, str], bucket: str, said: bytes) -> None:
    with open_lake(f"version-hint:{bucket}/wh", far) as lake:
        proxy.answer_instead("PUT", "/wh/db/.namespace", said)
        lake.create_namespace("db", {"owner": "us"})
        proxy.answer_instead("PUT", "/v1.metadata.json", said)
        orders = lake.create_table("db.orders", ORDERS)
        proxy.answer_instead("PUT", "/v2.metadata.json", said)
        orders.append(order_rows(1))
        proxy.answer_instead("PUT", "/v3.metadata.json", said)
        orders.overwrite(order_rows(2))
        assert ids(lake.load_table("db.orders").scan().to_arrow()) == [2]
        before = [f for f in lake.catalog.io.list(f"{bucket}/wh/db/orders") if ".metadata.json" not in f]
        proxy.answer_instead("PUT", "/v4.metadata.json", said)
        purged = happened(lambda: lake.purge_table("db.orders"))
        assert lake.list_tables("db") == []
        left = [f for f in lake.catalog.io.list(f"{bucket}/wh/db/orders") if ".metadata.json" not in f]
        assert purged or left == before
        assert proxy.all_answered()


@pytest.mark.parametrize("said", [s for s in NOT_CERTAIN.values() if s != NOT_CERTAIN["412 of its twin"]])
def test_files_that_landed_are_created(proxy: Proxy, far: dict[str, str], bucket: str, said: bytes) -> None:
    io = ObjectStoreFileIO(far)
    proxy.answer_instead("PUT", "/file", said)
    io.create(f"{bucket}/file", b"abc")
    assert io.read(f"{bucket}/file") == b"abc"
    proxy.answer_instead("PUT", "/small", said)
    output = io.create_output(f"{bucket}/small")
    output.stream().write(b"abc")
    assert output.close() == len(b"abc")


@pytest.mark.parametrize("page", ["200 page", "200 page with a tag", "200 page with its digest"])
def test_page_in_place_of_a_file_is_not_taken_for_it(proxy: Proxy, far: dict[str, str], bucket: str, page: str) -> None:
    proxy.pass_on = False
    proxy.answer_instead("PUT", "/file", NOT_CERTAIN[page])
    with pytest.raises(StorageError, match=r"cannot (write|find out whether)"):
        ObjectStoreFileIO(far).create(f"{bucket}/file", b"abc")


def test_answer_that_proves_itself_costs_no_second_request(proxy: Proxy, far: dict[str, str], bucket: str) -> None:
    ObjectStoreFileIO(far).create(f"{bucket}/file", b"abc")
    assert [request.split()[0] for request in proxy.requests] == ["PUT"]
