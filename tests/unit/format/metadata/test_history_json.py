"""The JSON of a history is encoded and decoded once, and shared by what grows out of it."""

import json
from typing import Any

import msgspec
import pytest

from bergline.errors import BerglineError
from bergline.format.metadata import history_json
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.history_json import EncodedArray
from bergline.format.metadata.json import parse_metadata, render_metadata
from bergline.format.metadata.refs import SnapshotRefType
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import AddSnapshot, SetSnapshotRef


def joined(array: EncodedArray) -> bytes:
    return b"[" + b",".join(array.pieces) + b"]"


@pytest.mark.parametrize("size", [1, 5, 2**16])
def test_grown_array_is_that_of_all_values(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_json, "_PIECE", size)
    values: tuple[str, ...] = ()
    array = EncodedArray()
    for number in range(20):
        values = (*values, *[f"\u00e9{number}"] * (number % 3))
        array = array.extended(values)
        assert (array.count, joined(array)) == (len(values), msgspec.json.encode(values))


def test_values_that_are_known_are_not_encoded_again() -> None:
    first = EncodedArray().extended((1,) * 2**16)
    second = first.extended((1,) * 2**16 + (2,))
    assert second.pieces[0] is first.pieces[0]
    assert second.pieces[1:] == (b"2",)
    assert second.extended((1,) * 2**16 + (2,)) is second


def grown(document: dict[str, Any]) -> tuple[TableMetadata, bytes]:
    """A table as it was read, and the file of the next commit."""
    known = parse_metadata(msgspec.json.encode(document), "v1.json")
    head = known.current_snapshot
    assert head
    new = msgspec.structs.replace(
        head, snapshot_id=77, parent_snapshot_id=head.snapshot_id, sequence_number=known.next_sequence_number
    )
    after = apply_updates(
        known,
        [AddSnapshot(new), SetSnapshotRef("main", 77, SnapshotRefType.BRANCH)],
        base_location="v1.json",
        now_ms=known.last_updated_ms,
    )
    return known, render_metadata(after)


def test_file_is_read_from_where_known_history_ends(document: dict[str, Any]) -> None:
    known, text = grown(document)
    read = parse_metadata(text, "v2.json", known)
    assert read == parse_metadata(text, "v2.json")
    assert len(read.snapshots) == len(known.snapshots) + 1
    assert all(now is before for now, before in zip(read.snapshots, known.snapshots, strict=False))
    assert all(now is before for now, before in zip(read.snapshot_log, known.snapshot_log, strict=False))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"format-version":', b'"x":{"y":1,"snapshots":HISTORY,"snapshot-log":LOG},"format-version":'),
        (b'"format-version":', b'"x":1,"snapshots":HISTORY,"format-version":'),
        (b'"metadata-log":', b'"snapshots":[],"metadata-log":'),
        (b'"metadata-log":', b'"snapshot-log":[],"metadata-log":'),
        (b'"snapshots":', b'"snapshots": '),
        (b'"sequence-number":1,', b'"sequence-number":0,'),
        (b'"last-sequence-number":', b'"last-sequence-number":-'),
        (b'"snapshot-id":77', b'"snapshot-id":"77"'),
        (b'"snapshot-log":[', b'"snapshot-log":[null,'),
    ],
)
def test_odd_files_are_read_as_without_known_history(before: bytes, after: bytes, document: dict[str, Any]) -> None:
    """The same keys elsewhere, twice or written otherwise, wrong numbers and wrong types."""
    known, text = grown(document)
    own = json.loads(text)
    after = after.replace(b"HISTORY", msgspec.json.encode(known.snapshots))
    after = after.replace(b"LOG", msgspec.json.encode(own["snapshot-log"]))
    assert before in text
    odd = text.replace(before, after, 1)
    assert read_or_refused(odd, known) == read_or_refused(odd, None)


def read_or_refused(text: bytes, known: TableMetadata | None) -> TableMetadata | str:
    try:
        return parse_metadata(text, "v2.json", known)
    except BerglineError as error:
        return str(error)
