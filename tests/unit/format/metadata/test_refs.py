"""Branches and tags."""

from typing import Any

import pytest

from bergline.errors import FormatError, InvalidInputError
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType, check_ref_name

BRANCH, TAG = SnapshotRefType.BRANCH, SnapshotRefType.TAG


@pytest.mark.parametrize("text", ["branch", "BRANCH", "Branch"])
def test_type_is_read_in_any_case_and_written_in_lower_case(text: str) -> None:
    ref = decode_json(b'{"snapshot-id":1,"type":"%s"}' % text.encode(), SnapshotRef, "x")
    assert ref.is_branch
    assert encode_json(ref) == b'{"snapshot-id":1,"type":"branch"}'


def test_null_retention_reads_as_absent() -> None:
    data = b'{"snapshot-id":1,"type":"branch","min-snapshots-to-keep":null,"max-ref-age-ms":null}'
    assert decode_json(data, SnapshotRef, "x") == SnapshotRef(1, BRANCH)


@pytest.mark.parametrize("setting", ["min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms"])
@pytest.mark.parametrize("value", [0, -1])
def test_retention_must_be_positive(setting: str, value: int) -> None:
    with pytest.raises(InvalidInputError, match=f"{setting.replace('_', '-')} above 0, found {value}"):
        SnapshotRef(1, BRANCH, **{setting: value})


@pytest.mark.parametrize("setting", ["min_snapshots_to_keep", "max_snapshot_age_ms"])
def test_tag_takes_no_snapshot_retention(setting: str) -> None:
    with pytest.raises(InvalidInputError, match="only max-ref-age-ms on a tag"):
        SnapshotRef(1, TAG, **{setting: 5})


def test_tag_takes_an_age() -> None:
    assert SnapshotRef(1, TAG, max_ref_age_ms=5).max_ref_age_ms == 5


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b'{"snapshot-id":1,"type":"twig"}', r"\$\.type"),
        (b'{"snapshot-id":"1","type":"tag"}', r"\$\.snapshot-id"),
        (b'{"snapshot-id":9223372036854775808,"type":"tag"}', r"\$\.snapshot-id"),
        (b'{"snapshot-id":1,"type":"branch","min-snapshots-to-keep":2147483648}', r"\$\.min-snapshots-to-keep"),
        (b'{"snapshot-id":1,"type":"tag","max-snapshot-age-ms":5}', r"\$"),
        (b'{"type":"tag"}', r"\$"),
    ],
)
def test_malformed_ref_names_the_place(data: bytes, place: Any) -> None:
    with pytest.raises(FormatError, match=f"at {place} in x"):
        decode_json(data, SnapshotRef, "x")


@pytest.mark.parametrize("name", ["a", "x" * 255, "with space", "ümlaut", "a/b", "2026-q1"])
def test_any_characters_make_a_name(name: str) -> None:
    assert check_ref_name(name) is None


@pytest.mark.parametrize("name", ["", "x" * 256])
def test_empty_and_very_long_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"found {len(name)}"):
        check_ref_name(name)
