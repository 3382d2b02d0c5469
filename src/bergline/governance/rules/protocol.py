"""Changes of rules about refs over REST: the body of requests, and the endpoints."""

import msgspec

from bergline.catalog.rest.protocol.endpoints import (
    NAMESPACE_RULES,
    RULES,
    Endpoint,
)


class SetRefRuleRequest(msgspec.Struct, frozen=True, rename="kebab"):
    """The rule of a pattern."""

    pattern: str
    rule: str


SET_REF_RULE = Endpoint("set_ref_rule", "POST", RULES, SetRefRuleRequest, status=204, takes_key=True)
REMOVE_REF_RULE = Endpoint("remove_ref_rule", "DELETE", RULES, status=204, takes_key=True, queries=("pattern",))
SET_NAMESPACE_REF_RULE = Endpoint(
    "set_namespace_ref_rule", "POST", NAMESPACE_RULES, SetRefRuleRequest, status=204, takes_key=True
)
REMOVE_NAMESPACE_REF_RULE = Endpoint(
    "remove_namespace_ref_rule", "DELETE", NAMESPACE_RULES, status=204, takes_key=True, queries=("pattern",)
)

RULE_ENDPOINTS = (SET_REF_RULE, REMOVE_REF_RULE, SET_NAMESPACE_REF_RULE, REMOVE_NAMESPACE_REF_RULE)
