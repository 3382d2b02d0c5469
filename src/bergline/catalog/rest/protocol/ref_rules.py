"""Rules about refs as a server lists them, which clients read to say what a rule forbids."""

import msgspec

from bergline.catalog.identifiers import Namespace


class RefRuleBody(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A rule as it is kept: `rule` is its text, such as `only-publish; approvals=2`."""

    pattern: str
    rule: str
    namespace: Namespace = ()
    """Empty for a rule of the catalog."""
    principal: str = ""
    at_ms: int = 0
    problem: str | None = None
    """Why the rule cannot be read, if it cannot."""


class ListRefRulesResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """Rules, by scope and pattern."""

    rules: tuple[RefRuleBody, ...]
