"""A table of 20,000 snapshots: everything works, and what grew before is not gone through in every commit."""

import datetime as dt
from collections.abc import Iterator
from operator import is_
from pathlib import Path

import pytest

import bergline
from bergline import Lake, Table
from bergline.format.metadata.history_json import EncodedArray
from bergline.format.metadata.table_metadata import ENCODED_LOG, ENCODED_SNAPSHOTS, TableMetadata
from support.fixtures.long_histories import FIRST_ID, with_long_history
from support.fixtures.rows import ids, order_rows

SNAPSHOTS = 20_000
MIDDLE = FIRST_ID + SNAPSHOTS // 2

pytestmark = pytest.mark.long


@pytest.fixture
def long(lake: Lake, orders: Table) -> Table:
    for number in (1, 2):
        orders.append(order_rows(number))
    return with_long_history(lake, orders, "db.long", SNAPSHOTS)


@pytest.fixture
def other(lake: Lake, long: Table, tmp_path: Path) -> Iterator[Table]:
    """The table in another process, as it were."""
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db") as other:
        yield other.load_table(str(long.name))


def encoded(metadata: TableMetadata, of: str = ENCODED_SNAPSHOTS) -> EncodedArray:
    found = metadata.__dict__[of]
    assert isinstance(found, EncodedArray)
    return found


def test_commits_encode_only_what_is_new(long: Table) -> None:
    long.append(order_rows(3))
    first, first_log = encoded(long.metadata), encoded(long.metadata, ENCODED_LOG)
    long.append(order_rows(4))
    long.append(order_rows(5), branch="dev")
    long.refs.create_tag("v1")
    long.set_properties({"a": "b"})
    assert encoded(long.metadata).pieces[0] is first.pieces[0]
    assert encoded(long.metadata, ENCODED_LOG).pieces[0] is first_log.pieces[0]
    assert len(encoded(long.metadata).pieces) == 2
    assert encoded(long.metadata).count == len(long.metadata.snapshots) == SNAPSHOTS + 3
    assert ids(long.scan().to_arrow()) == [1, 2, 3, 4]
    assert ids(long.scan(ref="dev").to_arrow()) == [1, 2, 3, 4, 5]


def test_loads_decode_only_what_others_added(long: Table, other: Table) -> None:
    before = other.metadata
    long.append(order_rows(3))
    long.refs.create_branch("dev", at=MIDDLE)
    now = other.refresh().metadata
    assert now == long.metadata
    assert all(map(is_, now.snapshots, before.snapshots))
    assert now.snapshot_log[0] is before.snapshot_log[0]
    other.append(order_rows(4))
    assert ids(long.refresh().scan().to_arrow()) == [1, 2, 3, 4]


def test_old_snapshots_are_found(long: Table) -> None:
    middle = long.metadata.snapshot(MIDDLE)
    assert ids(long.scan(snapshot_id=MIDDLE).to_arrow()) == [1]
    assert long.scan(as_of_ms=middle.timestamp_ms + 1).snapshot_id == MIDDLE
    history = long.inspect("history")
    assert history.num_rows == long.inspect("snapshots").num_rows == SNAPSHOTS
    assert history["is_current_ancestor"].to_pylist() == [True] * SNAPSHOTS
    long.refs.create_tag("middle", at=MIDDLE)
    assert long.refs["middle"].snapshot_id == MIDDLE
    assert ids(long.scan(ref="middle").to_arrow()) == [1]


def test_history_is_expired(long: Table, other: Table) -> None:
    long.refs.create_tag("middle", at=MIDDLE)
    kept = long.metadata.snapshots[-100:]
    long.expire(older_than=dt.datetime.fromtimestamp(kept[0].timestamp_ms / 1000, dt.UTC), retain_last=1)
    assert set(long.metadata.snapshots_by_id) == {MIDDLE, *(s.snapshot_id for s in kept)}
    assert other.refresh().metadata == long.metadata
    other.append(order_rows(3))
    assert ids(other.scan().to_arrow()) == [1, 2, 3]
    assert ids(long.refresh().scan(ref="middle").to_arrow()) == [1]
