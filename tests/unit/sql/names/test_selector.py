"""The state of a table that a name, a clause or an option means."""

from typing import Any

import pytest

from bergline import Table
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.sql.names.selector import VersionSelector, parse_selector, with_as_of, with_options
from bergline.sql.queries.query import AsOf
from bergline.sql.text.tokens import SqlText
from bergline.table.scans.changelog_scan import ChangelogRange


def test_changes_are_of_a_range_of_snapshots(orders: Table) -> None:
    selector = parse_selector("CHANGES", orders)
    assert selector == VersionSelector(metadata_table="changes", changes=ChangelogRange())
    options = {"Start-Snapshot-Id": "7", "end-timestamp": 9, "branch": "dev"}
    chosen = ChangelogRange(start_snapshot_id=7, end_timestamp=9, branch="dev")
    assert with_options(selector, options, "UTC").changes == chosen
    with pytest.raises(InvalidInputError, match="expected a whole number for option `end-timestamp`, found `today`"):
        with_options(selector, {"end-timestamp": "today"}, "UTC")
    with pytest.raises(UnsupportedError, match="found `tag`"):
        with_options(selector, {"tag": "v1"}, "UTC")
    with pytest.raises(InvalidInputError, match="expected no version for `changes`"):
        with_as_of(selector, AsOf("version", "v1"), "UTC")


def test_last_part_of_a_name_selects_a_version_or_a_metadata_table(orders: Table) -> None:
    assert parse_selector("Snapshots", orders) == VersionSelector(metadata_table="snapshots")
    assert parse_selector("branch_a_b", orders) == VersionSelector(branch="a_b")
    assert parse_selector("tag_v1", orders) == VersionSelector(ref="v1")
    with pytest.raises(NotFoundError) as caught:
        parse_selector("snapshotz", orders)
    assert caught.value.near[0] == "snapshots"
    with pytest.raises(InvalidInputError, match="expected a number after `snapshot_id_`, found `x`"):
        parse_selector("snapshot_id_x", orders)


@pytest.mark.parametrize(
    ("as_of", "expected"),
    [
        (None, VersionSelector()),
        (AsOf("version", "v1"), VersionSelector(ref="v1")),
        (AsOf("version", "12"), VersionSelector(snapshot_id=12)),
        (AsOf("version", 12), VersionSelector(snapshot_id=12)),
        (AsOf("timestamp", "1970-01-01 01:00:01"), VersionSelector(as_of_ms=1000)),
        (AsOf("timestamp", 2), VersionSelector(as_of_ms=2000)),
    ],
)
def test_clause_selects_a_version(as_of: AsOf | None, expected: VersionSelector) -> None:
    assert with_as_of(VersionSelector(), as_of, "Europe/Berlin") == expected


def test_expression_needs_an_engine() -> None:
    as_of = AsOf("timestamp", None, SqlText("now()"))
    with pytest.raises(UnsupportedError, match="expected a literal after AS OF, found an expression"):
        with_as_of(VersionSelector(), as_of, "UTC")
    assert with_as_of(VersionSelector(), as_of, "UTC", lambda sql: len(sql.text)) == VersionSelector(as_of_ms=5)


def test_two_versions_at_once_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="expected one version"):
        with_as_of(VersionSelector(branch="b"), AsOf("version", 1), "UTC")
    with pytest.raises(InvalidInputError, match="expected one version"):
        with_options(VersionSelector(), {"branch": "b", "tag": "v1"}, "UTC")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"branch": "b"}, VersionSelector(ref="b")),
        ({"snapshot-id": "7"}, VersionSelector(snapshot_id=7)),
        ({"as-of-timestamp": 7}, VersionSelector(as_of_ms=7)),
        ({"versionAsOf": "v1"}, VersionSelector(ref="v1")),
        ({"start-snapshot-id": 1, "end-snapshot-id": 2}, VersionSelector(after=1, snapshot_id=2)),
    ],
)
def test_options_select_a_version(options: dict[str, Any], expected: VersionSelector) -> None:
    assert with_options(VersionSelector(), options, "UTC") == expected


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"snapshotid": 1}, UnsupportedError),
        ({"snapshot-id": "x"}, InvalidInputError),
        ({"end-snapshot-id": 1}, InvalidInputError),
    ],
)
def test_options_that_are_not_understood_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        with_options(VersionSelector(), options, "UTC")
