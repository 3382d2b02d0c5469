"""Reports as plain values."""

import msgspec
import pytest

from bergline.console.pages.values import asked_number, pages_around, plain
from bergline.errors import InvalidInputError
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.reports.retention import SnapshotFate


def test_ids_are_text_and_counts_are_numbers() -> None:
    fate = SnapshotFate(2**62, 5, "append", True, ("young",))
    assert plain([fate]) == [
        {"snapshot_id": str(2**62), "timestamp_ms": 5, "operation": "append", "kept": True, "reasons": ["young"]}
    ]
    assert plain(SnapshotRef(7, SnapshotRefType.TAG)) == {"snapshot-id": "7", "type": "tag"}
    assert msgspec.json.encode(plain(None)) == b"null"


@pytest.mark.parametrize("text", ["-1", "1.5", "11", "x", "1" * 50, "\u0661"])
def test_a_number_that_is_not_allowed_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a whole number up to 10 for `n`"):
        asked_number({"n": text}, "n", 3, 10)


def test_a_number_that_is_not_given_is_the_default() -> None:
    assert (asked_number({}, "n", 3, 10), asked_number({"n": "0"}, "n", 3, 10)) == (3, 0)


def test_pages_around_one() -> None:
    assert pages_around(0, 10, 10) == {"offset": 0, "limit": 10, "previous_offset": None, "next_offset": None}
    assert pages_around(5, 10, 30) == {"offset": 5, "limit": 10, "previous_offset": 0, "next_offset": 15}
