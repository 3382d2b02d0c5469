"""What DESCRIBE and SHOW say about a table, as SQL writes it."""

from typing import Any

import pytest

from bergline import Lake, Table
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    IcebergType,
    NestedField,
)
from bergline.sql.grammar.table_text import default_text, partition_terms, shown_properties, sort_terms


def test_terms_are_those_of_the_statements(lake: Lake, orders: Table) -> None:
    with orders.update_spec() as spec:
        spec.add_field("region").add_field("bucket(4, id)").add_field("truncate(2, region)")
    orders.replace_sort_order(["truncate(2, region) desc", "id"])
    metadata = orders.refresh().metadata
    assert partition_terms(metadata) == ["region", "bucket(4, id)", "truncate(2, region)"]
    assert sort_terms(metadata) == ["truncate(region, 2) DESC NULLS LAST", "id ASC NULLS FIRST"]


def test_properties_show_the_state_and_hide_what_has_a_line_of_its_own(orders: Table) -> None:
    orders.set_properties({"comment": "words", "a": "b"})
    shown = shown_properties(orders.metadata)
    assert "comment" not in shown
    assert {k: shown[k] for k in ("a", "current-snapshot-id", "format", "format-version")} == {
        "a": "b",
        "current-snapshot-id": "none",
        "format": "iceberg/parquet",
        "format-version": "2",
    }


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        (INT, 7, "7"),
        (BOOLEAN, True, "true"),
        (STRING, "it's", r"'it\'s'"),
        (DecimalType(9, 2), "1.50", "1.50"),
        (DATE, "2026-01-02", "DATE '2026-01-02'"),
        (TIMESTAMP, "2026-01-02T00:00:00", "TIMESTAMP_NTZ '2026-01-02T00:00:00'"),
        (TIMESTAMPTZ, "2026-01-02T00:00:00+00:00", "TIMESTAMP '2026-01-02T00:00:00+00:00'"),
        (BINARY, "00ff", "X'00ff'"),
        (STRING, None, None),
    ],
)
def test_default_is_a_literal(type_: IcebergType, value: Any, text: str | None) -> None:
    assert default_text(NestedField(1, "c", False, type_, write_default=value)) == text
