"""Types, single values, transforms and partition paths: the same as Java's own classes give."""

import itertools
import json
import math
import random
import struct
import uuid
from decimal import Decimal
from typing import Any

import pytest

from bergline.errors import FormatError, InvalidInputError
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.partition.sort_order import parse_sort_by
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.transforms import Transform, parse_transform
from bergline.format.schema.schema import Schema
from bergline.format.types.defaults import decode_default, encode_default
from bergline.format.types.single_values import decode_value, encode_value, scaled
from bergline.format.types.types import (
    PRIMITIVES,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    NestedField,
    parse_primitive,
)
from support.servers.peers import OfficialRuntime

pytestmark = pytest.mark.official

# values of one type as a Java list: single boxed values would come back to Python, and lose their width
JAVA = """
gateway = spark.sparkContext._gateway
types = jvm.org.apache.iceberg.types.Types
lang = jvm.java.lang
BOXES = {"boolean": lang.Boolean, "int": lang.Integer, "date": lang.Integer, "float": lang.Float, "double": lang.Double}
LONGS = ("long", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")

def java_list(type_text, values):
    if type_text in BOXES or type_text in LONGS:
        boxes = gateway.new_array(BOXES.get(type_text, lang.Long), len(values))
        objects = gateway.new_array(lang.Object, len(values))
        for n, value in enumerate(values):
            boxes[n] = value
        lang.System.arraycopy(boxes, 0, objects, 0, len(values))
        return jvm.java.util.Arrays.asList(objects)
    found = jvm.java.util.ArrayList()
    for value in values:
        if type_text == "uuid":
            value = jvm.java.util.UUID.fromString(value)
        elif type_text.startswith("decimal"):
            value = jvm.java.math.BigDecimal(value)
        elif type_text == "binary" or type_text.startswith("fixed"):
            value = jvm.java.nio.ByteBuffer.wrap(bytes.fromhex(value))
        found.add(value)
    return found

def call(method, target, first, boxed, n):
    arguments = jvm.java.util.ArrayList()
    arguments.add(first)
    arguments.addAll(boxed.subList(n, n + 1))
    return method.invoke(target, arguments.toArray())

def method_of(class_name, name, parameters):
    found = [m for m in types.fromTypeName("int").getClass().getClassLoader().loadClass(class_name).getMethods()
             if m.getName() == name and [p.getSimpleName() for p in m.getParameterTypes()] == parameters]
    found[0].setAccessible(True)
    return found[0]

def hex_of(buffer):
    data = bytearray()
    while buffer.hasRemaining():
        data.append(buffer.get() & 0xFF)
    return bytes(data).hex()

def plain(value):
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if hasattr(value, "getClass") and "Buffer" in value.getClass().getName():
        return hex_of(value.duplicate())
    return value.toString() if hasattr(value, "getClass") else format(value, "f")
"""

RANDOM = random.Random(20261115)  # noqa: S311
INTS = [0, 1, -1, 34, 2**31 - 1, -(2**31), *(RANDOM.randint(-(2**31), 2**31 - 1) for _ in range(40))]
LONGS = [*INTS, 2**63 - 1, -(2**63), *(RANDOM.randint(-(2**63), 2**63 - 1) for _ in range(40))]
FLOATS = [0.0, -0.0, 1.0, 0.1, -1e-3, 9.999e-4, 1e7, 9999999.0, 123456.789, 1.5e30, math.nan, math.inf, -math.inf]
TEXTS = ["", "iceberg", "a b/c=d", "zürich", "🧊🧊🧊", "~*-_.+%&", "\u0001", "'\"\\"]
BLOBS = ["", "00", "000102ff", "ff" * 20, RANDOM.randbytes(33).hex()]
UUIDS = ["f79c3e09-677c-4bbd-a479-3f349cb785e7", str(uuid.UUID(int=0)), str(uuid.UUID(int=2**128 - 1))]
# the days of all timestamps that Java's own transforms take without overflow
MOMENTS = [
    *(0, -1, 1, 999, -999, 3_600_000_000, -3_600_000_000, -3_600_000_001, 86_400_000_000, -86_400_000_000),
    *(1_510_871_468_000_001, -(10**15), 253_402_300_800_000_000, -62_135_596_800_000_001),
    *(RANDOM.randint(-(2**61), 2**61) for _ in range(60)),
]


def decimals(precision: int, scale: int) -> list[str]:
    units = [0, 1, -1, 127, 128, -128, -129, 1420, 10**precision - 1, -(10**precision) + 1]
    units += [RANDOM.randint(-(10**precision) + 1, 10**precision - 1) for _ in range(20)]
    return [f"{scaled(u, scale):f}" for u in units]


VALUES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "int": INTS,
    "long": LONGS,
    "float": [0.0, -0.0, 1.5, 0.1, 1e7, 3.4e38, math.nan, math.inf],
    "double": [*FLOATS, 1e300, 5e-324],
    "date": [*range(-800, 800, 37), -719_162, 2_932_896, 2_932_897, 10**6, -(10**6)],
    "time": [0, 1, 1000, 81_060_000_000, 81_068_000_000, 81_068_500_000, 86_399_999_999],
    "timestamp": MOMENTS,
    "timestamptz": MOMENTS,
    "timestamp_ns": [*MOMENTS, 2**63 - 1, -(2**63)],
    "timestamptz_ns": MOMENTS,
    "string": TEXTS,
    "uuid": UUIDS,
    "binary": BLOBS,
    "fixed[4]": ["00010203", "ffffffff"],
    "decimal(9, 2)": decimals(9, 2),
    "decimal(38, 10)": decimals(38, 10),
    "decimal(4, 4)": ["0.0000", "0.0001", "-0.9999"],
    "decimal(20, 15)": ["0.000000000000001", "12345.000000000000000"],
}


def ours(type_: str, wire: Any) -> Any:
    """The plain value of what is sent to Java."""
    if type_ == "uuid":
        return uuid.UUID(wire)
    if type_.startswith("decimal"):
        return Decimal(wire)
    if type_ == "binary" or type_.startswith("fixed"):
        return bytes.fromhex(wire)
    return struct.unpack("<f", struct.pack("<f", wire))[0] if type_ == "float" else wire


def plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value if isinstance(value, bool | int | str) or value is None else str(value)


TYPE_TEXTS = [
    *(str(t) for t in PRIMITIVES.values()),
    *("INT", "String", "TimeStampTZ_ns", "decimal(9,2)", "decimal( 9 , 2 )", "DECIMAL(38, 38)", "fixed[ 16 ]"),
    *("Fixed[3]", "geometry", "geometry(srid:4326)", "GEOMETRY( EPSG:3857 )", "geometry (a b)", "geography"),
    *("geography(srid:1)", "geography( srid:1 , KARNEY )", "geography(a, vincenty)", "geometry()", "geography()"),
    *("geography(a, flat)", "geography(,karney)", "decimal(39, 0)", "decimal(9)", "fixed[]", "fixed(3)", "fixed[-1]"),
    *("int ", " int", "integer", "", "bigint", "timestamp_ntz", "decimal(-1, 2)", "struct", "list"),
]


def test_types_are_spelt_as_in_java(official_runtime: OfficialRuntime) -> None:
    code = """
result = []
for text in texts:
    try:
        result.append(jvm.org.apache.iceberg.types.Types.fromTypeName(text).toString())
    except Exception:
        result.append(None)
"""
    expected = official_runtime.python(code, texts=TYPE_TEXTS)
    assert {t: _text(t) for t in TYPE_TEXTS} == dict(zip(TYPE_TEXTS, expected, strict=True))


def _text(text: str) -> str | None:
    try:
        return str(parse_primitive(text))
    except InvalidInputError:
        return None


def test_single_values_have_javas_bytes(official_runtime: OfficialRuntime) -> None:
    code = """
write = method_of("org.apache.iceberg.types.Conversions", "toByteBuffer", ["Type", "Object"])
result = {}
for text, given in values.items():
    boxed = java_list(text, given)
    type_ = types.fromTypeName(text)
    result[text] = [hex_of(call(write, None, type_, boxed, n).duplicate()) for n in range(len(given))]
"""
    expected = official_runtime.python(JAVA + code, values=VALUES)
    for text, given in VALUES.items():
        type_ = parse_primitive(text)
        encoded = [encode_value(type_, ours(text, wire)) for wire in given]
        assert [e.hex() for e in encoded] == expected[text], text
        back = [decode_value(type_, data) for data in encoded]
        assert [encode_value(type_, value) for value in back] == encoded


def test_corners_of_shapes_have_javas_bytes(official_runtime: OfficialRuntime) -> None:
    code = """
bound = jvm.org.apache.iceberg.geospatial.GeospatialBound
made = [bound.createXY(1.0, -2.5), bound.createXYZ(1.0, -2.5, 3.0), bound.createXYM(1.0, -2.5, 4.0),
        bound.createXYZM(1.0, -2.5, 3.0, 4.0)]
result = [hex_of(b.toByteBuffer()) for b in made]
"""
    points = [(1.0, -2.5), (1.0, -2.5, 3.0), (1.0, -2.5, None, 4.0), (1.0, -2.5, 3.0, 4.0)]
    type_ = GeometryType("OGC:CRS84")
    assert [encode_value(type_, p).hex() for p in points] == official_runtime.python(JAVA + code)


TRANSFORMS = ["identity", "bucket[1]", "bucket[16]", "bucket[2147483647]", "truncate[1]", "truncate[10]", "year"]
TRANSFORMS += ["month", "day", "hour", "void"]


def _takes(transform: Transform, type_: IcebergType) -> bool:
    try:
        transform.result_type(type_)
    except InvalidInputError:
        return False
    return True


def test_transforms_give_javas_values(official_runtime: OfficialRuntime) -> None:
    code = """
result = {}
for transform_text in transforms:
    transform = jvm.org.apache.iceberg.transforms.Transforms.fromString(transform_text)
    for text, given in values.items():
        type_ = types.fromTypeName(text)
        if not transform.canTransform(type_):
            result[f"{transform_text} {text}"] = None
            continue
        got = java_list(text, given).stream().map(transform.bind(type_)).toArray()
        result[f"{transform_text} {text}"] = [transform.getResultType(type_).toString(), [plain(v) for v in got]]
"""
    # a double is not for transforms; what is left is exact as text
    exact = {t: v for t, v in VALUES.items() if t not in ("float", "double")}
    expected = official_runtime.python(JAVA + code, values=exact, transforms=TRANSFORMS)
    for name, text in itertools.product(TRANSFORMS, exact):
        transform, type_ = parse_transform(name), parse_primitive(text)
        # Java binds hours of dates only to fail later
        if not _takes(transform, type_):
            assert expected[f"{name} {text}"] is None or (name, text) == ("hour", "date"), (name, text)
            continue
        result = [
            str(transform.result_type(type_)),
            [plain(transform.apply(type_, ours(text, v))) for v in VALUES[text]],
        ]
        assert result == expected[f"{name} {text}"], (name, text)


PATHS = ["identity", "bucket[16]", "truncate[3]", "year", "month", "day", "hour", "void"]
PATH_VALUES = {
    text: [*given[:20], *given[len(MOMENTS) :]] if text.startswith("timestamp") else given
    for text, given in VALUES.items()
}
"""Of moments those at the edges, and few at random: Java is asked for one path after the other."""


def test_partition_paths_are_javas(official_runtime: OfficialRuntime) -> None:
    code = """
result = {}
put = method_of("org.apache.iceberg.PartitionData", "set", ["int", "Object"])
for transform_text in transforms:
    transform = jvm.org.apache.iceberg.transforms.Transforms.fromString(transform_text)
    for text, given in values.items():
        type_ = types.fromTypeName(text)
        if not transform.canTransform(type_) or (transform_text, text) == ("hour", "date"):
            continue
        column = '{"id":1,"name":"c","required":false,"type":"%s"}' % text
        field = '{"source-id":1,"field-id":1000,"name":"p q~*","transform":"%s"}' % transform_text
        schema = jvm.org.apache.iceberg.SchemaParser.fromJson('{"type":"struct","fields":[%s]}' % column)
        spec = jvm.org.apache.iceberg.PartitionSpecParser.fromJson(schema, '{"spec-id":0,"fields":[%s]}' % field)
        stream = java_list(text, given).stream().map(transform.bind(type_))
        made = stream.collect(jvm.java.util.stream.Collectors.toList())
        paths = []
        for n in range(len(given)):
            data = jvm.org.apache.iceberg.PartitionData(spec.partitionType())
            call(put, data, 0, made, n)
            paths.append(spec.partitionToPath(data))
        result[f"{transform_text} {text}"] = paths
"""
    expected = official_runtime.python(JAVA + code, values=PATH_VALUES, transforms=PATHS)
    assert len(expected) > 60
    for key, paths in expected.items():
        name, _, text = key.partition(" ")
        transform, type_ = parse_transform(name), parse_primitive(text)
        schema = Schema((NestedField(1, "c", False, type_),))
        spec = PartitionSpec(0, (PartitionField(1, 1000, "p q~*", transform),))
        values = [transform.apply(type_, ours(text, wire)) for wire in PATH_VALUES[text]]
        assert [spec.partition_path(schema, (v,)) for v in values] == paths, key


def test_defaults_are_read_and_written_by_java(official_runtime: OfficialRuntime) -> None:
    finite = {t: [v for v in given if not isinstance(v, float) or math.isfinite(v)] for t, given in VALUES.items()}
    schemas = []
    for text, given in finite.items():
        type_ = parse_primitive(text)
        wires = [encode_default(type_, ours(text, v)) for v in given]
        fields = tuple(NestedField(n + 1, f"c{n}", True, type_, None, wire, wire) for n, wire in enumerate(wires))
        schemas.append(Schema(fields, schema_id=0))
    code = """
parser = jvm.org.apache.iceberg.SchemaParser
result = [parser.toJson(parser.fromJson(text)) for text in texts]
"""
    texts = official_runtime.python(code, texts=[encode_json(s).decode() for s in schemas])
    for schema, text in zip(schemas, texts, strict=True):
        back = decode_json(text.encode(), Schema, "Java")
        assert len(back.fields) == len(schema.fields)
        for field, same in zip(schema.fields, back.fields, strict=True):
            written, read = field.initial_default, same.initial_default
            assert decode_default(field.type, read) == decode_default(field.type, written)
            # hexadecimal digits are the only thing that Java spells otherwise
            assert json.dumps(read).lower() == json.dumps(written).lower()


@pytest.mark.parametrize(
    ("type_", "wire"),
    [
        *(("int", 2**31), ("int", "1"), ("int", 1.5), ("date", 5), ("date", "2017-13-01"), ("uuid", "x")),
        *(("boolean", 1), ("decimal(9, 2)", "1.5"), ("fixed[2]", "00"), ("timestamptz", "2017-01-01T00:00:00")),
        *(("timestamp", "2017-01-01T00:00:00+00:00"), ("geometry", "POINT (1 1)"), ("unknown", 1), ("variant", 1)),
    ],
)
def test_defaults_that_java_refuses_are_refused(official_runtime: OfficialRuntime, type_: str, wire: Any) -> None:
    text = json.dumps(
        {
            "type": "struct",
            "fields": [{"id": 1, "name": "c", "required": False, "type": type_, "initial-default": wire}],
        }
    )
    code = """
try:
    jvm.org.apache.iceberg.SchemaParser.fromJson(text)
    result = "accepted"
except Exception:
    result = "refused"
"""
    assert official_runtime.python(code, text=text) == "refused"
    with pytest.raises(FormatError, match="default"):
        decode_json(text.encode(), Schema, "x")


def test_sort_orders_have_javas_defaults(official_runtime: OfficialRuntime) -> None:
    code = """
schema = jvm.org.apache.iceberg.SchemaParser.fromJson(text)
bucket = jvm.org.apache.iceberg.expressions.Expressions.bucket("a", 4)
order = jvm.org.apache.iceberg.SortOrder.builderFor(schema).asc("a").desc("b").asc(bucket).build()
result = jvm.org.apache.iceberg.SortOrderParser.toJson(order)
"""
    columns = (NestedField(1, "a", False, parse_primitive("int")), NestedField(2, "b", False, parse_primitive("date")))
    schema = Schema(columns, schema_id=0)
    expected = official_runtime.python(code, text=encode_json(schema).decode())
    order = parse_sort_by(["a", "b desc", "bucket(4, a)"], schema)
    assert json.loads(encode_json(order)) == json.loads(expected)


def test_all_types_of_the_specification_are_compared() -> None:
    compared = {type(parse_primitive(t)) for t in VALUES} | {GeometryType, GeographyType}
    assert compared == {type(parse_primitive("int")), DecimalType, FixedType, GeometryType, GeographyType}
    assert {t for t in PRIMITIVES if t not in VALUES} == {"unknown", "variant"}
