"""Scans planned by the server."""

from typing import Any

import pyarrow as pa
import pytest
from asked import Asking

from bergline import Table
from bergline.lake import Lake
from bergline.server.served import Served

PLAN = "/v1/namespaces/db/tables/t/plan"


@pytest.fixture
def table(served: Served) -> Table:
    """Three files: ids 0 to 9, 10 to 19, and one with nulls alone."""
    lake = Lake(served.catalog, "lake")
    lake.create_namespace("db")
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("name", pa.string())])
    table = lake.create_table("db.t", schema, partition_by=["day"])
    for start in (0, 10):
        rows = {"id": list(range(start, start + 10)), "day": [start] * 10, "name": [f"n{start}"] * 10}
        table.append(pa.table(rows, schema=schema))
    table.append(pa.table({"id": [None], "day": [None], "name": [None]}, schema=schema))
    return table


def found(ask: Asking, filter_: Any = None, **more: Any) -> list[Any]:
    told = ask("POST", PLAN, {"filter": filter_, **more} if filter_ is not None else more)
    assert told.status == 200, told
    assert told.json["status"] == "completed"
    return sorted(t["data-file"]["partition"][0] or "" for t in told.json["file-scan-tasks"])


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
def test_files_are_chosen_by_the_filter(table: Table, ask: Asking, filter_: Any, expected: list[Any] | None) -> None:
    """At least the files with matching rows, and not those that cannot have any; None means all."""
    chosen = found(ask, filter_)
    if filter_ == {"type": "not-starts-with", "term": "name", "value": "n1"}:
        assert {NULL, FIRST} <= set(chosen)
    else:
        assert chosen == ([NULL, FIRST, SECOND] if expected is None else expected)


def test_deletes_come_with_their_files(table: Table, ask: Asking) -> None:
    table.set_properties({"write.delete.mode": "merge-on-read"})
    table.refresh().delete("id = 3")
    plan = ask("POST", PLAN, {}).json
    with_deletes = [t for t in plan["file-scan-tasks"] if t.get("delete-file-references")]
    assert [t["delete-file-references"] for t in with_deletes] == [[0]]
    assert plan["delete-files"][0]["content"] == "position-deletes"


def test_older_snapshots_and_appends_between_two_are_planned(table: Table, ask: Asking) -> None:
    first, second, third = (s.snapshot_id for s in table.metadata.snapshots)
    assert found(ask, **{"snapshot-id": first}) == [FIRST]
    assert found(ask, **{"start-snapshot-id": first, "end-snapshot-id": third}) == [NULL, SECOND]
    assert found(ask, **{"start-snapshot-id": second, "end-snapshot-id": third, "select": ["id"]}) == [NULL]


@pytest.mark.parametrize(
    "body",
    [
        {"snapshot-id": 1},
        {"snapshot-id": 1, "start-snapshot-id": 2},
        {"end-snapshot-id": 1},
        {"filter": {"type": "eq", "term": "id"}},
        {"filter": {"type": "eq", "term": "nothing", "value": 1}},
        {"filter": {"type": "fly", "term": "id", "value": 1}},
        {"filter": {"type": "in", "term": "id", "values": 1}},
        {"filter": {"type": "eq", "term": "id", "value": "x"}},
        {"filter": []},
        {"select": ["nothing"]},
    ],
)
def test_scans_of_nothing_are_refused(table: Table, ask: Asking, body: Any) -> None:
    assert ask("POST", PLAN, body).status in {400, 404}


def test_empty_table_has_no_files(ask: Asking) -> None:
    ask.namespace("db")
    ask.table("t")
    assert ask("POST", PLAN, {}).json["file-scan-tasks"] == []
