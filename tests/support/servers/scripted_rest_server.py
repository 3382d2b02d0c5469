"""A REST server that says what a test tells it to, over real connections: also nothing at all, half, or too late."""

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit

from bergline.catalog.catalog import LoadedTable
from bergline.format.metadata.json import render_metadata
from bergline.governance.endpoints import ENDPOINTS


class Request(NamedTuple):
    """What a client sent."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def content(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Reply(NamedTuple):
    """What the client gets: without a status the connection ends before the answer, with `cut` amid its body."""

    status: int | None = 200
    body: Any = None
    headers: Mapping[str, str] = MappingProxyType({})
    cut: bool = False

    @property
    def data(self) -> bytes:
        """The bytes of the body."""
        if isinstance(self.body, bytes):
            return self.body
        return b"" if self.body is None else json.dumps(self.body).encode()


NO_ANSWER = Reply(None)


def refused(status: int, kind: str, message: str = "as the test asked", **headers: str) -> Reply:
    """An error as the protocol words it."""
    fields = {name.replace("_", "-"): text for name, text in headers.items()}
    return Reply(status, {"error": {"message": message, "type": kind, "code": status}}, fields)


def load_answer(table: LoadedTable, **more: Any) -> dict[str, Any]:
    """A table as a server sends it."""
    metadata = json.loads(render_metadata(table.metadata))
    return {"metadata-location": table.metadata_location, "metadata": metadata, **more}


class RestScript:
    """The server; `uri` leads to it, `requests` are those that it got. The last reply for an address stays."""

    def __init__(self, **config: Any) -> None:
        self.requests: list[Request] = []
        self._replies: defaultdict[str, list[Reply | Callable[[Request], Reply]]] = defaultdict(list)
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self.uri = f"http://127.0.0.1:{self._http.server_port}"
        everything = {"defaults": {}, "overrides": {}, "endpoints": [str(e) for e in ENDPOINTS]}
        self.on("GET /v1/config", Reply(body={**everything, **config}))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(timeout=5)

    def on(self, address: str, *replies: Reply | Callable[[Request], Reply]) -> None:
        """The replies to come for `METHOD /path`, in place of those before."""
        self._replies[address] = list(replies)

    def sent(self, address: str) -> list[Request]:
        """The requests for `METHOD /path` so far."""
        return [r for r in self.requests if f"{r.method} {r.path}" == address]

    def reply(self, request: Request) -> Reply:
        """What this request gets."""
        self.requests.append(request)
        waiting = self._replies[f"{request.method} {request.path}"]
        if not waiting:
            return refused(404, "NoSuchTableException", f"no script for {request.method} {request.path}")
        reply = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        return reply if isinstance(reply, Reply) else reply(request)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _answer(self) -> None:
                address = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                query = dict(parse_qsl(address.query, keep_blank_values=True))
                reply = script.reply(Request(self.command, address.path, query, dict(self.headers.items()), body))
                if reply.status is None:
                    self.close_connection = True
                    return
                data = reply.data
                self.send_response(reply.status)
                for name, text in reply.headers.items():
                    self.send_header(name, text)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data[: len(data) // 2] if reply.cut else data)
                self.close_connection = self.close_connection or reply.cut

            do_GET = do_HEAD = do_POST = do_DELETE = _answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler
