"""The guard for rules that tables have in their own properties, whatever catalog they are in."""

import contextlib
from collections.abc import Iterable
from contextlib import AbstractContextManager

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.guard import DecideAgain
from bergline.catalog.protection.ref_change import NoRecords, RefChange, RuleRecords, named_rules
from bergline.catalog.protection.rule_scope import RuleLevel
from bergline.catalog.protection.table_rules import check_changed_rules, rule_texts
from bergline.errors import RefusedError
from bergline.format.metadata.table_metadata import TableMetadata


class TableRulesGuard:
    """Enforces the rules in a table's own properties, and those on record, of which there are none by default.

    With `server_decides`, decisions that depend on the caller's name are left to the server.
    """

    def __init__(self, *, server_decides: bool = False, records: RuleRecords | None = None) -> None:
        self._server_decides = server_decides
        self._records = records or NoRecords()

    def check_change(
        self, table: TableName, base: TableMetadata, result: TableMetadata | None, done: str | None = None
    ) -> None:
        RefChange(table, base, result, done).check(self._records, server_decides=self._server_decides)

    def check_member(self, table: TableName, base: TableMetadata, result: TableMetadata) -> DecideAgain:
        self.check_change(table, base, result)
        return lambda _: None

    def refusals(self, table: TableName, base: TableMetadata, result: TableMetadata) -> Iterable[RefusedError]:
        return RefChange(table, base, result).refusals(self._records, server_decides=self._server_decides)

    def check_new(self, table: TableName, metadata: TableMetadata) -> None:
        texts = rule_texts(metadata.properties)
        if texts:
            check_changed_rules(texts, texts, named_rules(self._records.levels(table)))

    def levels(self, table: TableName) -> tuple[RuleLevel, ...]:
        return self._records.levels(table)

    def changing(self) -> AbstractContextManager[None]:
        return contextlib.nullcontext()
