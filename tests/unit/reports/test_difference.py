"""How two refs differ, for people."""

from pathlib import Path

import pytest

from bergline import Lake, Table
from bergline.errors import NotFoundError
from bergline.reports import difference
from bergline.reports.difference import ref_difference
from support.fixtures.rows import ORDERS, order_rows


@pytest.fixture
def parts(lake: Lake) -> Table:
    """Orders by region in several small files, and a branch `dev` at that point."""
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    for i in range(1, 7):
        table.append(order_rows(i))
    table.append(order_rows(10, region="us"))
    table.refs.create_branch("dev")
    return table


def test_snapshots_files_and_rows_on_both_sides(parts: Table) -> None:
    ancestor = parts.current_snapshot
    parts.append(order_rows(7), branch="dev").delete("id = 10", branch="dev")
    parts.append(order_rows(8))
    found = ref_difference(parts, "main", "dev")
    assert found.diff is not None
    assert found.diff.ancestor == ancestor
    assert (len(found.diff.only_from), len(found.diff.only_to)) == (1, 2)
    assert [(p.files.partition, p.added_rows, p.removed_rows) for p in found.partitions] == [
        ("region=eu", 1, 1),
        ("region=us", 0, 1),
    ]
    assert found.sample is not None
    assert found.sample.columns == ("_change_type", "id", "amount", "region")
    assert sorted(row[:2] for row in found.sample.rows) == [("DELETE", "10"), ("DELETE", "8"), ("INSERT", "7")]
    assert found.sample.is_complete


@pytest.mark.parametrize("side", ["dev", "main"])
def test_compacted_files_are_no_changed_rows(parts: Table, side: str) -> None:
    parts.append(order_rows(7), branch=side)
    parts.compact(branch=side)
    found = ref_difference(parts, "main", "dev")
    (eu,) = found.partitions
    more = (1, 0) if side == "dev" else (0, 1)
    assert (eu.rewritten_rows, eu.added_rows, eu.removed_rows) == (6, *more)
    assert found.sample is not None
    assert len(found.sample.rows) == 1


def test_rows_that_replaced_compacted_ones_are_changes(parts: Table) -> None:
    parts.compact(branch="dev")
    parts.overwrite(order_rows(*range(20, 26)), "region = 'eu'", branch="dev")
    (eu,) = ref_difference(parts, "main", "dev").partitions
    assert (eu.rewritten_rows, eu.added_rows, eu.removed_rows) == (0, 6, 6)


def test_a_sample_is_bounded(parts: Table) -> None:
    parts.append(order_rows(*range(100, 200)), branch="dev")
    found = ref_difference(parts, "main", "dev", sample=5)
    assert found.sample is not None
    assert (len(found.sample.rows), found.sample.is_complete) == (5, False)
    assert ref_difference(parts, "main", "dev", sample=0).sample is None


def test_too_many_rows_are_not_compared(parts: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(difference, "MOST_COMPARED_ROWS", 5)
    parts.overwrite(order_rows(*range(20, 26)), "region = 'eu'", branch="dev")
    found = ref_difference(parts, "main", "dev")
    assert (found.sample, found.is_sample_refused, found.problems) == (None, True, ())


def test_history_is_shown_though_rows_are_gone(parts: Table) -> None:
    parts.append(order_rows(7), branch="dev")
    added = parts.inspect("files", ref="dev")["file_path"].to_pylist()
    there = set(parts.inspect("files")["file_path"].to_pylist())
    (gone,) = (path for path in added if path not in there)
    Path(gone.removeprefix("file://")).unlink()
    found = ref_difference(parts, "main", "dev")
    assert found.diff is not None
    assert found.partitions[0].added_rows == 1
    assert found.sample is None
    assert gone in found.problems[0].message


def test_a_ref_that_does_not_exist_is_an_error(parts: Table) -> None:
    with pytest.raises(NotFoundError, match="no branch or tag `nope`"):
        ref_difference(parts, "main", "nope")
