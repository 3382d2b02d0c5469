"""What boto3 raises, and what it means."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import bergline
from bergline import Lake
from bergline.errors import AuthenticationError, StorageError, UnavailableError
from support.servers.glue_server import GlueProxy, refused


@pytest.fixture
def glue_lake(glue: GlueProxy, tmp_path: Path) -> Iterator[Lake]:
    with bergline.connect("glue://", warehouse=tmp_path, properties=glue.properties) as lake:
        lake.create_namespace("db")
        yield lake


@contextmanager
def web_server(status: int, content_type: str, body: bytes) -> Iterator[dict[str, str]]:
    """Properties that lead to a server which always says the same."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield {
            "glue.endpoint": f"http://127.0.0.1:{server.server_port}",
            "glue.region": "us-east-1",
            "glue.access-key-id": "key",
            "glue.secret-access-key": "secret",
        }
        server.shutdown()
        thread.join(timeout=5)


def test_server_that_is_not_there_is_unavailable(glue: GlueProxy, tmp_path: Path) -> None:
    properties = {**glue.properties, "glue.endpoint": "http://127.0.0.1:1"}
    with bergline.connect("glue://", warehouse=tmp_path, properties=properties) as lake:
        with pytest.raises(UnavailableError, match=r"AWS Glue at http://127\.0\.0\.1:1 did not answer get_databases"):
            lake.list_namespaces()
        with pytest.raises(UnavailableError, match="did not answer get_database"):
            lake.create_namespace("db")


@pytest.mark.parametrize(
    ("status", "content_type", "body"),
    [
        (200, "text/html", b"<html>Welcome</html>"),
        (404, "text/html", b"<html>Not here</html>"),
        (403, "application/json", b"{}"),
        (301, "text/html", b""),
        (200, "application/json", b"{}"),
        (200, "application/json", b'{"DatabaseList": [{"Name": null}]}'),
    ],
)
def test_another_server_is_not_taken_for_glue(tmp_path: Path, status: int, content_type: str, body: bytes) -> None:
    with (
        web_server(status, content_type, body) as properties,
        bergline.connect("glue://", warehouse=tmp_path, properties=properties) as lake,
    ):
        for call in (lake.list_namespaces, lambda: lake.load_table("db.orders")):
            with pytest.raises(StorageError, match=r"expected AWS Glue at http://127\S+, found another server"):
                call()
        if content_type == "text/html":
            with pytest.raises(StorageError, match="found another server"):
                lake.create_namespace("db")


def test_missing_credentials_are_asked_for(glue: GlueProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    properties = {"glue.endpoint": glue.endpoint, "glue.region": "us-east-1"}
    with (
        bergline.connect("glue://", warehouse=tmp_path, properties=properties) as lake,
        pytest.raises(AuthenticationError, match="Unable to locate credentials"),
    ):
        lake.create_namespace("db")
    assert not glue.calls


def test_wrong_credentials_are_named_once(glue: GlueProxy, glue_lake: Lake) -> None:
    glue.fail("GetTable", refused("UnrecognizedClientException"))
    glue.calls.clear()
    with pytest.raises(AuthenticationError, match="UnrecognizedClientException"):
        glue_lake.load_table("db.orders")
    assert glue.calls["GetTable"] == 1
