"""The console of `bergline serve`: callers come in with the API's tokens, and changes go the API's way."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import sqlalchemy as sa

from bergline.catalog.access.granted_catalog import GrantedCatalog
from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import Caller, acting_as, current_caller
from bergline.catalog.rest.protocol.endpoints import COMMIT_TABLE, UNDROP_TABLE, UNDROP_VIEW
from bergline.catalog.sql.governance.events import append_events
from bergline.catalog.sql.records import AuditEntry
from bergline.errors import AuthenticationError, BerglineError, ConflictError, UnavailableError
from bergline.lake.handle import LakeHandle
from bergline.lake.lake import Lake
from bergline.lake.pull_requests.direct import DirectPullRequests
from bergline.server.access.access import CallerOf
from bergline.server.access.cross_origin import check_cross_origin
from bergline.server.access.granted_pull_requests import GrantedPullRequests
from bergline.server.commits.change_events import ChangeMade, change_events
from bergline.server.commits.locks import Release
from bergline.server.commits.rule_notes import audit_rules
from bergline.server.handlers.context import ServerContext
from bergline.server.http.errors import RequestRefused
from bergline.table.commits.retry import Timing

_Done = TypeVar("_Done")
_OPERATIONS = {"undrop-table": (UNDROP_TABLE.name, "table"), "undrop-view": (UNDROP_VIEW.name, "view")}
"""How the audit log names actions that are no commits."""
_LOG = logging.getLogger("bergline.server")


class ServedLake:
    """The lake of a server, as a host of the console."""

    def __init__(self, context: ServerContext, *, any_host: bool = False) -> None:
        self._context = context
        self._any_host = any_host
        self._lake = Lake(context.catalog, context.settings.name)

    @property
    def lake(self) -> Lake:
        """The lake that is served."""
        return self._lake

    def lake_for(self, caller: Caller) -> Lake:
        """All of it while there are no grants; else what the caller may see and do."""
        access = self._context.access
        if not access.is_active:
            return self._lake
        calls = DirectPullRequests(LakeHandle(self._context.catalog, Timing()), self._context.store)
        requests = GrantedPullRequests(calls, self._context.catalog, access, caller.name, caller.groups)
        by = CallerOf(access, caller.name, caller.groups)
        return Lake(GrantedCatalog(self._context.catalog, by, access.store, requests), self._lake.name)

    @property
    def needs_token(self) -> bool:
        """Whether the API needs one."""
        return self._context.authenticator.has_tokens

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """As the API does where it needs no token."""
        if not self.needs_token:
            check_cross_origin(headers, any_host=self._any_host)

    def caller(self, token: str | None) -> Caller:
        """The principal, as the API names it."""
        header, authenticator = None if token is None else f"Bearer {token}", self._context.authenticator
        try:
            principal = authenticator.cached(header) or authenticator.check(header)
        except RequestRefused as refusal:
            raise AuthenticationError(str(refusal)) from refusal
        return Caller(principal.name, principal.groups)

    def change(
        self,
        caller: str,
        action: str,
        table: TableName,
        act: Callable[[], _Done],
        groups: Collection[str] = (),
    ) -> _Done:
        """Commit when it is the table's turn, with an audit row in the transaction of the change."""
        records, agent = self._context.records, f"bergline console: {action}"
        operation, kind = _OPERATIONS.get(action, (COMMIT_TABLE.name, "table"))
        resource = f"{kind}/{'.'.join(table.namespace)}/{table.name}"

        def note(connection: sa.Connection, changed: tuple[tuple[TableName, str | None], ...]) -> None:
            for _, location in changed:
                entry = AuditEntry(_now_ms(), caller, operation, resource, agent, location)
                records.add_audit(connection, entry)
                audit_rules(records, connection, entry, dict(changed))
            made = ChangeMade(records.catalog_name, COMMIT_TABLE, caller, _now_ms())
            append_events(connection, change_events(made, changed, current_caller()))

        release = asyncio.run(self._turn(table))
        try:
            with acting_as(caller, groups), records.database.noting(note):
                return act()
        except ConflictError as error:
            self._note_conflict(AuditEntry(_now_ms(), caller, operation, resource, agent, conflict=str(error)))
            raise
        finally:
            release()

    def change_pull_request(
        self, caller: str, action: str, number: int, act: Callable[[], _Done], groups: Collection[str] = ()
    ) -> _Done:
        """Commit with an audit row for each table that moves, or one for the pull request if none does."""
        records, agent = self._context.records, f"bergline console: {action}"
        operation, about = f"{action}_pull_request", f"pull-request/{number}"

        def note(connection: sa.Connection, changed: tuple[tuple[TableName, str | None], ...]) -> None:
            moved = [(f"table/{'.'.join(table.namespace)}/{table.name}", location) for table, location in changed]
            for resource, location in moved or [(about, None)]:
                entry = AuditEntry(_now_ms(), caller, operation, resource, agent, location)
                records.add_audit(connection, entry)
            said = AuditEntry(_now_ms(), caller, operation, about, agent)
            audit_rules(records, connection, said, dict(changed))
            made = ChangeMade(records.catalog_name, COMMIT_TABLE, caller, _now_ms())
            done = made.event(f"pull-request.{action}", about, {"number": number})
            append_events(connection, [*change_events(made, changed, current_caller()), done])

        try:
            with acting_as(caller, groups), records.database.noting(note):
                return act()
        except ConflictError as error:
            self._note_conflict(AuditEntry(_now_ms(), caller, operation, about, agent, conflict=str(error)))
            raise

    def _note_conflict(self, entry: AuditEntry) -> None:
        """Record who lost; a record that cannot be written changes nothing about the outcome."""
        try:
            self._context.records.add_conflict(entry)
        except BerglineError as failure:
            _LOG.warning("could not record a conflict: %s", failure)

    async def _turn(self, table: TableName) -> Release:
        try:
            async with asyncio.timeout(self._context.settings.request_timeout_s / 2):
                return await self._context.locks.take([table])
        except (TimeoutError, RequestRefused) as error:
            raise UnavailableError(f"other commits to `{table}` take long: nothing was changed, try again") from error


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
