"""Changes that are collected in a `with` block and committed together when it ends; none are if it ends in an error."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

from bergline.errors import InvalidInputError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.table.commits.operation import Change, MetadataOperation, Operation

Requested = TypeVar("Requested")


class ChangeBlock(ABC, Generic[Requested]):
    """Wishes of a caller who saw the table in one state; each attempt works them out on the state it finds."""

    def __init__(self, seen: TableMetadata, commit: Callable[[Operation], object]) -> None:
        self._seen = seen
        self._commit = commit
        self._wishes: list[Requested] = []
        self._open = False

    def __enter__(self) -> Self:
        self._open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        if kind is None and self._wishes:
            self._check_all()
            self._commit(MetadataOperation(self._on))

    @abstractmethod
    def _check_all(self) -> None:
        """Refuse wishes that cannot be fulfilled together on what the caller saw."""

    @abstractmethod
    def _on(self, base: TableMetadata) -> Change:
        """The wishes on a base; ConflictError where others came between."""

    def _request(self, request: Requested) -> None:
        if not self._open:
            raise InvalidInputError(
                f"expected changes inside a `with` block of the {type(self).__name__}, found one outside"
            )
        self._wishes.append(request)
