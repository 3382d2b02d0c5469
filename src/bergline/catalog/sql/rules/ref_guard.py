"""The guard of a SQL catalog: decides before anything is written, and again in the transaction that moves the pointer.

So a rule that was set, an approval that was withdrawn or a check that failed meanwhile refuses the commit.
"""

import contextlib
import threading
from collections.abc import Iterable, Iterator

import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import current_caller
from bergline.catalog.protection.guard import DecideAgain
from bergline.catalog.protection.ref_change import RefChange, ReplayCheck
from bergline.catalog.protection.ref_rule import RefRule
from bergline.catalog.protection.rule_scope import RuleLevel
from bergline.catalog.protection.table_rules_guard import TableRulesGuard
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.rules.rule_records import SqlRuleRecords
from bergline.format.metadata.table_metadata import TableMetadata


class SqlRefGuard(TableRulesGuard):
    """Honours the rules of tables, namespaces and the catalog, with the reviews that the database has."""

    def __init__(self, database: SqlDatabase, catalog_name: str) -> None:
        self._kept = SqlRuleRecords(database, catalog_name)
        super().__init__(records=self._kept)
        self._database = database
        self._of_thread = threading.local()
        self.replay_check: ReplayCheck | None = None
        """How a server, whose clients are not trusted, looks at the files of what they say is merged."""

    def check_change(
        self, table: TableName, base: TableMetadata, result: TableMetadata | None, done: str | None = None
    ) -> None:
        change = RefChange(table, base, result, done, self.replay_check)
        change.check(self._kept)
        checked: dict[TableName, RefChange] | None = getattr(self._of_thread, "checked", None)
        if checked is not None:
            checked[table] = change

    def check_member(self, table: TableName, base: TableMetadata, result: TableMetadata) -> DecideAgain:
        change = RefChange(table, base, result, None, self.replay_check)
        change.check(self._kept)
        return lambda connection: self._decide(change, self._kept.within(connection))

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Decide again on what was checked in the block, in the transaction that changes it."""
        outer = getattr(self._of_thread, "checked", None)
        checked: dict[TableName, RefChange] = {}

        def decide_again(connection: sa.Connection, moved: tuple[tuple[TableName, str | None], ...]) -> None:
            for table in sorted(table for table, _ in moved):  # reviews are locked in the same order by everybody
                if table in checked:
                    self._decide(checked[table], self._kept.within(connection))

        self._of_thread.checked = checked
        try:
            with self._database.before_commit(decide_again):
                yield
        finally:
            self._of_thread.checked = outer

    def _decide(self, change: RefChange, records: SqlRuleRecords) -> None:
        if _demand_approvals(change.check(records)):
            records.add_authors(change.table_uuid, change.added_snapshots, current_caller().name)
        records.void_reviews(change.table, change.table_uuid, change.lost_snapshots)


def _demand_approvals(levels: Iterable[RuleLevel]) -> bool:
    return any(isinstance(rule, RefRule) and rule.approvals for level in levels for rule in level.rules)
