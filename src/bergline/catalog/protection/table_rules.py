"""Rules in table properties: `bergline.ref-rules.<pattern>`, each with the text of a rule."""

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Final

import msgspec

from bergline.catalog.protection.ref_rule import RefRule, matches, overlap, parse_rule
from bergline.errors import InvalidInputError

PREFIX: Final = "bergline.ref-rules."


class UnreadableRule(msgspec.Struct, frozen=True):
    """A rule that cannot be read: nothing moves the refs that it names until it is corrected or removed."""

    pattern: str
    problem: str


def property_of(pattern: str) -> str:
    """The property that holds the rule of a pattern."""
    return f"{PREFIX}{pattern}"


def rule_texts(properties: Mapping[str, str]) -> dict[str, str]:
    """The texts of a table's rules by pattern."""
    return {key[len(PREFIX) :]: text for key, text in properties.items() if key.startswith(PREFIX)}


def parse_rules(properties: Mapping[str, str]) -> tuple[RefRule, ...]:
    """A table's rules; InvalidInputError for one that cannot be read, and for rules that contradict each other."""
    texts = rule_texts(properties)
    check_changed_rules(texts, texts)
    return tuple(parse_rule(pattern, text) for pattern, text in sorted(texts.items()))


def check_changed_rules(texts: Mapping[str, str], changed: Collection[str]) -> None:
    """InvalidInputError if a rule that was changed cannot be read, or contradicts another.

    Others that cannot be read stay as they are, so that they can be corrected one by one.
    """
    if not changed:
        return
    for pattern in sorted(texts.keys() & changed):
        try:
            parse_rule(pattern, texts[pattern])
        except InvalidInputError as error:
            raise InvalidInputError(f"{error}, in the property `{property_of(pattern)}`", hints=error.hints) from error
    rules = [_read(pattern, text) for pattern, text in sorted(texts.items())]
    _check_agreement([rule for rule in rules if isinstance(rule, RefRule)])


def read_rules(properties: Mapping[str, str]) -> tuple[RefRule | UnreadableRule, ...]:
    """A table's rules as far as they can be read: any writer may have written the properties."""
    return tuple(_read(pattern, text) for pattern, text in sorted(rule_texts(properties).items()))


def rule_against_drop(properties: Mapping[str, str], ref: str, *, is_branch: bool) -> str | None:
    """The pattern of a rule that forbids dropping a ref, for expiry to keep it; None if there is none."""
    return next((r.pattern for r in read_rules(properties) if _keeps(r, ref, is_branch=is_branch)), None)


def rule_against_expiry(properties: Mapping[str, str], branch: str) -> str | None:
    """The pattern of a rule that keeps the whole history of a branch; None if there is none."""
    rules = (r for r in read_rules(properties) if _keeps(r, branch, is_branch=True))
    return next((r.pattern for r in rules if isinstance(r, UnreadableRule) or r.no_expiry), None)


def _keeps(rule: RefRule | UnreadableRule, ref: str, *, is_branch: bool) -> bool:
    if isinstance(rule, UnreadableRule):
        return matches(rule.pattern, ref)
    return rule.is_firm and rule.applies_to(ref, is_branch=is_branch)


def _read(pattern: str, text: str) -> RefRule | UnreadableRule:
    try:
        return parse_rule(pattern, text)
    except InvalidInputError as error:
        return UnreadableRule(pattern, str(error))


def _check_agreement(rules: Sequence[RefRule]) -> None:
    """Refuse rules of the same refs that leave nobody to write: their writers must have somebody in common."""
    for rule, other in combinations(rules, 2):
        if rule.writers is None or other.writers is None or {rule.kind, other.kind} == {"branch", "tag"}:
            continue
        allowed = {*rule.writers, *rule.bypass} & {*other.writers, *other.bypass}
        if not allowed and overlap(rule.pattern, other.pattern):
            raise InvalidInputError(
                f"expected a writer that the rules `{rule.pattern}` and `{other.pattern}` have in common, found none: "
                "nobody could write to a ref that both name"
            )
