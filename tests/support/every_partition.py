"""Partition specs with every transform on every type that it takes, and files in such partitions."""

import math
import random
import uuid
from decimal import Decimal
from typing import Any

from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.transforms import parse_transform
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
    NestedField,
)

_INTS = [0, 1, -1, 2**31 - 1, -(2**31)]
_LONGS = [*_INTS, 2**63 - 1, -(2**63)]
_MOMENTS = [0, 1, -1, 1_700_000_000_000_001, -62_135_596_800_000_000]
_NANOS = [0, 1, -1, 1_700_000_000_000_000_001, -(2**62)]
_BYTES = [b"", b"\x00", b"\xff\x00\x80", b"abc"]
_TEXTS = ["", "a", "zürich", "\U0001f9ca", "\uffff", "~" * 40, "\x00"]
_FIXED = [bytes(5), b"abcde", b"\xff" * 5]
_SMALL_DECIMALS = [Decimal("0.00"), Decimal("-14.20"), Decimal("9999999.99"), Decimal("1.28"), Decimal("-1.28")]
_LARGE_DECIMALS = [Decimal(0), Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(128), Decimal(-129)]
_UUIDS = [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.UUID(int=2**127), uuid.UUID(int=77)]
SOURCES: dict[str, tuple[IcebergType, list[Any]]] = {
    "boolean": (BOOLEAN, [True, False]),
    "int": (INT, _INTS),
    "long": (LONG, _LONGS),
    "float": (FLOAT, [0.0, -0.0, 1.5, -2.5, math.nan, math.inf, -math.inf]),
    "double": (DOUBLE, [0.0, -0.0, 0.1, -1e300, math.nan, math.inf, -math.inf]),
    "date": (DATE, [0, -1, 17_486, -719_162, 2_932_896]),
    "time": (TIME, [0, 1, 86_399_999_999]),
    "timestamp": (TIMESTAMP, _MOMENTS),
    "timestamptz": (TIMESTAMPTZ, _MOMENTS),
    "timestamp_ns": (TIMESTAMP_NS, _NANOS),
    "timestamptz_ns": (TIMESTAMPTZ_NS, _NANOS),
    "string": (STRING, _TEXTS),
    "uuid": (UUID, _UUIDS),
    "fixed": (FixedType(5), _FIXED),
    "binary": (BINARY, _BYTES),
    "decimal": (DecimalType(9, 2), _SMALL_DECIMALS),
    "huge": (DecimalType(38, 0), _LARGE_DECIMALS),
}
_NANO_COLUMNS = {"timestamp_ns", "timestamptz_ns"}
_TIMESTAMPS = ("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")
_BUCKETED = set(SOURCES) - {"boolean", "float", "double"}
_APPLIES: dict[str, set[str]] = {
    "identity": set(SOURCES),
    "void": set(SOURCES),
    "bucket[7]": _BUCKETED,
    "truncate[3]": {"int", "long", "string", "binary", "decimal", "huge"},
    "year": {"date", *_TIMESTAMPS},
    "month": {"date", *_TIMESTAMPS},
    "day": {"date", *_TIMESTAMPS},
    "hour": set(_TIMESTAMPS),
}
_NUMBERS = {
    "bucket[7]": [0, 3, 6],
    "year": [0, -1, 54, -1969],
    "month": [0, -1, 649],
    "day": [0, -1, 19_000, -719_162],
    "hour": [0, -1, 472_222],
}


def every_partition(format_version: int) -> tuple[Schema, PartitionSpec]:
    """A schema of all types that a version has, and a spec of all transforms of them."""
    columns = [c for c in SOURCES if format_version > 2 or c not in _NANO_COLUMNS]
    schema = Schema(
        fields=tuple(NestedField(i, name, False, SOURCES[name][0]) for i, name in enumerate(columns, 1)), schema_id=0
    )
    pairs = [(t, c) for t, applies in _APPLIES.items() for c in columns if c in applies]
    fields = tuple(
        PartitionField(schema.find(column).id, 1000 + n, _name(transform, column), parse_transform(transform))
        for n, (transform, column) in enumerate(pairs)
    )
    return schema, PartitionSpec(spec_id=3, fields=fields)


def partition_values(spec: PartitionSpec, schema: Schema, number: int) -> tuple[Any, ...]:
    """Values of one partition: number 0 is all null, the others take the edges of each type in turn."""
    values: list[Any] = []
    for field in spec.fields:
        transform, column = str(field.transform), schema.names_by_id[field.source_id]
        choices = _NUMBERS.get(transform, SOURCES[column][1])
        null = transform == "void" or not number or (number + field.field_id) % 11 == 0
        values.append(None if null else choices[(number - 1) % len(choices)])
    return tuple(values)


def any_file(path: str, partition: tuple[Any, ...], content: FileContent, chance: random.Random) -> DataFile:
    """A file with every field set or not, by chance, as files of its kind may have them."""

    def maybe(value: Any) -> Any:
        return value if chance.random() < 0.7 else None

    def counts() -> dict[int, int]:
        return {chance.randrange(1, 200): chance.choice([0, 1, 2**40]) for _ in range(chance.randrange(4))}

    def bounds() -> dict[int, bytes]:
        return {i: chance.randbytes(chance.choice([0, 1, 8, 70])) for i in range(1, chance.randrange(1, 5))}

    data, equality = content is FileContent.DATA, content is FileContent.EQUALITY_DELETES
    # Java leaves out offsets that lie beyond the end of the file
    offsets = maybe(tuple(sorted(chance.sample(range(4, 2**36), chance.randrange(1, 4)))))
    return DataFile(
        file_path=path,
        file_format=chance.choice(["PARQUET", "AVRO", "ORC"]),
        partition=partition,
        record_count=chance.choice([0, 1, 17, 2**33]),
        file_size_in_bytes=chance.choice([0, 4096]) if offsets is None else 2**40,
        content=content,
        column_sizes=maybe(counts()),
        value_counts=maybe(counts()),
        null_value_counts=maybe(counts()),
        nan_value_counts=maybe(counts()),
        lower_bounds=maybe(bounds()),
        upper_bounds=maybe(bounds()),
        key_metadata=maybe(chance.randbytes(5)),
        split_offsets=offsets,
        equality_ids=tuple(chance.sample(range(1, 10), 2)) if equality else None,
        sort_order_id=maybe(chance.randrange(3)) if data or equality else None,
        referenced_data_file=maybe(f"{path}.data") if content is FileContent.POSITION_DELETES else None,
    )


def vector_file(path: str, partition: tuple[Any, ...], number: int) -> DataFile:
    """A deletion vector."""
    return DataFile(
        file_path=path,
        file_format="PUFFIN",
        partition=partition,
        record_count=number + 1,
        file_size_in_bytes=2**20,
        content=FileContent.POSITION_DELETES,
        referenced_data_file=f"{path}.data",
        content_offset=4 + number,
        content_size_in_bytes=40 + number,
    )


def _name(transform: str, column: str) -> str:
    return column if transform == "identity" else f"{column} {transform}"
