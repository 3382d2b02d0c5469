"""Rules about refs of the catalog and its namespaces."""

from bergline.catalog.identifiers import Namespace
from bergline.catalog.protection.kept_rules import KeptRule
from bergline.catalog.protection.ref_rule import RefRule, parse_rule, render_rule
from bergline.catalog.rest.protocol.ref_rules import ListRefRulesResponse, RefRuleBody
from bergline.errors import InvalidInputError
from bergline.governance.grants.securable import CATALOG, Securable, namespace_of
from bergline.governance.rules.protocol import SetRefRuleRequest
from bergline.governance.rules.store import SqlRefRules
from bergline.server.context.context import ServerContext
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, Response, json_response


def list_ref_rules(context: ServerContext, request: Request) -> Response:
    """All rules of the catalog, and of the namespaces that the caller may see."""
    return _list(context, request, None)


def set_ref_rule(context: ServerContext, request: Request) -> Response:
    """Set a rule for all tables."""
    return _set(context, request, ())


def remove_ref_rule(context: ServerContext, request: Request) -> Response:
    """Remove a rule for all tables."""
    return _remove(context, request, ())


def list_namespace_ref_rules(context: ServerContext, request: Request) -> Response:
    """The rules that hold in a namespace: its own, those above it and those of the catalog."""
    return _list(context, request, request.namespace)


def set_namespace_ref_rule(context: ServerContext, request: Request) -> Response:
    """Set a rule for the tables in a namespace and below it."""
    return _set(context, request, request.namespace)


def remove_namespace_ref_rule(context: ServerContext, request: Request) -> Response:
    """Remove a rule of a namespace."""
    return _remove(context, request, request.namespace)


def _list(context: ServerContext, request: Request, namespace: Namespace | None) -> Response:
    found = SqlRefRules(context.store).rules(namespace)
    seen = context.access.seen(request.principal, request.groups, found, _place)
    return json_response(ListRefRulesResponse(tuple(map(_body, seen))))


def _place(kept: KeptRule) -> Securable:
    return namespace_of(kept.namespace) if kept.namespace else CATALOG


def _body(kept: KeptRule) -> RefRuleBody:
    rule = kept.rule
    if isinstance(rule, RefRule):
        return RefRuleBody(rule.pattern, render_rule(rule), kept.namespace, kept.principal, kept.at_ms)
    return RefRuleBody(rule.pattern, "", kept.namespace, kept.principal, kept.at_ms, rule.problem)


def _set(context: ServerContext, request: Request, namespace: Namespace) -> Response:
    body: SetRefRuleRequest = request.read()
    SqlRefRules(context.store).set_rule(namespace, parse_rule(body.pattern, body.rule))
    return NO_CONTENT


def _remove(context: ServerContext, request: Request, namespace: Namespace) -> Response:
    pattern = request.query.get("pattern")
    if not pattern:
        raise InvalidInputError("expected the pattern of a rule as `?pattern=`, found none")
    SqlRefRules(context.store).remove_rule(namespace, pattern)
    return NO_CONTENT
