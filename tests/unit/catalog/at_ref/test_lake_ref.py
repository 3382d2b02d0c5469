"""Names of refs of the lake, in warehouses and in paths."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bergline.catalog.at_ref.lake_ref import LakeRef, LakeRefKind, parse_in_path, parse_time, split_warehouse
from bergline.errors import InvalidInputError

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60).filter(lambda name: name != "main")


@given(NAMES, st.sampled_from([LakeRefKind.BRANCH, LakeRefKind.TAG]))
def test_path_has_letters_alone_that_no_client_encodes(name: str, kind: LakeRefKind) -> None:
    ref = LakeRef(kind, name)
    assert re.fullmatch(r"[A-Za-z0-9_.~-]+", ref.in_path)
    assert parse_in_path(ref.in_path) == ref


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("2026-11-01T00:00:00Z", "2026-11-01T00:00:00.000Z"),
        ("2026-11-01 01:30+01:30", "2026-11-01T00:00:00.000Z"),
        ("2026-11-01T00:00:00.123456Z", "2026-11-01T00:00:00.123Z"),
    ],
)
def test_time_is_one_moment_however_it_is_written(text: str, name: str) -> None:
    ref = parse_time(text)
    assert ref == LakeRef(LakeRefKind.TIME, name)
    assert parse_in_path(ref.in_path) == ref
    assert ref.time_ms // 1000 == 1793491200


@pytest.mark.parametrize("text", ["2026-11-01", "2026-11-01T00:00:00", "staging", "20261101T000000Z", ""])
def test_text_without_time_and_zone_may_be_the_name_of_a_ref(text: str) -> None:
    assert parse_time(text) is None


def test_time_that_is_none_says_so() -> None:
    with pytest.raises(
        InvalidInputError, match=r"expected a time such as 2026-11-01T00:00:00Z, found `2026-13-01T00:00Z`"
    ):
        parse_time("2026-13-01T00:00Z")


@pytest.mark.parametrize("segment", ["namespaces", "branch", "branches.x", "branch.main", ".x", "BRANCH.x"])
def test_other_segments_name_no_ref(segment: str) -> None:
    assert parse_in_path(segment) is None


@pytest.mark.parametrize(
    "segment",
    [
        "branch.~zz",
        "branch.~C3",
        "tag.~0",
        "branch.a%7E2Fb",
        "branch.a/b",
        "branch.",
        "time.2026-11-01",
        "time.x",
        "tag.main",
    ],
)
def test_segment_that_nobody_gave_out_is_refused(segment: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a ref of the lake in the path"):
        parse_in_path(segment)


@pytest.mark.parametrize(
    ("warehouse", "parts"),
    [
        ("lake", ("lake", None)),
        ("lake@staging", ("lake", "staging")),
        ("lake@a/b@c", ("lake", "a/b@c")),
        ("@staging", ("", "staging")),
        ("s3://key@bucket/wh", ("s3://key@bucket/wh", None)),
        ("/data/a@b", ("/data/a@b", None)),
    ],
)
def test_ref_stands_behind_the_first_at_of_a_name(warehouse: str, parts: tuple[str, str | None]) -> None:
    assert split_warehouse(warehouse) == parts


def test_ref_that_was_forgotten_is_asked_for() -> None:
    with pytest.raises(InvalidInputError, match=r"expected a branch, a tag or a time after `@`"):
        split_warehouse("lake@")
