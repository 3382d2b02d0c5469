"""Avro records as columns, by field id."""

import io
from typing import Any

import fastavro
import msgspec
import polars as pl
import pytest

from bergline.errors import FormatError
from bergline.format.encoding.avro_columns import decode_columns
from bergline.format.encoding.avro_container import Container, read_container
from bergline.format.encoding.avro_polars import RecordLayout

LAYOUT = RecordLayout({1: "text", 2: "number", 3: "pairs"}, {"pairs": RecordLayout({4: "key", 5: "value"})})


def field(name: str, type_: Any, field_id: int | None = None) -> dict[str, Any]:
    return {"name": name, "type": type_} | ({} if field_id is None else {"field-id": field_id})


def record(*fields: dict[str, Any], name: str = "r") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


TEXT = field("t", "string", 1)


def container(schema: Any, *records: dict[str, Any]) -> Container:
    out = io.BytesIO()
    fastavro.writer(out, schema, records)
    return read_container(out.getvalue(), "f")


def decoded(schema: Any, *records: dict[str, Any]) -> list[dict[str, Any]]:
    (frame,) = decode_columns([container(schema, *records)], LAYOUT, ["f"], lambda frame: frame)
    return frame.select(c for c in frame.columns if not c.startswith("-")).to_dicts()


def test_columns_have_our_names_whatever_the_writer_called_them() -> None:
    schema = record(field("n", ["long", "null"], 2), field("other", "double"), TEXT)
    found = decoded(schema, {"n": 5, "other": 1.0, "t": "a"}, {"n": None, "other": 2.0, "t": "b"})
    assert found == [{"number": 5, "text": "a"}, {"number": None, "text": "b"}]


def test_what_takes_no_bytes_is_left_out() -> None:
    schema = record(field("nothing", "null", 2), field("empty", record(name="e"), 3), TEXT)
    assert decoded(schema, {"nothing": None, "empty": {}, "t": "a"}) == [{"text": "a"}]


def test_pairs_are_named_by_their_ids() -> None:
    pair = record(field("k", "int", 4), field("v", ["null", "bytes"], 5), name="p")
    schema = record(TEXT, field("m", ["null", {"type": "array", "items": pair}], 3))
    found = decoded(schema, {"t": "a", "m": [{"k": 1, "v": b"x"}]}, {"t": "b", "m": None})
    assert [r["pairs"] for r in found] == [[{"key": 1, "value": b"x"}], None]


@pytest.mark.parametrize("namespace", [None, "a.b"])
def test_named_types_may_be_used_again(namespace: str | None) -> None:
    fixed = {"type": "fixed", "name": "f", "size": 2} | ({"namespace": namespace} if namespace else {})
    again = f"{namespace}.f" if namespace else "f"
    schema = record(TEXT, field("a", fixed), field("b", ["null", again], 2))
    assert decoded(schema, {"t": "x", "a": b"12", "b": b"34"}) == [{"text": "x", "number": b"34"}]


def test_names_belong_to_the_namespace_around_them() -> None:
    def fixed(size: int) -> dict[str, Any]:
        return {"type": "fixed", "name": "f", "size": size}

    one, other = (record(field("x", fixed(size)), name="r") | {"namespace": n} for size, n in [(2, "a"), (3, "b")])
    again = [field("c", "a.f", 2), field("d", "b.f"), field("e", "f")]
    schema = record(TEXT, field("g", fixed(1)), field("a", one), field("b", other), *again, name="s")
    values = {"t": "x", "g": b"1", "a": {"x": b"12"}, "b": {"x": b"123"}, "c": b"34", "d": b"345", "e": b"3"}
    assert decoded(schema, values) == [{"text": "x", "number": b"34"}]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ({"type": "map", "values": "long"}, {"k": 1}),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B"),
        ({"type": "int", "logicalType": "date"}, 5),
        (["null", record(name="empty")], {}),
    ],
)
def test_unknown_columns_of_any_type_are_read_past(type_: Any, value: Any) -> None:
    assert decoded(record(field("other", type_), TEXT), {"other": value, "t": "a"}) == [{"text": "a"}]


def test_files_of_one_schema_are_decoded_together_and_cut_apart() -> None:
    files = [container(record(TEXT), *({"t": t} for t in texts)) for texts in ("ab", "", "c")]
    frames = decode_columns(files, LAYOUT, ["f", "g", "h"], lambda frame: frame.rename(str.upper))
    assert [f["TEXT"].to_list() for f in frames] == [["a", "b"], [], ["c"]]


def test_of_files_decoded_together_the_wrong_one_is_named() -> None:
    good = container(record(TEXT), {"t": "a"})
    bad = Container(good.metadata, 1, (b"\x05",))
    with pytest.raises(FormatError, match=r"in g$"):
        decode_columns([good, bad, good], LAYOUT, ["f", "g", "h"], lambda frame: frame)


@pytest.mark.parametrize("records", [0, 1, 3, 10**6, 2**62])
def test_count_that_does_not_fit_the_bytes_is_refused(records: int) -> None:
    good = container(record(TEXT), {"t": "a"}, {"t": "b"})
    with pytest.raises(FormatError, match=r"expected .* in f"):
        decode_columns([Container(good.metadata, records, good.blocks)], LAYOUT, ["f"], lambda frame: frame)


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("long", "expected an Avro record, found long"),
        (record(TEXT, TEXT), "expected each field id once, found `1` twice"),
        (record(TEXT, field("a", {"type": "array", "items": "null"})), "items without bytes"),
        (record(TEXT, field("a", ["null", "int", "long"])), "unions of null and one type"),
        (record(TEXT, field("a", "no such type")), "expected an Avro type, found no such type"),
        (record(TEXT, field("a", {"type": "fixed", "name": "f", "size": -1})), "size of an Avro fixed type"),
        (record(TEXT, {"no": "name"}), "expected an Avro schema"),
        ({"type": "record", "name": "r", "fields": [TEXT, field("again", ["null", "r"])]}, "levels"),
    ],
)
def test_schema_that_cannot_be_read_is_refused(schema: Any, problem: str) -> None:
    bad = Container({"avro.schema": msgspec.json.encode(schema)}, 0, ())
    with pytest.raises(FormatError, match=f"{problem}.* in f"):
        decode_columns([bad], LAYOUT, ["f"], lambda frame: frame)


def test_schema_that_multiplies_itself_is_refused() -> None:
    fields = [TEXT, field("n0", record(field("x", "int"), name="r0"))]
    for level in range(1, 12):
        inner = [field(f"f{n}", f"r{level - 1}") for n in range(10)]
        fields.append(field(f"n{level}", record(*inner, name=f"r{level}")))
    bad = Container({"avro.schema": msgspec.json.encode(record(*fields))}, 0, ())
    with pytest.raises(FormatError, match="at most 16 levels, found more in f"):
        decode_columns([bad], LAYOUT, ["f"], lambda frame: frame)


def test_text_that_is_no_utf8_is_refused() -> None:
    good = container(record(TEXT), {"t": "ab"})
    bad = Container(good.metadata, 1, (good.data.replace(b"ab", b"\xff\xfe"),))
    with pytest.raises(FormatError, match="invalid utf8"):
        decode_columns([bad], LAYOUT, ["f"], lambda frame: frame)


def test_columns_are_typed_even_without_records() -> None:
    (frame,) = decode_columns([container(record(TEXT))], LAYOUT, ["f"], lambda frame: frame)
    assert frame.schema == {"text": pl.String}
