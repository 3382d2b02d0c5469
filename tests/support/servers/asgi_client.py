"""Requests to a server in this process, and the bodies that they need."""

import asyncio
import json
from collections.abc import Mapping
from http.cookies import SimpleCookie
from typing import Any, Self
from urllib.parse import urlencode

from bergline.server.app import Application
from bergline.server.context.context import ServerContext

TOKEN = "bl_secret"  # noqa: S105
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "day", "type": "date", "required": False},
    ],
}
MADE_UP_MS = 1_800_000_000_000
"""The time of snapshots that nobody looks at."""


class AsgiResponse:
    """An answer."""

    def __init__(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.status = status
        self.headers = dict(headers)
        self.body = body
        self.cookies = SimpleCookie()
        for name, value in headers:
            if name == "set-cookie":
                self.cookies.load(value)

    def __repr__(self) -> str:
        return f"{self.status} {self.body[:500]!r}"

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, str]:
        """Status and type of an error, whose body must say the same status."""
        error = self.json["error"]
        assert error["code"] == self.status
        return self.status, error["type"]

    @property
    def message(self) -> str:
        message: str = self.json["error"]["message"]
        return message


class AsgiClient:
    """Asks an application by ASGI, as a web server would."""

    def __init__(self, served: ServerContext, application: Application | None = None) -> None:
        self.application = application or Application(served)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.application.close()

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsgiResponse:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return asyncio.run(self.send(method, path, [data], query=query, headers=headers))

    async def send(
        self,
        method: str,
        path: str,
        parts: list[bytes],
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsgiResponse:
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": urlencode(query or {}).encode(),
            "headers": [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()],
        }
        incoming = [
            {"type": "http.request", "body": part, "more_body": number < len(parts)}
            for number, part in enumerate(parts, 1)
        ]
        sent: list[Any] = []

        async def receive() -> Any:
            return incoming.pop(0) if incoming else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.application(scope, receive, send)
        start, end = sent
        return AsgiResponse(
            start["status"], [(k.decode().lower(), v.decode()) for k, v in start["headers"]], end["body"]
        )

    def namespace(self, *levels: str) -> None:
        assert self("POST", "/v1/namespaces", {"namespace": levels}).status == 200

    def table(self, name: str = "orders", namespace: str = "db", **more: Any) -> AsgiResponse:
        response = self("POST", f"/v1/namespaces/{namespace}/tables", {"name": name, "schema": SCHEMA, **more})
        assert response.status == 200, response
        return response

    def commit(
        self, *updates: Any, requirements: list[Any] | None = None, name: str = "orders", **more: Any
    ) -> AsgiResponse:
        body = {"requirements": requirements or [], "updates": list(updates)}
        return self("POST", f"/v1/namespaces/db/tables/{name}", body, **more)


def set_property(key: str, value: str) -> dict[str, Any]:
    """An update."""
    return {"action": "set-properties", "updates": {key: value}}


def snapshot(snapshot_id: int, sequence_number: int, parent: int | None = None) -> dict[str, Any]:
    """An update with a snapshot whose manifest list nobody reads."""
    return {
        "action": "add-snapshot",
        "snapshot": {
            "snapshot-id": snapshot_id,
            **({} if parent is None else {"parent-snapshot-id": parent}),
            "sequence-number": sequence_number,
            "timestamp-ms": MADE_UP_MS + snapshot_id,
            "manifest-list": f"file:///nowhere/{snapshot_id}.avro",
            "summary": {"operation": "append", "engine-name": "tester", "engine-version": "7"},
            "schema-id": 0,
        },
    }


def set_branch(name: str, snapshot_id: int) -> dict[str, Any]:
    """An update."""
    return {"action": "set-snapshot-ref", "ref-name": name, "type": "branch", "snapshot-id": snapshot_id}


def bearer(token: str) -> dict[str, str]:
    """The header for a token."""
    return {"Authorization": f"Bearer {token}"}
