"""Metadata documents with every field, as Java writes them: tables of each version, and a view."""

from typing import Any

BASE_MS = 1_700_000_000_000


def table_document(version: int) -> dict[str, Any]:
    """A table of this format version: several schemas, specs and orders, all kinds of refs, statistics, logs."""
    document: dict[str, Any] = {
        "format-version": version,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "s3://bucket/lake/ordérs",
        "last-sequence-number": 4,
        "last-updated-ms": BASE_MS + 9_000,
        "last-column-id": 9,
    }
    if version == 1:
        del document["last-sequence-number"]
        document["schema"] = _SCHEMAS[1]
    document |= {"current-schema-id": 1, "schemas": _SCHEMAS}
    specs = _specs(version)
    if version == 1:
        document["partition-spec"] = specs[1]["fields"]
    document |= {
        "default-spec-id": 1,
        "partition-specs": specs,
        "last-partition-id": 1003,
        "default-sort-order-id": 2,
        "sort-orders": _ORDERS,
        "properties": {"owner": "ann", "write.format.default": "parquet", "ключ": "значение 🦆"},
        "current-snapshot-id": 104,
    }
    if version >= 3:
        document |= {"next-row-id": 70, "encryption-keys": _KEYS}
    return document | {
        "refs": {
            "main": {
                "snapshot-id": 104,
                "type": "branch",
                "min-snapshots-to-keep": 3,
                "max-snapshot-age-ms": 604_800_000,
            },
            "audit/été": {"snapshot-id": 102, "type": "branch", "max-ref-age-ms": 5_000},
            "v1": {"snapshot-id": 101, "type": "tag", "max-ref-age-ms": 1_000},
            "plain": {"snapshot-id": 103, "type": "tag"},
        },
        "snapshots": [_snapshot(version, n) for n in (1, 2, 3, 4)],
        "statistics": [
            {
                "snapshot-id": 104,
                "statistics-path": "s3://bucket/lake/stats.puffin",
                "file-size-in-bytes": 512,
                "file-footer-size-in-bytes": 42,
                "blob-metadata": [
                    {
                        "type": "apache-datasketches-theta-v1",
                        "snapshot-id": 104,
                        "sequence-number": 4,
                        "fields": [1, 2],
                        "properties": {"ndv": "3"},
                    },
                    {"type": "deletion-vector-v1", "snapshot-id": 103, "sequence-number": 3, "fields": []},
                ],
            }
        ],
        "partition-statistics": [
            {"snapshot-id": 104, "statistics-path": "s3://bucket/lake/p.parquet", "file-size-in-bytes": 43}
        ],
        "snapshot-log": [{"timestamp-ms": BASE_MS + n * 1_000, "snapshot-id": 100 + n} for n in (1, 2, 4)],
        "metadata-log": [
            {"timestamp-ms": BASE_MS + n * 1_000, "metadata-file": f"s3://bucket/lake/0000{n}-u.metadata.json"}
            for n in (1, 2)
        ],
    }


def view_document() -> dict[str, Any]:
    """A view with two versions, the second current."""
    return {
        "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
        "format-version": 1,
        "location": "s3://bucket/lake/view",
        "properties": {"comment": "nombre d'été"},
        "schemas": [
            {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "m", "required": False, "type": "int"}]},
            {"type": "struct", "schema-id": 1, "fields": [{"id": 1, "name": "n", "required": False, "type": "int"}]},
        ],
        "current-version-id": 2,
        "versions": [
            {
                "version-id": 1,
                "timestamp-ms": BASE_MS + 1_000,
                "schema-id": 0,
                "summary": {"engine-name": "spark", "engine-version": "4.1"},
                "default-namespace": ["db", "raw"],
                "representations": [{"type": "sql", "sql": "SELECT 1 AS m", "dialect": "spark"}],
            },
            {
                "version-id": 2,
                "timestamp-ms": BASE_MS + 2_000,
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
            {"timestamp-ms": BASE_MS + 1_000, "version-id": 1},
            {"timestamp-ms": BASE_MS + 2_000, "version-id": 2},
        ],
    }


def oldest_table_document() -> dict[str, Any]:
    """A v1 table of the first writers: one schema, one spec, neither with ids, and manifests in place of a list."""
    document = table_document(1)
    schema = {key: value for key, value in _SCHEMAS[1].items() if key != "schema-id"}
    fields = [{key: value for key, value in f.items() if key != "field-id"} for f in document["partition-spec"]]
    kept = ("format-version", "location", "last-updated-ms", "last-column-id", "properties", "current-snapshot-id")
    return {key: document[key] for key in kept} | {
        "schema": schema,
        "partition-spec": fields,
        "snapshots": [
            {"snapshot-id": 104, "timestamp-ms": BASE_MS, "manifests": ["s3://bucket/m1.avro", "s3://bucket/m2.avro"]}
        ],
    }


_SCHEMAS: list[dict[str, Any]] = [
    {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            {"id": 1, "name": "id", "required": True, "type": "long"},
            {"id": 2, "name": "region", "required": False, "type": "string", "doc": "where"},
        ],
    },
    {
        "type": "struct",
        "schema-id": 1,
        "identifier-field-ids": [1],
        "fields": [
            {"id": 1, "name": "id", "required": True, "type": "long"},
            {"id": 2, "name": "région", "required": False, "type": "string", "doc": "where"},
            {"id": 3, "name": "at", "required": False, "type": "timestamptz"},
            {
                "id": 4,
                "name": "tags",
                "required": False,
                "type": {"type": "list", "element-id": 5, "element": "decimal(9, 2)", "element-required": True},
            },
            {
                "id": 6,
                "name": "counts",
                "required": False,
                "type": {
                    "type": "map",
                    "key-id": 7,
                    "key": "string",
                    "value-id": 8,
                    "value": {
                        "type": "struct",
                        "fields": [{"id": 9, "name": "n", "required": True, "type": "fixed[4]"}],
                    },
                    "value-required": False,
                },
            },
        ],
    },
]
_KEYS = [
    {"key-id": "k0", "encrypted-key-metadata": "AQIDBA=="},
    {"key-id": "k1", "encrypted-key-metadata": "", "encrypted-by-id": "k0", "properties": {"a": "b"}},
]
_ORDERS = [
    {"order-id": 0, "fields": []},
    {
        "order-id": 2,
        "fields": [
            {"transform": "identity", "source-id": 2, "direction": "desc", "null-order": "nulls-last"},
            {"transform": "bucket[8]", "source-id": 1, "direction": "asc", "null-order": "nulls-first"},
        ],
    },
]


def _specs(version: int) -> list[dict[str, Any]]:
    gone = {"name": "gone", "transform": "void", "source-id": 2, "field-id": 1000}
    fields = [
        {"name": "id_bucket", "transform": "bucket[4]", "source-id": 1, "field-id": 1001},
        {"name": "at_day", "transform": "day", "source-id": 3, "field-id": 1002},
        {"name": "région", "transform": "identity", "source-id": 2, "field-id": 1003},
    ]
    first = [{"name": "region_trunc", "transform": "truncate[3]", "source-id": 2, "field-id": 1000}]
    return [{"spec-id": 0, "fields": first}, {"spec-id": 1, "fields": [gone, *fields] if version == 1 else fields}]


def _snapshot(version: int, number: int) -> dict[str, Any]:
    snapshot: dict[str, Any] = {} if version == 1 else {"sequence-number": number}
    snapshot["snapshot-id"] = 100 + number
    if number > 1:
        snapshot["parent-snapshot-id"] = 99 + number
    snapshot |= {
        "timestamp-ms": BASE_MS + number * 1_000,
        "summary": {"operation": "append", "added-records": "3", "spark.app.id": "ünï"},
        "manifest-list": f"s3://bucket/lake/snap-{number}.avro",
        "schema-id": 0 if number == 1 else 1,
    }
    if version >= 3 and number > 1:
        snapshot |= {"first-row-id": (number - 2) * 20, "added-rows": 20, "key-id": "k1"}
    return snapshot
