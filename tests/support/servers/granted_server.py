"""A server with grants, asked by several callers."""

from typing import Any

from asgi_client import AsgiClient, AsgiResponse, bearer

from bergline.catalog.access.grant import make_grants
from bergline.catalog.sql.governance.grants import SqlGrants
from bergline.server.access.authenticator import Authenticator
from bergline.server.handlers.context import ServerContext


class GrantedServer:
    """Callers by the names of their tokens; `root` administers the catalog."""

    def __init__(self, context: ServerContext, *names: str) -> None:
        self.context = context
        for name in ("root", *names):
            context.records.create_token(name, f"bl_{name}", 1, None)
        context.authenticator = Authenticator(context.records)
        self.direct = SqlGrants(context.records.database, context.records.catalog_name)
        self.grant("administer", "catalog", "root")
        self.client = AsgiClient(context)

    def __call__(self, who: str, method: str, path: str, body: Any = None, **more: Any) -> AsgiResponse:
        headers = {**bearer(f"bl_{who}"), **more.pop("headers", {})}
        return self.client(method, path, body, headers=headers, **more)

    def grant(self, privileges: str, on: str, to: str, ref: str | None = None) -> None:
        self.direct.grant(make_grants(privileges, on, to, ref))

    def revoke(self, privileges: str, on: str, from_: str, ref: str | None = None) -> None:
        self.direct.revoke(make_grants(privileges, on, from_, ref))

    def commit(self, who: str, *updates: Any, table: str = "orders") -> AsgiResponse:
        body = {"requirements": [], "updates": list(updates)}
        return self(who, "POST", f"/v1/namespaces/db/tables/{table}", body)
