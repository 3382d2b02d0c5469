"""Maintenance of many tables: which ones, by which policy, how long, and what an error of one of them does."""

import datetime as dt
import math
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import bergline
from bergline import Lake, MaintenancePolicy, Table
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import InvalidInputError, NotFoundError, StorageError
from bergline.io.memory import MemoryFileIO
from bergline.io.schemes import SchemeFileIO
from bergline.lake.maintenance import steps
from bergline.lake.maintenance.report import MaintenanceReport, MaintenanceStep, StepStatus
from bergline.table.commits.retry import Timing
from bergline.table.engine.arrow_engine import ArrowRowEngine
from support.fixtures.concurrency import run_at_once
from support.fixtures.rows import ORDERS, ids, order_rows
from support.models.table_invariants import check_nothing_is_missing

pytestmark = pytest.mark.long

DAY_MS = 86_400_000
SOON = MaintenancePolicy(compaction_min_input_files=2, manifests_min_count=2)


class Clock:
    """Time of a lake, of which more passes when a test says so."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_lake(clock: Clock) -> Callable[[], Lake]:
    """Opens the same lake in memory each time, whose commits and files have the times of the clock."""
    store, io = MemoryPointerStore(), SchemeFileIO({"memory": MemoryFileIO(clock_ms=clock)})
    timing = Timing(clock_ms=clock, sleep=lambda _: None)
    return lambda: Lake(PointerCatalog(store, io, "memory://warehouse"), "lake", timing=timing)


@pytest.fixture
def lake(open_lake: Callable[[], Lake]) -> Lake:
    lake = open_lake()
    lake.create_namespace("db")
    return lake


def small_files(lake: Lake, name: str, number: int = 3, properties: dict[str, str] | None = None) -> Table:
    table = lake.create_table(name, ORDERS, properties=properties)
    for i in range(number):
        table.append(order_rows(i))
    return table


def statuses(report: MaintenanceReport, table: str = "db.orders") -> dict[str | None, str]:
    (found,) = (t for t in report.tables if t.table == table)
    return {step.step: step.status for step in found.steps}


def pointers(lake: Lake) -> dict[str, str]:
    return {name: lake.load_table(name).metadata_location for name in lake.list_tables()}


def files(lake: Lake) -> set[str]:
    return {file.location for file in lake.catalog.io.list_files("memory://warehouse")}


def test_every_step_is_planned_then_done_then_there_is_nothing_to_do(lake: Lake, clock: Clock) -> None:
    table = small_files(lake, "db.orders", properties={"commit.manifest-merge.enabled": "false"})
    stray = f"{table.location}/data/stray.parquet"
    table.io.create(stray, b"12345")
    clock.ahead_ms += 6 * DAY_MS
    before = pointers(lake), files(lake)
    # compaction leaves one manifest, so the plan of each step is made before that
    plan = bergline.maintain(lake, SOON, plan=True)
    assert plan.planned
    assert statuses(plan) == dict.fromkeys(MaintenanceStep, StepStatus.PLANNED)
    details = {step.step: step.details for step in plan.tables[0].steps}
    assert details[MaintenanceStep.COMPACTION]["rewritten_data_files"] == 3
    assert details[MaintenanceStep.COMPACTION]["rewritten_bytes"] == sum(
        planned.file.file_size_in_bytes for planned in table.scan().plan().files
    )
    assert details[MaintenanceStep.MANIFESTS]["rewritten_manifests"] == 3
    assert details[MaintenanceStep.EXPIRY]["removed_snapshots"] == 2
    assert details[MaintenanceStep.ORPHANS] == {"deleted_files": 1, "deleted_bytes": 5}
    assert (pointers(lake), files(lake)) == before

    done = bergline.maintain(lake, SOON)
    assert done.ok
    assert not done.planned
    assert statuses(done)[MaintenanceStep.COMPACTION] == statuses(done)[MaintenanceStep.ORPHANS] == "done"
    assert statuses(done)[MaintenanceStep.EXPIRY] == "done"
    assert not table.io.exists(stray)
    table.refresh()
    assert (len(table.scan().plan().files), table.inspect("manifests").num_rows) == (1, 1)
    assert ids(table.scan().to_arrow()) == [0, 1, 2]

    before = pointers(lake), files(lake)
    again = bergline.maintain(lake, SOON)
    assert statuses(again) == dict.fromkeys(MaintenanceStep, StepStatus.NOTHING)
    assert (pointers(lake), files(lake)) == before


def test_manifests_are_rewritten_when_there_are_many(lake: Lake) -> None:
    table = small_files(lake, "db.orders", 5, {"commit.manifest-merge.enabled": "false"})
    policy = MaintenancePolicy(compaction=False, manifests_min_count=6)
    assert statuses(bergline.maintain(lake, policy))[MaintenanceStep.MANIFESTS] == "nothing to do"
    table.append(order_rows(5))
    report = bergline.maintain(lake, policy)
    manifests = report.tables[0].steps[1]
    assert (manifests.status, manifests.details) == ("done", {"rewritten_manifests": 6, "added_manifests": 1})
    assert ids(table.refresh().scan().to_arrow()) == [0, 1, 2, 3, 4, 5]
    assert statuses(bergline.maintain(lake, policy))[MaintenanceStep.MANIFESTS] == "nothing to do"


def test_properties_of_a_table_come_before_those_of_its_namespace_and_those_before_the_policy(lake: Lake) -> None:
    lake.create_namespace("db.raw")
    lake.update_namespace("db", {"bergline.maintain.compaction.min-input-files": "3"})
    lake.update_namespace("db.raw", {"bergline.maintain.compaction.enabled": "false"})
    small_files(lake, "db.orders", 2)
    small_files(lake, "db.raw.events", 3)
    small_files(lake, "db.raw.clicks", 3, {"bergline.maintain.compaction.enabled": "true"})
    small_files(lake, "db.raw.views", 2, {"bergline.maintain.compaction.enabled": "true"})
    report = bergline.maintain(lake, MaintenancePolicy(compaction_min_input_files=2), steps=["compaction"])
    assert {t.table: t.steps[0].status.value for t in report.tables} == {
        "db.orders": "nothing to do",
        "db.raw.clicks": "done",
        "db.raw.events": "skipped",
        "db.raw.views": "nothing to do",
    }


def test_retention_of_the_policy_is_for_tables_that_have_none(lake: Lake, clock: Clock) -> None:
    small_files(lake, "db.orders")
    small_files(lake, "db.kept", properties={"history.expire.max-snapshot-age-ms": str(30 * DAY_MS)})
    small_files(lake, "db.most", properties={"history.expire.min-snapshots-to-keep": "2"})
    clock.ahead_ms += 2 * DAY_MS
    policy = MaintenancePolicy(max_snapshot_age_ms=DAY_MS, min_snapshots_to_keep=1)
    report = bergline.maintain(lake, policy, steps=["expiry"])
    assert {t.table: t.steps[0].details.get("removed_snapshots") for t in report.tables} == {
        "db.kept": None,
        "db.most": 1,
        "db.orders": 2,
    }


def test_table_without_maintenance_is_left_alone(lake: Lake, clock: Clock) -> None:
    small_files(lake, "db.orders", properties={"bergline.maintain.enabled": "false"})
    small_files(lake, "db.shared", properties={"gc.enabled": "false"})
    clock.ahead_ms += 9 * DAY_MS
    before = pointers(lake)["db.orders"]
    report = bergline.maintain(lake, SOON)
    assert statuses(report) == {None: "skipped"}
    assert pointers(lake)["db.orders"] == before
    shared = {step.step: (step.status, step.reason) for step in report.tables[1].steps}
    assert shared[MaintenanceStep.COMPACTION][0] == "done"
    skipped = ("skipped", "`gc.enabled` is false: other tables may share the files")
    assert shared[MaintenanceStep.EXPIRY] == shared[MaintenanceStep.ORPHANS] == skipped
    assert report.ok


def test_branches_of_the_policy_are_compacted(lake: Lake) -> None:
    table = small_files(lake, "db.orders")
    for branch in ("audit_1", "audit_2", "other"):
        table.refs.create_branch(branch)
        table.append(order_rows(9), branch=branch)
    table.refs.create_tag("audit_tag")
    policy = msgspec.structs.replace(SOON, branches=("main", "audit_*", "missing", "no_*"))
    report = bergline.maintain(lake, policy, steps=["compaction"])
    assert [(s.branch, s.status.value) for s in report.tables[0].steps] == [
        ("main", "done"),
        ("audit_1", "done"),
        ("audit_2", "done"),
        ("missing", "skipped"),
    ]
    table.refresh()
    counts = {ref: len(table.scan(ref=ref).plan().files) for ref in ("main", "audit_1", "audit_2", "other")}
    assert counts == {"main": 1, "audit_1": 1, "audit_2": 1, "other": 4}


def test_error_of_one_table_does_not_stop_the_others(lake: Lake, open_lake: Callable[[], Lake]) -> None:
    small_files(lake, "db.a")
    broken = small_files(lake, "db.broken")
    lost = small_files(lake, "db.lost")
    small_files(lake, "db.z")
    broken.io.delete([broken.metadata_location])
    lost.io.delete([lost.scan().plan().files[0].file.file_path])
    report = bergline.maintain(open_lake(), SOON)
    assert not report.ok
    assert (
        statuses(report, "db.a")[MaintenanceStep.COMPACTION]
        == statuses(report, "db.z")[MaintenanceStep.COMPACTION]
        == "done"
    )
    assert statuses(report, "db.broken") == {None: "failed"}
    compaction, *others = next(t for t in report.tables if t.table == "db.lost").steps
    assert (compaction.status, compaction.error) == ("failed", "not-found")
    assert {step.status for step in others} <= {"done", "nothing to do"}


def test_bad_property_is_an_error_of_its_table(lake: Lake) -> None:
    small_files(lake, "db.orders")
    bad = small_files(lake, "db.bad")
    metadata = bad.metadata
    text = {**metadata.properties, "bergline.maintain.orphans.enabled": "no"}  # as another writer may set it
    replaced = msgspec.structs.replace(metadata, properties=text)
    lake.create_namespace("other")
    lake.catalog.create_table(bergline.catalog.identifiers.TableName(("other",), "bad"), replaced)
    report = bergline.maintain(lake, SOON)
    (step,) = next(t for t in report.tables if t.table == "other.bad").steps
    assert (step.status, step.error) == ("failed", "invalid-input")
    assert step.reason == "expected true or false for property `bergline.maintain.orphans.enabled`, found `no`"
    assert statuses(report)[MaintenanceStep.COMPACTION] == "done"


def test_tables_are_selected(lake: Lake) -> None:
    lake.create_namespace("db.raw")
    lake.create_namespace("other")
    for name in ("db.orders", "db.order_lines", "db.raw.orders", "other.orders"):
        small_files(lake, name, 1)

    def found(**selection: Any) -> list[str]:
        return [t.table for t in bergline.maintain(lake, plan=True, steps=["manifests"], **selection).tables]

    assert found() == ["db.order_lines", "db.orders", "db.raw.orders", "other.orders"]
    assert found(namespace="db") == ["db.order_lines", "db.orders", "db.raw.orders"]
    assert found(pattern="*.orders") == ["db.orders", "db.raw.orders", "other.orders"]
    assert found(namespace=("db",), pattern="db.order*") == ["db.order_lines", "db.orders"]
    assert found(tables=["other.orders", "db.orders"]) == ["db.orders", "other.orders"]
    assert found(tables=["db.missing", "db.orders"]) == ["db.missing", "db.orders"]
    with pytest.raises(NotFoundError, match=r"no table matches `db\.ordrs`"):
        found(pattern="db.ordrs")
    with pytest.raises(NotFoundError, match="nowhere"):
        found(namespace="nowhere")


def test_table_that_was_named_and_is_missing_fails(lake: Lake) -> None:
    report = bergline.maintain(lake, tables=["db.missing"])
    (step,) = report.tables[0].steps
    assert (step.status, step.reason, step.error) == ("failed", "no table `db.missing`", "not-found")


def test_empty_lake_and_empty_table_have_nothing_to_do(lake: Lake) -> None:
    assert bergline.maintain(lake) == MaintenanceReport(False)
    lake.create_table("db.orders", ORDERS)
    assert statuses(bergline.maintain(lake)) == dict.fromkeys(MaintenanceStep, StepStatus.NOTHING)


def test_budget_ends_maintenance_between_steps(lake: Lake, clock: Clock) -> None:
    for name in ("db.a", "db.b"):
        small_files(lake, name)

    class Slow(ArrowRowEngine):
        def rewrite_groups(self, *arguments: Any) -> Any:
            clock.ahead_ms += DAY_MS
            return super().rewrite_groups(*arguments)

    report = bergline.maintain(lake, SOON, budget=dt.timedelta(hours=1), engine=Slow())
    first, second = sorted(report.tables, key=lambda table: -len(table.steps))
    assert [step.status.value for step in first.steps] == ["done", "skipped", "skipped", "skipped"]
    assert {step.reason for step in first.steps[1:]} == {"the time budget is used up"}
    assert [(step.step, step.status.value) for step in second.steps] == [(None, "skipped")]
    # what was left is done by the next run
    report = bergline.maintain(lake, SOON)
    assert statuses(report, second.table)[MaintenanceStep.COMPACTION] == "done"


def test_budget_ends_compaction_between_commits(lake: Lake, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_FILES_AT_ONCE", 4)
    table = small_files(lake, "db.orders", 10)

    class Slow(ArrowRowEngine):
        def rewrite_groups(self, *arguments: Any) -> Any:
            clock.ahead_ms += DAY_MS
            return super().rewrite_groups(*arguments)

    report = bergline.maintain(lake, SOON, budget=36 * 3600, engine=Slow(), steps=["compaction"])
    (step,) = report.tables[0].steps
    assert step.status == "done"
    assert step.reason.endswith("; then the time budget was used up")
    assert (step.details["rewritten_data_files"], step.details["added_data_files"]) == (8, 2)
    assert len(table.refresh().scan().plan().files) == 4
    (step,) = bergline.maintain(lake, SOON, steps=["compaction"]).tables[0].steps
    assert step.reason == "4 small files and 0 files with deletes in 1 partition"
    assert len(table.refresh().scan().plan().files) == 1
    assert ids(table.scan().to_arrow()) == list(range(10))


def test_what_was_compacted_before_an_error_is_reported(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_FILES_AT_ONCE", 4)
    table = small_files(lake, "db.orders", 6)

    class Failing(ArrowRowEngine):
        calls = 0

        def rewrite_groups(self, *arguments: Any) -> Any:
            Failing.calls += 1
            if Failing.calls > 1:
                raise StorageError("the disk is full")
            return super().rewrite_groups(*arguments)

    (step,) = bergline.maintain(lake, SOON, engine=Failing(), steps=["compaction"]).tables[0].steps
    assert (step.status, step.reason, step.error) == ("failed", "the disk is full", "storage")
    assert step.details["rewritten_data_files"] == 4
    assert len(table.refresh().scan().plan().files) == 3


def test_files_with_few_deletes_stay(lake: Lake) -> None:
    properties = {"write.delete.mode": "merge-on-read", "write.target-file-size-bytes": "1000"}
    table = lake.create_table("db.orders", ORDERS, properties=properties)
    table.append(order_rows(*range(10)))
    table.delete("id = 1")
    assert statuses(bergline.maintain(lake, steps=["compaction"])) == {MaintenanceStep.COMPACTION: "nothing to do"}
    few = MaintenancePolicy(compaction_delete_ratio_threshold=0.1)
    (step,) = bergline.maintain(lake, few, steps=["compaction"]).tables[0].steps
    assert (step.status, step.reason) == ("done", "0 small files and 1 file with deletes in 1 partition")
    assert step.details["removed_delete_files"] == 1
    table.refresh().delete("id = 2").delete("id = 3")
    (step,) = (
        bergline.maintain(lake, MaintenancePolicy(compaction_delete_file_threshold=1), steps=["compaction"])
        .tables[0]
        .steps
    )
    assert step.status == "done"
    assert ids(table.refresh().scan().to_arrow()) == [0, 4, 5, 6, 7, 8, 9]


def test_files_are_sorted_where_the_policy_says_so(lake: Lake) -> None:
    table = lake.create_table(
        "db.orders",
        ORDERS,
        properties={
            "bergline.maintain.compaction.strategy": "sort",
            "bergline.maintain.compaction.sort-order": "id desc",
        },
    )
    for i in (3, 1, 2):
        table.append(order_rows(i, i + 10))
    assert bergline.maintain(lake, SOON, steps=["compaction"]).count("done") == 1
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == [13, 12, 11, 3, 2, 1]
    table.append(order_rows(4)).set_properties({"bergline.maintain.compaction.sort-order": "price"})
    (step,) = bergline.maintain(lake, SOON, steps=["compaction"]).tables[0].steps
    assert step.status == "failed"
    assert "price" in step.reason


def test_time_budget_of_a_table_is_its_own(lake: Lake, clock: Clock) -> None:
    small_files(lake, "db.a", properties={"bergline.maintain.time-budget-ms": str(DAY_MS)})
    small_files(lake, "db.b")

    class Slow(ArrowRowEngine):
        def rewrite_groups(self, *arguments: Any) -> Any:
            clock.ahead_ms += DAY_MS
            return super().rewrite_groups(*arguments)

    report = bergline.maintain(lake, SOON, engine=Slow())
    assert set(statuses(report, "db.a").values()) == {"done", "skipped"}
    assert "skipped" not in statuses(report, "db.b").values()


@pytest.mark.parametrize("threads", [1, 3])
def test_progress_has_each_table_once(lake: Lake, threads: int) -> None:
    for name in ("db.a", "db.b", "db.c"):
        small_files(lake, name)
    seen: list[tuple[str, int, int]] = []
    report = bergline.maintain(
        lake, SOON, threads=threads, progress=lambda table, done, of: seen.append((table.table, done, of))
    )
    assert sorted(name for name, _, _ in seen) == [t.table for t in report.tables] == ["db.a", "db.b", "db.c"]
    assert [(done, of) for _, done, of in seen] == [(1, 3), (2, 3), (3, 3)]


def test_maintenance_that_is_turned_off_meanwhile_ends(lake: Lake, clock: Clock) -> None:
    table = small_files(lake, "db.orders")
    clock.ahead_ms += 6 * DAY_MS

    class Interrupting(ArrowRowEngine):
        def rewrite_groups(self, *arguments: Any) -> Any:
            lake.load_table("db.orders").set_properties({"bergline.maintain.expiry.enabled": "false"})
            return super().rewrite_groups(*arguments)

    report = bergline.maintain(lake, SOON, engine=Interrupting(), steps=["expiry", "compaction"])
    assert statuses(report)[MaintenanceStep.COMPACTION] == "done"
    assert statuses(report)[MaintenanceStep.EXPIRY] == "skipped"
    assert len(table.refresh().metadata.snapshots) == 4


def test_table_dropped_or_replaced_meanwhile_is_skipped(lake: Lake) -> None:
    def during(action: Callable[[], object]) -> dict[str | None, str]:
        small_files(lake, "db.orders")

        class Interrupting(ArrowRowEngine):
            def rewrite_groups(self, *arguments: Any) -> Any:
                action()
                return super().rewrite_groups(*arguments)

        return statuses(bergline.maintain(lake, SOON, engine=Interrupting()))

    assert set(during(lambda: lake.drop_table("db.orders")).values()) == {"skipped"}

    def replace() -> None:
        if len(lake.load_table("db.orders").metadata.snapshots) == 3:
            lake.drop_table("db.orders")
            small_files(lake, "db.orders", 2)

    assert set(during(replace).values()) == {"skipped"}
    assert ids(lake.load_table("db.orders").scan().to_arrow()) == [0, 1]


def test_maintainer_that_loses_a_race_finds_nothing_left_to_do(lake: Lake) -> None:
    table = small_files(lake, "db.orders")

    class Racing(ArrowRowEngine):
        def rewrite_groups(self, *arguments: Any) -> Any:
            bergline.maintain(lake, SOON, steps=["compaction"])
            return super().rewrite_groups(*arguments)

    report = bergline.maintain(lake, SOON, engine=Racing(), steps=["compaction"])
    assert statuses(report) == {MaintenanceStep.COMPACTION: "nothing to do"}
    assert report.tables[0].steps[0].reason == "others did it meanwhile"
    assert len([s for s in table.refresh().metadata.snapshots if s.summary["operation"] == "replace"]) == 1
    assert ids(table.scan().to_arrow()) == [0, 1, 2]


def test_recent_orphan_files_are_deleted_only_by_force(lake: Lake, clock: Clock) -> None:
    table = small_files(lake, "db.orders", 1)
    stray = f"{table.location}/data/stray.parquet"
    table.io.create(stray, b"x")
    policy = MaintenancePolicy(orphans_older_than_ms=0)
    with pytest.raises(InvalidInputError, match="expected `orphans_older_than_ms` of 86400000 or more, found 0"):
        bergline.maintain(lake, policy)
    assert statuses(bergline.maintain(lake))[MaintenanceStep.ORPHANS] == "nothing to do"
    assert table.io.exists(stray)
    clock.ahead_ms += 1
    assert statuses(bergline.maintain(lake, policy, allow_recent=True))[MaintenanceStep.ORPHANS] == "done"
    assert not table.io.exists(stray)
    assert ids(table.scan().to_arrow()) == [0]


def test_maintainers_at_the_same_time_do_everything_once(
    lake: Lake, open_lake: Callable[[], Lake], clock: Clock
) -> None:
    names = [f"db.t{n}" for n in range(4)]
    tables = [small_files(lake, name, properties={"commit.manifest-merge.enabled": "false"}) for name in names]
    strays = [f"{table.location}/data/stray-{n}.parquet" for table in tables for n in range(3)]
    for stray in strays:
        lake.catalog.io.create(stray, b"x")
    clock.ahead_ms += 6 * DAY_MS
    reports: list[MaintenanceReport] = []
    run_at_once(*[lambda: reports.append(bergline.maintain(open_lake(), SOON, threads=2))] * 3)
    assert all(report.ok for report in reports), "\n".join(map(str, reports))
    deleted = sum(
        step.details.get("deleted_files", 0)
        for report in reports
        for table in report.tables
        for step in table.steps
        if step.step == "orphans"
    )
    assert deleted >= len(strays)
    assert not files(lake) & set(strays)
    for table in tables:
        assert ids(table.refresh().scan().to_arrow()) == [0, 1, 2]
        check_nothing_is_missing(table)
        assert [s.summary["operation"] for s in table.metadata.snapshots].count("replace") <= 2
    bergline.maintain(lake, SOON)
    assert {s.status.value for t in bergline.maintain(lake, SOON).tables for s in t.steps} == {"nothing to do"}


ARGUMENTS: list[dict[str, Any]] = [
    {"lake": "sqlite:///x"},
    {"policy": {"enabled": True}},
    {"steps": "compaction"},
    {"steps": []},
    {"steps": ["vacuum"]},
    {"steps": [5]},
    *({"budget": budget} for budget in (0, -1, "30m", True, math.nan, math.inf, dt.timedelta(0))),
    {"threads": 0},
    {"engine": "spark"},
    {"tables": "db.orders"},
    {"tables": []},
    {"tables": ["db.orders"], "namespace": "db"},
    {"tables": ["db.orders"], "pattern": "*"},
    {"pattern": 5},
    {"namespace": 5},
]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=repr)
def test_bad_arguments_are_refused_before_anything_is_done(lake: Lake, arguments: dict[str, Any]) -> None:
    small_files(lake, "db.orders")
    before = pointers(lake)
    with pytest.raises(InvalidInputError, match=r"^expected "):
        bergline.maintain(**{"lake": lake, "policy": SOON, **arguments})
    assert pointers(lake) == before


def test_partitions_are_compacted_by_themselves(lake: Lake) -> None:
    table = lake.create_table("db.orders", ORDERS, partition_by=["region"])
    for i in range(4):
        table.append(pa.concat_tables([order_rows(2 * i), order_rows(2 * i + 1, region="us")]))
    table.delete("id = 3")
    report = bergline.maintain(lake, SOON, steps=["compaction"])
    (step,) = report.tables[0].steps
    assert step.reason == "7 small files and 0 files with deletes in 2 partitions"
    assert (step.details["rewritten_data_files"], step.details["added_data_files"]) == (7, 2)
