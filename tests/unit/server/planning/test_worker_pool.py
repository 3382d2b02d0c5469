"""Worker processes that plan: the same plans, and a bad one takes nothing else with it."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from bergline import Table
from bergline.errors import InvalidInputError, RefusedError, UnavailableError
from bergline.io.fenced import FencedFileIO
from bergline.io.memory import MemoryFileIO
from bergline.lake.lake import Lake, connect
from bergline.server.planning import worker_process
from bergline.server.planning.filters import FilterCache
from bergline.server.planning.pages import PlanJob, plan_job, respond
from bergline.server.planning.tasks import PlanTask
from bergline.server.planning.worker_messages import PlanStopped
from bergline.server.planning.worker_pool import RunningPlan, WorkerPool
from support.fixtures.held_manifests import HeldManifests

pytestmark = pytest.mark.long

SCHEMA = pa.schema([("id", pa.int64())])
NOWHERE = {"type": "eq", "term": "id", "value": 1000}
WAIT_S = 60


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with connect(f"sqlite:///{tmp_path}/lake/catalog.db", create=True) as opened:
        opened.create_namespace("db")
        yield opened


@pytest.fixture
def table(lake: Lake) -> Table:
    """Three manifests of one file each."""
    table = lake.create_table("db.t", SCHEMA, properties={"commit.manifest-merge.enabled": "false"})
    for start in range(3):
        table.append(pa.table({"id": [start, 100 + start]}, schema=SCHEMA))
    return table


@pytest.fixture
def pool(table: Table) -> Iterator[WorkerPool]:
    with_one = WorkerPool(table.io, 1)
    yield with_one
    with_one.close()


def job_for(table: Table, filter_: object = None) -> PlanJob:
    """A plan whose responses name one file each."""
    snapshot = table.current_snapshot
    task = PlanTask(
        table=table.metadata.table_uuid or "", schema=0, snapshot=snapshot and snapshot.snapshot_id, filter=filter_
    )
    return plan_job(table.metadata, task, 1, "some-plan")


def body(plan: RunningPlan) -> bytes:
    return plan.response.result(WAIT_S)


def running(pool: WorkerPool) -> int:
    """The process that works on the one plan under way."""
    while not (found := pool.process_ids):
        time.sleep(0.01)
    return found[0]


def is_gone(process: int) -> bool:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def test_worker_plans_what_the_server_would_plan_and_says_what_is_wrong(pool: WorkerPool, table: Table) -> None:
    for filter_ in (None, NOWHERE, {"type": "eq", "term": "id", "value": 101}):
        job = job_for(table, filter_)
        assert body(pool.start("ann", job)) == respond(table.io, job, FilterCache())
    with pytest.raises(InvalidInputError, match=r"no column `nothing`.*\$\.filter\.term"):
        body(pool.start("ann", job_for(table, {"type": "is-null", "term": "nothing"})))


def test_worker_that_is_killed_fails_its_plan_alone(pool: WorkerPool, table: Table) -> None:
    held = HeldManifests(table)
    first, second = pool.start("ann", job_for(table)), pool.start("ann", job_for(table))
    held.wait_for_reader(0)
    killed = running(pool)
    os.kill(killed, signal.SIGKILL)
    with pytest.raises(UnavailableError, match="has died"):
        body(first)
    held.release()
    assert b"completed" in body(second)
    assert is_gone(killed)


def test_cancelled_plan_stops_between_manifests_and_leaves_its_worker_to_others(pool: WorkerPool, table: Table) -> None:
    held = HeldManifests(table)
    plan = pool.start("ann", job_for(table, NOWHERE))
    held.feed(0)
    held.wait_for_reader(1)
    process = running(pool)
    pool.cancel(plan)
    with pytest.raises(PlanStopped):
        body(plan)
    held.feed(1)
    while pool.process_ids:
        time.sleep(0.01)
    assert not held.has_reader(2)
    held.release()
    assert b"completed" in body(pool.start("ann", job_for(table)))
    os.kill(process, 0)  # it is there


def test_worker_in_the_middle_of_a_manifest_is_ended_when_its_plan_is_cancelled(
    pool: WorkerPool, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "_GRACE_S", 0.0)
    held = HeldManifests(table)
    plan = pool.start("ann", job_for(table))
    held.wait_for_reader(0)
    process = running(pool)
    pool.cancel(plan)
    assert is_gone(process)


def test_plan_that_waits_is_cancelled_without_a_worker(pool: WorkerPool, table: Table) -> None:
    HeldManifests(table)
    pool.start("ann", job_for(table))
    running(pool)
    waiting = pool.start("ann", job_for(table))
    pool.cancel(waiting)
    with pytest.raises(PlanStopped):
        body(waiting)


@pytest.mark.parametrize(
    ("limits", "error", "why"),
    [
        ({"most_memory": 1024}, RefusedError, "MiB of memory"),
        ({"time_limit_s": 0.2}, UnavailableError, "in 0.2 seconds"),
    ],
)
def test_plan_that_takes_too_much_fails(
    table: Table, limits: dict[str, float], error: type[Exception], why: str
) -> None:
    pool = WorkerPool(table.io, 1, **limits)  # type: ignore[arg-type]
    HeldManifests(table)
    with pytest.raises(error, match=why):
        body(pool.start("ann", job_for(table)))
    pool.close()


def test_worker_that_has_nothing_to_do_ends_and_another_one_comes(table: Table) -> None:
    pool = WorkerPool(table.io, 1, idle_s=0.1)
    held = HeldManifests(table)
    plan = pool.start("ann", job_for(table))
    process = running(pool)
    held.feed(0)
    body(plan)
    assert is_gone(process)
    held.release()
    assert b"completed" in body(pool.start("ann", job_for(table)))
    pool.close()


def test_closing_ends_the_workers_and_answers_who_waits(table: Table) -> None:
    pool = WorkerPool(table.io, 2)
    held = HeldManifests(table)
    plans = [pool.start("ann", job_for(table)) for _ in range(3)]
    held.wait_for_reader(0)
    processes = [running(pool)]
    pool.close()
    for plan in plans:
        with pytest.raises(PlanStopped):
            body(plan)
    assert all(is_gone(process) for process in processes)
    with pytest.raises(UnavailableError, match="stopping"):
        pool.start("ann", job_for(table))


def test_callers_take_turns_and_nobody_queues_without_end(table: Table) -> None:
    pool = WorkerPool(table.io, 1, most_of_one=3)
    held = HeldManifests(table)
    order: list[str] = []

    def noted(name: str) -> Callable[[Future[bytes]], None]:
        return lambda _: order.append(name)

    plans = []
    for number, name in enumerate(("ann", "ann", "ann", "ann", "bob")):
        plans.append(pool.start(name, job_for(table)))
        plans[-1].response.add_done_callback(noted(f"{name}-{number}"))
        if not number:
            running(pool)
    with pytest.raises(UnavailableError, match="too many scans"):
        pool.start("ann", job_for(table))
    held.feed(0)
    body(plans[0])
    held.release()
    for plan in plans:
        body(plan)
    assert order == ["ann-0", "ann-1", "bob-4", "ann-2", "ann-3"]
    pool.close()


def test_worker_stays_behind_the_fence(table: Table, tmp_path: Path) -> None:
    pool = WorkerPool(FencedFileIO(table.io, [f"{tmp_path}/elsewhere"]), 1)
    with pytest.raises(RefusedError, match="expected a location in the warehouse"):
        body(pool.start("ann", job_for(table)))
    pool.close()


def test_files_that_no_other_process_has_are_planned_in_threads() -> None:
    assert not WorkerPool(MemoryFileIO(), 1).is_there


def test_job_has_the_snapshots_of_its_plan_alone(table: Table) -> None:
    assert len(table.metadata.snapshots) == 3
    assert [s.snapshot_id for s in job_for(table).metadata.snapshots] == [table.metadata.current_snapshot_id]
    assert job_for(table).files == 3
    bare = msgspec.structs.replace(table.metadata.snapshots[-1], summary={})
    metadata = msgspec.structs.replace(table.metadata, snapshots=(bare,))
    assert plan_job(metadata, job_for(table).task, 1).files is None
