"""Requests to a server that wait for one table, and so run together."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from bergline.catalog.identifiers import parse_table_name
from support.servers.asgi_client import AsgiClient, AsgiResponse

TABLES = "/v1/namespaces/db/tables"
ORDERS = f"{TABLES}/orders"
_LONG_S = 60


def body_of(*updates: Any, requirements: Sequence[Any] = ()) -> dict[str, Any]:
    """A commit."""
    return {"requirements": list(requirements), "updates": list(updates)}


async def queued(client: AsgiClient, number: int, table: str = "orders") -> None:
    """Wait until so many commits wait for a table."""
    waiting = client.application.context.locks._waiting
    async with asyncio.timeout(_LONG_S):
        while len(waiting.get(parse_table_name(f"db.{table}"), ())) < number:  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0)


async def send_commit(
    client: AsgiClient, body: Any, headers: dict[str, str] | None = None, path: str = ORDERS
) -> AsgiResponse:
    """The answer to one commit."""
    return await client.send("POST", path, [json.dumps(body).encode()], headers=headers)


def commit_all(client: AsgiClient, *requests: Any, table: str = "orders") -> list[AsgiResponse]:
    """The answers to commits that wait together, in their order; each a body, or a body with headers."""

    async def run() -> list[AsgiResponse]:
        release = await client.application.context.locks.take([parse_table_name(f"db.{table}")])
        tasks = []
        for number, request in enumerate(requests, 1):
            body, headers = request if isinstance(request, tuple) else (request, None)
            tasks.append(asyncio.create_task(send_commit(client, body, headers, f"{TABLES}/{table}")))
            await queued(client, number, table)
        release()
        return list(await asyncio.gather(*tasks))

    return asyncio.run(run())
