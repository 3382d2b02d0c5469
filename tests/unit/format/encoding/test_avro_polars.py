"""Writers' Avro schemas in polars' words."""

from typing import Any

import msgspec
import pytest

from bergline.errors import FormatError
from bergline.format.encoding.avro_polars import END, RecordLayout, polars_schema

LAYOUT = RecordLayout({1: "text", 2: "inside"}, {"inside": RecordLayout({}, others=True)})
TEXT = {"name": "t", "type": "string", "field-id": 1}


def schema(*fields: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"type": "record", "name": "r", "fields": list(fields)})


def test_fields_are_named_by_their_ids() -> None:
    record = {"type": "record", "name": "i", "fields": [{"name": "x", "type": "int", "field-id": 1000}]}
    plain = polars_schema(
        schema({"name": "i", "type": record, "field-id": 2}, TEXT, {"name": "o", "type": "long"}), LAYOUT
    )
    inside, text, other = plain.schema["fields"]
    assert (inside["name"], [f["name"] for f in inside["type"]["fields"]]) == ("inside", ["1000"])
    assert text == {"name": "text", "type": "string"}
    assert other["name"].startswith("-")


def test_empty_record_tells_the_end_and_least_bytes_bound_the_count() -> None:
    plain = polars_schema(schema(TEXT, {"name": "d", "type": "double"}, {"name": "n", "type": ["null", "int"]}), LAYOUT)
    assert plain.least == 1 + 8 + 1
    assert END.encode() in plain.empty
    assert plain.has_text


def test_text_that_may_be_null_still_tells_the_end() -> None:
    for options in (["null", "string"], ["string", "null"]):
        plain = polars_schema(schema({"name": "t", "type": options, "field-id": 1}), LAYOUT)
        assert (plain.least, END.encode() in plain.empty) == (1, True)


@pytest.mark.parametrize("lengths", [False, True])
def test_fixed_types_of_known_fields_are_remembered(lengths: bool) -> None:
    fixed = {"type": "fixed", "name": "f", "size": 5}
    data = schema(TEXT, {"name": "k", "type": ["null", fixed], "field-id": 2}, {"name": "o", "type": "f"})
    plain = polars_schema(data, LAYOUT, lengths=lengths)
    assert plain.fixed == {"inside": 5}
    kind = plain.schema["fields"][1]["type"][1]
    assert kind == "bytes" if lengths else kind["size"] == 5


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b'"int"', b"\xff", schema(), b"[" * 10_000])
def test_what_is_no_schema_of_records_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="expected an Avro"):
        polars_schema(data, LAYOUT)
