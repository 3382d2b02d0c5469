"""The console of `bergline serve`: callers come in with the API's tokens, and changes go the API's way."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from bergline.catalog.at_ref.lake_ref import LakeRef
from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import Caller
from bergline.catalog.rest.protocol.endpoints import COMMIT_TABLE, UNDROP_TABLE, UNDROP_VIEW, Endpoint
from bergline.catalog.rest.protocol.names import UNIT_SEPARATOR, encode_name, encode_namespace
from bergline.catalog.sql.tokens.console_sessions import is_session_secret
from bergline.catalog.table_locations import table_directories
from bergline.console.host import SignInIssuers
from bergline.errors import AuthenticationError, UnavailableError
from bergline.governance.endpoints import ENDPOINTS
from bergline.governance.granted_catalog import GrantedCatalog
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import CATALOG
from bergline.governance.lake_branches.granted import GrantedLakeBranches
from bergline.governance.lake_branches.store import SqlLakeBranches
from bergline.governance.pull_requests.granted import GrantedPullRequests
from bergline.io.fenced import FencedFileIO
from bergline.lake.at_ref import catalog_at_ref
from bergline.lake.handle import LakeHandle
from bergline.lake.lake import Lake
from bergline.lake.pull_requests import pull_request_calls
from bergline.reports.row_job import JobResult, RowJob
from bergline.server.access.access import CallerOf
from bergline.server.access.cross_origin import check_cross_origin
from bergline.server.access.failed_logins import TOO_MANY
from bergline.server.commits.locks import Release
from bergline.server.context.context import ServerContext
from bergline.server.http.errors import RequestRefused
from bergline.server.http.request import Request
from bergline.server.requests.idempotency import IdempotentChanges
from bergline.table.commits.retry import Timing

_Done = TypeVar("_Done")
_ENDPOINTS = {"undrop-table": UNDROP_TABLE, "undrop-view": UNDROP_VIEW}
"""What the API has for actions that are no commits."""
_BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}


class ServedLake:
    """The lake of a server, as a host of the console."""

    def __init__(self, context: ServerContext, *, any_host: bool = False) -> None:
        self._context = context
        self._any_host = any_host
        self._changes = IdempotentChanges(context)
        self._lake = Lake(context.catalog, context.settings.name)

    @property
    def lake(self) -> Lake:
        """The lake that is served."""
        return self._lake

    def lake_for(self, caller: Caller, at: LakeRef | None = None) -> Lake:
        """All of it while there are no grants; else what the caller may see and do, at a ref as on `main`."""
        access, catalog = self._context.access, self._context.catalog
        seen = catalog if at is None else catalog_at_ref(catalog, at)
        if not access.is_active:
            return Lake(seen, self._lake.name)
        calls = pull_request_calls(LakeHandle(self._context.catalog, Timing()))
        requests = GrantedPullRequests(calls, self._context.catalog, access, caller.name, caller.groups)
        kept = SqlLakeBranches(self._context.catalog, self._context.store)
        branches = GrantedLakeBranches(kept, access, caller.name, caller.groups)
        by = CallerOf(access, caller.name, caller.groups)
        return Lake(GrantedCatalog(seen, by, access.store, requests, branches), self._lake.name)

    @property
    def needs_token(self) -> bool:
        """Whether the API needs one."""
        return self._context.authenticator.has_tokens

    @property
    def browser_sign_in(self) -> SignInIssuers | None:
        """The issuers of the server that have a client."""
        return self._context.authenticator.browser_sign_in

    @property
    def public_url(self) -> str | None:
        """As the settings have it."""
        return self._context.settings.console_url

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """As the API does where it needs no token."""
        if not self.needs_token:
            check_cross_origin(headers, any_host=self._any_host)

    def token_for(self, ticket: str) -> None:
        """None: addresses end up in logs and histories."""
        del ticket

    def caller(self, token: str | None, address: str) -> Caller:
        """The principal, as the API names it; UnavailableError after too many tokens that were refused."""
        header, authenticator = None if token is None else f"Bearer {token}", self._context.authenticator
        try:
            if token is not None and authenticator.browser_sign_in is not None and is_session_secret(token):
                signed_in = authenticator.browser_sign_in.caller(token)
                return Caller(signed_in.name, signed_in.groups)
            principal = authenticator.recognize(header, address) or authenticator.check(header, address)
        except RequestRefused as refusal:
            if refusal.response.status == TOO_MANY:
                raise UnavailableError(str(refusal)) from refusal
            raise AuthenticationError(str(refusal)) from refusal
        return Caller(principal.name, principal.groups)

    def read_rows(self, caller: Caller, job: RowJob[JobResult]) -> JobResult:
        """By a worker process; under grants from the table's own files, unless the caller administers the catalog."""
        access = self._context.access
        if access.is_active and not access.may(caller.name, frozenset(caller.groups), Privilege.ADMINISTER, CATALOG):
            own = FencedFileIO(
                job.io,
                table_directories(job.metadata),
                what="files in the table's own directories",
                hint="an administrator of the catalog can see the rows of others",
            )
            job = job.reading(own)
        return self._context.row_reading.read(caller.name, job)

    def change(
        self,
        caller: str,
        action: str,
        table: TableName,
        act: Callable[[], _Done],
        groups: Collection[str] = (),
    ) -> _Done:
        """Commit when it is the table's turn, recorded as the request of the API that does the same."""
        endpoint = _ENDPOINTS.get(action, COMMIT_TABLE)
        kind = "view" if endpoint is UNDROP_VIEW else "table"
        names = {"namespace": encode_namespace(table.namespace), kind: encode_name(table.name)}
        release = asyncio.run(self._turn(table))
        try:
            return self._changes.make(_request(endpoint, names, action, caller, groups), act)
        finally:
            release()

    def change_pull_request(
        self, caller: str, action: str, number: int, act: Callable[[], _Done], groups: Collection[str] = ()
    ) -> _Done:
        """Commit, recorded likewise."""
        endpoint = _BY_NAME[f"{action}_pull_request"]
        return self._changes.make(_request(endpoint, {"number": str(number)}, action, caller, groups), act)

    async def _turn(self, table: TableName) -> Release:
        try:
            async with asyncio.timeout(self._context.settings.request_timeout_s / 2):
                return await self._context.locks.take([table])
        except (TimeoutError, RequestRefused) as error:
            raise UnavailableError(f"other commits to `{table}` take long: nothing was changed, try again") from error


def _request(endpoint: Endpoint, names: dict[str, str], action: str, caller: str, groups: Collection[str]) -> Request:
    agent = {"user-agent": f"bergline console: {action}"}
    return Request(endpoint, names, {}, agent, b"", UNIT_SEPARATOR, caller, frozenset(groups))
