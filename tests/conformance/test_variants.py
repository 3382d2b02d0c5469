"""Variants of the official runtime, whole and shredded, read here, and ours read there."""

import json
import math
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import VariantVal

from bergline import Lake, Table
from bergline.io.locations import local_path

Sql = Callable[[str], list[tuple[Any, ...]]]

DOCUMENTS = [
    '{"kind": "login", "at": 7, "who": {"name": "a", "tags": ["x", "y"]}, "amount": 1.25}',
    '{"kind": "login", "at": 8, "who": {"name": "b", "tags": []}, "amount": 2.5, "more": {"deep": [1, {"z": null}]}}',
    '{"kind": null, "at": "late", "who": {"name": "c", "tags": ["z", 1]}, "amount": -3.75}',
    '{"kind": "logout", "who": {"tags": null}, "amount": 100.00}',
    "{}",
    "[1, 2]",
    '"text"',
    "null",
    "-1.5e300",
]
TYPED = "CAST({} AS VARIANT)"
VALUES = [
    "true",
    "DATE '1969-07-20'",
    "TIMESTAMP '2026-01-02 03:04:05.000006Z'",
    "TIMESTAMP_NTZ '1960-01-02 03:04:05.000006'",
    "X'00FF'",
    "CAST(1.5 AS FLOAT)",
    "CAST(12345678901234567890.12 AS DECIMAL(38, 2))",
]


def written(official: Sql, name: str, *, shredded: bool) -> None:
    official(
        f"CREATE TABLE db.{name} (id BIGINT, v VARIANT) TBLPROPERTIES ('format-version' = '3', "
        f"'write.parquet.shred-variants' = '{str(shredded).lower()}')"
    )
    documents = [f"({n}, parse_json('{text}'))" for n, text in enumerate(DOCUMENTS)]
    official(f"INSERT INTO db.{name} VALUES {', '.join([*documents, '(100, NULL)'])}")
    # a column of its own type for each: one file
    for n, value in enumerate(VALUES, 200):
        official(f"INSERT INTO db.{name} SELECT {n}, {TYPED.format(value)}")
    arrays = ", ".join(f"({n}, parse_json('[{n}, {n + 1}]'))" for n in range(300, 303))
    official(f"INSERT INTO db.{name} VALUES {arrays}")


def texts(table: Table) -> list[tuple[int, Any]]:
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    return [(row["id"], row["v"] and VariantVal(row["v"]["value"], row["v"]["metadata"]).toJson()) for row in found]


def document(text: str | None) -> Any:
    return text if text is None else json.loads(text)


def is_same(left: Any, right: Any) -> bool:
    return left == right or (isinstance(left, float) and math.isclose(left, right))


@pytest.mark.parametrize("shredded", [False, True], ids=["whole", "shredded"])
def test_variants_of_the_official_runtime_are_read_and_ours_by_it(
    lake: Lake,
    official: Sql,
    shredded: bool,
) -> None:
    written(official, "theirs", shredded=shredded)
    table = lake.load_table("db.theirs")
    paths = [local_path(planned.file.file_path) for planned in table.scan().plan().files]
    assert any("typed_value" in str(pq.read_schema(path)) for path in paths) is shredded
    expected = official("SELECT id, to_json(v) FROM db.theirs ORDER BY id")
    found = texts(table)
    assert [n for n, _ in found] == [n for n, _ in expected]
    wrong = [
        (n, ours, theirs)
        for (n, ours), (_, theirs) in zip(found, expected, strict=True)
        if not is_same(document(ours), document(theirs))
    ]
    assert wrong == []
    ours = lake.create_table("db.ours", table.schema, properties={"format-version": "3"})
    ours.append(table.scan().to_arrow())
    assert official("SELECT id, to_json(v) FROM db.ours ORDER BY id") == expected
    types = "SELECT id, schema_of_variant(v), v IS NULL FROM db.{} ORDER BY id"
    assert official(types.format("ours")) == official(types.format("theirs"))
    official("INSERT INTO db.ours VALUES (400, parse_json('{\"a\": 1}'))")
    assert texts(ours.refresh())[-1] == (400, '{"a":1}')
