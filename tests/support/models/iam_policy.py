"""What an IAM policy allows, worked out as AWS does: wildcards, and policy variables that stand for one character."""

import re
from typing import Any

_PLAIN = {"${*}": "*", "${?}": "?", "${$}": "$"}
_PART = re.compile(r"\$\{[*?$]\}|\*|\?|[^*?$]+|\$")


def allows(policy: Any, action: str, resource: str, **context: str) -> bool:
    """Whether a statement allows an action on a resource and none denies it.

    `context` has the condition keys, `_` for `:`.
    """
    effects = {s["Effect"] for s in policy["Statement"] if _applies(s, action, resource, context)}
    return effects == {"Allow"}


def _applies(statement: Any, action: str, resource: str, context: dict[str, str]) -> bool:
    assert statement["Effect"] in {"Allow", "Deny"}
    assert set(statement) <= {"Effect", "Action", "Resource", "Condition"}
    if not any(matches(pattern, action) for pattern in _listed(statement["Action"])):
        return False
    if not any(matches(pattern, resource) for pattern in _listed(statement["Resource"])):
        return False
    for operator, keys in statement.get("Condition", {}).items():
        assert operator == "StringLike"
        for key, patterns in keys.items():
            value = context.get(key.replace(":", "_"))
            if value is None or not any(matches(pattern, value) for pattern in _listed(patterns)):
                return False
    return True


def matches(pattern: str, text: str) -> bool:
    """Whether a text is one that the pattern stands for."""
    found = "".join(
        ".*" if part == "*" else "." if part == "?" else re.escape(_PLAIN.get(part, part))
        for part in _PART.findall(pattern)
    )
    return re.fullmatch(found, text, re.DOTALL) is not None


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else value
