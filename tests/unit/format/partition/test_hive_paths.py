"""Partitions named by directories: names, escapes, nulls, and values of every type that has one."""

import uuid
from decimal import Decimal
from typing import Any

import pytest

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.format.partition.hive_paths import is_hidden, parse_partition_text, split_partition_path
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    UUID,
    DecimalType,
    IcebergType,
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", []),
        ("region=eu/day=2026-01-01", [("region", "eu"), ("day", "2026-01-01")]),
        ("at=10%3A00%2F5/a%3Db=c=d", [("at", "10:00/5"), ("a=b", "c=d")]),
        ("x=100%/y=ü", [("x", "100%"), ("y", "ü")]),
        ("region=eu/more", None),
        ("=eu", None),
    ],
)
def test_directories_are_names_and_values(path: str, expected: list[tuple[str, str]] | None) -> None:
    assert split_partition_path(path) == expected


@pytest.mark.parametrize(
    ("path", "hidden"),
    [("a.parquet", False), ("_SUCCESS", True), (".a.crc", True), ("_tmp/a", True), ("_p=1/a", False), ("p=1/_a", True)],
)
def test_hidden_files_are_those_that_spark_ignores(path: str, *, hidden: bool) -> None:
    assert is_hidden(path) is hidden


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        (STRING, "", ""),
        (STRING, "null", "null"),
        (STRING, "__HIVE_DEFAULT_PARTITION__", None),
        (INT, "__HIVE_DEFAULT_PARTITION__", None),
        (INT, "007", 7),
        (LONG, "-9223372036854775808", -(2**63)),
        (BOOLEAN, "TRUE", True),
        (BOOLEAN, "false", False),
        (FLOAT, "1.5", 1.5),
        (DOUBLE, "-1e3", -1000.0),
        (DOUBLE, "Infinity", float("inf")),
        (DATE, "1970-01-03", 2),
        (DecimalType(5, 2), "1.5", Decimal("1.50")),
        (DecimalType(5, 0), "12", Decimal(12)),
        (UUID, str(uuid.UUID(int=3)), uuid.UUID(int=3)),
        (BINARY, "ü", "ü".encode()),
    ],
)
def test_text_becomes_a_value_of_the_type(type_: IcebergType, text: str, expected: Any) -> None:
    assert parse_partition_text(type_, text, "p") == expected


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (INT, "x"),
        (INT, ""),
        (INT, "1_000"),
        (INT, "2147483648"),
        (LONG, "9223372036854775808"),
        (BOOLEAN, "yes"),
        (DOUBLE, "1,5"),
        (DATE, "2026-13-01"),
        (DATE, "today"),
        (DecimalType(5, 2), "1.555"),
        (DecimalType(5, 2), "12345.00"),
        (UUID, "no"),
    ],
)
def test_other_text_is_refused_by_column_and_type(type_: IcebergType, text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"expected a `.*` for partition column `p`, found"):
        parse_partition_text(type_, text, "p")


def test_types_without_a_text_in_paths_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="partition values of type `timestamp`, found column `p`"):
        parse_partition_text(TIMESTAMP, "2026-01-01 00:00:00", "p")
