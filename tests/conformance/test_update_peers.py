"""Updates of tables and views next to Java's builders: the same metadata after them, or the same refusal."""

import json
from typing import Any

import pytest

from bergline.errors import BerglineError
from bergline.format.metadata.apply import apply_updates, create_from_updates
from bergline.format.metadata.json import parse_metadata, render_metadata
from bergline.format.metadata.updates_json import parse_updates
from bergline.format.view.apply import apply_view_updates
from bergline.format.view.json import parse_view_metadata, render_view_metadata
from bergline.format.view.updates import parse_view_updates
from support.fixtures.metadata_documents import BASE_MS, table_document, view_document
from support.servers.peers import OfficialRuntime

LOCATION = "s3://bucket/lake/00007-u.metadata.json"
UPDATE = """
iceberg = jvm.org.apache.iceberg
parser = iceberg.view.ViewMetadataParser if view else iceberg.TableMetadataParser
model = iceberg.view.ViewMetadata if view else iceberg.TableMetadata
result = []
for text, updates in cases:
    try:
        if isinstance(text, int):
            builder = model.buildFromEmpty(text)
        else:
            builder = model.buildFrom(parser.fromJson(text) if view else parser.fromJson(location, text))
        for update in updates:
            iceberg.MetadataUpdateParser.fromJson(update).applyTo(builder)
        result.append(parser.toJson(builder.build()))
    except Exception as error:
        result.append({"error": str(getattr(error, "java_exception", error))[:200]})
"""


def snapshot(number: int, version: int, **fields: Any) -> dict[str, Any]:
    numbers = {} if version == 1 else {"sequence-number": number}
    rows = {"first-row-id": 70 + 10 * (number - 5), "added-rows": 10} if version == 3 else {}
    plain = {
        "snapshot-id": 100 + number,
        "parent-snapshot-id": 104,
        "timestamp-ms": BASE_MS + 20_000 + number,
        "summary": {"operation": "append"},
        "manifest-list": f"s3://bucket/lake/snap-{number}.avro",
        "schema-id": 1,
    }
    return {"action": "add-snapshot", "snapshot": numbers | plain | rows | fields}


def ref(name: str, snapshot_id: int, kind: str = "branch", **retention: int) -> dict[str, Any]:
    keys = {key.replace("_", "-"): value for key, value in retention.items()}
    return {"action": "set-snapshot-ref", "ref-name": name, "snapshot-id": snapshot_id, "type": kind} | keys


def drop(name: str) -> dict[str, Any]:
    return {"action": "remove-snapshot-ref", "ref-name": name}


def schema(*fields: dict[str, Any], schema_id: int = 9) -> dict[str, Any]:
    return {"action": "add-schema", "schema": {"type": "struct", "schema-id": schema_id, "fields": fields}}


def column(field_id: int, name: str, kind: str = "string") -> dict[str, Any]:
    return {"id": field_id, "name": name, "required": False, "type": kind}


def spec(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"action": "add-spec", "spec": {"spec-id": 9, "fields": fields}}


def partition(name: str, transform: str, source: int, field_id: int) -> dict[str, Any]:
    return {"name": name, "transform": transform, "source-id": source, "field-id": field_id}


def order(source: int) -> dict[str, Any]:
    field = {"transform": "identity", "source-id": source, "direction": "asc", "null-order": "nulls-first"}
    return {"action": "add-sort-order", "sort-order": {"order-id": 9, "fields": [field]}}


ID, TIME = {"id": 1, "name": "id", "required": True, "type": "long"}, column(3, "at", "timestamptz")
STATISTICS = {
    "snapshot-id": 103,
    "statistics-path": "s3://bucket/s.puffin",
    "file-size-in-bytes": 5,
    "file-footer-size-in-bytes": 2,
    "blob-metadata": [],
}
PARTITION_STATISTICS = {key: STATISTICS[key] for key in list(STATISTICS)[:3]}
KEY = {"key-id": "k9", "encrypted-key-metadata": "AQI=", "encrypted-by-id": "k0"}
CHOOSE = {
    kind: {"action": f"set-{action}", f"{key}-id": -1}
    for kind, action, key in [
        ("schema", "current-schema", "schema"),
        ("spec", "default-spec", "spec"),
        ("order", "default-sort-order", "sort-order"),
    ]
}


def scenarios(version: int) -> dict[str, list[dict[str, Any]]]:
    """Change sets by what they are about, right and wrong ones."""
    add = snapshot(5, version)
    same_schema = {"action": "add-schema", "schema": table_document(version)["schemas"][0]}
    return {
        "nothing but a property": [{"action": "set-properties", "updates": {"a": "1"}}],
        "old keys of properties": [
            {"action": "set-properties", "updated": {"a": "1"}},
            {"action": "remove-properties", "removed": ["a", "owner"]},
        ],
        "commit to main": [add, ref("main", 105, min_snapshots_to_keep=3)],
        "commit to a branch": [add, ref("audit/été", 105)],
        "snapshot that no ref names": [add],
        "two commits in one": [add, ref("main", 105), snapshot(6, version), ref("main", 106)],
        "commit and rollback in one": [add, ref("main", 105), ref("main", 101)],
        "rollback": [ref("main", 101)],
        "same ref again": [ref("plain", 103, "tag"), add],
        "retention of main": [ref("main", 104, max_ref_age_ms=7)],
        "new tag": [ref("new", 102, "tag", max_ref_age_ms=5)],
        "dropped ref": [drop("v1"), drop("nothing")],
        "dropped main": [drop("main")],
        "replaced table": [drop("main"), schema(ID, TIME, column(10, "new")), add, ref("main", 105)],
        "removed snapshots": [
            drop("audit/été"),
            drop("plain"),
            {"action": "remove-snapshots", "snapshot-ids": [102, 103]},
        ],
        "removed oldest": [drop("v1"), {"action": "remove-snapshots", "snapshot-ids": [101]}],
        "removed unknown": [{"action": "remove-snapshots", "snapshot-ids": [1]}, add],
        "location": [{"action": "set-location", "location": "s3://bucket/else//"}],
        "wider schema": [schema(ID, column(2, "région"), TIME, column(10, "new")), CHOOSE["schema"]],
        "older schema again": [same_schema, add],
        "current schema by id": [
            schema(ID, column(2, "région"), TIME),
            {"action": "set-current-schema", "schema-id": 2},
        ],
        "new order": [order(3), CHOOSE["order"]],
        "unsorted": [
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": 0},
        ],
        "statistics": [
            {"action": "set-statistics", "snapshot-id": 103, "statistics": STATISTICS},
            {"action": "remove-statistics", "snapshot-id": 104},
            {
                "action": "set-partition-statistics",
                "partition-statistics": {k: STATISTICS[k] for k in list(STATISTICS)[:3]},
            },
            {"action": "remove-partition-statistics", "snapshot-id": 104},
        ],
        "forgotten spec and schema": [
            {"action": "remove-partition-specs", "spec-ids": [0, 7]},
            {"action": "remove-schemas", "schema-ids": [0, 7]},
        ],
        "encryption keys": [
            {"action": "add-encryption-key", "encryption-key": KEY},
            {"action": "add-encryption-key", "encryption-key": KEY | {"encrypted-key-metadata": "Ag=="}},
            {"action": "remove-encryption-key", "key-id": "k1"},
        ],
        "same uuid": [{"action": "assign-uuid", "uuid": table_document(version)["table-uuid"]}, add],
        "upgrade": [{"action": "upgrade-format-version", "format-version": 3}, drop("v1")],
        "short metadata log": [{"action": "set-properties", "updates": {"write.metadata.previous-versions-max": "2"}}],
        "new spec": [
            spec(*(partition(f"b{n}", "bucket[7]", 1, 1000 + n) for n in (range(1) if version == 1 else [9]))),
            CHOOSE["spec"],
        ],
        "equal spec": [spec(partition("region_trunc", "truncate[3]", 2, 1000)), add],
        # wrong ones
        "snapshot twice": [snapshot(4, version)],
        "stale number": [snapshot(5, version, **({} if version == 1 else {"sequence-number": 4}))],
        "row ids behind": [snapshot(5, version, **({"first-row-id": 69} if version == 3 else {}))],
        "no row ids": [snapshot(5, version, **({"first-row-id": None} if version == 3 else {}))],
        "number in v1": [snapshot(5, version, **{"sequence-number": 5})],
        "unknown snapshot": [ref("x", 5)],
        "main as tag": [ref("main", 104, "tag")],
        "no retention": [ref("x", 104, min_snapshots_to_keep=0)],
        "retention of a tag": [ref("x", 104, "tag", min_snapshots_to_keep=1)],
        "downgrade": [{"action": "upgrade-format-version", "format-version": version - 1}],
        "default spec removed": [{"action": "remove-partition-specs", "spec-ids": [1]}],
        "current schema removed": [{"action": "remove-schemas", "schema-ids": [1]}],
        "unknown schema": [{"action": "set-current-schema", "schema-id": 7}],
        "unknown spec": [{"action": "set-default-spec", "spec-id": 7}],
        "unknown order": [{"action": "set-default-sort-order", "sort-order-id": 7}],
        "nothing added": [CHOOSE["schema"]],
        "schema without partition column": [schema(ID, column(2, "région")), CHOOSE["schema"]],
        "type of a later version": [schema(ID, column(10, "t", "timestamp_ns"))],
        "spec without column": [spec(partition("x", "identity", 77, 1000))],
        "spec that does not fit": [spec(partition("x", "day", 2, 1000))],
        "spec in a list": [spec(partition("x", "identity", 5, 1000))],
        "order without column": [order(77)],
        "gap in ids": [spec(partition("x", "bucket[9]", 1, 1009))],
        "name of a column": [spec(partition("at", "bucket[9]", 1, 1000))],
        "time runs backwards": [snapshot(5, version, **{"timestamp-ms": 5}), ref("main", 105)],
        "unknown action": [{"action": "burn"}],
    }


def updated(version: int, text: str, updates: list[dict[str, Any]], now_ms: int) -> dict[str, Any] | None:
    try:
        parsed = parse_updates(json.dumps(updates).encode(), "request")
        after = apply_updates(parse_metadata(text.encode(), "file"), parsed, base_location=LOCATION, now_ms=now_ms)
    except BerglineError:
        return None
    assert after.format_version >= version
    return comparable(render_metadata(after))


def comparable(text: str | bytes) -> dict[str, Any]:
    """A document without the order that Java's hash maps give to statistics."""
    document: dict[str, Any] = json.loads(text)
    for key in ("statistics", "partition-statistics"):
        document[key].sort(key=lambda file: file["snapshot-id"])
    return document


@pytest.mark.kinds(2)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_updates_do_what_they_do_in_java(official_runtime: OfficialRuntime, version: int) -> None:
    text = json.dumps(table_document(version))
    cases = scenarios(version)
    wires = [(text, [json.dumps(u) for u in updates]) for updates in cases.values()]
    answers = official_runtime.python(UPDATE, view=False, location=LOCATION, cases=wires)
    parted = {}
    for (what, updates), java in zip(cases.items(), answers, strict=True):
        theirs = None if isinstance(java, dict) else comparable(java)
        mine = updated(version, text, updates, theirs["last-updated-ms"] if theirs else BASE_MS)
        if mine != theirs:
            parted[what] = (java, mine and {k: v for k, v in mine.items() if not theirs or theirs.get(k) != v})
    assert parted == {}


@pytest.mark.kinds(2)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_table_made_by_updates_alone_is_that_of_java(official_runtime: OfficialRuntime, version: int) -> None:
    number = {} if version == 1 else {"sequence-number": 1}
    rows = {"first-row-id": 0} if version == 3 else {}
    first = snapshot(1, version, **number, **rows)
    del first["snapshot"]["parent-snapshot-id"]
    updates = [
        {"action": "assign-uuid", "uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1"},
        {"action": "upgrade-format-version", "format-version": version},
        schema(ID, column(2, "région"), TIME),
        CHOOSE["schema"],
        spec(partition("at_day", "day", 3, 1000)),
        CHOOSE["spec"],
        order(2),
        CHOOSE["order"],
        {"action": "set-location", "location": "s3://bucket/new"},
        {"action": "set-properties", "updates": {"owner": "ann"}},
        first,
        ref("main", 101),
    ]
    cases = [(version, [json.dumps(u) for u in updates])]
    (java,) = official_runtime.python(UPDATE, view=False, location=LOCATION, cases=cases)
    assert isinstance(java, str), java
    parsed = parse_updates(json.dumps(updates).encode(), "request")
    made = create_from_updates(parsed, now_ms=json.loads(java)["last-updated-ms"])
    assert render_metadata(made).decode() == java


def view_version(number: int, *dialects: str, schema_id: int = 1, **fields: Any) -> dict[str, Any]:
    plain = {
        "version-id": number,
        "timestamp-ms": BASE_MS + number * 1_000,
        "schema-id": schema_id,
        "summary": {"engine-name": "spark"},
        "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": f"SELECT {number}", "dialect": d} for d in dialects],
    }
    return {"action": "add-view-version", "view-version": plain | fields}


def current(version_id: int) -> dict[str, Any]:
    return {"action": "set-current-view-version", "view-version-id": version_id}


def properties(**changes: str) -> dict[str, Any]:
    return {
        "action": "set-properties",
        "updates": {k.replace("__", "-").replace("_", "."): v for k, v in changes.items()},
    }


BOTH = ("spark", "trino")
LESS = properties(replace_drop__dialect_allowed="true")
VIEW_SCENARIOS: dict[str, list[dict[str, Any]]] = {
    "new version": [view_version(3, *BOTH), current(-1)],
    "low id": [view_version(1, *BOTH), current(-1)],
    "high id": [view_version(9, *BOTH)],
    "new schema": [schema(column(1, "x")), view_version(3, *BOTH, schema_id=-1), current(-1)],
    "known schema": [{"action": "add-schema", "schema": view_document()["schemas"][0]}, current(2)],
    "equal version": [{"action": "add-view-version", "view-version": view_document()["versions"][0]}],
    "back to the first": [LESS, current(1)],
    "same version": [current(2)],
    "last of several": [view_version(3, *BOTH), current(3), view_version(4, *BOTH, "duckdb"), current(4)],
    "fewer dialects": [LESS, view_version(3, "spark"), current(-1)],
    "history of 1": [properties(version_history_num__entries="1"), view_version(3, *BOTH), current(-1)],
    "history of 2": [properties(version_history_num__entries="2"), view_version(3, *BOTH), current(-1)],
    "old current version": [LESS, properties(version_history_num__entries="1"), view_version(3, *BOTH), current(1)],
    "properties and location": [
        properties(a="1"),
        {"action": "remove-properties", "removals": ["comment"]},
        {"action": "set-location", "location": "s3://bucket/else/"},
    ],
    "same uuid and version": [
        {"action": "assign-uuid", "uuid": view_document()["view-uuid"]},
        {"action": "upgrade-format-version", "format-version": 1},
    ],
    # wrong ones
    "lost dialect": [view_version(3, "spark"), current(-1)],
    "two queries of one dialect": [view_version(3, "spark", "SPARK")],
    "other uuid": [{"action": "assign-uuid", "uuid": "other"}],
    "later version": [{"action": "upgrade-format-version", "format-version": 2}],
    "unknown schema": [view_version(3, *BOTH, schema_id=7)],
    "no schema added": [view_version(3, *BOTH, schema_id=-1)],
    "unknown version": [current(7)],
    "no version added": [current(-1)],
    "no history": [properties(version_history_num__entries="0")],
    "history in words": [properties(version_history_num__entries="many")],
}


def test_view_updates_do_what_they_do_in_java(official_runtime: OfficialRuntime) -> None:
    text = json.dumps(view_document())
    wires = [(text, [json.dumps(u) for u in updates]) for updates in VIEW_SCENARIOS.values()]
    answers = official_runtime.python(UPDATE, view=True, location=LOCATION, cases=wires)
    parted = {}
    for (what, updates), java in zip(VIEW_SCENARIOS.items(), answers, strict=True):
        theirs = None if isinstance(java, dict) else json.loads(java)
        now_ms = theirs["version-log"][-1]["timestamp-ms"] if theirs else BASE_MS
        try:
            parsed = parse_view_updates(json.dumps(updates).encode(), "request")
            view = apply_view_updates(parse_view_metadata(text.encode(), "file"), parsed, now_ms=now_ms)
            mine = json.loads(render_view_metadata(view))
        except BerglineError as error:
            mine = None if theirs is None else str(error)
        if mine != theirs:
            parted[what] = (java, mine)
    assert parted == {}
