"""Connections that send too much, or too slowly, end in time."""

import contextlib
import http.client
import math
import socket
from collections.abc import Iterator

import msgspec
import pytest

from bergline.server.context.context import ServerContext
from support.servers.asgi_client import AsgiClient
from support.servers.manual_clock import ManualClock
from support.servers.server_on_socket import on_socket

pytestmark = pytest.mark.long

TIMEOUT = 30.0
"""Seconds of a clock that stands still unless a test lets them pass: whoever is slow here does not matter."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def port(context: ServerContext, clock: ManualClock) -> Iterator[int]:
    limits = msgspec.structs.replace(context.settings, body_timeout_s=TIMEOUT, max_header_bytes=2000)
    with on_socket(context, clock.protocol(limits)) as found:
        yield found


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def heard(connection: socket.socket) -> bytes:
    """What comes until the server hangs up."""
    response = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65536):
            response += part
    return response


def sent(port: int, *parts: bytes) -> bytes:
    """What comes back until the server hangs up."""
    with connected(port) as connection, contextlib.suppress(ConnectionError):
        for part in parts:
            connection.sendall(part)
        return heard(connection)
    return b""


def is_open(clock: ManualClock) -> bool:
    """Whether the server still listens on the last connection."""
    return not clock.connections[-1].transport.is_closing()


@pytest.mark.parametrize("part", [b"", b"GET /health HTTP/1.1\r\nhost: localhost\r\n"])
def test_head_that_never_ends_is_given_up(port: int, clock: ManualClock, part: bytes) -> None:
    with connected(port) as connection:
        connection.sendall(part)
        clock.advance(TIMEOUT * 0.9)
        assert is_open(clock)
        clock.advance(TIMEOUT * 0.2)
        assert heard(connection) == b""


def test_body_that_never_comes_is_given_up(port: int, context: ServerContext) -> None:
    context.settings = msgspec.structs.replace(context.settings, body_timeout_s=0.05)
    response = sent(port, b"POST /v1/namespaces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{")
    assert response.startswith(b"HTTP/1.1 408")


def test_head_that_is_too_large_is_refused(port: int) -> None:
    for head in (b"GET /health HTTP/1.1\r\nx: " + b"y" * 3000, b"GET /" + b"a" * 3000 + b" HTTP/1.1"):
        response = sent(port, head + b"\r\nhost: localhost\r\n\r\n")
        assert response.startswith(b"HTTP/1.1 431")
        assert b"200 OK" not in response


def test_one_connection_serves_many_requests(port: int) -> None:
    request = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
    response = sent(port, request * 3, b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    assert response.count(b'{"status":"ok"}') == 4


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
        response = sent(port, *(whole[at : at + step] for at in range(0, len(whole), step)))
        assert response.startswith(b"HTTP/1.1 " + status)
        assert response.endswith(b'{"status":"ok"}')
        assert b"smuggled" not in response


def test_chunked_body_of_a_request_that_wishes_for_another_protocol_is_refused(port: int) -> None:
    head = b"POST /v1/namespaces HTTP/1.1\r\nhost: localhost\r\n" + UPGRADE + b"\r\ntransfer-encoding: chunked\r\n\r\n"
    response = sent(port, head, b"2\r\n{}\r\n0\r\n\r\n", get(b"/health", LAST))
    assert response.startswith(b"HTTP/1.1 400")
    assert response.count(b"HTTP/1.1") == 1


def test_request_that_follows_a_wish_for_another_protocol_is_answered(port: int) -> None:
    response = sent(port, get(b"/health", UPGRADE) + get(b"/ready", LAST))
    assert response.count(b"200 OK") == 2


@pytest.mark.parametrize("text", [b"hello\r\n\r\n", get(b"/health", b"content-length: 1", b"content-length: 2")])
def test_what_is_no_request_is_refused_in_words_of_the_protocol(port: int, text: bytes) -> None:
    response = sent(port, text)
    head, _, body = response.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert b"content-type: application/json" in head
    assert msgspec.json.decode(body)["error"]["code"] == 400


def test_blank_lines_keep_no_connection_open(port: int, clock: ManualClock) -> None:
    with connected(port) as connection:
        connection.sendall(get(b"/health"))
        response = b""
        while not response.endswith(b'{"status":"ok"}'):
            response += connection.recv(65536)
        for _ in range(2):
            assert is_open(clock)
            connection.sendall(b"\r\n")
            clock.advance(TIMEOUT * 0.6)
        assert heard(connection) == b""


def test_reader_who_stops_reading_is_given_up(port: int, context: ServerContext, clock: ManualClock) -> None:
    with AsgiClient(context) as client:
        client.namespace("db")
        client.table(properties={"p": "x" * 8_000_000})
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", port))
        connection.sendall(get(b"/v1/namespaces/db/tables/orders"))
        connection.recv(1)  # it has begun to answer
        clock.advance(TIMEOUT * 0.9)
        assert is_open(clock)
        for _ in range(3):  # what went into the network's own buffers meanwhile counts as read
            clock.advance(TIMEOUT)
        assert len(heard(connection)) < 8_000_000


def test_slow_reader_is_waited_for(port: int, context: ServerContext, clock: ManualClock) -> None:
    """Time passes whenever the server got rid of something, and more of it in the end than any reader has."""
    with AsgiClient(context) as client:
        client.namespace("db")
        client.table(properties={"p": "x" * 8_000_000})
    response, waited, unread = 0, 0.0, math.inf
    with connected(port) as connection:
        connection.sendall(get(b"/v1/namespaces/db/tables/orders", LAST))
        while part := connection.recv(1_000_000):
            response += len(part)
            left = clock.connections[-1].transport.get_write_buffer_size()
            if 0 < left < unread:
                clock.advance(TIMEOUT * 0.9)
                waited, unread = waited + TIMEOUT * 0.9, left
    assert response > 8_000_000
    assert waited > TIMEOUT * 3


def test_sender_of_too_large_a_body_sees_why(port: int, context: ServerContext) -> None:
    size = context.settings.max_body_bytes + 1
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/v1/namespaces", b"x" * size)
    assert connection.getresponse().read().startswith(b'{"error"')
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200
    connection.close()


def test_body_that_was_announced_and_not_asked_for_is_no_part_of_what_follows(port: int) -> None:
    head = b"POST /v1/nothing HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 100\r\n\r\n"
    response = sent(port, head)
    assert response.startswith(b"HTTP/1.1 404")
    assert b"connection: close" in response


def test_connections_beyond_the_limit_are_told_to_come_back(context: ServerContext, clock: ManualClock) -> None:
    limits = msgspec.structs.replace(context.settings, max_connections=2)
    with on_socket(context, clock.protocol(limits)) as port, connected(port) as first, connected(port) as second:
        for connection in (first, second):
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        response = sent(port, b"")
        assert response.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nretry-after: 1\r\n" in response
        assert b"ServiceUnavailableException" in response
        first.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert heard(first).startswith(b"HTTP/1.1 200 ")
