"""Commits that wait together end as they would one after the other: the table, the records and every answer."""

import itertools
import re
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bergline.catalog.protection.table_rules import property_of
from bergline.server.access.authenticator import Authenticator
from bergline.server.context.context import ServerContext
from bergline.server.opening import open_server
from support.servers.asgi_client import AsgiClient, AsgiResponse, bearer, set_branch, set_property, snapshot
from support.servers.waiting_commits import TABLES, body_of, commit_all

CALLERS = ("ann", "bob", "eve")
BRANCHES = ("main", "dev", "test")
RULE = {property_of("test"): "writers=ann, eve; bypass=eve"}
FIELDS = [
    {"id": 1, "name": "id", "type": "long", "required": True},
    {"id": 2, "name": "day", "type": "date", "required": False},
]
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.+]+")
_TABLE_NUMBERS = itertools.count()

ids, heads = st.integers(1, 9), st.none() | st.integers(1, 9)


def appends(branch: str) -> st.SearchStrategy[dict[str, Any]]:
    """A snapshot on a head that the branch may have, with or without a requirement."""

    def make(number: int, parent: int | None, sequence_number: int, requires: bool) -> dict[str, Any]:
        requirement = {"type": "assert-ref-snapshot-id", "ref": branch, "snapshot-id": parent}
        updates = snapshot(number, sequence_number, parent), set_branch(branch, number)
        return body_of(*updates, requirements=[requirement] if requires else [])

    return st.builds(make, ids, heads, st.integers(1, 12), st.booleans())


def new_column(field_id: int, assigned: int | None) -> dict[str, Any]:
    field = {"id": field_id, "name": f"c{field_id}", "type": "string", "required": False}
    schema = {"type": "struct", "fields": [*FIELDS, field]}
    requirement = {"type": "assert-last-assigned-field-id", "last-assigned-field-id": assigned}
    return body_of(
        {"action": "add-schema", "schema": schema},
        {"action": "set-current-schema", "schema-id": -1},
        requirements=[] if assigned is None else [requirement],
    )


bodies = st.one_of(
    *(appends(branch) for branch in BRANCHES),
    st.builds(lambda key, value: body_of(set_property(key, value)), st.sampled_from("abc"), st.sampled_from("12")),
    st.builds(new_column, st.integers(2, 4), st.none() | st.integers(2, 4)),
    st.builds(lambda number: body_of(set_branch("main", number)), ids),
    st.builds(lambda name: body_of({"action": "remove-snapshot-ref", "ref-name": name}), st.sampled_from(BRANCHES)),
    st.builds(lambda number: body_of({"action": "remove-snapshots", "snapshot-ids": [number]}), ids),
    st.sampled_from(
        [
            body_of(set_property(property_of("main"), "writers=ann, bob")),
            body_of(set_property(property_of("dev"), "writers=nobody; bypass=eve")),
            body_of({"action": "remove-properties", "removals": [property_of("main")]}),
            body_of({"action": "no-such-action"}),
            body_of({"action": "set-current-schema", "schema-id": 77}),
            body_of(),
        ]
    ),
)
requests = st.tuples(bodies, st.sampled_from(CALLERS), st.none() | st.integers(0, 20))
repeated = st.tuples(requests, st.sampled_from([1, 1, 1, 2]))
"""A request, and how often it is sent."""
groups = st.lists(st.lists(repeated, min_size=1, max_size=8), min_size=1, max_size=4)


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[AsgiClient, AsgiClient]]:
    """Two servers with the same callers."""
    with tempfile.TemporaryDirectory() as directory:
        contexts = [served(Path(directory) / name) for name in ("together", "alone")]
        with AsgiClient(contexts[0]) as together, AsgiClient(contexts[1]) as alone:
            for client in (together, alone):
                client("POST", "/v1/namespaces", {"namespace": ["db"]}, headers=bearer("bl_ann"))
            yield together, alone
        for context in contexts:
            context.catalog.close()


def served(directory: Path) -> ServerContext:
    context = open_server(f"sqlite:///{directory}/catalog.db")
    for name in CALLERS:
        context.records.tokens.create(name, f"bl_{name}", 1, None)
    context.authenticator = Authenticator(context.records)
    return context


@settings(max_examples=60)
@given(groups)
def test_groups_equal_the_same_requests_one_after_the_other(
    servers: tuple[AsgiClient, AsgiClient], asked: list[list[Any]]
) -> None:
    together, alone = servers
    table, of_keys = f"t{next(_TABLE_NUMBERS)}", uuid.uuid4()
    for client in servers:
        body = {"name": table, "schema": {"type": "struct", "fields": FIELDS}, "properties": RULE}
        assert client("POST", TABLES, body, headers=bearer("bl_ann")).status == 200
    for group in asked:
        sent = [(body, headers_of(caller, key, of_keys)) for (body, caller, key), times in group for _ in range(times)]
        answers = commit_all(together, *sent, table=table)
        expected = [commit_all(alone, one, table=table)[0] for one in sent]
        assert [told(a) for a in answers] == [told(a) for a in expected]
    assert state(together, table) == state(alone, table)


def headers_of(caller: str, key: int | None, of_keys: uuid.UUID) -> dict[str, str]:
    known = {} if key is None else {"Idempotency-Key": str(uuid.uuid5(of_keys, str(key)))}
    return bearer(f"bl_{caller}") | known


def told(answer: AsgiResponse) -> tuple[int, str | None]:
    return answer.status, None if answer.status == 200 else timeless(answer.json["error"]["message"])


def timeless(text: str) -> str:
    return _TIME.sub("then", text)


def state(client: AsgiClient, table: str) -> dict[str, Any]:
    """The table without times and places, and what the server has on record about it."""
    metadata = client("GET", f"{TABLES}/{table}", headers=bearer("bl_ann")).json["metadata"]
    for name in ("table-uuid", "location", "last-updated-ms", "metadata-log"):
        metadata.pop(name)
    metadata["snapshot-log"] = [entry["snapshot-id"] for entry in metadata["snapshot-log"]]
    context = client.application.context
    audit = context.records.newest_audit(1000, resources=[f"table/db/{table}"], conflicts=True)
    events = [e for e in context.events.read().events if e.subject.endswith(f"/{table}")]
    return {
        "metadata": metadata,
        "audit": sorted((e.principal, e.operation, timeless(e.conflict or "")) for e in audit),
        "events": [(e.type, e.principal, {k: v for k, v in e.data.items() if "location" not in k}) for e in events],
    }
