"""Object stores that are none: other servers, and a client that panics."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import obstore
import pytest
from obstore.store import MemoryStore, S3Store

from bergline.errors import StorageError, UnavailableError
from bergline.io import object_store
from bergline.io.fileio import FileIO
from bergline.io.object_store import ObjectStoreFileIO
from bergline.io.open_store import OpenStore
from bergline.testing.file_io_suite import FileIOSuite

PLACE = "s3://bucket/a/b"
KEYS = {"s3.access-key-id": "key", "s3.secret-access-key": "hush-hush", "s3.region": "us-east-1"}
CALLS: dict[str, Callable[[ObjectStoreFileIO], object]] = {
    "create": lambda files: files.create(PLACE, b"x"),
    "read": lambda files: files.read(PLACE),
    "read_range": lambda files: files.read_range(PLACE, 0, 1),
    "open_input": lambda files: files.open_input(PLACE),
    "list": lambda files: files.list("s3://bucket/a"),
}


class _Pages(BaseHTTPRequestHandler):
    """Has no page, whatever it is asked for."""

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(404)
        self.send_header("content-length", "26")
        self.end_headers()
        self.wfile.write(b"<html>404 not found</html>")

    do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815  (named as the server wants)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def web_server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", CALLS)
def test_web_server_is_no_object_store(web_server: str, name: str) -> None:
    files = ObjectStoreFileIO({**KEYS, "s3.endpoint": f"http://{web_server}"})
    with pytest.raises(StorageError, match=f"{web_server} answered with status 404, and not like an object") as caught:
        CALLS[name](files)
    assert "check the endpoint" in caught.value.hints[0]


def test_nothing_is_deleted_on_a_web_server(web_server: str) -> None:
    files = ObjectStoreFileIO({**KEYS, "s3.endpoint": f"http://{web_server}"})
    assert files.delete([PLACE, f"{PLACE}2"]) == [PLACE, f"{PLACE}2"]


def test_server_without_tls_is_told_at_once(web_server: str) -> None:
    files = ObjectStoreFileIO({**KEYS, "s3.endpoint": f"https://{web_server}"})
    with pytest.raises(UnavailableError, match=f"the server https://{web_server} does not speak TLS") as caught:
        files.create(PLACE, b"x")
    assert "http://" in caught.value.hints[0]


@pytest.mark.parametrize("name", CALLS)
def test_client_that_panics_is_a_storage_error(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    config = {"endpoint": "http://127.0.0.1:99999", "region": "x", "access_key_id": "a", "secret_access_key": "b"}
    store = S3Store("bucket", config=config, client_options={"allow_http": True}, retry_config={"max_retries": 0})
    monkeypatch.setattr(object_store, "open_store", lambda *_: OpenStore(obstore, store, store))
    with pytest.raises(StorageError, match="the client stopped"):
        CALLS[name](ObjectStoreFileIO())
    assert ObjectStoreFileIO().delete([PLACE]) == [PLACE]


class TestObjectStoreFileIO(FileIOSuite):
    """On the client's own store in memory; `tests/s3` has the same on a real server."""

    large = 40 * 1024 * 1024 + 17

    @pytest.fixture(autouse=True)
    def _place(self) -> None:
        self._io = ObjectStoreFileIO()
        bucket = MemoryStore()
        self._io._stores["s3", "bucket"] = OpenStore(obstore, bucket, bucket)

    def make_io(self) -> FileIO:
        return self._io

    def make_directory(self) -> str:
        return "s3://bucket/ware house"
