"""Builders that several unit tests share: a complete v2 metadata document, and the metadata in it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bergline
from bergline import Lake
from bergline.format.metadata.json import parse_metadata
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.view.json import parse_view_metadata
from bergline.format.view.view_metadata import ViewMetadata


@pytest.fixture
def reopened(lake: Lake, tmp_path: Path) -> Iterator[Lake]:
    """The lake as another process finds it, with nothing cached: damage on disk is seen."""
    assert lake.list_namespaces() == ["db"]
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db") as other:
        yield other


@pytest.fixture
def document() -> dict[str, Any]:
    """A v2 document as Java writes it: three snapshots in a line, `main` at the last, a branch and a tag."""
    return {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "memory:/lake/orders",
        "last-sequence-number": 3,
        "last-updated-ms": 1_700_000_003_000,
        "last-column-id": 3,
        "current-schema-id": 0,
        "schemas": [
            {
                "type": "struct",
                "schema-id": 0,
                "identifier-field-ids": [1],
                "fields": [
                    {"id": 1, "name": "id", "required": True, "type": "long"},
                    {"id": 2, "name": "region", "required": False, "type": "string", "doc": "where"},
                    {"id": 3, "name": "at", "required": False, "type": "timestamptz"},
                ],
            }
        ],
        "default-spec-id": 0,
        "partition-specs": [
            {"spec-id": 0, "fields": [{"name": "region", "transform": "identity", "source-id": 2, "field-id": 1000}]}
        ],
        "last-partition-id": 1000,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"owner": "ann"},
        "current-snapshot-id": 103,
        "refs": {
            "main": {"snapshot-id": 103, "type": "branch"},
            "audit": {"snapshot-id": 102, "type": "branch", "min-snapshots-to-keep": 2},
            "v1": {"snapshot-id": 101, "type": "tag", "max-ref-age-ms": 1000},
        },
        "snapshots": [_snapshot(101, None, 1), _snapshot(102, 101, 2), _snapshot(103, 102, 3)],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [{"timestamp-ms": 1_700_000_000_000 + n * 1000, "snapshot-id": 100 + n} for n in (1, 2, 3)],
        "metadata-log": [],
    }


@pytest.fixture
def metadata(document: dict[str, Any]) -> TableMetadata:
    """The metadata of the document."""
    return parse_metadata(json.dumps(document).encode(), "memory:/lake/orders/metadata/v3.metadata.json")


def _snapshot(snapshot_id: int, parent: int | None, number: int) -> dict[str, Any]:
    link = {} if parent is None else {"parent-snapshot-id": parent}
    return link | {
        "snapshot-id": snapshot_id,
        "sequence-number": number,
        "timestamp-ms": 1_700_000_000_000 + number * 1000,
        "manifest-list": f"memory:/lake/orders/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }


@pytest.fixture
def view_document() -> dict[str, Any]:
    """View metadata as Java writes it: two versions, the second current."""
    return {
        "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
        "format-version": 1,
        "location": "memory:/lake/view",
        "properties": {"comment": "numbers"},
        "schemas": [
            {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "m", "required": False, "type": "int"}]},
            {"type": "struct", "schema-id": 1, "fields": [{"id": 1, "name": "n", "required": False, "type": "int"}]},
        ],
        "current-version-id": 2,
        "versions": [
            {
                "version-id": 1,
                "timestamp-ms": 1_700_000_001_000,
                "schema-id": 0,
                "summary": {"engine-name": "spark"},
                "default-namespace": ["db", "raw"],
                "representations": [{"type": "sql", "sql": "SELECT 1 AS m", "dialect": "spark"}],
            },
            {
                "version-id": 2,
                "timestamp-ms": 1_700_000_002_000,
                "schema-id": 1,
                "summary": {},
                "default-catalog": "prod",
                "default-namespace": [],
                "representations": [
                    {"type": "sql", "sql": "SELECT 2 AS n", "dialect": "spark"},
                    {"type": "sql", "sql": "SELECT 2 n", "dialect": "Trino"},
                ],
            },
        ],
        "version-log": [
            {"timestamp-ms": 1_700_000_001_000, "version-id": 1},
            {"timestamp-ms": 1_700_000_002_000, "version-id": 2},
        ],
    }


@pytest.fixture
def view(view_document: dict[str, Any]) -> ViewMetadata:
    """The view of the document."""
    return parse_view_metadata(json.dumps(view_document).encode(), "memory:/lake/view/metadata/v2.metadata.json")
