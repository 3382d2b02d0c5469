"""The server asked with everything that may stand in a request, by its own document, and with damaged commits."""

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from bergline.server.app import Application
from bergline.server.opening import open_server
from support.fixtures.mutations import mutated_json
from support.fixtures.seeds import seeded_random
from support.servers.asgi_client import SCHEMA, AsgiClient, set_branch, set_property, snapshot

EXAMPLES = int(os.environ.get("BERGLINE_EXAMPLES", "3"))
LONG = 10
DAMAGED = 150
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
DIRECTORY = tempfile.TemporaryDirectory(prefix="bergline-openapi-")
SERVED = open_server(f"sqlite:///{DIRECTORY.name}/catalog.db")
APPLICATION = Application(SERVED, any_host=True)


async def living(scope: Any, receive: Any, send: Any) -> None:
    """The application, which does not end when one of its clients does."""
    if scope["type"] == "http":
        await APPLICATION(scope, receive, send)
    else:
        await send({"type": f"{(await receive())['type']}.complete"})
        await send({"type": f"{(await receive())['type']}.complete"})


DOCUMENT = schemathesis.openapi.from_asgi("/openapi.json", living)
if EXAMPLES < LONG:  # to make strategies for every update takes half a minute
    DOCUMENT = DOCUMENT.exclude(operation_id=["commit_table", "commit_transaction", "commit_view"])


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    """Something to be found, and everything closed at the end."""
    client = AsgiClient(SERVED, APPLICATION)
    client.namespace("0")
    client.table("0", "0")
    yield
    client.application.close()
    SERVED.catalog.close()
    DIRECTORY.cleanup()


@DOCUMENT.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_whatever_is_asked_gets_a_documented_answer(case: Case) -> None:
    case.call_and_validate(checks=CHECKS)


COLUMN = {"id": 3, "name": "c", "type": "decimal(9, 2)", "required": False, "doc": "d"}
UPDATES: list[Any] = [
    {"action": "assign-uuid", "uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1"},
    {"action": "upgrade-format-version", "format-version": 2},
    {"action": "add-schema", "schema": {**SCHEMA, "fields": [*SCHEMA["fields"], COLUMN]}, "last-column-id": 3},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-spec", "spec": {"spec-id": 1, "fields": [{"name": "b", "transform": "bucket[4]", "source-id": 1}]}},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
    {"action": "set-default-sort-order", "sort-order-id": 0},
    snapshot(1, 9),
    set_branch("b", 1),
    {"action": "remove-snapshots", "snapshot-ids": [7]},
    {"action": "remove-snapshot-ref", "ref-name": "x"},
    {"action": "set-location", "location": "file:///elsewhere"},
    set_property("a", "b"),
    {"action": "remove-properties", "removals": ["a"]},
    {"action": "remove-statistics", "snapshot-id": 1},
    {"action": "remove-schemas", "schema-ids": [9]},
    {"action": "remove-partition-specs", "spec-ids": [9]},
    {"action": "remove-encryption-key", "key-id": "k"},
]
REQUIREMENTS: list[Any] = [
    {"type": "assert-create"},
    {"type": "assert-table-uuid", "uuid": "x"},
    {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
    {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2},
    {"type": "assert-current-schema-id", "current-schema-id": 0},
    {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
    {"type": "assert-default-spec-id", "default-spec-id": 0},
    {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
]


def test_damaged_commits_are_answered_and_leave_a_table_that_can_be_read() -> None:
    client, dice = AsgiClient(SERVED, APPLICATION), seeded_random(7)
    client.namespace("damaged")  # a table of its own: what was asked before may have dropped others
    client.table("commits", "damaged")
    path = "/v1/namespaces/damaged/tables/commits"
    answers: Counter[int] = Counter()
    for _ in range(DAMAGED * max(1, EXAMPLES // LONG)):
        updates = dice.sample(UPDATES, dice.choice([1, 1, 2, 4]))
        requirements = dice.sample(REQUIREMENTS, dice.choice([0, 0, 1]))
        body = {"requirements": requirements, "updates": updates}
        for _ in range(dice.choice([0, 1, 1, 3])):
            body = mutated_json(body, dice)
        response = client("POST", path, body)
        answers[response.status] += 1
        assert response.status in {200, 400, 403, 404, 406, 409, 422}, (response, body)
        assert client("GET", path).status == 200
    assert len(answers) > 3
