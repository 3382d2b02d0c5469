"""Rules about refs behind a bergline server."""

from collections.abc import Mapping
from typing import Any

from bergline.catalog.identifiers import Namespace
from bergline.catalog.protection.kept_rules import KeptRule
from bergline.catalog.protection.ref_rule import RefRule, render_rule
from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.rules import about_rules, listed_rules
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.client.settle import happened
from bergline.catalog.rest.protocol.endpoints import LIST_REF_RULES, Endpoint
from bergline.errors import UnsupportedError
from bergline.governance.rules import protocol


class RestRefRules:
    """The rules of a server's catalog and its namespaces."""

    def __init__(self, session: RestSession) -> None:
        check_keeps_rules(session)
        self._session = session

    def rules(self, namespace: Namespace | None = None) -> tuple[KeptRule, ...]:
        return listed_rules(self._session, namespace)

    def set_rule(self, namespace: Namespace, rule: RefRule) -> None:
        endpoint = protocol.SET_NAMESPACE_REF_RULE if namespace else protocol.SET_REF_RULE
        body = protocol.SetRefRuleRequest(rule.pattern, render_rule(rule))
        self._change(endpoint, namespace, "set", body=body)

    def remove_rule(self, namespace: Namespace, pattern: str) -> None:
        endpoint = protocol.REMOVE_NAMESPACE_REF_RULE if namespace else protocol.REMOVE_REF_RULE
        self._change(endpoint, namespace, "removed", query={"pattern": pattern})

    def _change(self, endpoint: Endpoint, namespace: Namespace, what: str, **sent: Any) -> None:
        about = about_rules(namespace)
        send_once(self._session, endpoint, about, f"a rule was {what}", names=self._names(namespace), **sent)

    def _names(self, namespace: Namespace) -> dict[str, str]:
        return self._session.namespace_path(namespace) if namespace else {}


def send_once(
    session: RestSession, endpoint: Endpoint, about: CallSubject, what: str, *, names: Mapping[str, str], **sent: Any
) -> None:
    """Make a change that the server makes once, however often it is sent with its key."""

    def send() -> None:
        session.calls.change(endpoint, about, names=names, **sent)

    happened(send, lambda: False, what=what, name=about.name, waits=())


def check_keeps_rules(session: RestSession) -> None:
    """UnsupportedError for a server that keeps neither rules nor reviews."""
    if not session.calls.has(LIST_REF_RULES):
        raise UnsupportedError(
            "expected a server that keeps rules about refs, found another",
            hints=["`bergline serve` does; elsewhere a table has its own: `table.refs.protect`"],
        )
