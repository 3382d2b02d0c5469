"""The access log."""

import asyncio
import json
import re

from bergline.server.app import Application
from bergline.server.context.context import ServerContext
from bergline.server.http.access_log import AccessLog
from bergline.server.http.settings import AccessLogFormat
from support.servers.asgi_client import SCHEMA, TOKEN, AsgiClient, bearer

AGENT = {"user-agent": "PyIceberg/0.11 (x)", "x-request-id": "r-17"}


class LoggingClient(AsgiClient):
    """A client of a server that writes an access log into a list."""

    def __init__(self, context: ServerContext, how: AccessLogFormat) -> None:
        super().__init__(context)
        self.lines: list[str] = []
        self._served: Application = self.application
        self.application = AccessLog(self._served, how, self.lines.append)  # type: ignore[assignment]

    def __exit__(self, *_: object) -> None:
        self._served.close()


def test_every_request_is_a_line_without_what_is_secret(guarded: ServerContext) -> None:
    with LoggingClient(guarded, AccessLogFormat.JSON) as client:
        ann = bearer(TOKEN) | AGENT
        client("POST", "/v1/namespaces", {"namespace": ["db"]}, headers=ann)
        made = client("POST", "/v1/namespaces/db/tables", {"name": "a b", "schema": SCHEMA}, headers=ann)
        client("GET", "/v1/namespaces/db/tables/a%20b", headers=ann, query={"secret": "bl_query"})
        client("GET", "/v1/namespaces", headers=bearer("bl_wrong"))
        client("GET", "/lake.json", headers=bearer(TOKEN) | {"host": "localhost:1"})
        client("GET", "/health")
    assert not re.search("bl_|Bearer|secret", "".join(client.lines))
    assert all(line.endswith("}\n") and line.count("\n") == 1 for line in client.lines)
    lines = [json.loads(line) for line in client.lines]
    assert [(line.get("caller"), line["method"], line["path"], line["status"]) for line in lines] == [
        ("ann", "POST", "/v1/namespaces", 200),
        ("ann", "POST", "/v1/namespaces/db/tables", 200),
        ("ann", "GET", "/v1/namespaces/db/tables/a%20b", 200),
        (None, "GET", "/v1/namespaces", 401),
        ("ann", "GET", "/lake.json", 200),
        (None, "GET", "/health", 200),
    ]
    assert (lines[1]["bytes"], lines[1]["request_id"], lines[1]["user_agent"]) == (
        len(made.body),
        "r-17",
        AGENT["user-agent"],
    )
    assert lines[1]["ms"] > 0
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", lines[1]["time"])


def test_text_has_a_place_for_each_and_no_request_looks_like_two(context: ServerContext) -> None:
    with LoggingClient(context, AccessLogFormat.TEXT) as client:
        client("GET", '/v1/namespaces/"a b\n/tables', headers={"user-agent": 'x"\ny', "x-request-id": "-"})
        client("GET", "/v1/config", headers=AGENT)
    odd, plain = client.lines
    assert odd.count("\n") == 1
    assert re.fullmatch(
        r'\S+Z - anonymous "GET /v1/namespaces/%22a%20b%0A/tables" 404 \d+ [\d.]+ms "-" "x\\"\\ny"\n', odd
    )
    assert re.fullmatch(r'\S+Z - anonymous "GET /v1/config" 200 \d+ [\d.]+ms r-17 "PyIceberg/0\.11 \(x\)"\n', plain)


def test_request_without_an_end_and_log_without_a_reader_are_no_errors() -> None:
    lines: list[str] = []

    def fail(line: str) -> None:
        lines.append(line)
        raise BrokenPipeError

    async def nothing(*_: object) -> None:
        return None

    scope = {"type": "http", "method": "GET", "raw_path": b"/x?token=bl_x", "headers": [], "client": ("10.0.0.1", 5)}
    asyncio.run(AccessLog(nothing, AccessLogFormat.TEXT, fail)(scope, nothing, nothing))  # type: ignore[arg-type]
    assert re.fullmatch(r'\S+Z 10\.0\.0\.1 - "GET /x" - 0 [\d.]+ms - -\n', lines[0])
    asyncio.run(AccessLog(nothing, AccessLogFormat.TEXT, fail)({"type": "lifespan"}, nothing, nothing))  # type: ignore[arg-type]
    assert len(lines) == 1
