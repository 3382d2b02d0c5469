"""Updates that are collected in a `with` block and committed together when it ends, unless it raises.

They are checked on the table as loaded; on another base, their columns must be the same, else it is a conflict.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Generic, Self, TypeVar

from bergline.catalog.conflicts import describe_layout_change
from bergline.errors import AlreadyExistsError, ConflictError, InvalidInputError, NotFoundError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.table.commits.operation import Change, MetadataOperation, Operation

_Requested = TypeVar("_Requested")


class PendingUpdate(ABC, Generic[_Requested]):
    """Changes requested on the table as loaded; each attempt applies them to the base that it finds."""

    def __init__(self, loaded: TableMetadata, commit: Callable[[Operation], object]) -> None:
        self._loaded = loaded
        self._commit = commit
        self._requested: list[_Requested] = []
        self._open = False

    def __enter__(self) -> Self:
        self._open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        if kind is None and self._requested:
            self._check_all()
            self._commit(MetadataOperation(self._apply))

    @abstractmethod
    def _check_all(self) -> None:
        """Refuse changes that cannot be made together on the table as loaded."""

    @abstractmethod
    def _apply(self, base: TableMetadata) -> Change:
        """The changes on a base; ConflictError where others changed the same thing."""

    def _request(self, request: _Requested) -> None:
        if not self._open:
            raise InvalidInputError(
                f"expected changes inside a `with` block of the {type(self).__name__}, found one outside"
            )
        self._requested.append(request)


@contextlib.contextmanager
def conflict_if_refused(loaded: TableMetadata, base: TableMetadata) -> Iterator[None]:
    """A change that was valid for the table as loaded but is refused on the base is a conflict with another commit."""
    try:
        yield
    except (NotFoundError, AlreadyExistsError, InvalidInputError) as error:
        raise conflict(str(error), loaded, base) from error


def conflict(reason: str, loaded: TableMetadata, base: TableMetadata) -> ConflictError:
    """The error that says why a change no longer fits, and which commit came first."""
    return ConflictError(
        f"{reason}; {describe_layout_change(loaded, base)}",
        hints=["look at the table again, then decide"],
    )


def is_settled(column_id: int, loaded: TableMetadata, base: TableMetadata) -> bool:
    """Whether the base knows a column of the loaded table by its id.

    Columns that the same transaction added earlier have other ids on another base, so they are identified by name.
    """
    name = loaded.schema.names_by_id.get(column_id)
    return name is not None and any(s.names_by_id.get(column_id) == name for s in base.schemas)


def check_same_column(path: str, mine: Schema, theirs: Schema, loaded: TableMetadata, base: TableMetadata) -> None:
    """Refuse a column that was dropped or renamed since the table was loaded; `mine` and `theirs` so far."""
    column_id = mine.find(path).id
    if not is_settled(column_id, loaded, base):
        return
    if column_id not in theirs.ids:
        raise conflict(f"column `{path}` was dropped", loaded, base)
    now = theirs.names_by_id[column_id]
    if now != mine.names_by_id[column_id]:
        raise conflict(f"column `{path}` was renamed to `{now}`", loaded, base)
