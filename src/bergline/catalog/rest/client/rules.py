"""Rules about refs that a bergline server keeps beside its tables, as it lists them."""

from bergline.catalog.identifiers import Namespace
from bergline.catalog.protection.kept_rules import KeptRule
from bergline.catalog.protection.table_rules import UnreadableRule, read_rule
from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.protocol.endpoints import LIST_NAMESPACE_REF_RULES, LIST_REF_RULES
from bergline.catalog.rest.protocol.ref_rules import ListRefRulesResponse, RefRuleBody


def listed_rules(session: RestSession, namespace: Namespace | None) -> tuple[KeptRule, ...]:
    """All rules, or those that hold in a namespace."""
    about = about_rules(namespace or ())
    endpoint = LIST_NAMESPACE_REF_RULES if namespace else LIST_REF_RULES
    response = session.calls.call(endpoint, about, names=session.namespace_path(namespace) if namespace else {})
    found = session.calls.parsed(response, ListRefRulesResponse, about).rules
    return tuple(_kept(body) for body in found if namespace != () or not body.namespace)


def about_rules(namespace: Namespace) -> CallSubject:
    """What errors about the rules of a scope are about."""
    return CallSubject("namespace", ".".join(namespace)) if namespace else CallSubject("the catalog's rules", "")


def _kept(body: RefRuleBody) -> KeptRule:
    rule = UnreadableRule(body.pattern, body.problem) if body.problem else read_rule(body.pattern, body.rule)
    return KeptRule(body.namespace, rule, body.principal, body.at_ms)
