"""AWS Glue for tests: moto in a process of its own, behind a proxy that does what moto leaves out.

moto takes every update whatever its VersionId; the proxy refuses those of an older version, as Glue does, and gives
long lists page by page. It also loses requests and answers on demand.
"""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

import pytest

from support.servers.ports import free_port

REGION = "us-east-1"
_START_SECONDS = 60
_PAGE = 2
_JSON = "application/x-amz-json-1.1"
_LISTS = {"GetTables": "TableList", "GetDatabases": "DatabaseList"}


class Fault(NamedTuple):
    """What happens to one request: whether it arrives, and the answer; without a status there is none."""

    arrives: bool
    status: int | None = None
    code: str = ""
    body: bytes | None = None
    """The whole answer, in place of an error of the service with this code."""
    content_type: str = _JSON


ANSWER_LOST = Fault(arrives=True)
NEVER_ARRIVES = Fault(arrives=False)
THROTTLED = Fault(arrives=False, status=400, code="ThrottlingException")
LATE_ERROR = Fault(arrives=True, status=500, code="InternalServiceException")


def refused(code: str) -> Fault:
    """The service says no, and why."""
    return Fault(arrives=False, status=400, code=code)


class GlueServer:
    """moto as a child process."""

    def __init__(self) -> None:
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
            env={k: v for k, v in os.environ.items() if k != "PYTHONWARNINGS"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if time.monotonic() > deadline or self._process.poll() is not None:
                self.__exit__()
                pytest.fail("moto did not start")
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process:
            self._process.kill()
            self._process.wait(timeout=30)
            self._process = None

    def reset(self) -> None:
        """Forget everything."""
        self.request("POST", "/moto-api/reset", b"", {})

    def request(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """Status and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _answers(self) -> bool:
        try:
            self.reset()
        except OSError:
            return False
        return True


class GlueProxy:
    """Glue as clients see it: `properties` lead there, `calls` counts what was asked."""

    def __init__(self, server: GlueServer) -> None:
        self._server = server
        self._changing = threading.Lock()
        self._faults: defaultdict[str, list[Fault]] = defaultdict(list)
        self._before: dict[str, Callable[[], None]] = {}
        self.calls: Counter[str] = Counter()
        self.clients: set[tuple[str, int]] = set()  # the other ends of all connections
        self.repeat_pages = False
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self.endpoint = f"http://127.0.0.1:{self._http.server_port}"
        self.properties = {
            "glue.endpoint": self.endpoint,
            "glue.region": REGION,
            "glue.access-key-id": "key",
            "glue.secret-access-key": "secret",
        }

    def __enter__(self) -> Self:
        self._server.reset()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(timeout=5)

    def fail(self, action: str, *faults: Fault) -> None:
        """The next requests of this kind end so."""
        self._faults[action] += faults

    def before(self, action: str, do: Callable[[], None]) -> None:
        """Something that happens right before the next request of this kind arrives."""
        self._before[action] = do

    def ask(self, action: str, **arguments: Any) -> dict[str, Any]:
        """A request as another tool would send it."""
        status, body = self._forward(action, json.dumps(arguments).encode(), _headers(action))
        answer: dict[str, Any] = json.loads(body or b"{}")
        assert status == http.HTTPStatus.OK, answer
        return answer

    def table(self, database: str, name: str) -> dict[str, Any]:
        """A table as Glue has it."""
        table: dict[str, Any] = self.ask("GetTable", DatabaseName=database, Name=name)["Table"]
        return table

    def answer(self, action: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes, str] | None:
        """Status, body and content type that the client gets; None if it gets nothing."""
        self.calls[action] += 1
        if do := self._before.pop(action, None):
            do()
        fault = self._faults[action].pop(0) if self._faults[action] else None
        answer = self._forward(action, body, headers) if fault is None or fault.arrives else None
        if fault is None:
            assert answer is not None
            return *answer, _JSON
        if fault.status is None:
            return None
        if fault.body is not None:
            return fault.status, fault.body, fault.content_type
        return *_error(fault.code, "as the test asked", fault.status), _JSON

    def _forward(self, action: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        asked = json.loads(body or b"{}")
        if not action.startswith("Get"):
            with self._changing:
                if action == "UpdateTable" and (moved := self._moved(asked)):
                    return moved
                return self._server.request("POST", "/", body, headers)
        status, answer = self._server.request("POST", "/", body, headers)
        if action in _LISTS and status == http.HTTPStatus.OK:
            answer = _page(answer, _LISTS[action], 0 if self.repeat_pages else int(asked.get("NextToken", 0)))
        return status, answer

    def _moved(self, update: dict[str, Any]) -> tuple[int, bytes] | None:
        """The refusal of an update of an older version."""
        table = {"DatabaseName": update["DatabaseName"], "Name": update["TableInput"]["Name"]}
        status, body = self._server.request("POST", "/", json.dumps(table).encode(), _headers("GetTable"))
        if status != http.HTTPStatus.OK or "VersionId" not in update:
            return None
        now = json.loads(body)["Table"]["VersionId"]
        if update["VersionId"] == now:
            return None
        return _error("ConcurrentModificationException", f"version {update['VersionId']} is not {now}")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                proxy.clients.add(self.client_address)
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {k: v for k, v in self.headers.items() if k.lower() not in {"host", "connection"}}
                answer = proxy.answer(self.headers["X-Amz-Target"].rpartition(".")[2], body, headers)
                if answer is None:
                    self.close_connection = True
                    return
                self.send_response(answer[0])
                self.send_header("Content-Type", answer[2])
                self.send_header("Content-Length", str(len(answer[1])))
                self.end_headers()
                self.wfile.write(answer[1])

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler


def _headers(action: str) -> dict[str, str]:
    credential = f"AWS4-HMAC-SHA256 Credential=key/20260101/{REGION}/glue/aws4_request"
    return {
        "Content-Type": _JSON,
        "X-Amz-Target": f"AWSGlue.{action}",
        "Authorization": f"{credential}, SignedHeaders=host, Signature=0",
    }


def _error(code: str, message: str, status: int = 400) -> tuple[int, bytes]:
    return status, json.dumps({"__type": code, "message": message}).encode()


def _page(answer: bytes, key: str, start: int) -> bytes:
    content = json.loads(answer)
    more = {"NextToken": str(start + _PAGE)} if len(content[key]) > start + _PAGE else {}
    return json.dumps({**content, key: content[key][start : start + _PAGE], **more}).encode()
