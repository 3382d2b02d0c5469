"""What metadata says about itself: each kind of damage is found in a table that had none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.fixtures.damaged_tables import change_metadata, check, checked_finding, new_table, open_lake


def forget_first_snapshot(document: dict[str, Any]) -> None:
    del document["snapshots"][0]


def make_cycle(document: dict[str, Any]) -> None:
    document["snapshots"][0]["parent-snapshot-id"] = document["snapshots"][1]["snapshot-id"]


def swap_sequence_numbers(document: dict[str, Any]) -> None:
    first, second = document["snapshots"]
    first["sequence-number"], second["sequence-number"] = second["sequence-number"], first["sequence-number"]


def end_log_early(document: dict[str, Any]) -> None:
    del document["snapshot-log"][-1]


def use_unknown_schema(document: dict[str, Any]) -> None:
    document["snapshots"][1]["schema-id"] = 7


def lower_row_ids(document: dict[str, Any]) -> None:
    document["next-row-id"] = 3


def state_statistics(document: dict[str, Any]) -> None:
    document["partition-statistics"] = [{"snapshot-id": 1, "statistics-path": "x", "file-size-in-bytes": 1}]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (forget_first_snapshot, "snapshot-log"),
        (end_log_early, "snapshot-log"),
        (make_cycle, "parents-in-a-cycle"),
        (swap_sequence_numbers, "sequence-number-order"),
        (use_unknown_schema, "schema-unknown"),
        (state_statistics, "statistics-without-snapshot"),
        (lambda document: document.update({"last-column-id": 1}), "last-column-id"),
        (lambda document: document.update({"last-partition-id": 999}), "last-partition-id"),
    ],
)
def test_damage_is_found(tmp_path: Path, change: Callable[[dict[str, Any]], object], code: str) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
    assert check(tmp_path).findings == ()
    change_metadata(table, change)
    checked_finding(tmp_path, code)


def test_refs_that_name_no_snapshot_are_all_found(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
    lost = {"a": {"snapshot-id": 1, "type": "branch"}, "b": {"snapshot-id": 2, "type": "tag"}}
    change_metadata(table, lambda document: document["refs"].update(lost))
    found = [f for f in check(tmp_path).findings if f.code == "ref-without-snapshot"]
    assert [f.message for f in found] == [
        "branch `a` names snapshot 1, which does not exist",
        "tag `b` names snapshot 2, which does not exist",
    ]
    assert "drop the tag" in found[1].mend


def test_row_ids_beyond_the_next_one_are_found(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake, version=3)
    assert check(tmp_path).findings == ()
    change_metadata(table, lower_row_ids)
    assert "row-ids-beyond-next" in {finding.code for finding in check(tmp_path).findings}
