"""A policy server for tests: it answers as Open Policy Agent does, by a function, and notes what it was asked."""

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class PolicyServer:
    """Answers on a free port; it allows everything until it is told otherwise."""

    def __init__(self) -> None:
        self.decide: Callable[[dict[str, Any]], Any] = lambda _: True
        """The `result` for an `input`."""
        self.asked: list[dict[str, Any]] = []
        self.status = 200
        self.body: bytes | None = None
        """In place of the answer, if set."""
        self.delay_s = 0.0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                question = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
                outer.asked.append(question)
                time.sleep(outer.delay_s)
                body = json.dumps({"result": outer.decide(question)}).encode() if outer.body is None else outer.body
                self.send_response(outer.status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1/data/bergline/allow"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Be gone; again does nothing."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def privileges(self) -> list[tuple[str, str, str | None]]:
        """What was asked about: privilege, name and ref."""
        return [
            (one["privilege"], ".".join([*of["namespace"], *([of["name"]] if of["name"] else [])]), of["ref"])
            for one in self.asked
            for of in [one["securable"]]
        ]
