"""What a user does to the files of a table: every method is one snapshot on a branch."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Self

from bergline.errors import InvalidInputError
from bergline.expressions.predicate import Predicate
from bergline.format.arguments import check_list, check_texts, check_whole, shown
from bergline.format.deletes import only_data_file
from bergline.format.manifest import DataFile, FileContent
from bergline.format.refs import MAIN, check_ref_name
from bergline.table.handle import TableHandle
from bergline.table.history_window import Scope
from bergline.table.isolation import Isolation, RowLevelCommand, isolation_level
from bergline.table.produce import check_writable
from bergline.table.row_delta import RowDelta, RowDeltaChecks, row_delta_checks
from bergline.table.scan import to_predicate

_DATA = frozenset({FileContent.DATA})
_DELETES = frozenset({FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES})


class TableMaintaining(TableHandle):
    """Files that were written for this table are added and removed; they are deleted if a commit certainly failed."""

    def row_delta(
        self,
        *,
        add: Sequence[DataFile] = (),
        deletes: Sequence[DataFile] = (),
        remove: Sequence[DataFile] = (),
        branch: str = MAIN,
        since: int | None = None,
        isolation: str | Isolation | None = None,
        row_filter: str | Predicate | None = None,
        referenced: Iterable[str] = (),
        summary: Mapping[str, str] | None = None,
    ) -> Self:
        """Add data files and delete files, and remove files, in one snapshot.

        `since` is the snapshot that the files were made from, by default the branch's head as last loaded. What others
        committed after it must not contradict: `isolation` says how much of it does ("serializable", "snapshot", or
        "none" for what would break the table), by default what the table says; `row_filter` says which rows the
        operation looked at, by default all; `referenced` names data files that deletes of several files are about.
        """
        _check_files(add, _DATA, "data files")
        _check_files(deletes, _DELETES, "delete files")
        _check_files(remove, _DATA | _DELETES, "files")
        scope = Scope(to_predicate(row_filter))
        about = {*check_list(referenced, "data file"), *_targets(deletes)}
        if isolation == "none":
            checks = RowDeltaChecks(scope=scope, referenced=frozenset(about))
        else:
            command: RowLevelCommand = "merge" if add else "delete"
            checks = row_delta_checks(command, isolation_level(self.metadata, command, isolation), scope, about)
        operation = RowDelta(
            self.io,
            [*add, *deletes],
            remove,
            since=self._start(branch, since),
            checks=checks,
            branch=branch,
            summary=self._with_own(summary),
        )
        self.commit(operation)
        return self

    def _start(self, branch: str, since: int | None) -> int | None:
        """The snapshot that an operation looked at: the one that was given, or the branch's head as last loaded."""
        check_ref_name(branch)
        ref = self.metadata.refs.get(branch)
        check_writable(ref, branch)
        if since is not None:
            return check_whole(since, "a snapshot id")
        head = self.metadata.head(branch if ref else MAIN)
        return None if head is None else head.snapshot_id

    def _with_own(self, summary: Mapping[str, str] | None) -> dict[str, str]:
        return self._summary | ({} if summary is None else check_texts(summary, "summary entry"))


def _check_files(files: Any, kinds: Collection[FileContent], what: str) -> None:
    if not isinstance(files, Sequence) or not all(isinstance(f, DataFile) and f.content in kinds for f in files):
        raise InvalidInputError(f"expected a list of {what}, found {shown(files)}")


def _targets(deletes: Iterable[DataFile]) -> set[str]:
    by_position = (d for d in deletes if d.content is FileContent.POSITION_DELETES)
    return {path for d in by_position if (path := only_data_file(d)) is not None}
