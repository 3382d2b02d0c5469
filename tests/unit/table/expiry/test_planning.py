"""What expiry would do, worked out by an operation that changes nothing."""

from bergline import Table
from bergline.table.commits.operation import Change, CommitStamp
from bergline.table.expiry.expire import Cleanup
from bergline.table.expiry.planning import PlanExpiry
from bergline.table.expiry.reachable import FileKind
from bergline.table.expiry.retention import CleanupLevel, ExpiryRequest
from support.fixtures.rows import order_rows

LATER = 4_000_000_000_000


def plan(table: Table, level: CleanupLevel = CleanupLevel.ALL) -> PlanExpiry:
    operation = PlanExpiry(table.io, ExpiryRequest(), Cleanup(level))
    assert operation.attempt(table.metadata, CommitStamp(1, LATER)) == Change()
    return operation


def test_plan_has_the_sizes_of_files_and_what_each_ref_alone_holds(orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_tag("v1")
    orders.overwrite(order_rows(2)).overwrite(order_rows(3))
    _, second, _ = orders.metadata.snapshots
    found = plan(orders).plan
    assert found.removed_snapshots == (second.snapshot_id,)
    assert found.deleted_by_kind[FileKind.DATA].files == 1
    assert all(f.size is not None and f.size > 0 for f in found.files)
    assert set(found.held) == {"main", "v1"}
    assert found.held["v1"].files >= 2  # a data file and its manifest list, at least


def test_without_looking_at_files_nothing_is_said_to_be_held(orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    found = plan(orders, CleanupLevel.NONE).plan
    assert (len(found.removed_snapshots), found.files, found.held) == (1, (), {})
