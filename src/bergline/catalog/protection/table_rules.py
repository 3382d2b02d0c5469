"""Rules in table properties: `bergline.ref-rules.<pattern>`, each with the text of a rule."""

import functools
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from bergline.catalog.protection.ref_rule import RefRule, parse_rule
from bergline.catalog.protection.rule_agreement import NamedRule, check_agreement
from bergline.errors import InvalidInputError

PREFIX: Final = "bergline.ref-rules."
_MOST_REMEMBERED: Final = 10_000


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


def check_changed_rules(texts: Mapping[str, str], changed: Collection[str], beside: Iterable[NamedRule] = ()) -> None:
    """InvalidInputError if a rule that was changed cannot be read, or contradicts another, of the table or beside it.

    Others that cannot be read stay as they are, so that they can be corrected one by one.
    """
    if not changed:
        return
    for pattern in sorted(texts.keys() & changed):
        try:
            parse_rule(pattern, texts[pattern])
        except InvalidInputError as error:
            raise InvalidInputError(f"{error}, in the property `{property_of(pattern)}`", hints=error.hints) from error
    rules = [read_rule(pattern, text) for pattern, text in sorted(texts.items())]
    named = [(f"`{rule.pattern}`", rule) for rule in rules if isinstance(rule, RefRule)]
    check_agreement([(name, rule) for name, rule in named if rule.pattern in changed], (*named, *beside))


def read_rules(properties: Mapping[str, str]) -> tuple[RefRule | UnreadableRule, ...]:
    """A table's rules as far as they can be read: any writer may have written the properties."""
    return tuple(read_rule(pattern, text) for pattern, text in sorted(rule_texts(properties).items()))


@functools.lru_cache(maxsize=_MOST_REMEMBERED)
def read_rule(pattern: str, text: str) -> RefRule | UnreadableRule:
    """A rule from its text, as far as it can be read; remembered, since every commit reads all that hold for it."""
    try:
        return parse_rule(pattern, text)
    except InvalidInputError as error:
        return UnreadableRule(pattern, str(error))
