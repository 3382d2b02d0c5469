"""What the console runs in: `bergline serve`, or `bergline ui` over any lake."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeVar

from bergline.catalog.at_ref.lake_ref import LakeRef
from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import Caller
from bergline.lake.lake import Lake
from bergline.reports.row_job import JobResult, RowJob

Done = TypeVar("Done")


class SignInIssuers(Protocol):
    """Issuers with which browsers sign in, as OpenID Connect has it; called from threads."""

    @property
    def names(self) -> Sequence[str]:
        """The issuers."""
        ...

    def address(self, name: str, secret: str, redirect_uri: str) -> str:
        """Where an issuer asks who a browser is, which has made up a secret."""
        ...

    def finish(self, name: str, secret: str, redirect_uri: str, answer: Mapping[str, str]) -> tuple[str, int]:
        """The token of a session and its seconds; AuthenticationError for an answer that nobody asked for."""
        ...

    def end(self, text: str) -> None:
        """End a session; a token that is none of a session stays as it is."""
        ...


class Host(Protocol):
    """The lake, who may come in, and how changes are made; called from threads."""

    @property
    def lake(self) -> Lake:
        """The lake that is shown; pages and actions use `lake_for`."""
        ...

    def lake_for(self, caller: Caller, at: LakeRef | None = None) -> Lake:
        """The lake as a caller may see it, on `main` or at another ref."""
        ...

    @property
    def needs_token(self) -> bool:
        """Whether callers sign in."""
        ...

    @property
    def browser_sign_in(self) -> SignInIssuers | None:
        """Issuers with which browsers sign in, if there are some."""
        ...

    @property
    def public_url(self) -> str | None:
        """The console's address as browsers have it, without a slash at its end; None for that of each request."""
        ...

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """RefusedError for a request that a page of another site may have sent."""
        ...

    def token_for(self, ticket: str) -> str | None:
        """The token that `?token=` in an address stands for; None where no address may carry one, or not this one."""
        ...

    def caller(self, token: str | None, address: str) -> Caller:
        """The principal with this token; AuthenticationError or RefusedError if nobody may come in with it.

        UnavailableError if too many tokens from this address were refused.
        """
        ...

    def read_rows(self, caller: Caller, job: RowJob[JobResult]) -> JobResult:
        """Rows of a table that the caller may read, from a process that is ended if it takes too much.

        RefusedError if it took too much memory, UnavailableError if it took too long or others come first.
        """
        ...

    def change(
        self, caller: str, action: str, table: TableName, act: Callable[[], Done], groups: Collection[str] = ()
    ) -> Done:
        """Make a change to a table, recorded as that of the caller, who has these groups, in the audit log if any."""
        ...

    def change_pull_request(
        self, caller: str, action: str, number: int, act: Callable[[], Done], groups: Collection[str] = ()
    ) -> Done:
        """Make a change to a pull request, and to its tables if it is published, recorded in the same way."""
        ...
