"""Changes to the rules of a catalog and its namespaces, each with its row in the audit log."""

import time

import sqlalchemy as sa

from bergline.catalog.identifiers import Namespace, check_lengths
from bergline.catalog.pointer.named_pointers import check_namespace
from bergline.catalog.protection.caller import Caller, current_caller
from bergline.catalog.protection.kept_rules import KeptRule
from bergline.catalog.protection.ref_change import CHANGED, may_change, named_rules
from bergline.catalog.protection.ref_rule import RefRule, render_rule
from bergline.catalog.protection.rule_agreement import check_agreement
from bergline.catalog.protection.rule_scope import RuleLevel, scope_of
from bergline.catalog.sql.governance_layout import REF_RULES
from bergline.catalog.sql.layout import join_namespace
from bergline.catalog.sql.records import AuditEntry, Records
from bergline.catalog.sql.rules.rule_records import SqlRuleRecords
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.errors import NotFoundError, ProtectedRefError

_MAX_OPERATION_CHARACTERS = 64


class SqlRefRules:
    """The rules of one catalog, for the tables of which `SqlRefGuard` honours them."""

    def __init__(self, store: SqlPointerStore) -> None:
        self._store = store
        self._database = store.database
        self._records = Records(store.database, store.catalog_name)
        self._kept = SqlRuleRecords(store.database, store.catalog_name)

    def rules(self, namespace: Namespace | None = None) -> tuple[KeptRule, ...]:
        if namespace:
            check_namespace(self._store, namespace)
        return self._kept.rules(namespace)

    def set_rule(self, namespace: Namespace, rule: RefRule) -> None:
        if namespace:
            check_namespace(self._store, namespace)
        check_lengths(join_namespace(namespace))
        caller = current_caller()
        row = {"rule": render_rule(rule), "principal": caller.name, "at_ms": time.time_ns() // 1_000_000}
        key = {"catalog_name": self._store.catalog_name, "namespace": join_namespace(namespace)}
        with self._database.changing() as connection:
            found = self._kept.within(connection).rules()
            _check_may_change(_rule_of(found, namespace, rule.pattern), caller)
            _check_agrees(namespace, rule, found)
            insert = self._database.insert(REF_RULES).values(key | {"pattern": rule.pattern} | row)
            connection.execute(insert.on_conflict_do_update(index_elements=list(REF_RULES.primary_key), set_=row))
            self._note(connection, caller, namespace, rule.pattern)

    def remove_rule(self, namespace: Namespace, pattern: str) -> None:
        caller = current_caller()
        statement = sa.delete(REF_RULES).where(
            REF_RULES.c.catalog_name == self._store.catalog_name,
            REF_RULES.c.namespace == join_namespace(namespace),
            REF_RULES.c.pattern == pattern,
        )
        with self._database.changing() as connection:
            found = self._kept.within(connection).rules()
            kept = _rule_of(found, namespace, pattern)
            if kept is None:
                known = [one.rule.pattern for one in found if one.namespace == namespace]
                raise NotFoundError(
                    f"no rule `{pattern}`{scope_of(namespace).suffix}", kind="rule", name=pattern, known=known
                )
            _check_may_change(kept, caller)
            connection.execute(statement)
            self._note(connection, caller, namespace, pattern)

    def _note(self, connection: sa.Connection, caller: Caller, namespace: Namespace, pattern: str) -> None:
        operation = f"{CHANGED}:{pattern}"[:_MAX_OPERATION_CHARACTERS]
        resource = f"namespace/{join_namespace(namespace)}" if namespace else "catalog"
        self._database.run_hooks(connection)
        entry = AuditEntry(time.time_ns() // 1_000_000, caller.name, operation, resource)
        self._records.add_audit(connection, entry)


def _rule_of(found: tuple[KeptRule, ...], namespace: Namespace, pattern: str) -> KeptRule | None:
    return next((kept for kept in found if (kept.namespace, kept.rule.pattern) == (namespace, pattern)), None)


def _check_may_change(kept: KeptRule | None, caller: Caller) -> None:
    if kept is None or may_change(kept.rule, caller):
        return
    assert isinstance(kept.rule, RefRule)  # noqa: S101  (one that cannot be read is changed by everybody)
    pattern, names = kept.rule.pattern, ", ".join(f"`{name}`" for name in kept.rule.bypass)
    suffix = scope_of(kept.namespace).suffix
    raise ProtectedRefError(
        f"the rule `{pattern}`{suffix} is changed only by those who may bypass it, {names}, not by `{caller.name}`",
        table="",
        ref=pattern,
        rule=pattern,
        hints=["ask one of them to change it"],
    )


def _check_agrees(namespace: Namespace, rule: RefRule, found: tuple[KeptRule, ...]) -> None:
    """Refuse a rule that contradicts one of a scope above it, below it, or of its own."""
    others = [
        RuleLevel(scope_of(kept.namespace), (kept.rule,))
        for kept in found
        if (kept.namespace, kept.rule.pattern) != (namespace, rule.pattern) and _share_tables(kept.namespace, namespace)
    ]
    check_agreement(named_rules([RuleLevel(scope_of(namespace), (rule,))]), named_rules(others))


def _share_tables(namespace: Namespace, other: Namespace) -> bool:
    shorter = min(len(namespace), len(other))
    return namespace[:shorter] == other[:shorter]
