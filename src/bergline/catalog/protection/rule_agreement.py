"""Rules that contradict each other: where one leaves nobody to do what the other allows."""

from collections.abc import Iterable

from bergline.catalog.protection.caller import GROUP
from bergline.catalog.protection.ref_rule import RefRule, matches, overlap
from bergline.errors import InvalidInputError

NamedRule = tuple[str, RefRule]
"""A rule, and how it is called: `` `main` of namespace `db` ``."""


def check_agreement(rules: Iterable[NamedRule], others: Iterable[NamedRule]) -> None:
    """InvalidInputError if a rule and another one leave nobody to change refs that both name."""
    others = tuple(others)
    for name, rule in rules:
        for other_name, other in others:
            if rule is not other and {rule.kind, other.kind} != {"branch", "tag"}:
                _check_writers(name, rule, other_name, other)
                _check_moves(name, rule, other_name, other)
                _check_moves(other_name, other, name, rule)


def _check_writers(name: str, rule: RefRule, other_name: str, other: RefRule) -> None:
    """Their writers must have somebody in common; who is in a group is not known, and may be in the other."""
    if rule.writers is None or other.writers is None or not overlap(rule.pattern, other.pattern):
        return
    allowed, too = {*rule.writers, *rule.bypass}, {*other.writers, *other.bypass}
    if not allowed & too and not any(entry.startswith(GROUP) for entry in allowed | too):
        raise InvalidInputError(
            f"expected a writer that the rules {name} and {other_name} have in common, found none: "
            "nobody could write to a ref that both name"
        )


def _check_moves(name: str, still: RefRule, other_name: str, other: RefRule) -> None:
    """A rule that keeps refs where they are must leave somebody to move those whose moves another rule is about."""
    if not still.no_move or still.bypass or not other.about_moves:
        return
    if still.kind in {None, other.kind} and matches(still.pattern, other.pattern):
        raise InvalidInputError(
            f"expected either `no_move` in the rule {name} or `{other.about_moves[0]}` in the rule {other_name}, "
            "found both: the one forbids what the other allows",
            hints=[f"name somebody in `bypass` of the rule {name}, who may move such a ref all the same"],
        )
