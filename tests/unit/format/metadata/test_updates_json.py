"""Updates as REST clients send them."""

import json
from typing import Any

import pytest

from bergline.errors import FormatError, InvalidInputError
from bergline.format.encoding.wire import encode_json
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.table_metadata import EncryptedKey, TableMetadata
from bergline.format.metadata.updates import (
    AddEncryptionKey,
    AddPartitionSpec,
    AssignUuid,
    RemoveEncryptionKey,
    RemoveProperties,
    SetDefaultSpec,
    SetProperties,
)
from bergline.format.metadata.updates_json import parse_updates
from bergline.format.partition.spec import UNNUMBERED, PartitionField, PartitionSpec
from bergline.format.partition.transforms import IDENTITY, Bucket
from bergline.format.view.updates import AddViewVersion, SetCurrentViewVersion, parse_view_updates
from bergline.format.view.view_metadata import SqlRepresentation, ViewVersion


def parse(*wires: dict[str, Any]) -> tuple[Any, ...]:
    return parse_updates(json.dumps(wires).encode(), "request")


@pytest.mark.parametrize(
    ("wire", "update"),
    [
        ({"action": "set-properties", "updates": {"a": "b"}}, SetProperties({"a": "b"})),
        ({"action": "set-properties", "updated": {"a": "b"}}, SetProperties({"a": "b"})),
        ({"action": "set-properties", "updates": {"a": "b"}, "updated": {}}, SetProperties({"a": "b"})),
        ({"action": "remove-properties", "removals": ["a"]}, RemoveProperties(("a",))),
        ({"action": "remove-properties", "removed": ["a"]}, RemoveProperties(("a",))),
        (
            {"action": "add-encryption-key", "encryption-key": {"key-id": "k", "encrypted-key-metadata": "AQI="}},
            AddEncryptionKey(EncryptedKey("k", b"\1\2")),
        ),
        ({"action": "remove-encryption-key", "key-id": "k"}, RemoveEncryptionKey("k")),
        ({"action": "assign-uuid", "uuid": "u", "from-the-future": 1}, AssignUuid("u")),
    ],
)
def test_older_and_newer_keys_are_understood(wire: dict[str, Any], update: Any) -> None:
    assert parse(wire) == (update,)


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        ({"action": "set-properties"}, r"missing required field `updates` at \$\[0\] in request"),
        ({"action": "remove-properties"}, r"missing required field `removals` at \$\[0\] in request"),
        ({"action": "set-properties", "updates": None}, r"at \$\[0\]\.updates in request"),
        ({"action": "burn-table"}, r"burn-table.* at \$\[0\]\.action in request"),
        ({}, r"`action` at \$\[0\] in request"),
        ({"action": "add-spec", "spec": {"spec-id": 1, "fields": [{}]}}, r"\$\[0\]\.spec\.fields\[0\] in request"),
    ],
)
def test_wrong_update_is_refused_at_its_place(wire: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse(wire)


def spec(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"action": "add-spec", "spec": {"spec-id": 9, "fields": fields}}


REGION = {"name": "region", "transform": "identity", "source-id": 2}
ID_BUCKET = {"name": "id_bucket", "transform": "bucket[4]", "source-id": 1}


def test_partition_fields_without_ids_get_them_when_applied(metadata: TableMetadata) -> None:
    updates = parse(spec(REGION, ID_BUCKET))
    fields = (PartitionField(2, UNNUMBERED, "region", IDENTITY), PartitionField(1, UNNUMBERED, "id_bucket", Bucket(4)))
    assert updates == (AddPartitionSpec(PartitionSpec(9, fields)),)
    after = apply_updates(metadata, (*updates, SetDefaultSpec(-1)), base_location=None, now_ms=0)
    assert after.default_spec_id == 1
    # the field that an older spec has keeps its id
    assert [f.field_id for f in after.spec.fields] == [1000, 1001]
    assert after.last_partition_id == 1001


def test_partition_fields_with_ids_keep_them() -> None:
    (update,) = parse(spec(REGION | {"field-id": 1005}))
    assert update.spec.fields == (PartitionField(2, 1005, "region", IDENTITY),)


def test_partition_fields_have_ids_all_or_none(metadata: TableMetadata) -> None:
    updates = parse(spec(REGION | {"field-id": 1005}, ID_BUCKET))
    with pytest.raises(InvalidInputError, match="for all fields of partition spec 9 or for none, found 1 of 2 without"):
        apply_updates(metadata, updates, base_location=None, now_ms=0)


def test_view_updates_are_understood() -> None:
    made = ViewVersion(
        version_id=1,
        timestamp_ms=5,
        schema_id=-1,
        summary={},
        default_namespace=("db",),
        representations=(SqlRepresentation("SELECT 1", "spark"),),
    )
    updates = (AddViewVersion(made), SetCurrentViewVersion(-1), SetProperties({"a": "b"}), AssignUuid("u"))
    assert parse_view_updates(encode_json(updates), "request") == updates
    with pytest.raises(FormatError, match=r"at \$\[0\]\.action in request"):
        parse_view_updates(b'[{"action":"add-snapshot"}]', "request")
