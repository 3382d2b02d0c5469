"""Rules in table properties."""

import pytest

from bergline.catalog.protection.table_rules import (
    UnreadableRule,
    check_changed_rules,
    parse_rules,
    property_of,
    read_rules,
    rule_texts,
)
from bergline.errors import InvalidInputError

RULES = {"bergline.ref-rules.v*": "kind=tag; no-move", "bergline.ref-rules.main": "no-expiry", "owner": "ann"}


def test_rules_are_properties_by_pattern() -> None:
    assert rule_texts(RULES) == {"v*": "kind=tag; no-move", "main": "no-expiry"}
    assert [rule.pattern for rule in parse_rules(RULES)] == ["main", "v*"]
    assert property_of("v*") in RULES


def test_wrong_rule_is_named_by_its_property() -> None:
    with pytest.raises(InvalidInputError, match=r"found 'nothing', in the property `bergline\.ref-rules\.main`"):
        parse_rules({"bergline.ref-rules.main": "nothing"})


def test_rule_that_cannot_be_read_is_still_there() -> None:
    unreadable, rule = read_rules({"bergline.ref-rules.a": "nothing", "bergline.ref-rules.b": "no-drop"})
    assert isinstance(unreadable, UnreadableRule)
    assert (unreadable.pattern, rule.pattern) == ("a", "b")


def test_rules_that_cannot_be_read_are_corrected_one_by_one() -> None:
    texts = {"a": "no-drop", "b": "nothing"}
    check_changed_rules(texts, {"a"})
    with pytest.raises(InvalidInputError):
        check_changed_rules(texts, {"b"})


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        (("main", "writers=a"), ("ma*", "writers=b"), False),
        (("main", "writers=a"), ("dev", "writers=b"), True),
        (("main", "writers=a"), ("*", "writers=a,b"), True),
        (("main", "writers=a"), ("*", "writers=b; bypass=a"), True),
        (("v*", "writers=a; kind=tag"), ("*", "writers=b; kind=branch"), True),
        (("release/*", "writers=a"), ("*/1", "writers=b"), False),
    ],
)
def test_rules_that_leave_no_writer_contradict_each_other(
    one: tuple[str, str], other: tuple[str, str], agree: bool
) -> None:
    properties = {property_of(pattern): text for pattern, text in (one, other)}
    if agree:
        assert len(parse_rules(properties)) == 2
    else:
        with pytest.raises(InvalidInputError, match="nobody could write"):
            parse_rules(properties)
