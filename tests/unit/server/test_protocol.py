"""Connections that send too much, or too slowly, end in time."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import msgspec
import pytest
import uvicorn

from bergline.server.app import Application
from bergline.server.protocol import guarded_protocol
from bergline.server.served import Served

TIMEOUT = 0.4


@pytest.fixture
def port(served: Served) -> Iterator[int]:
    served.settings = msgspec.structs.replace(served.settings, body_timeout_s=TIMEOUT, max_header_bytes=2000)
    listening = socket.create_server(("127.0.0.1", 0))
    protocol = guarded_protocol(served.settings)
    config = uvicorn.Config(Application(served), http=protocol, ws="none", log_level="critical", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join()
    listening.close()


def sent(port: int, *parts: bytes) -> tuple[bytes, float]:
    """What comes back until the server hangs up, and after how long."""
    began, told = time.monotonic(), b""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection, contextlib.suppress(ConnectionError):
        for part in parts:
            connection.sendall(part)
        while part := connection.recv(65536):
            told += part
    return told, time.monotonic() - began


def test_head_that_never_ends_is_given_up(port: int) -> None:
    for parts in ((), (b"GET /health HTTP/1.1\r\nhost: h\r\n",)):
        told, seconds = sent(port, *parts)
        assert told == b""
        assert TIMEOUT / 2 < seconds < 20


def test_body_that_never_comes_is_given_up(port: int) -> None:
    told, _ = sent(port, b"POST /v1/namespaces HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\n{")
    assert told.startswith(b"HTTP/1.1 408")


def test_head_that_is_too_large_is_refused(port: int) -> None:
    for head in (b"GET /health HTTP/1.1\r\nx: " + b"y" * 3000, b"GET /" + b"a" * 3000 + b" HTTP/1.1"):
        told, _ = sent(port, head + b"\r\nhost: h\r\n\r\n")
        assert told.startswith(b"HTTP/1.1 431")
        assert b"200 OK" not in told


def test_one_connection_serves_many_requests(port: int) -> None:
    request = b"GET /health HTTP/1.1\r\nhost: h\r\n\r\n"
    told, _ = sent(port, request * 3, b"GET /health HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
    assert told.count(b'{"status":"ok"}') == 4
