"""A branch of the lake, and where a catalog keeps them."""

import fnmatch
from typing import Protocol

import msgspec

from bergline.catalog.identifiers import TableName


class LakeBranch(msgspec.Struct, frozen=True):
    """A branch of the whole lake, or of the tables that its patterns match."""

    name: str
    created_ms: int
    owner: str
    tables: tuple[str, ...] = ()
    """Patterns such as `sales.*`; none for all tables."""
    expires_ms: int | None = None

    def takes(self, table: TableName) -> bool:
        """Whether a table may join it."""
        return not self.tables or any(fnmatch.fnmatchcase(str(table), pattern) for pattern in self.tables)


class LakeBranches(Protocol):
    """The branches of a lake that its catalog keeps."""

    def create(self, branch: LakeBranch) -> None:
        """Keep a new branch; AlreadyExistsError if there is one of its name."""
        ...

    def remove(self, name: str) -> None:
        """Forget a branch; NotFoundError if there is none. Its refs in tables stay."""
        ...

    def find(self, name: str) -> LakeBranch | None:
        """The branch of a name."""
        ...

    def all(self) -> list[LakeBranch]:
        """All branches, by name."""
        ...
