"""Which snapshot and schema a read means."""

import datetime as dt

import msgspec
import pytest

from bergline import Table
from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.types.types import STRING, NestedField
from bergline.table.scans.version import resolve_version
from support.fixtures.rows import ids, order_rows


def _moment(milliseconds: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=milliseconds)


def test_reads_by_ref_snapshot_and_moment_agree(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2))
    orders.refs.create_tag("v1", at=orders.metadata.snapshots[0].snapshot_id)
    first, second = orders.metadata.snapshots
    assert ids(orders.scan(ref="v1").to_arrow()) == [1]
    assert ids(orders.scan(snapshot_id=first.snapshot_id).to_arrow()) == [1]
    assert ids(orders.scan(as_of=_moment(second.timestamp_ms)).to_arrow()) == [1, 2]


def test_moment_before_the_first_snapshot_is_not_found(orders: Table) -> None:
    orders.append(order_rows(1))
    with pytest.raises(NotFoundError, match="no snapshot at or before"):
        orders.scan(as_of=_moment(0))


def test_moment_without_a_zone_is_refused(orders: Table) -> None:
    with pytest.raises(InvalidInputError, match="expected a time with a time zone"):
        orders.scan(as_of=dt.datetime(2026, 1, 1))  # noqa: DTZ001


def test_log_out_of_order_is_searched_for_the_latest(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2))
    late, early = orders.metadata.snapshot_log
    swapped = msgspec.structs.replace(
        orders.metadata,
        snapshot_log=(
            msgspec.structs.replace(late, timestamp_ms=500),
            msgspec.structs.replace(early, timestamp_ms=400),
        ),
    )
    assert resolve_version(swapped, as_of_ms=600).snapshot_id == late.snapshot_id


def test_of_two_commits_in_one_millisecond_the_later_one_counts(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2))
    log = tuple(msgspec.structs.replace(e, timestamp_ms=500) for e in orders.metadata.snapshot_log)
    together = msgspec.structs.replace(orders.metadata, snapshot_log=log)
    assert resolve_version(together, as_of_ms=500).snapshot_id == log[1].snapshot_id


def test_empty_table_reads_as_no_rows(orders: Table) -> None:
    assert orders.scan().to_arrow().num_rows == 0
    assert orders.scan(ref="main").to_arrow().num_rows == 0


def test_branch_reads_with_the_tables_schema_and_tag_with_its_own(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    old = orders.metadata.schema
    new = msgspec.structs.replace(old, fields=(*old.fields, NestedField(4, "note", False, STRING)), schema_id=1)
    evolved = msgspec.structs.replace(orders.metadata, schemas=(old, new), current_schema_id=1)
    assert resolve_version(evolved, ref="main").schema == new
    assert resolve_version(evolved, ref="v1").schema == old
    assert resolve_version(evolved, snapshot_id=evolved.current_snapshot_id).schema == old


@pytest.mark.parametrize(
    ("version", "error"),
    [
        ({"ref": "nope"}, NotFoundError),
        ({"snapshot_id": 1}, NotFoundError),
        ({"ref": "main", "snapshot_id": 1}, InvalidInputError),
    ],
)
def test_unknown_or_double_versions_are_errors(orders: Table, version: dict[str, object], error: type) -> None:
    orders.append(order_rows(1))
    with pytest.raises(error):
        orders.scan(**version)


@pytest.mark.parametrize("columns", [[], "id"])
def test_columns_are_a_list_of_at_least_one(orders: Table, columns: object) -> None:
    with pytest.raises(InvalidInputError, match="expected a"):
        orders.scan(columns=columns)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [{"ref": 5}, {"as_of": "2026-01-01"}])
def test_versions_of_the_wrong_kind_are_refused(orders: Table, version: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match="expected"):
        orders.scan(**version)  # type: ignore[arg-type]


def test_snapshot_whose_schema_was_removed_says_so(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    head = orders.refs["v1"].snapshot_id
    new = msgspec.structs.replace(orders.metadata.schema, schema_id=1)
    without = msgspec.structs.replace(orders.metadata, schemas=(new,), current_schema_id=1)
    assert resolve_version(without, ref="main").schema == new
    for version in ({"ref": "v1"}, {"snapshot_id": head}):
        with pytest.raises(NotFoundError, match=f"cannot read snapshot {head} with its schema.* schema 0") as error:
            resolve_version(without, **version)  # type: ignore[arg-type]
        assert error.value.kind == "schema"
