"""Branches of the lake in a catalog's database: each change with its row in the audit log."""

import time

import msgspec
import sqlalchemy as sa

from bergline.catalog.catalog import Catalog
from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import current_caller, requesting_caller, see_made
from bergline.catalog.sql.governance_layout import LAKE_BRANCHES
from bergline.catalog.sql.records import AuditEntry, Records
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.errors import AlreadyExistsError
from bergline.governance.lake_branches.model import (
    LAKE_BRANCH,
    LakeBranch,
    NewLakeBranch,
    check_new,
    missing_lake_branch,
)
from bergline.table.table_selection import refs_of_tables


class SqlLakeBranches:
    """The branches of one catalog's lake, for whoever may connect to its database."""

    def __init__(self, catalog: Catalog, store: SqlPointerStore) -> None:
        self._catalog = catalog
        self._database = store.database
        self._name = store.catalog_name
        self._records = Records(store.database, store.catalog_name)

    def create(self, new: NewLakeBranch) -> LakeBranch:
        """Keep a new branch; tables that it takes are looked at for a tag of its name."""
        now_ms = time.time_ns() // 1_000_000
        check_new(new, now_ms)
        branch = LakeBranch(new.name, now_ms, current_caller().name, tuple(new.tables), new.expires_ms)
        if self.find(new.name) is not None:
            raise _exists(new.name)
        self._check_no_tag(branch)
        row = {
            "catalog_name": self._name,
            "name": branch.name,
            "created_ms": branch.created_ms,
            "owner": branch.owner,
            "tables": msgspec.json.encode(branch.tables).decode(),
            "expires_ms": branch.expires_ms,
        }
        with self._database.changing() as connection:
            insert = self._database.insert(LAKE_BRANCHES).values(row).on_conflict_do_nothing()
            if connection.execute(insert).rowcount == 0:
                raise _exists(branch.name)
            see_made(branch)
            self._note(connection, "create", branch.name)
        return branch

    def remove(self, name: str) -> None:
        mine = LAKE_BRANCHES.c.catalog_name == self._name
        self.check_may_drop(name)
        with self._database.changing() as connection:
            done = connection.execute(sa.delete(LAKE_BRANCHES).where(mine, LAKE_BRANCHES.c.name == name))
            if done.rowcount == 0:
                raise missing_lake_branch(name, self)
            self._note(connection, "drop", name)

    def check_may_drop(self, name: str) -> LakeBranch:
        """The branch; who can connect to the database may drop it."""
        branch = self.find(name)
        if branch is None:
            raise missing_lake_branch(name, self)
        return branch

    def find(self, name: str) -> LakeBranch | None:
        return next(iter(self._read(LAKE_BRANCHES.c.name == name)), None)

    def all(self) -> list[LakeBranch]:
        return sorted(self._read(sa.true()), key=lambda branch: branch.name)

    def _read(self, condition: sa.ColumnElement[bool]) -> list[LakeBranch]:
        if not self._database.has_lake_branches():
            return []
        query = sa.select(LAKE_BRANCHES).where(LAKE_BRANCHES.c.catalog_name == self._name, condition)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return [
            LakeBranch(
                row.name,
                row.created_ms,
                row.owner,
                msgspec.json.decode(row.tables, type=tuple[str, ...]),
                row.expires_ms,
            )
            for row in rows
        ]

    def _check_no_tag(self, branch: LakeBranch) -> None:
        for table, refs in refs_of_tables(self._catalog, is_meant=branch.takes):
            ref = refs.get(branch.name)
            if ref is not None and not ref.is_branch:
                raise _is_tag(branch.name, table)

    def _note(self, connection: sa.Connection, verb: str, name: str) -> None:
        self._database.run_hooks(connection)
        if requesting_caller() is None:  # a server writes its own row
            who, now_ms = current_caller().name, time.time_ns() // 1_000_000
            entry = AuditEntry(now_ms, who, f"{verb}_lake_branch", f"{LAKE_BRANCH}/{name}")
            self._records.add_audit(connection, entry)


def _exists(name: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"the lake has a branch `{name}` already", kind=LAKE_BRANCH, name=name)


def _is_tag(name: str, table: TableName) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"cannot create branch `{name}` of the lake: it is a tag of `{table}`",
        kind="ref",
        name=name,
        hints=["choose another name, or create the branch for other tables"],
    )
