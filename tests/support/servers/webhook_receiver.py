"""A receiver of webhooks for tests: it keeps what it gets, and answers as it is told."""

import base64
import hashlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self


class Message(NamedTuple):
    """What came in."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def events(self) -> list[Any]:
        found: list[Any] = json.loads(self.body)
        return found

    @property
    def positions(self) -> list[int]:
        return [int(event["sequence"]) for event in self.events]

    def is_signed_by(self, secret: str) -> bool:
        """As the text of Standard Webhooks says, with nothing of ours."""
        key = base64.b64decode(secret.split("_", 1)[1])
        content = b".".join(
            [self.headers["webhook-id"].encode(), self.headers["webhook-timestamp"].encode(), self.body]
        )
        expected = base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
        return self.headers["webhook-signature"] == f"v1,{expected}"


class WebhookReceiver:
    """Takes messages on a free port of this machine."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.statuses: list[int] = []
        """The next answers; 200 when there are no more."""
        self.location = ""
        """Where an answer of 302 leads."""
        self.stalled: threading.Event | None = None
        """If set, answers wait for it."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.messages.append(Message(self.path, headers, body))
                if outer.stalled is not None:
                    outer.stalled.wait(30)
                self.send_response(outer.statuses.pop(0) if outer.statuses else 200)
                if outer.location:
                    self.send_header("location", outer.location)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/hook"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.stalled is not None:
            self.stalled.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def waits_for(self, events: int) -> bool:
        """Whether so many events come, soon."""
        end = time.monotonic() + 30
        while len(self.positions) < events and time.monotonic() < end:
            time.sleep(0.01)
        return len(self.positions) >= events

    @property
    def positions(self) -> list[int]:
        """Of all events, as they came."""
        return [position for message in self.messages for position in message.positions]
