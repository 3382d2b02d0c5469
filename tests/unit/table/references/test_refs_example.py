"""A table whose metadata holds the example of `refs`, read and written."""

import datetime as dt
import json
from typing import Any

import pytest

from bergline import Lake, Table
from bergline.format.metadata.json import render_metadata
from bergline.table.commits.retry import Timing
from support.fixtures.refs_example import REFS_EXAMPLE
from support.fixtures.rows import ORDERS, ids, order_rows

MAIN, STAGING, RELEASE = 8027658604211071520, 7935847293847561234, 6891234567890123456
YEAR_MS = 31_536_000_000


@pytest.fixture
def table(lake: Lake) -> Table:
    """`db.orders` with orders 1 (tagged), 2 on main and 3 on staging, under the snapshot ids of the example."""
    written = lake.create_table("db.written", ORDERS).append(order_rows(1)).append(order_rows(2))
    written.refs.create_branch("staging", at=written.metadata.snapshots[0].snapshot_id)
    written.append(order_rows(3), branch="staging")
    document: dict[str, Any] = json.loads(render_metadata(written.metadata))
    new = dict(zip([s["snapshot-id"] for s in document["snapshots"]], [RELEASE, MAIN, STAGING], strict=True))
    for snapshot in (*document["snapshots"], *document["snapshot-log"]):
        snapshot["snapshot-id"] = new[snapshot["snapshot-id"]]
        if "parent-snapshot-id" in snapshot:
            snapshot["parent-snapshot-id"] = new[snapshot["parent-snapshot-id"]]
    location = f"{written.location}/metadata/00009-example.metadata.json"
    written.io.create(location, json.dumps(document | json.loads(REFS_EXAMPLE)).encode())
    return lake.register_table("db.orders", location)


def test_refs_are_those_of_the_example_and_read_their_snapshots(table: Table) -> None:
    assert {name: ids(table.scan(ref=name).to_arrow()) for name in table.refs} == {
        "main": [1, 2],
        "staging": [1, 3],
        "v2.0-release": [1],
    }
    assert table.metadata.current_snapshot_id == MAIN
    columns = ["name", "type", "snapshot_id", "max_reference_age_in_ms", "min_snapshots_to_keep"]
    rows = table.inspect("refs").select([*columns, "max_snapshot_age_in_ms"]).to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [
        ("main", "BRANCH", MAIN, None, 10, 604_800_000),
        ("staging", "BRANCH", STAGING, None, 3, 86_400_000),
        ("v2.0-release", "TAG", RELEASE, YEAR_MS, None, None),
    ]


def test_refs_can_be_listed_from_the_metadata(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    for ref_name, ref in table.metadata.refs.items():
        print(f"{ref_name}: type={ref.snapshot_ref_type}, snapshot={ref.snapshot_id}")  # noqa: T201
    assert capsys.readouterr().out.splitlines() == [
        f"main: type=branch, snapshot={MAIN}",
        f"staging: type=branch, snapshot={STAGING}",
        f"v2.0-release: type=tag, snapshot={RELEASE}",
    ]


def test_retention_survives_a_commit(table: Table) -> None:
    table.append(order_rows(4)).append(order_rows(5), branch="staging")
    document = json.loads(render_metadata(table.metadata))["refs"]
    written = json.loads(REFS_EXAMPLE)["refs"]
    for name in ("main", "staging"):
        assert document[name].pop("snapshot-id") != written[name].pop("snapshot-id")
    assert document == written


@pytest.mark.parametrize(("days", "refs"), [(0, 3), (365, 3), (366, 2)])
def test_branches_stay_and_the_tag_goes_after_its_year(lake: Lake, table: Table, days: int, refs: int) -> None:
    tagged_ms = table.metadata.snapshot(RELEASE).timestamp_ms
    now_ms = tagged_ms + days * 86_400_000
    later = Lake(lake.catalog, "lake", timing=Timing(clock_ms=lambda: now_ms)).load_table("db.orders")
    result = later.expire(older_than=dt.datetime(2100, 1, 1, tzinfo=dt.UTC), level="none")
    assert len(later.refs) == refs
    assert result.removed_snapshots == ()  # main and staging keep 10 and 3 snapshots, the tagged one among them
