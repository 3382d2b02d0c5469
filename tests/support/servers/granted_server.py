"""A server with grants, asked by several callers."""

import time
from collections.abc import Iterable
from typing import Any

from bergline.catalog.identifiers import TableName
from bergline.errors import NotFoundError
from bergline.format.manifest.avro import render_manifest_list
from bergline.governance.grants.grant import make_grants
from bergline.governance.grants.store import SqlGrants
from bergline.server.access.authenticator import Authenticator
from bergline.server.context.context import ServerContext
from support.servers.asgi_client import MADE_UP_MS, AsgiClient, AsgiResponse, bearer


class GrantedServer:
    """Callers by the names of their tokens; `root` administers the catalog."""

    def __init__(self, context: ServerContext, *names: str, tokens: str = "bl_") -> None:
        """`tokens` is what all tokens begin with: in a database that catalogs share, no two are the same."""
        self.context = context
        self._tokens = tokens
        for name in ("root", *names):
            context.records.tokens.create(name, f"{tokens}{name}", 1, None)
        context.authenticator = Authenticator(context.records)
        self.direct = SqlGrants(context.records.database, context.records.catalog_name)
        self.grant("administer", "catalog", "root")
        self.client = AsgiClient(context)

    def __call__(self, who: str, method: str, path: str, body: Any = None, **more: Any) -> AsgiResponse:
        headers = {**bearer(f"{self._tokens}{who}"), **more.pop("headers", {})}
        return self.client(method, path, body, headers=headers, **more)

    def grant(self, privileges: str, on: str, to: str, ref: str | None = None) -> None:
        self.direct.grant(make_grants(privileges, on, to, ref))

    def revoke(self, privileges: str, on: str, from_: str, ref: str | None = None) -> None:
        self.direct.revoke(make_grants(privileges, on, from_, ref))

    def commit(self, who: str, *updates: Any, table: str = "orders") -> AsgiResponse:
        body = {"requirements": [], "updates": self.with_lists(*updates, table=table)}
        return self(who, "POST", f"/v1/namespaces/db/tables/{table}", body)

    def with_lists(self, *updates: dict[str, Any], table: str = "orders") -> list[dict[str, Any]]:
        """The updates of a table, with manifest lists that are there."""
        return with_lists(self.context, TableName(("db",), table), updates)


def with_lists(context: ServerContext, table: TableName, updates: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The updates, with an empty manifest list in the table's directory for snapshots that name one of nowhere.

    Snapshots of a time that was made up are of now.
    """
    return [_with_list(context, table, _of_now(update)) for update in updates]


def _of_now(update: dict[str, Any]) -> dict[str, Any]:
    sent = update.get("snapshot", {})
    if sent.get("timestamp-ms") != MADE_UP_MS + sent.get("snapshot-id", 0):
        return update
    return {**update, "snapshot": sent | {"timestamp-ms": time.time_ns() // 1_000_000 + sent["snapshot-id"]}}


def _with_list(context: ServerContext, table: TableName, update: dict[str, Any]) -> dict[str, Any]:
    given = update.get("snapshot", {}).get("manifest-list", "")
    if not given.startswith("file:///nowhere/"):
        return update
    try:
        location = context.catalog.load_table(table).metadata.location
    except NotFoundError:
        return update
    path, sent = f"{location}/metadata/{given.rpartition('/')[2]}", update["snapshot"]
    if not context.catalog.io.exists(path):
        empty = render_manifest_list([], sent["snapshot-id"], sent.get("parent-snapshot-id"), sent["sequence-number"])
        context.catalog.io.create(path, empty)
    return {**update, "snapshot": sent | {"manifest-list": path}}
