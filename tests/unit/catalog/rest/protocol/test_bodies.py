"""Bodies as clients old and new send them."""

import json
from typing import Any

import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.protocol.bodies import (
    CommitTableRequest,
    CommitTransactionRequest,
    CreateTableRequest,
    ErrorResponse,
)
from bergline.catalog.rest.protocol.endpoints import COMMIT_TABLE, COMMIT_TRANSACTION, CREATE_TABLE, UPDATE_NAMESPACE
from bergline.errors import FormatError
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.metadata.requirements import AssertCreate, AssertRefSnapshotId
from bergline.format.metadata.updates import SetProperties, Update
from bergline.format.metadata.updates_json import plain_updates


def test_commit_that_we_send_is_read_by_our_server() -> None:
    sent: CommitTableRequest[Update] = CommitTableRequest(
        (AssertRefSnapshotId("main", None),), (SetProperties({"a": "b"}),), TableName(("db",), "t")
    )
    read = decode_json(encode_json(CommitTransactionRequest((sent,))), COMMIT_TRANSACTION.body, "body")
    (change,) = read.table_changes
    assert change.identifier == sent.identifier
    assert change.requirements == sent.requirements
    assert plain_updates(change.updates) == sent.updates


def test_older_keys_and_missing_nulls_are_read() -> None:
    body = {
        "requirements": [{"type": "assert-create"}, {"type": "assert-ref-snapshot-id", "ref": "main"}],
        "updates": [{"action": "set-properties", "updated": {"a": "b"}}],
    }
    read = decode_json(json.dumps(body).encode(), COMMIT_TABLE.body, "body")
    assert read.requirements == (AssertCreate(), AssertRefSnapshotId("main", None))
    assert plain_updates(read.updates) == (SetProperties({"a": "b"}),)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"requirements": [], "updates": [{"action": "fly"}]}, "$.updates[0].action"),
        ({"requirements": [{"type": "assert-weather"}], "updates": []}, "$.requirements[0].type"),
        ({"requirements": []}, "`updates` at $"),
    ],
)
def test_unknown_parts_are_refused_with_their_place(body: dict[str, Any], place: str) -> None:
    with pytest.raises(FormatError) as caught:
        decode_json(json.dumps(body).encode(), COMMIT_TABLE.body, "the body")
    assert place in str(caught.value)


def test_new_table_may_come_without_spec_ids() -> None:
    body = {
        "name": "t",
        "schema": {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "int", "required": False}]},
        "partition-spec": {"fields": [{"name": "a", "transform": "identity", "source-id": 1}]},
    }
    read = decode_json(json.dumps(body).encode(), CREATE_TABLE.body, "body")
    assert isinstance(read, CreateTableRequest)
    assert read.partition_spec is not None
    assert read.partition_spec.fields[0].source_id == 1


def test_nulls_stand_for_nothing() -> None:
    read = decode_json(b'{"removals": null, "updates": null}', UPDATE_NAMESPACE.body, "body")
    assert read.removals is None


def test_errors_of_others_may_have_a_stack() -> None:
    body = b'{"error": {"message": "m", "type": "T", "code": 404, "stack": ["a", "b"]}}'
    assert decode_json(body, ErrorResponse, "answer").error.stack == ("a", "b")
