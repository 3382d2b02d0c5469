"""Which rules protect a ref."""

from bergline.catalog.protection.ref_protection import (
    all_rules,
    protecting_rules,
    rule_against_drop,
    rule_against_expiry,
)
from bergline.catalog.protection.ref_rule import parse_rule
from bergline.catalog.protection.rule_scope import RuleLevel, scope_of

OWN = all_rules({"bergline.ref-rules.v*": "kind=tag; no-move", "bergline.ref-rules.main": "no-expiry", "owner": "ann"})
LEVELS = (
    RuleLevel(scope_of(()), (parse_rule("main", "only-publish"),)),
    RuleLevel(scope_of(("db",)), (parse_rule("*", "kind=branch; no-expiry"),)),
)


def test_expiry_asks_what_a_rule_keeps() -> None:
    assert rule_against_drop(OWN, "v1", is_branch=False) == "v*"
    assert rule_against_drop(OWN, "v1", is_branch=True) is None
    assert rule_against_expiry(OWN, "main") == "main"
    assert rule_against_expiry(OWN, "dev") is None
    assert rule_against_expiry(all_rules({"bergline.ref-rules.dev": "nothing"}), "dev") == "dev"
    assert rule_against_drop(all_rules({"bergline.ref-rules.dev": "writers=a"}), "dev", is_branch=True) is None
    assert rule_against_expiry(all_rules({}, LEVELS), "dev") == "*"


def test_rules_of_all_scopes_are_told() -> None:
    found = protecting_rules(all_rules({"bergline.ref-rules.ma*": "nothing"}, LEVELS), "main", is_branch=True)
    assert [rule.called for rule in found] == ["`ma*`", "`main` of the catalog", "`*` of namespace `db`"]
    assert found[0].text.startswith("cannot be read: expected ")
    assert [rule.text for rule in found[1:]] == ["only-publish", "kind=branch; no-expiry"]
