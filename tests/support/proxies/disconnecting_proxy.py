"""Stands before a server and cuts connections: before a request arrives, after it did, or amid its answer."""

import http.client
import random
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import urlsplit

_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


class CuttingProxy:
    """`uri` leads through it to the server; each request is cut with a chance of `cuts`."""

    def __init__(self, uri: str, *, seed: int = 0) -> None:
        self._server = urlsplit(uri).netloc
        self._random = random.Random(seed)  # noqa: S311
        self.cuts = 0.0
        self.counts = dict.fromkeys(("before", "after", "amid"), 0)
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

    def _fate(self) -> str | None:
        if self._random.random() >= self.cuts:
            return None
        fate = self._random.choice(list(self.counts))
        self.counts[fate] += 1
        return fate

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                fate = proxy._fate()
                self.close_connection = self.close_connection or fate is not None
                if fate == "before":
                    return
                connection = http.client.HTTPConnection(proxy._server, timeout=60)
                connection.request(self.command, self.path, body or None, dict(self.headers.items()))
                answer = connection.getresponse()
                data = answer.read()
                connection.close()
                if fate == "after":
                    return
                self.send_response(answer.status)
                for name, text in answer.getheaders():
                    if name.lower() not in _HOP:
                        self.send_header(name, text)
                self.send_header("Content-Length", answer.getheader("Content-Length") or str(len(data)))
                self.end_headers()
                self.wfile.write(data[: len(data) // 2] if fate == "amid" else data)

            do_GET = do_HEAD = do_POST = do_DELETE = _pass_on  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler
