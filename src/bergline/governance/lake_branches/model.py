"""A branch of the lake, and where a catalog keeps them."""

import fnmatch
from typing import Final, Protocol

import msgspec

from bergline.arguments import check_list, check_no_nul, check_whole
from bergline.catalog.at_ref.lake_ref import LAKE_MAIN, parse_time
from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.metadata.refs import MAIN, check_ref_name

LAKE_BRANCH: Final = "lake-branch"
_MOST_PATTERNS = 1000


class LakeBranch(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
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

    def is_expired(self, now_ms: int) -> bool:
        """Whether its time is over: no table may join it, and maintenance drops it."""
        return self.expires_ms is not None and self.expires_ms <= now_ms


class NewLakeBranch(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A branch that is to be created."""

    name: str
    tables: tuple[str, ...] = ()
    expires_ms: int | None = None


class LakeBranches(Protocol):
    """The branches of a lake that its catalog keeps."""

    def create(self, new: NewLakeBranch) -> LakeBranch:
        """Keep a new branch of the caller; AlreadyExistsError if there is one of its name, or a tag in a table."""
        ...

    def remove(self, name: str) -> None:
        """Forget a branch; NotFoundError if there is none. Its refs in tables stay."""
        ...

    def check_may_drop(self, name: str) -> LakeBranch:
        """The branch; NotFoundError if there is none, RefusedError for a caller who may not drop it."""
        ...

    def find(self, name: str) -> LakeBranch | None:
        """The branch of a name."""
        ...

    def all(self) -> list[LakeBranch]:
        """All branches, by name."""
        ...


def check_new(new: NewLakeBranch, now_ms: int) -> None:
    """Refuse what cannot be the name of a branch of the lake, wrong patterns, and a time that is over."""
    check_ref_name(new.name)
    check_no_nul(new.name, "the name of a branch")
    if new.name in {MAIN, LAKE_MAIN}:
        raise InvalidInputError(f"expected another name for a branch of the lake, found `{new.name}`")
    if parse_time(new.name) is not None:
        raise InvalidInputError(
            f"expected a name for a branch of the lake, found the time `{new.name}`",
            hints=["at a time, all tables are seen as they were then"],
        )
    patterns = check_list(new.tables, "table pattern")
    if len(patterns) > _MOST_PATTERNS:
        raise InvalidInputError(f"expected up to {_MOST_PATTERNS} patterns of tables, found {len(patterns)}")
    for pattern in patterns:
        if "." not in pattern and "*" not in pattern:
            raise InvalidInputError(f"expected a pattern of tables such as `sales.*`, found `{pattern[:80]}`")
        check_no_nul(pattern, "a pattern of tables")
    if new.expires_ms is not None and check_whole(new.expires_ms, "the time of expiry") <= now_ms:
        raise InvalidInputError(f"expected a time of expiry that is still to come, found {new.expires_ms}")


def missing_lake_branch(name: str, kept: LakeBranches) -> NotFoundError:
    """The error for a branch that the catalog does not keep."""
    known = [one.name for one in kept.all()]
    return NotFoundError(f"no branch `{name}` of the lake", kind=LAKE_BRANCH, name=name, known=known)
