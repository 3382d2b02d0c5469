"""Stands before a server and decides what becomes of a change, and what whoever sent it is told about it."""

import http.client
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, NamedTuple, Self
from urllib.parse import urlsplit

_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}
_WITHOUT_BODY = {204, 304}
_RESET = struct.pack("ii", 1, 0)


Arrival = Literal["now", "never", "later"]
Told = Literal["own", "server", "half", "nothing", "reset"]


class Fate(NamedTuple):
    """Whether a change arrives, and its answer: an own one, or that of the server, whole or not."""

    arrives: Arrival = "now"
    told: Told = "own"
    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class Asked(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class AnsweringProxy:
    """`uri` leads through it to the server; what changes something meets the next of the fates, the last for ever.

    Without fates everything passes. Without `keys` the server is said not to know idempotency keys, and without
    `shows_kind` not to be bergline's.
    """

    def __init__(self, uri: str) -> None:
        self._server = urlsplit(uri).netloc
        self._fates: list[Fate] = []
        self._held: list[Asked] = []
        self._then: Callable[[], object] | None = None
        self.keys = True
        self.shows_kind = True
        self.changes = 0
        self.statuses: list[int] = []
        """What the server really answered to the changes since the fates are known."""
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self.uri = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(timeout=5)

    def meet(self, fates: Iterable[Fate], then: Callable[[], object] | None = None) -> None:
        """The fates of the changes to come; and what happens once the first has met its own, before it is told."""
        with self._lock:
            self._fates = list(fates)
            self._then = then
            self.changes = 0
            self.statuses = []

    def release(self) -> int:
        """Send what was held back, in its order; how many they were."""
        with self._lock:
            held, self._held = self._held, []
        for asked in held:
            self._pass_on(asked)
        return len(held)

    def _fate(self, asked: Asked) -> Fate | None:
        """None for what only reads, or only stages a table."""
        if asked.method in {"GET", "HEAD"} or asked.path.endswith("/tables"):
            return None
        with self._lock:
            self.changes += 1
            if not self._fates:
                return None
            fate = self._fates.pop(0) if len(self._fates) > 1 else self._fates[0]
            if fate.arrives == "later":
                self._held.append(asked)
            return fate

    def _pass_on(self, asked: Asked) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self._server, timeout=60)
        connection.request(asked.method, asked.path, asked.body or None, asked.headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if asked.path.startswith("/v1/config"):
            data = self._config(data)
        if asked.method not in {"GET", "HEAD"}:
            self.statuses.append(answer.status)
        return answer.status, answer.getheaders(), data

    def _config(self, data: bytes) -> bytes:
        config = json.loads(data)
        if not self.keys:
            config["idempotency-key-lifetime"] = None
        if not self.shows_kind:
            config["overrides"] = {n: t for n, t in config["overrides"].items() if not n.startswith("bergline.")}
        return json.dumps(config).encode()

    def _happen(self) -> None:
        with self._lock:
            then, self._then = self._then, None
        if then is not None:
            then()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {n: t for n, t in self.headers.items() if n.lower() != "accept-encoding"}
                asked = Asked(self.command, self.path, headers, body)
                fate = proxy._fate(asked) or Fate(told="server")
                status, sent, data = fate.status, list(fate.headers), fate.body
                if fate.arrives == "now":
                    real = proxy._pass_on(asked)
                    if fate.told in {"server", "half"}:
                        status, sent, data = real
                if asked.method not in {"GET", "HEAD"}:
                    proxy._happen()
                if fate.told in {"nothing", "reset"}:
                    self._leave(reset=fate.told == "reset")
                    return
                data = b"" if status in _WITHOUT_BODY else data
                self.send_response(status)
                for name, text in sent:
                    if name.lower() not in _HOP:
                        self.send_header(name, text)
                self.send_header("Content-Length", str(len(data) + (not data and fate.told == "half")))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data[: len(data) // 2] if fate.told == "half" else data)
                self.close_connection = self.close_connection or fate.told == "half"

            def _leave(self, *, reset: bool) -> None:
                self.close_connection = True
                if reset:
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                    self.connection.close()

            do_GET = do_HEAD = do_POST = do_DELETE = _answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler
