"""Rules that leave nobody to do what another allows."""

import pytest

from bergline.catalog.protection.ref_rule import parse_rule
from bergline.catalog.protection.rule_agreement import check_agreement
from bergline.errors import InvalidInputError


@pytest.mark.parametrize(
    ("one", "other", "problem"),
    [
        (("main", "writers=a"), ("main", "writers=b"), "`one` and `other` have in common"),
        (("main", "writers=a; bypass=b"), ("main", "writers=b"), None),
        (("main", "writers=a"), ("main", "writers=group:g"), None),
        (("main", "writers=group:f"), ("main", "writers=group:g"), None),
        (("main", "writers=a"), ("dev", "writers=b"), None),
        (("*", "kind=tag; writers=a"), ("*", "kind=branch; writers=b"), None),
        (("main", "no-move"), ("main", "only-publish"), "`no_move` in the rule `one` or `only_publish` in the rule"),
        (("main", "approvals=1"), ("m*", "no-move"), "`no_move` in the rule `other` or `approvals` in the rule `one`"),
        (("main", "no-move; bypass=a"), ("main", "only-publish"), None),
        (("main", "no-move"), ("m*", "only-publish"), None),
        (("main", "kind=tag; no-move"), ("main", "checks=a"), None),
        (("main", "no-move"), ("main", "no-drop"), None),
    ],
)
def test_rules_agree_if_somebody_is_left(one: tuple[str, str], other: tuple[str, str], problem: str | None) -> None:
    rule, beside = ("`one`", parse_rule(*one)), ("`other`", parse_rule(*other))
    if problem is None:
        check_agreement([rule], [beside])
        return
    with pytest.raises(InvalidInputError) as caught:
        check_agreement([rule], [beside])
    assert problem in str(caught.value)
