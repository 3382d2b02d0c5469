"""What the console runs in: `bergline serve`, or `bergline ui` over any lake."""

from collections.abc import Callable, Collection, Mapping
from typing import Protocol, TypeVar

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import Caller
from bergline.lake.lake import Lake

Done = TypeVar("Done")


class Host(Protocol):
    """The lake, who may come in, and how changes are made; called from threads."""

    @property
    def lake(self) -> Lake:
        """The lake that is shown; pages and actions use `lake_for`."""
        ...

    def lake_for(self, caller: Caller) -> Lake:
        """The lake as a caller may see it."""
        ...

    @property
    def needs_token(self) -> bool:
        """Whether callers sign in."""
        ...

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """RefusedError for a request that a page of another site may have sent."""
        ...

    def caller(self, token: str | None) -> Caller:
        """The principal with this token; AuthenticationError if nobody may come in with it."""
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
