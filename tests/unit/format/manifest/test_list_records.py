"""Manifest lists that are read record by record, and those that are left to columns."""

from typing import Any

import msgspec
import pytest

from bergline.format.encoding.avro_container import Container
from bergline.format.manifest.avro_encode import encoder
from bergline.format.manifest.avro_schema import manifest_list_schema
from bergline.format.manifest.list_records import MOST_RECORDS, read_list_records
from bergline.format.manifest.manifest import ManifestContent, ManifestFile

ROW = ["m.avro", 10, 0, 0, 5, 4, 7, 1, 0, 0, 3, 0, 0, None, None]
MANIFEST = ManifestFile("m.avro", 10, 0, ManifestContent.DATA, 7, 5, 4, 1, 0, 0, 3, 0, 0)


def container(rows: list[list[Any]], schema: dict[str, Any] | None = None) -> Container:
    schema = schema or manifest_list_schema(2)
    encode = encoder(schema)
    return Container({"avro.schema": msgspec.json.encode(schema)}, len(rows), tuple(encode(row) for row in rows))


def test_record_that_was_read_is_not_read_again() -> None:
    (first,) = read_list_records(container([ROW])) or ()
    other = ["n.avro", *ROW[1:]]
    second, again = read_list_records(container([other, ROW])) or ()
    assert first == MANIFEST
    assert again is first
    assert second == msgspec.structs.replace(MANIFEST, manifest_path="n.avro")


def test_other_record_of_a_known_path_is_read() -> None:
    changed = [*ROW[:1], 11, *ROW[2:]]
    for row, length in ((ROW, 10), (changed, 11), (ROW, 10)):
        assert read_list_records(container([row])) == [msgspec.structs.replace(MANIFEST, manifest_length=length)]


def test_fields_of_other_writers_are_skipped() -> None:
    schema = manifest_list_schema(2)
    extra = {"name": "extra", "type": ["null", "string"], "field-id": 9000}
    schema["fields"] = [*schema["fields"][:3], extra, *schema["fields"][3:]]
    assert read_list_records(container([[*ROW[:3], "x", *ROW[3:]]], schema)) == [MANIFEST]


@pytest.mark.parametrize(
    ("place", "value"),
    [(2, 2**31 - 1), (3, 1), (13, [(True, None, b"a", b"b")]), (14, b"key")],
)
def test_unusual_values_that_are_valid(place: int, value: Any) -> None:
    row = [*ROW[:place], value, *ROW[place + 1 :]]
    assert read_list_records(container([row])) is not None


@pytest.mark.parametrize(
    "change",
    [
        lambda schema: schema["fields"].reverse(),
        lambda schema: schema["fields"][1].update(type="double"),
        lambda schema: schema["fields"][2].update(type="string"),
        lambda schema: schema["fields"][3].update({"field-id": 501}),
        lambda schema: schema["fields"][4].update(type=["null", "long", "string"]),
    ],
)
def test_unusual_schemas_are_left_to_columns(change: Any) -> None:
    schema = msgspec.json.decode(msgspec.json.encode(manifest_list_schema(2)))
    change(schema)
    given = Container({"avro.schema": msgspec.json.encode(schema)}, 0, ())
    assert read_list_records(given) is None


def test_unusual_lists_are_left_to_columns() -> None:
    plain = container([ROW])
    for odd in (
        msgspec.structs.replace(plain, records=MOST_RECORDS + 1),
        msgspec.structs.replace(plain, records=2),
        msgspec.structs.replace(plain, records=0),
        msgspec.structs.replace(plain, blocks=(plain.data[:-1],)),
        msgspec.structs.replace(plain, metadata={"avro.schema": b"{"}),
        container([[*ROW[:3], 2, *ROW[4:]]]),
    ):
        assert read_list_records(odd) is None
