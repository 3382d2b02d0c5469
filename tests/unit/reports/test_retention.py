"""What expiry would remove, and what refs hold on to."""

from pathlib import Path

import pytest

from bergline import Table
from bergline.reports.retention import retention_report
from support.fixtures.rows import order_rows

DAY = 86_400_000


@pytest.fixture
def kept(orders: Table) -> Table:
    """Three snapshots on `main`, of which only the last is kept, and a tag at the first, of overwritten rows."""
    orders.set_properties({"history.expire.max-snapshot-age-ms": "1"})
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    return orders.overwrite(order_rows(2)).append(order_rows(3))


def test_snapshots_and_refs_are_told_with_reasons_and_bytes(kept: Table) -> None:
    report = retention_report(kept, now_ms=kept.metadata.last_updated_ms)
    assert (report.removed_snapshots, report.removed_refs, report.max_snapshot_age_ms) == (1, 0, 1)
    assert [s.kept for s in report.snapshots] == [True, False, True]
    assert "past" in report.snapshots[1].reasons[0] or "older" in report.snapshots[1].reasons[0]
    main, tag = report.refs
    assert (main.name, tag.name, tag.keeps_snapshots) == ("main", "v1", 1)
    assert tag.pinned is not None
    assert tag.pinned.bytes > 0
    assert tag.head_bytes is not None
    assert report.deleted is not None
    assert report.deleted.files > 0
    assert report.problems == ()


def test_a_report_changes_nothing(kept: Table) -> None:
    before = kept.metadata_location
    retention_report(kept, now_ms=kept.metadata.last_updated_ms)
    assert kept.refresh().metadata_location == before


def test_what_is_decided_is_told_though_files_cannot_be_read(kept: Table) -> None:
    snapshot = kept.metadata.snapshots[1]
    assert snapshot.manifest_list is not None
    Path(snapshot.manifest_list.removeprefix("file://")).unlink()
    report = retention_report(kept, now_ms=kept.metadata.last_updated_ms + DAY)
    assert (report.removed_snapshots, report.deleted, report.refs[0].pinned) == (1, None, None)
    assert snapshot.manifest_list in report.problems[0].message


def test_a_table_that_must_not_be_expired_says_so(kept: Table) -> None:
    kept.set_properties({"gc.enabled": "false"})
    report = retention_report(kept, now_ms=kept.metadata.last_updated_ms)
    assert len(report.problems) == 1
    assert "gc.enabled" in report.problems[0].message
    assert [r.name for r in report.refs] == ["main", "v1"]
