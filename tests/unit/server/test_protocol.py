"""Connections that send too much, or too slowly, end in time."""

import contextlib
import http.client
import socket
import time
from collections.abc import Iterator

import msgspec
import pytest
from asked import Asking
from served_socket import on_socket

from bergline.server.served import Served

TIMEOUT = 0.4


@pytest.fixture
def port(served: Served) -> Iterator[int]:
    served.settings = msgspec.structs.replace(served.settings, body_timeout_s=TIMEOUT, max_header_bytes=2000)
    with on_socket(served) as found:
        yield found


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
    for parts in ((), (b"GET /health HTTP/1.1\r\nhost: localhost\r\n",)):
        told, seconds = sent(port, *parts)
        assert told == b""
        assert TIMEOUT / 2 < seconds < 20


def test_body_that_never_comes_is_given_up(port: int) -> None:
    told, _ = sent(port, b"POST /v1/namespaces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{")
    assert told.startswith(b"HTTP/1.1 408")


def test_head_that_is_too_large_is_refused(port: int) -> None:
    for head in (b"GET /health HTTP/1.1\r\nx: " + b"y" * 3000, b"GET /" + b"a" * 3000 + b" HTTP/1.1"):
        told, _ = sent(port, head + b"\r\nhost: localhost\r\n\r\n")
        assert told.startswith(b"HTTP/1.1 431")
        assert b"200 OK" not in told


def test_one_connection_serves_many_requests(port: int) -> None:
    request = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
    told, _ = sent(port, request * 3, b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    assert told.count(b'{"status":"ok"}') == 4


def get(path: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join([b"GET " + path + b" HTTP/1.1", b"host: localhost", *headers, b"", b""])


LAST = b"connection: close"
UPGRADE = b"connection: upgrade\r\nupgrade: h2c"


@pytest.mark.parametrize("parts", [1, 2, 9])
def test_body_of_a_request_that_wishes_for_another_protocol_is_no_request(port: int, parts: int) -> None:
    inner = get(b"/v1/smuggled", LAST)
    body = b'{"namespace": ["db"], "x": ' + b"1" * 100 + b"}"
    for sent_body, status in ((body, b"200"), (inner, b"400")):
        head = b"POST /v1/namespaces HTTP/1.1\r\nhost: localhost\r\n%s\r\ncontent-length: %d\r\n\r\n" % (
            UPGRADE,
            len(sent_body),
        )
        whole = head + sent_body + get(b"/health", LAST)
        step = len(whole) // parts + 1
        told, _ = sent(port, *(whole[at : at + step] for at in range(0, len(whole), step)))
        assert told.startswith(b"HTTP/1.1 " + status)
        assert told.endswith(b'{"status":"ok"}')
        assert b"smuggled" not in told


def test_chunked_body_of_a_request_that_wishes_for_another_protocol_is_refused(port: int) -> None:
    head = b"POST /v1/namespaces HTTP/1.1\r\nhost: localhost\r\n" + UPGRADE + b"\r\ntransfer-encoding: chunked\r\n\r\n"
    told, _ = sent(port, head, b"2\r\n{}\r\n0\r\n\r\n", get(b"/health", LAST))
    assert told.startswith(b"HTTP/1.1 400")
    assert told.count(b"HTTP/1.1") == 1


def test_request_that_follows_a_wish_for_another_protocol_is_answered(port: int) -> None:
    told, _ = sent(port, get(b"/health", UPGRADE) + get(b"/ready", LAST))
    assert told.count(b"200 OK") == 2


@pytest.mark.parametrize("text", [b"hello\r\n\r\n", get(b"/health", b"content-length: 1", b"content-length: 2")])
def test_what_is_no_request_is_refused_in_words_of_the_protocol(port: int, text: bytes) -> None:
    told, _ = sent(port, text)
    head, _, body = told.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert b"content-type: application/json" in head
    assert msgspec.json.decode(body)["error"]["code"] == 400


def test_blank_lines_keep_no_connection_open(port: int) -> None:
    told, seconds = sent(port, get(b"/health"), b"\r\n")
    assert told.endswith(b'{"status":"ok"}')
    assert seconds < 20


def test_reader_who_stops_reading_is_given_up(port: int, served: Served) -> None:
    with Asking(served) as ask:
        ask.namespace("db")
        ask.table(properties={"p": "x" * 8_000_000})
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", port))
        connection.settimeout(30)
        connection.sendall(get(b"/v1/namespaces/db/tables/orders"))
        time.sleep(TIMEOUT * 4)
        told = 0
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(65536):
                told += len(part)
    assert told < 8_000_000


def test_slow_reader_is_waited_for(port: int, served: Served) -> None:
    with Asking(served) as ask:
        ask.namespace("db")
        ask.table(properties={"p": "x" * 8_000_000})
    told = 0
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(get(b"/v1/namespaces/db/tables/orders", LAST))
        while part := connection.recv(1_000_000):
            told += len(part)
            time.sleep(TIMEOUT / 8)
    assert told > 8_000_000


def test_sender_of_too_large_a_body_sees_why(port: int, served: Served) -> None:
    size = served.settings.max_body_bytes + 1
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", "/v1/namespaces", b"x" * size)
    assert connection.getresponse().read().startswith(b'{"error"')
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200
    connection.close()


def test_body_that_was_announced_and_not_asked_for_is_no_part_of_what_follows(port: int) -> None:
    head = b"POST /v1/nothing HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 100\r\n\r\n"
    told, seconds = sent(port, head)
    assert told.startswith(b"HTTP/1.1 404")
    assert b"connection: close" in told
    assert seconds < TIMEOUT * 10
