"""Reading and rewriting rows, separate from planning and committing: an operation is given an engine for it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import msgspec

from bergline.arguments import shown
from bergline.errors import InvalidInputError
from bergline.format.manifest.manifest import DataFile
from bergline.io.fileio import FileIO
from bergline.table.engine.plans import DeleteJoin, KnownDeletePlan, PositionDeletePlan, RewritePlan

Part = TypeVar("Part")
Computed = TypeVar("Computed")


class FileChanges(msgspec.Struct, frozen=True):
    """The result of an engine, for an operation to commit: files added, files removed, positions deleted."""

    data_files: tuple[DataFile, ...] = ()
    """New data files."""
    rewritten: frozenset[str] = frozenset()
    """Paths of the data files to remove, because their rows are in the new ones or deleted."""
    delete_files: tuple[DataFile, ...] = ()
    """New position delete files or deletion vectors."""
    deleted_from: frozenset[str] = frozenset()
    """Paths of the data files to which the delete files apply."""
    deleted_rows: int = 0
    """How many rows were to be deleted and had not been deleted before."""

    @property
    def paths(self) -> list[str]:
        """The files that were written."""
        return list(dict.fromkeys(f.file_path for f in (*self.data_files, *self.delete_files)))


@runtime_checkable
class RowEngine(Protocol):
    """Carries out frozen plans. The caller commits or deletes the returned files; an error leaves no file behind."""

    def rewrite(self, io: FileIO, plan: RewritePlan) -> FileChanges:
        """Rewrite the rows of data files, without deleted ones."""

    def rewrite_groups(self, io: FileIO, plan: RewritePlan) -> list[FileChanges]:
        """The same, with a result for each group, in the order of the groups; rows of a group may be sorted."""

    def delete_positions(self, io: FileIO, plan: PositionDeletePlan) -> FileChanges:
        """Write delete files for rows that match, merged with the delete files that they replace."""

    def write_deletes(self, io: FileIO, plan: KnownDeletePlan) -> FileChanges:
        """Write delete files for rows at known positions, merged with the delete files that they replace."""

    def compute(
        self,
        io: FileIO,
        what: str,
        work: Callable[[FileIO, Part], Computed],
        parts: Sequence[Part],
        location: str,
    ) -> list[Computed]:
        """Apply a function to each part and return the results in order; it reads files at a location and writes none.

        Function, parts and results are pickled if they go to other processes; `what` is shown as progress.
        """

    def join_deletes(self, io: FileIO, joins: Sequence[DeleteJoin]) -> list[FileChanges]:
        """Write delete files that replace others, for each of several groups."""


def gathered_changes(parts: Iterable[tuple[int, FileChanges]], groups: int) -> list[FileChanges]:
    """The results of parts, each with the number of its group, gathered by group."""
    by_group: list[list[FileChanges]] = [[] for _ in range(groups)]
    for number, changes in parts:
        by_group[number].append(changes)
    return [joined_changes(changes) for changes in by_group]


def joined_changes(parts: Iterable[FileChanges]) -> FileChanges:
    """The joined results of several parts of a plan."""
    parts = list(parts)
    return FileChanges(
        tuple(file for part in parts for file in part.data_files),
        frozenset().union(*(part.rewritten for part in parts)),
        tuple(file for part in parts for file in part.delete_files),
        frozenset().union(*(part.deleted_from for part in parts)),
        sum(part.deleted_rows for part in parts),
    )


def check_row_engine(engine: Any) -> RowEngine | None:
    """The engine that a caller gave; None means the one in this process."""
    if engine is not None and not isinstance(engine, RowEngine):
        raise InvalidInputError(
            f"expected a row engine, found {shown(engine)}",
            hints=["`bergline.spark.row_engine(spark)` is one that uses Spark's executors"],
        )
    return engine
