"""Plans that do not fit one answer: every file once, each answer bounded, each task only its part."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from bergline import Table
from bergline.format.manifest.manifest import ManifestContent
from bergline.io.locations import local_path
from bergline.lake.lake import Lake
from bergline.scan.manifest_cache import forget_files
from bergline.scan.manifests import load_manifest_list
from bergline.server.context.context import ServerContext
from bergline.server.planning import pages
from bergline.server.planning.tasks import PlanTask, parse_task, render_task
from support.servers.asgi_client import AsgiClient, AsgiResponse

pytestmark = pytest.mark.long

PLAN = "/v1/namespaces/db/tables/t/plan"
TASKS = "/v1/namespaces/db/tables/t/tasks"
SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.int32())])
UNKNOWN = (404, "NoSuchPlanTaskException")
FILES = 12


@pytest.fixture
def table(context: ServerContext) -> Table:
    """Six manifests of two files each, ten rows in a file: ids 0 to 9 in the first, and so on."""
    lake = Lake(context.catalog, "lake")
    lake.create_namespace("db")
    table = lake.create_table("db.t", SCHEMA, partition_by=["part"])
    table.set_properties({"commit.manifest-merge.enabled": "false", "write.delete.mode": "merge-on-read"})
    for start in range(0, 10 * FILES, 20):
        ids = list(range(start, start + 20))
        table.append(pa.table({"id": ids, "part": [i // 10 for i in ids]}, schema=SCHEMA))
    return table


@pytest.fixture
def few(context: ServerContext, table: Table) -> Iterator[AsgiClient]:
    """A server that names three files at once."""
    context.settings = msgspec.structs.replace(context.settings, files_per_plan=3)
    with AsgiClient(context) as asking:
        yield asking


def answers(client: AsgiClient, asked: dict[str, Any]) -> list[Any]:
    """The answers of a whole plan, all tasks fetched."""
    found: list[Any] = [client("POST", PLAN, asked)]
    waiting = list(found[0].json.get("plan-tasks", ()))
    while waiting:
        response = client("POST", TASKS, {"plan-task": waiting.pop()})
        assert response.status == 200, response
        found.append(response)
        waiting += response.json.get("plan-tasks", ())
    return found


def parts_of(response: list[AsgiResponse]) -> list[int]:
    """The partitions that files were named of."""
    return [task["data-file"]["partition"][0] for answer in response for task in answer.json["file-scan-tasks"]]


def long_list(*values: int) -> dict[str, Any]:
    """A filter by so many values that they are looked up by a file's bounds."""
    return {"type": "in", "term": "id", "values": [*values, *range(10_000, 10_200)]}


def test_every_file_is_named_once_in_answers_of_so_many(few: AsgiClient) -> None:
    response = answers(few, {})
    assert sorted(parts_of(response)) == list(range(FILES))
    assert max(len(answer.json["file-scan-tasks"]) for answer in response) == 3
    assert len(response[0].json["plan-tasks"]) > 2  # to be fetched side by side


def test_every_file_is_named_once_in_answers_of_so_many_bytes(
    few: AsgiClient, monkeypatch: pytest.MonkeyPatch, table: Table
) -> None:
    table.delete("id IN (3, 13, 113)")
    monkeypatch.setattr(pages, "_MAX_BYTES", 1)
    response = answers(few, {"stats-fields": ["id"]})
    assert [len(answer.json["file-scan-tasks"]) for answer in response] == [1] * FILES
    assert sorted(parts_of(response)) == list(range(FILES))
    with_deletes = [part for answer in response for part in parts_of([answer]) if answer.json["delete-files"]]
    assert sorted(with_deletes) == [0, 1, 11]
    for answer in response:
        references = {r for t in answer.json["file-scan-tasks"] for r in t.get("delete-file-references", [])}
        assert references == set(range(len(answer.json["delete-files"])))


def test_tasks_of_another_setting_bring_the_same_files(context: ServerContext, few: AsgiClient) -> None:
    first = few("POST", PLAN, {})
    for most in (1, 2, 100):
        context.settings = msgspec.structs.replace(context.settings, files_per_plan=most)
        waiting, response = list(first.json["plan-tasks"]), [first]
        while waiting:
            response.append(few("POST", TASKS, {"plan-task": waiting.pop()}))
            waiting += response[-1].json.get("plan-tasks", ())
        assert sorted(parts_of(response)) == list(range(FILES))


def test_appends_between_two_snapshots_come_in_tasks_too(few: AsgiClient, table: Table) -> None:
    first, *_, last = (s.snapshot_id for s in table.metadata.snapshots)
    response = answers(few, {"start-snapshot-id": first, "end-snapshot-id": last})
    assert sorted(parts_of(response)) == list(range(2, FILES))


def test_task_reads_its_own_manifests_alone(few: AsgiClient, table: Table) -> None:
    head = table.current_snapshot
    assert head
    manifests = [Path(local_path(m.manifest_path)) for m in load_manifest_list(table.io, head)]
    tasks = few("POST", PLAN, {}).json["plan-tasks"]
    last = parse_task(tasks[-1])
    assert (last.first, last.stop) == (5, 6)
    for manifest in manifests[:5]:
        manifest.unlink()
    forget_files()
    response = few("POST", TASKS, {"plan-task": tasks[-1]})
    assert len(parts_of([response])) == 2
    assert few("POST", TASKS, {"plan-task": tasks[0]}).status != 200


def test_task_reads_the_delete_manifests_of_its_partitions_alone(few: AsgiClient, table: Table) -> None:
    table.delete("id = 3")
    table.delete("id = 113")
    tasks = few("POST", PLAN, {}).json["plan-tasks"]
    head = table.current_snapshot
    assert head
    manifests = [m for m in load_manifest_list(table.io, head) if m.content is ManifestContent.DELETES]
    of_others = next(m for m in manifests if m.partitions and m.partitions[0].lower_bound == b"\x0b\0\0\0")
    Path(local_path(of_others.manifest_path)).unlink()
    forget_files()
    response = few("POST", TASKS, {"plan-task": tasks[-1]})
    assert response.status == 200, response
    assert parts_of([response]) == [0, 1]
    assert [len(t.get("delete-file-references", ())) for t in response.json["file-scan-tasks"]] == [1, 0]
    assert few("POST", PLAN, {}).status != 200


def test_selective_plan_needs_no_task_for_manifests_without_matches(few: AsgiClient) -> None:
    response = answers(few, {"filter": {"type": "eq", "term": "id", "value": 117}})
    assert [parts_of([answer]) for answer in response] == [[11]]


def test_plans_that_look_at_many_files_go_on_in_tasks(few: AsgiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_MAX_EXAMINED", 4)
    response = answers(few, {"filter": {"type": "gt-eq", "term": "id", "value": 115}})
    assert parts_of(response) == [11]
    assert len(response) > 1


def test_tasks_are_few_where_each_is_long(few: AsgiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    random.seed(7)
    asked = {"filter": long_list(*random.sample(range(10 * FILES), 60), *random.sample(range(10**9, 2 * 10**9), 5_000))}
    monkeypatch.setattr(pages, "_MAX_EXAMINED", 3)
    assert len(few("POST", PLAN, asked).json["plan-tasks"]) > 1
    monkeypatch.setattr(pages, "_MAX_TASK_BYTES", 1)
    response = answers(few, asked)
    assert len(response[0].json["plan-tasks"]) == 1
    assert sorted(parts_of(response)) == list(range(FILES))


def test_long_lists_come_back_with_the_values_that_a_file_may_hold(few: AsgiClient) -> None:
    response = answers(few, {"filter": long_list(3, 7, 55, 119)})
    left = {t["data-file"]["partition"][0]: t["residual-filter"] for a in response for t in a.json["file-scan-tasks"]}
    assert {part: test["values"] for part, test in left.items()} == {0: [3, 7], 5: [55], 11: [119]}
    response = answers(few, {"filter": {**long_list(3, 7, 55), "type": "not-in"}})
    left = {t["data-file"]["partition"][0]: t["residual-filter"] for a in response for t in a.json["file-scan-tasks"]}
    assert left.pop(0)["values"] == [3, 7]
    assert left.pop(5)["values"] == [55]
    assert set(left.values()) == {True}
    assert len(left) == FILES - 2


def test_answers_do_not_grow_with_the_filter_times_the_files(
    context: ServerContext, few: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values that lie between the bounds of every file stay in what is left: then fewer files fit an answer."""
    table = Lake(context.catalog, "lake").create_table("db.wide", SCHEMA)
    for number in range(3):
        table.append(pa.table({"id": [number, 10**6 - number], "part": [0, 0]}, schema=SCHEMA))
    asked = {"filter": {"type": "in", "term": "id", "values": list(range(5, 5_000))}}
    size = len(few("POST", PLAN.replace("/t/", "/wide/"), {"filter": True}).body)
    monkeypatch.setattr(pages, "_MAX_BYTES", 10_000)
    response = few("POST", PLAN.replace("/t/", "/wide/"), asked)
    assert len(response.json["file-scan-tasks"]) == 1
    assert len(response.json["file-scan-tasks"][0]["residual-filter"]["values"]) == 4_995  # exact, however long
    assert len(response.body) < size + 45_000


def test_scan_that_is_too_large_to_ask_for_is_refused(few: AsgiClient) -> None:
    response = few("POST", PLAN, {"filter": {"type": "in", "term": "id", "values": list(range(700_000))}})
    assert response.status == 400
    assert "expected at most 4,194,304 bytes" in response.message


@pytest.mark.parametrize(
    "places",
    [
        {"first": -1},
        {"stop": 7},
        {"first": 4, "stop": 2},
        {"part": 9},
        {"skip": -(10**9)},
        {"manifests": 5},
        {"first": 2**31 - 1, "stop": 2**31 - 1},
    ],
)
def test_places_that_no_plan_has_are_unknown(few: AsgiClient, places: dict[str, int]) -> None:
    task = parse_task(few("POST", PLAN, {}).json["plan-tasks"][-1])
    made_up: PlanTask = msgspec.structs.replace(task, **places)
    assert few("POST", TASKS, {"plan-task": render_task(made_up)}).error == UNKNOWN
