"""Rules: their text, what is wrong with them, and which refs they name."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bergline.catalog.protection.ref_rule import RefRule, make_rule, matches, overlap, parse_rule, render_rule
from bergline.errors import InvalidInputError
from bergline.format.metadata.refs import SnapshotRefType

WHOLE = (
    "kind=branch; only-publish; fast-forward-only; no-drop; no-rollback; no-expiry; "
    "writers=etl,ci; checks=dq; bypass=ann; approvals=2"
)


def test_text_has_every_field() -> None:
    rule = parse_rule("release/*", WHOLE)
    assert rule == RefRule(
        pattern="release/*",
        kind=SnapshotRefType.BRANCH,
        writers=("etl", "ci"),
        only_publish=True,
        fast_forward_only=True,
        no_drop=True,
        no_rollback=True,
        no_expiry=True,
        checks=("dq",),
        approvals=2,
        bypass=("ann",),
    )
    assert render_rule(rule) == WHOLE
    assert render_rule(parse_rule("v*", " no-move ;; kind = tag ")) == "kind=tag; no-move"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a restriction"),
        ("bypass=ann", "expected a restriction"),
        ("only_publish", "found 'only_publish'"),
        ("no-dorp", "found 'no-dorp'"),
        ("no-drop=true", "expected `no-drop` alone"),
        ("writers", "expected `writers=…`"),
        ("writers=", "expected a writer"),
        ("writers=a,,b", "expected a writer without"),
        ("writers=a,a", "expected each writer once"),
        ("no-drop; no-drop", "found it twice"),
        ("kind=view; no-drop", "expected `branch` or `tag`"),
        ("approvals=many", "expected a number from 0 to 100"),
        ("approvals=101", "expected 0 to 100"),
        ("no-move; only-publish", "either `no_move` or `only_publish`"),
        ("no-move; fast-forward-only", "either `no_move` or `fast_forward_only`"),
        ("no-move; approvals=1", "either `no_move` or `approvals`"),
        ("kind=tag; only-publish", "expected `only_publish` for branches"),
    ],
)
def test_wrong_rules_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parse_rule("main", text)


def test_misspelt_word_gets_a_hint() -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_rule("main", "no-dorp")
    assert caught.value.hints == ("did you mean `no-drop`?",)


@pytest.mark.parametrize(
    "arguments",
    [
        {"pattern": ""},
        {"pattern": "x" * 256, "no_drop": True},
        {"pattern": "main", "no_drop": 1},
        {"pattern": "main", "writers": "etl"},
        {"pattern": "main", "writers": ["a;b"]},
        {"pattern": "main", "checks": [" a"]},
        {"pattern": "main", "approvals": -1},
        {"pattern": "main", "approvals": True},
        {"pattern": "main", "no_drop": True, "kind": 5},
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        make_rule(**arguments)


def test_only_writers_leave_dropping_to_them() -> None:
    assert not make_rule("main", writers=["etl"]).is_firm
    assert all(parse_rule("main", text).is_firm for text in ("no-rollback", "no-expiry", "checks=a", "approvals=1"))


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("main", "main", True),
        ("main", "main2", False),
        ("release/*", "release/1/2", True),
        ("release/*", "release", False),
        ("v*", "v", True),
        ("*", "anything", True),
        ("a*a", "a", False),
        ("a*b*c", "a-c-b-c", True),
        ("a*b*c", "acb", False),
        ("[a]?", "a1", False),
    ],
)
def test_star_stands_for_any_text(pattern: str, name: str, expected: bool) -> None:
    assert matches(pattern, name) is expected


TEXTS = st.text("ab", max_size=5)


@given(st.text("ab*", max_size=6), TEXTS)
def test_matching_agrees_with_a_search_of_all_ways(pattern: str, name: str) -> None:
    def search(rest: str, left: str) -> bool:
        if not rest:
            return not left
        if rest[0] == "*":
            return any(search(rest[1:], left[n:]) for n in range(len(left) + 1))
        return left[:1] == rest[0] and search(rest[1:], left[1:])

    assert matches(pattern, name) is search(pattern, name)


@given(st.text("ab*", max_size=4), st.text("ab*", max_size=4))
def test_patterns_overlap_if_a_name_matches_both(pattern: str, other: str) -> None:
    names = [""]
    for name in names:
        if len(name) < 8:  # as long as the letters of both
            names += [name + "a", name + "b"]
    assert overlap(pattern, other) is any(matches(pattern, n) and matches(other, n) for n in names)
    assert overlap(pattern, other) is overlap(other, pattern)
