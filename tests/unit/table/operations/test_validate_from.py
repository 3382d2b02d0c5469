"""Overwrites in Python whose rows were read from the table: what others committed since the read is never lost."""

import datetime as dt
from collections.abc import Callable

import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.errors import ConflictError, InvalidInputError
from bergline.table.scans.scan import TableScan
from support.fixtures.competing_writers import overtaken
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

Write = Callable[[Table, TableScan], object]
LATER = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def parts(lake: Lake) -> Table:
    """Orders by region: 1 and 2 in eu, 3 in us."""
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    return table.append(order_rows(1, 2)).append(order_rows(3, region="us"))


def replace_table(lake: Lake, **said: object) -> None:
    with lake.stage_table("db.parts", ORDERS, replace=True, **said) as table:  # type: ignore[arg-type]
        table.append(order_rows(9))


WRITES: dict[str, Write] = {
    "scan as rows": lambda t, s: t.overwrite(s),
    "scan as rows of partitions": lambda t, s: t.overwrite_partitions(s),
    "scan as rows for a filter": lambda t, s: t.overwrite(s, "region = 'eu'"),
    "scan": lambda t, s: t.overwrite(s.to_arrow(), validate_from=s),
    "scan for a filter": lambda t, s: t.overwrite(s.to_arrow(), "region = 'eu'", validate_from=s),
    "scan for partitions": lambda t, s: t.overwrite_partitions(s.to_arrow(), validate_from=s),
    "snapshot": lambda t, s: t.overwrite(s.to_arrow(), validate_from=s.snapshot_id),
    "files": lambda t, s: t.overwrite_files(written_files(t, s), validate_from=s, discard_on_failure=True),
    "files of partitions": lambda t, s: t.replace_partitions(
        written_files(t, s), validate_from=s, discard_on_failure=True
    ),
}


@pytest.mark.parametrize("way", WRITES)
def test_rows_that_others_appended_after_the_read_are_a_conflict(lake: Lake, parts: Table, way: str) -> None:
    read = lake.load_table("db.parts").scan()
    parts.append(order_rows(4))
    mine = lake.load_table("db.parts")  # knows the new rows, which are not in what was read
    with pytest.raises(ConflictError, match="came first and added"):
        WRITES[way](mine, read)
    assert ids(parts.refresh().scan().to_arrow()) == [1, 2, 3, 4]
    WRITES[way](mine.refresh(), mine.scan())
    assert set(ids(parts.refresh().scan().to_arrow())) == {1, 2, 3, 4}


@pytest.mark.parametrize("way", WRITES)
def test_rows_that_others_deleted_after_the_read_do_not_come_back(lake: Lake, parts: Table, way: str) -> None:
    read = lake.load_table("db.parts").scan()
    parts.delete("id = 1")
    with pytest.raises(ConflictError):
        WRITES[way](lake.load_table("db.parts"), read)
    assert ids(parts.refresh().scan().to_arrow()) == [2, 3]


def test_rows_that_come_between_two_attempts_are_a_conflict(lake: Lake, parts: Table) -> None:
    late = overtaken(lake, lambda: parts.append(order_rows(4))).load_table("db.parts")
    with pytest.raises(ConflictError):
        late.overwrite(late.scan())
    assert ids(parts.refresh().scan().to_arrow()) == [1, 2, 3, 4]


def test_rows_read_from_an_empty_table_or_another_branch(lake: Lake, parts: Table) -> None:
    empty = lake.create_table("db.empty", ORDERS)
    read = empty.scan()
    lake.load_table("db.empty").append(order_rows(4))
    with pytest.raises(ConflictError):
        empty.refresh().overwrite(read)
    with pytest.raises(ConflictError):
        empty.overwrite(order_rows(9), validate_from=read)
    parts.refs.create_branch("dev")
    dev, main = parts.scan(ref="dev"), parts.scan()
    old = parts.scan(snapshot_id=main.snapshot_id)
    parts.append(order_rows(4)).append(order_rows(5), branch="dev")
    parts.overwrite(old)  # fixed for ever: who writes it back means it
    parts.append(order_rows(6)).overwrite(dev)  # another branch
    assert ids(parts.scan().to_arrow()) == [1, 2, 3]
    with pytest.raises(ConflictError):
        parts.overwrite(dev, branch="dev")
    with pytest.raises(ConflictError):
        parts.overwrite(main, branch="new")  # which would begin where `main` is
    parts.overwrite(main, branch="dev")
    assert ids(parts.scan(ref="dev").to_arrow()) == [1, 2, 3]


def test_level_that_is_given_comes_first(lake: Lake, parts: Table) -> None:
    for level in ("none", "snapshot"):
        read = parts.scan()
        lake.load_table("db.parts").append(order_rows(4))
        parts.refresh().overwrite(read, isolation=level)
        assert ids(parts.scan().to_arrow()) == [1, 2, 3]
    with pytest.raises(InvalidInputError, match="found `none` beside a snapshot"):
        parts.overwrite(order_rows(9), validate_from=parts.scan(), isolation="none")


def test_transaction_is_validated_from_what_it_read(lake: Lake, parts: Table) -> None:
    with parts.transaction() as mine:
        mine.append(order_rows(4))
        mine.overwrite(mine.scan())  # its own rows are no one else's
    assert ids(parts.scan().to_arrow()) == [1, 2, 3, 4]
    transaction = parts.transaction()
    mine = transaction.__enter__()
    mine.append(order_rows(5))
    mine.overwrite(mine.scan())
    lake.load_table("db.parts").append(order_rows(6))
    with pytest.raises(ConflictError, match="came first and added"):
        transaction.__exit__(None, None, None)
    assert ids(parts.refresh().scan().to_arrow()) == [1, 2, 3, 4, 6]


def test_replaced_table_is_validated_by_what_was_read(lake: Lake, parts: Table) -> None:
    read = parts.scan()
    for said in ({"validate_from": read}, {"validate_from": read.snapshot_id}, {"isolation": "serializable"}):
        late = overtaken(lake, lambda: lake.load_table("db.parts").append(order_rows(4)))
        with pytest.raises(ConflictError, match="came first and added"):
            replace_table(late, **said)
        parts.refresh().refs.rollback(to=read.snapshot_id)  # type: ignore[arg-type]
    assert ids(parts.scan().to_arrow()) == [1, 2, 3]
    with pytest.raises(ConflictError, match="not in its history"):
        replace_table(lake, validate_from=12345)
    replace_table(lake, validate_from=read)
    assert ids(parts.refresh().scan().to_arrow()) == [9]
    with pytest.raises(ConflictError, match="not in its history"):
        parts.overwrite(read)  # another began the table again


def test_snapshot_that_has_expired_is_a_conflict(lake: Lake, parts: Table) -> None:
    read = parts.scan()
    rows = read.to_arrow()
    parts.append(order_rows(4)).append(order_rows(5)).expire(older_than=LATER)
    for row_filter in (None, "region = 'eu'"):
        with pytest.raises(ConflictError, match="has expired"):
            parts.overwrite(rows, row_filter, validate_from=read)
    parts.append(order_rows(6))
    read = parts.scan()
    parts.append(order_rows(7, region="us")).expire(older_than=LATER)  # its only child is left
    with pytest.raises(ConflictError, match="has expired"):
        parts.overwrite(rows, "region = 'eu'", validate_from=read)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("main", "expected a scan or the id of a snapshot to validate from, found"),
        (True, "expected a scan or the id of a snapshot to validate from, found"),
        (2**70, "expected a whole number"),
    ],
)
def test_what_is_no_read_is_refused(parts: Table, given: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parts.overwrite(order_rows(9), validate_from=given)  # type: ignore[arg-type]


def test_scan_of_another_table_is_refused_to_validate_from_and_taken_as_rows(lake: Lake, parts: Table) -> None:
    other = lake.create_table("db.other", ORDERS).append(order_rows(8))
    with pytest.raises(InvalidInputError, match="of another table"):
        parts.overwrite(order_rows(9), validate_from=other.scan())
    lake.load_table("db.parts").append(order_rows(4))
    parts.overwrite(other.scan())
    assert parts.scan().to_arrow().sort_by("id") == pa.table(order_rows(8))


def overtaken_at(written: Lake, read: Lake, branch: str = "main") -> bool:
    """Whether rows that were read of a lake, at a ref, conflict with what was written at a ref since."""
    rows = read.load_table("db.parts").scan(ref=branch)
    written.load_table("db.parts").append(order_rows(7))
    try:
        written.load_table("db.parts").overwrite(rows)
    except ConflictError:
        return True
    return False


def test_a_read_is_one_of_the_branch_that_is_seen(lake: Lake, parts: Table) -> None:
    parts.refs.create_branch("staging")
    staging = lake.at("staging")
    assert overtaken_at(staging, staging)
    assert overtaken_at(staging, lake, "staging")
    assert not overtaken_at(staging, lake)
    assert not overtaken_at(lake, staging)


def test_a_branch_that_does_not_exist_begins_with_main() -> None:
    lake = bergline.connect("memory:")
    lake.create_namespace("db")
    lake.create_table("db.other", ORDERS).append(order_rows(1)).refs.create_branch("staging")
    parts = lake.create_table("db.parts", ORDERS).append(order_rows(1, 2, 3))
    read = parts.scan()
    parts.append(order_rows(7))
    at = lake.at("staging").load_table("db.parts")
    with pytest.raises(ConflictError):
        at.overwrite(read)
    at.append(order_rows(8))
    at.overwrite(read)
    assert ids(at.scan().to_arrow()) == [1, 2, 3]
