"""A browser of the console in this process, and a small lake with branches, a tag and a conflict to look at."""

import asyncio
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.catalog.at_ref.lake_ref import LakeRef
from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import Caller, acting_as
from bergline.console.page import Source
from bergline.errors import AuthenticationError
from bergline.reports.row_job import JobResult, RowJob, read_here
from bergline.server.console.app import Console

Done = TypeVar("Done")
NOW_MS = 1_900_000_000_000
SCHEMA = pa.schema([("id", pa.int64()), ("region", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "region": ["eu"] * len(ids)}, schema=SCHEMA)


@pytest.fixture
def story(lake: Lake) -> Table:
    """`main` with two snapshots, `audit` ahead of it, `fork` beside it, tag `v1` at the first."""
    table = lake.create_table("db.orders", SCHEMA)
    table.append(rows(1, 2))
    table.refs.create_tag("v1")
    table.refs.create_branch("fork")
    table.append(rows(3))
    table.refs.create_branch("audit")
    table.append(rows(4), branch="audit")
    table.append(rows(5), branch="fork")
    return table


@pytest.fixture
def source(lake: Lake) -> Source:
    return Source(lake, NOW_MS, "ann", may_change=True)


class OpenHost:
    """A host that lets everybody in, or only who has the token."""

    browser_sign_in = None
    public_url = None

    def __init__(self, lake: Lake, token: str | None = None) -> None:
        self.lake = lake
        self.token = token
        self.changes: list[tuple[str, str, str]] = []

    def lake_for(self, caller: Caller, at: LakeRef | None = None) -> Lake:
        return self.lake if at is None else self.lake.at(at.name)

    def read_rows(self, caller: Caller, job: RowJob[JobResult]) -> JobResult:
        assert (caller.name, set(caller.groups)) == ("ann", {"dev"})
        return read_here(job)

    @property
    def needs_token(self) -> bool:
        return self.token is not None

    def check_origin(self, headers: Mapping[str, str]) -> None:
        pass

    def token_for(self, ticket: str) -> str | None:
        return None

    def caller(self, token: str | None, address: str) -> Caller:
        if self.token is not None and token != self.token:
            raise AuthenticationError("the token is not accepted")
        return Caller("ann", ["dev"])

    def change(
        self, caller: str, action: str, table: TableName, act: Callable[[], Done], groups: Collection[str] = ()
    ) -> Done:
        assert set(groups) == {"dev"}
        self.changes.append((caller, action, str(table)))
        return act()

    def change_pull_request(
        self, caller: str, action: str, number: int, act: Callable[[], Done], groups: Collection[str] = ()
    ) -> Done:
        self.changes.append((caller, action, str(number)))
        with acting_as(caller):
            return act()


class Seen:
    """A response as a browser has it."""

    def __init__(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.status = status
        self.headers = dict(headers)
        self.set_cookies = [value for name, value in headers if name == "set-cookie"]
        self.body = body
        self.text = body.decode(errors="replace")

    def __repr__(self) -> str:
        return f"{self.status} {self.text[:3000]}"

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def field(self, name: str) -> str:
        """The value of a hidden field."""
        found = re.search(rf'name="{name}" value="([^"]*)"', self.text)
        assert found, self
        return found[1]


class ConsoleBrowser:
    """Keeps cookies, and sends forms."""

    def __init__(self, console: Console, host: str = "localhost:8181", scheme: str = "http") -> None:
        self.console = console
        self.headers = {"host": host}
        self.scheme = scheme
        self.cookies: dict[str, str] = {}

    def get(self, path: str, /, method: str = "GET", headers: Mapping[str, str] | None = None, **query: str) -> Seen:
        return self._send(method, path, query, b"", headers or {})

    def post(self, path: str, headers: Mapping[str, str] | None = None, **form: str) -> Seen:
        return self._send("POST", path, {}, urlencode(form).encode(), headers or {})

    def review(self, action: str, name: str = "db.orders", **answers: str) -> Seen:
        """The review of an action, from its form."""
        csrf = self.get(f"/table/actions/{action}", name=name).field("csrf")
        return self.post(f"/table/actions/{action}", csrf=csrf, name=name, **answers)

    def confirm(self, action: str, review: Seen, name: str = "db.orders", **answers: str) -> Seen:
        """Press the button of a review."""
        carried = {key: review.field(key) for key in ("csrf", "confirm", "moment")}
        return self.post(f"/table/actions/{action}", name=name, **carried, **answers)

    def _send(self, method: str, path: str, query: Mapping[str, str], body: bytes, headers: Mapping[str, str]) -> Seen:
        given = self.headers | dict(headers)
        if self.cookies:
            given["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "scheme": self.scheme,
            "query_string": urlencode(query).encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
        }
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.console(scope, receive, send))
        start, end = sent
        seen = Seen(start["status"], [(k.decode().lower(), v.decode()) for k, v in start["headers"]], end["body"])
        for cookie in seen.set_cookies:
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
            if not value:
                del self.cookies[name]
        return seen


@pytest.fixture
def host(lake: Lake) -> OpenHost:
    return OpenHost(lake)


@pytest.fixture
def browser(host: OpenHost) -> Iterator[ConsoleBrowser]:
    console = Console(host)
    yield ConsoleBrowser(console)
    console.close()
