"""Scans planned by the server."""

import base64
import datetime as dt
import zlib
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from bergline import Table
from bergline.lake.lake import Lake
from bergline.server.context.context import ServerContext
from support.servers.asgi_client import AsgiClient

pytestmark = pytest.mark.long

PLAN = "/v1/namespaces/db/tables/t/plan"
TASKS = "/v1/namespaces/db/tables/t/tasks"
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("name", pa.string())])


@pytest.fixture
def table(context: ServerContext) -> Table:
    """Three files: ids 0 to 9, 10 to 19, and one with nulls alone."""
    lake = Lake(context.catalog, "lake")
    lake.create_namespace("db")
    table = lake.create_table("db.t", SCHEMA, partition_by=["day"])
    for start in (0, 10):
        rows = {"id": list(range(start, start + 10)), "day": [start] * 10, "name": [f"n{start}"] * 10}
        table.append(pa.table(rows, schema=SCHEMA))
    table.append(pa.table({"id": [None], "day": [None], "name": [None]}, schema=SCHEMA))
    return table


def found(client: AsgiClient, filter_: Any = None, **more: Any) -> list[Any]:
    response = client("POST", PLAN, {"filter": filter_, **more} if filter_ is not None else more)
    assert response.status == 200, response
    assert response.json["status"] == "completed"
    return sorted(t["data-file"]["partition"][0] or "" for t in response.json["file-scan-tasks"])


BUCKET = {"type": "eq", "term": {"type": "transform", "transform": "bucket[2]", "term": "id"}, "value": 1}
FIRST, SECOND, NULL = "1970-01-01", "1970-01-11", ""


@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        (True, [NULL, FIRST, SECOND]),
        ({"type": "true"}, [NULL, FIRST, SECOND]),
        (False, []),
        ({"type": "eq", "term": "id", "value": 3}, [FIRST]),
        ({"type": "gt", "term": "id", "value": 9}, [SECOND]),
        ({"type": "not", "child": {"type": "gt", "term": "id", "value": 9}}, [FIRST]),
        ({"type": "not-eq", "term": "id", "value": 3}, [NULL, FIRST, SECOND]),
        ({"type": "not", "child": {"type": "eq", "term": "day", "value": FIRST}}, [NULL, SECOND]),
        ({"type": "eq", "term": "day", "value": 10}, [SECOND]),
        ({"type": "in", "term": "id", "values": [1, 2]}, [FIRST]),
        ({"type": "not-in", "term": "day", "values": [FIRST, SECOND]}, [NULL]),
        ({"type": "is-null", "term": "id"}, [NULL]),
        ({"type": "not-null", "child": {"type": "reference", "name": "id"}}, [FIRST, SECOND]),
        ({"type": "lt-eq", "left": {"type": "reference", "id": 1}, "right": {"type": "literal", "value": 9}}, [FIRST]),
        ({"type": "starts-with", "term": "name", "value": "n1"}, [SECOND]),
        ({"type": "not-starts-with", "term": "name", "value": "n1"}, [NULL, FIRST, SECOND]),
        (
            {
                "type": "and",
                "left": {"type": "gt", "term": "id", "value": 5},
                "right": {"type": "or", "left": {"type": "eq", "term": "id", "value": 15}, "right": False},
            },
            [SECOND],
        ),
        ({"type": "eq", "term": {"type": "transform", "transform": "day", "term": "day"}, "value": 1}, None),
    ],
)
def test_files_are_chosen_by_the_filter(
    table: Table, client: AsgiClient, filter_: Any, expected: list[Any] | None
) -> None:
    """At least the files with matching rows, and not those that cannot have any; None means all."""
    chosen = found(client, filter_)
    if filter_ == {"type": "not-starts-with", "term": "name", "value": "n1"}:
        assert {NULL, FIRST} <= set(chosen)
    else:
        assert chosen == ([NULL, FIRST, SECOND] if expected is None else expected)


def test_deletes_come_with_their_files(table: Table, client: AsgiClient) -> None:
    table.set_properties({"write.delete.mode": "merge-on-read"})
    table.refresh().delete("id = 3")
    plan = client("POST", PLAN, {}).json
    with_deletes = [t for t in plan["file-scan-tasks"] if t.get("delete-file-references")]
    assert [t["delete-file-references"] for t in with_deletes] == [[0]]
    assert plan["delete-files"][0]["content"] == "position-deletes"


def test_older_snapshots_and_appends_between_two_are_planned(table: Table, client: AsgiClient) -> None:
    first, second, third = (s.snapshot_id for s in table.metadata.snapshots)
    assert found(client, **{"snapshot-id": first}) == [FIRST]
    assert found(client, **{"start-snapshot-id": first, "end-snapshot-id": third}) == [NULL, SECOND]
    assert found(client, **{"start-snapshot-id": second, "end-snapshot-id": third, "select": ["id"]}) == [NULL]
    assert found(client, **{"start-snapshot-id": third, "end-snapshot-id": third}) == []


@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        (None, {FIRST: True, SECOND: True, NULL: True}),
        (
            {"type": "eq", "term": "day", "value": FIRST},
            {FIRST: True},
        ),
        (
            {"type": "not-eq", "term": "day", "value": FIRST},
            {SECOND: True, NULL: True},
        ),
        (
            {
                "type": "or",
                "left": {"type": "eq", "term": "day", "value": 0},
                "right": {"type": "eq", "term": "name", "value": "n10"},
            },
            {FIRST: True, SECOND: {"type": "eq", "term": "name", "value": "n10"}},
        ),
        (
            {
                "type": "not",
                "child": {
                    "type": "or",
                    "left": {"type": "is-null", "term": "day"},
                    "right": {"type": "gt", "term": "id", "value": 3},
                },
            },
            {FIRST: {"type": "lt-eq", "term": "id", "value": 3}},
        ),
        (
            BUCKET,
            {FIRST: BUCKET, SECOND: BUCKET, NULL: BUCKET},
        ),
    ],
)
def test_what_is_left_of_the_filter_stands_with_each_file(
    table: Table, client: AsgiClient, filter_: Any, expected: dict[str, Any]
) -> None:
    plan = client("POST", PLAN, {} if filter_ is None else {"filter": filter_}).json
    left = {t["data-file"]["partition"][0] or "": t["residual-filter"] for t in plan["file-scan-tasks"]}
    assert left == expected


def test_long_chains_are_read_and_come_back_nested_less(table: Table, client: AsgiClient) -> None:
    chain: Any = {"type": "eq", "term": "id", "value": 0}
    for number in range(1, 400):
        chain = {"type": "or", "left": chain, "right": {"type": "eq", "term": "id", "value": number}}
    plan = client("POST", PLAN, {"filter": chain}).json
    assert len(plan["file-scan-tasks"]) == 2
    left = plan["file-scan-tasks"][0]["residual-filter"]
    depth = 0
    while left["type"] == "or":
        left, depth = left["left"], depth + 1
    assert depth == 9


def test_statistics_come_for_the_columns_asked_for(table: Table, client: AsgiClient) -> None:
    (first,) = client("POST", PLAN, {"filter": {"type": "eq", "term": "id", "value": 3}}).json["file-scan-tasks"]
    assert not any(key.endswith(("counts", "bounds", "sizes")) for key in first["data-file"])
    asked = {"filter": {"type": "eq", "term": "id", "value": 3}, "stats-fields": ["id", "name"]}
    (first,) = client("POST", PLAN, asked).json["file-scan-tasks"]
    file = first["data-file"]
    assert file["value-counts"] == {"keys": [1, 3], "values": [10, 10]}
    assert file["null-value-counts"] == {"keys": [1, 3], "values": [0, 0]}
    assert file["lower-bounds"] == {"keys": [1, 3], "values": ["0000000000000000", "6E30"]}
    assert file["upper-bounds"] == {"keys": [1, 3], "values": ["0900000000000000", "6E30"]}
    assert file["column-sizes"]["keys"] == [1, 3]


def test_names_are_taken_in_their_case_unless_told_otherwise(table: Table, client: AsgiClient) -> None:
    asked = {"filter": {"type": "eq", "term": "ID", "value": 3}, "select": ["Name"], "stats-fields": ["DAY"]}
    assert client("POST", PLAN, asked).status == 400
    assert client("POST", PLAN, {**asked, "case-sensitive": True}).status == 400
    assert found(client, **asked, **{"case-sensitive": False}) == [FIRST]


def test_select_takes_nested_names_and_metadata_columns(context: ServerContext, client: AsgiClient) -> None:
    lake = Lake(context.catalog, "lake")
    lake.create_namespace("db")
    nested = pa.struct([("x", pa.list_(pa.struct([("y", pa.int32())])))])
    lake.create_table("db.t", pa.schema([("s", nested), ("m", pa.map_(pa.string(), pa.int64()))]))
    names = ["s.x.element.y", "m.key", "m.value", "s.x", "_file", "_partition.day", "_row_id"]
    assert client("POST", PLAN, {"select": names}).status == 200


def test_schema_is_that_of_the_snapshot_if_asked_for(table: Table, client: AsgiClient) -> None:
    with table.update_schema() as schema:
        schema.rename_column("name", "title")
    head = table.metadata.snapshots[-1].snapshot_id
    by_name = {"filter": {"type": "eq", "term": "name", "value": "n0"}}
    assert client("POST", PLAN, by_name).status == 400
    assert found(client, **by_name, **{"use-snapshot-schema": True}) == [FIRST]
    assert found(client, **by_name, **{"use-snapshot-schema": True, "snapshot-id": head}) == [FIRST]
    assert found(client, **{"filter": {"type": "eq", "term": "title", "value": "n0"}, "snapshot-id": head}) == [FIRST]
    first = table.metadata.snapshots[0].snapshot_id
    incremental = {"start-snapshot-id": first, "end-snapshot-id": head, "use-snapshot-schema": True}
    assert found(client, filter={"type": "eq", "term": "name", "value": "n10"}, **incremental) == [SECOND]


def test_few_rows_need_few_files(table: Table, client: AsgiClient) -> None:
    assert len(found(client, **{"min-rows-requested": 1})) == 1
    assert len(found(client, **{"min-rows-requested": 11})) == 2
    assert len(found(client, **{"min-rows-requested": 1000})) == 3
    assert len(found(client, **{"min-rows-requested": 0})) == 3
    inside = {"type": "gt-eq", "term": "id", "value": 0}
    assert len(found(client, inside, **{"min-rows-requested": 1})) == 2  # nobody knows how many rows match


@pytest.fixture
def few(context: ServerContext, table: Table) -> Iterator[AsgiClient]:
    """A server that names two files at once."""
    context.settings = msgspec.structs.replace(context.settings, files_per_plan=2)
    with AsgiClient(context) as asking:
        yield asking


def test_plan_tasks_bring_the_other_files_of_the_same_plan(table: Table, few: AsgiClient) -> None:
    table.set_properties({"write.delete.mode": "merge-on-read"}).delete("id = 3")
    plan = few("POST", PLAN, {"stats-fields": ["id"]}).json
    (task,) = plan["plan-tasks"]
    table.append(pa.table({"id": [7], "day": [7], "name": ["n"]}, schema=SCHEMA))
    with table.update_schema() as schema:
        schema.rename_column("id", "number")
    rest = few("POST", TASKS, {"plan-task": task}).json
    tasks = [*plan["file-scan-tasks"], *rest["file-scan-tasks"]]
    assert {t["data-file"]["partition"][0] or "" for t in tasks} == {FIRST, SECOND, NULL}
    assert len(tasks) == 3
    assert all("value-counts" in t["data-file"] for t in tasks)
    for part in (plan, rest):
        references = {r for t in part["file-scan-tasks"] for r in t.get("delete-file-references", [])}
        assert references == set(range(len(part["delete-files"])))
    assert len(plan["delete-files"]) + len(rest["delete-files"]) == 1


def test_plan_tasks_of_something_else_are_unknown(table: Table, few: AsgiClient) -> None:
    (task,) = few("POST", PLAN, {}).json["plan-tasks"]
    few.table("other")
    unknown = (404, "NoSuchPlanTaskException")
    assert few("POST", TASKS.replace("/t/", "/other/"), {"plan-task": task}).error == unknown
    bomb = base64.urlsafe_b64encode(zlib.compress(b" " * 100_000_000)).decode()
    for text in ("", "x", task[:-8], task[1:], "é", bomb, base64.urlsafe_b64encode(zlib.compress(b"{}")).decode()):
        assert few("POST", TASKS, {"plan-task": text}).error == unknown, text[:40]
    table.expire(older_than=dt.datetime(2100, 1, 1, tzinfo=dt.UTC))
    assert few("POST", TASKS, {"plan-task": task}).status == 200
    table.delete("true")
    table.expire(older_than=dt.datetime(2100, 1, 1, tzinfo=dt.UTC))
    assert few("POST", TASKS, {"plan-task": task}).error == unknown


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"snapshot-id": 1, "start-snapshot-id": 2}, "start-snapshot-id"),
        ({"end-snapshot-id": 1}, "start-snapshot-id"),
        ({"start-snapshot-id": 1}, "end-snapshot-id"),
        ({"min-rows-requested": -1}, "$.min-rows-requested"),
        ({"filter": {"type": "eq", "term": "id"}}, "$.filter.right"),
        ({"filter": {"type": "eq", "term": "nothing", "value": 1}}, "$.filter.term"),
        ({"filter": {"type": "fly", "term": "id", "value": 1}}, "$.filter"),
        ({"filter": {"type": "in", "term": "id", "values": 1}}, "$.filter.values"),
        ({"filter": {"type": "in", "term": "id", "values": [1, []]}}, "$.filter.values[1]"),
        ({"filter": {"type": "eq", "term": "id", "value": "x"}}, "$.filter"),
        ({"filter": {"type": "eq", "term": {}, "value": "x"}}, "$.filter.term"),
        ({"filter": {"type": "starts-with", "term": "id", "value": "x"}}, "$.filter"),
        ({"filter": {"type": "starts-with", "term": "name", "value": 1}}, "$.filter"),
        ({"filter": {"type": "literal", "value": 1}}, "$.filter.value"),
        ({"filter": []}, "$.filter"),
        ({"filter": {"type": "and", "left": True}}, "$.filter.right"),
        ({"filter": {"type": "not", "child": {"type": "or", "left": True, "right": 3}}}, "$.filter.child.right"),
        ({"select": ["id", "nothing"]}, "$.select[1]"),
        ({"stats-fields": ["nothing"]}, "$.stats-fields[0]"),
    ],
)
def test_scans_of_nothing_are_refused_with_the_place(table: Table, client: AsgiClient, body: Any, place: str) -> None:
    response = client("POST", PLAN, body)
    assert response.status == 400, response
    assert place in response.message


def test_filters_that_are_nested_too_deep_are_refused(table: Table, client: AsgiClient) -> None:
    deep: Any = True
    for _ in range(150):
        deep = {"type": "not", "child": deep}
    assert client("POST", PLAN, {"filter": deep}).status == 400


def test_snapshots_that_are_not_there_are_not_found(table: Table, client: AsgiClient) -> None:
    assert client("POST", PLAN, {"snapshot-id": 1}).status == 404
    assert client("POST", PLAN, {"start-snapshot-id": 1, "end-snapshot-id": 2}).status == 404


def test_partitions_that_json_has_no_number_for_are_text(context: ServerContext, client: AsgiClient) -> None:
    lake = Lake(context.catalog, "lake")
    lake.create_namespace("db")
    columns = pa.schema([("x", pa.float64())])
    table = lake.create_table("db.t", columns, partition_by=["x"])
    values = [float("nan"), float("inf"), float("-inf"), 1.0, None]
    table.append(pa.table({"x": values}, schema=columns))
    plan = client("POST", PLAN, {}).json
    written = [t["data-file"]["partition"][0] for t in plan["file-scan-tasks"]]
    assert sorted(written, key=str) == ["-Infinity", 1.0, "Infinity", "NaN", None]


@pytest.mark.parametrize(
    ("column", "type_", "values", "low", "high"),
    [
        ("t", pa.time64("us"), [dt.time(1), dt.time(2)], 3_600_000_000, "02:00:00"),
        ("t", pa.timestamp("ns"), [dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 2)], 0, 86_400_000_000),  # noqa: DTZ001
        ("t", pa.timestamp("us"), [dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 2)], 0, "1970-01-02T00:00:00"),  # noqa: DTZ001
        ("t", pa.date32(), [dt.date(1970, 1, 1), dt.date(9999, 12, 31)], 0, "9999-12-31"),
        ("t", pa.binary(), [b"a", b"b"], "61", "62"),
        ("t", pa.decimal128(9, 2), [Decimal("1.50"), Decimal("2.50")], "1.50", 2.5),
        ("t", pa.float64(), [1.0, float("inf")], 1, "Infinity"),
    ],
)
def test_literals_of_every_type_are_read(
    context: ServerContext, client: AsgiClient, column: str, type_: pa.DataType, values: list[Any], low: Any, high: Any
) -> None:
    """Two files with a value each: each is found by its own, and by no other."""
    lake = Lake(context.catalog, "lake")
    lake.create_namespace("db")
    columns = pa.schema([(column, type_)])
    table = lake.create_table("db.t", columns, properties={"format-version": "3"})
    for value in values:
        table.append(pa.table({column: [value]}, schema=columns))
    sizes = [
        {t["data-file"]["file-path"] for t in client("POST", PLAN, {"filter": f}).json["file-scan-tasks"]}
        for f in ({"type": "eq", "term": column, "value": v} for v in (low, high))
    ]
    assert [len(found) for found in sizes] == [1, 1]
    assert sizes[0] != sizes[1]


def test_empty_table_has_no_files(client: AsgiClient) -> None:
    client.namespace("db")
    client.table("t")
    plan = client("POST", PLAN, {"use-snapshot-schema": True}).json
    assert plan["file-scan-tasks"] == []
    assert "plan-tasks" not in plan
