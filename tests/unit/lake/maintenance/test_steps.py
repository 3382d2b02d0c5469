"""Single steps under faults: an unknown outcome is no failure, and a lost race is planned again or skipped."""

from typing import Any

import pytest

import bergline
from bergline import Lake, MaintenancePolicy, Table
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.io.memory import MemoryFileIO
from bergline.io.schemes import SchemeFileIO
from bergline.lake.maintenance.report import MaintenanceStep, StepReport
from bergline.table.commits.retry import Timing
from bergline.table.engine.arrow_engine import ArrowRowEngine
from bergline.testing.faults import Fault, FaultyStore
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

SOON = MaintenancePolicy(compaction_min_input_files=2, manifests_min_count=2)


@pytest.fixture
def store() -> FaultyStore:
    return FaultyStore(MemoryPointerStore())


@pytest.fixture
def lake(store: FaultyStore) -> Lake:
    catalog = PointerCatalog(store, SchemeFileIO({"memory": MemoryFileIO()}), "memory://warehouse")
    lake = Lake(catalog, "lake", timing=Timing(sleep=lambda _: None))
    lake.create_namespace("db")
    return lake


@pytest.fixture
def small(lake: Lake) -> Table:
    table = lake.create_table("db.orders", ORDERS, properties={"commit.manifest-merge.enabled": "false"})
    for i in range(3):
        table.append(order_rows(i))
    return table


def only_step(lake: Lake, step: str, **arguments: Any) -> StepReport:
    (table,) = bergline.maintain(lake, SOON, steps=[step], **arguments).tables
    (found,) = table.steps
    return found


@pytest.mark.long
def test_outcome_that_is_unknown_is_reported_as_such_and_nothing_is_deleted(
    lake: Lake, store: FaultyStore, small: Table
) -> None:
    store.meet(Fault.STORE_GOES_AWAY)
    found = only_step(lake, "compaction")
    assert (found.status, found.error) == ("unknown", "commit-unknown")
    store.meet()
    assert ids(small.refresh().scan().to_arrow()) == [0, 1, 2]
    assert len(small.scan().plan().files) == 1  # it had happened
    assert only_step(lake, "compaction").status == "nothing to do"


@pytest.mark.parametrize("step", ["compaction", "manifests", "expiry"])
def test_lost_response_is_settled(lake: Lake, store: FaultyStore, small: Table, step: str) -> None:
    small.set_properties({"history.expire.max-snapshot-age-ms": "1"})
    store.meet(Fault.LANDS_BUT_ANSWER_IS_LOST)
    assert only_step(lake, step).status == "done"
    assert only_step(lake, step).status == "nothing to do"
    assert ids(small.refresh().scan().to_arrow()) == [0, 1, 2]


def test_catalog_that_does_not_respond_fails_the_step(lake: Lake, store: FaultyStore, small: Table) -> None:
    store.meet(*[Fault.REFUSED_AS_LOCKED] * 50)
    assert (only_step(lake, "compaction").status, only_step(lake, "compaction").error) == ("failed", "unavailable")
    store.meet()
    assert only_step(lake, "compaction").status == "done"


def test_compaction_that_always_loses_is_skipped(lake: Lake) -> None:
    small = lake.create_table("db.orders", ORDERS, properties={"write.delete.mode": "merge-on-read"})
    for start in (0, 100, 200):
        small.append(order_rows(*range(start, start + 100)))

    class Racing(ArrowRowEngine):
        lost = 0

        def rewrite_groups(self, *arguments: Any) -> Any:
            Racing.lost += 1
            lake.load_table("db.orders").delete(f"id IN ({Racing.lost}, {Racing.lost + 100}, {Racing.lost + 200})")
            return super().rewrite_groups(*arguments)

    found = only_step(lake, "compaction", engine=Racing())
    assert (found.status, found.error) == ("skipped", "conflict")
    assert found.reason.startswith("others changed the table: ")
    assert Racing.lost > 1
    assert len(ids(small.refresh().scan().to_arrow())) == 300 - 3 * Racing.lost
    written = {f.location for f in small.io.list_files(f"{small.location}/data")}
    named = {entry["data_file"]["file_path"] for entry in small.inspect("all_entries").to_pylist()}
    assert written == named  # what lost was deleted


class RacingIO(MemoryFileIO):
    """Files in memory; `race` is called before a manifest list is read, once."""

    race: Any = None

    def read(self, location: str, most: int | None = None) -> bytes:
        if self.race is not None and "/snap-" in location:
            race, self.race = self.race, None
            race()
        return super().read(location, most)


@pytest.mark.parametrize("plan", [True, False])
@pytest.mark.parametrize("step", list(MaintenanceStep))
def test_step_whose_files_others_expire_is_planned_again(step: str, plan: bool) -> None:
    store, files = MemoryPointerStore(), RacingIO()

    def opened() -> Lake:
        return Lake(PointerCatalog(store, SchemeFileIO({"memory": files}), "memory://warehouse"), "lake")

    writer = opened()
    writer.create_namespace("db")
    properties = {"history.expire.max-snapshot-age-ms": "1", "commit.manifest-merge.enabled": "false"}
    table = writer.create_table("db.orders", ORDERS, properties=properties)
    for i in range(3):
        table.append(order_rows(i))

    def race() -> None:
        table.refresh().append(order_rows(3)).expire(retain_last=1)

    files.race = race
    found = only_step(opened(), step, plan=plan)
    assert files.race is None
    assert found.status in {"planned", "done", "nothing to do"}, found
    assert ids(table.refresh().scan().to_arrow()) == [0, 1, 2, 3]
