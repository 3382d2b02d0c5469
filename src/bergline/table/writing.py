"""What a user writes to a table: every method is one snapshot on a branch."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Self

from bergline.errors import InvalidInputError
from bergline.format.arguments import check_texts, shown
from bergline.format.manifest import DataFile, partition_key
from bergline.format.refs import MAIN, check_ref_name
from bergline.parquet.fit import ArrowRows
from bergline.parquet.write import DataFileWriter
from bergline.parquet.write_spec import write_spec
from bergline.table.append import Append
from bergline.table.handle import TableHandle
from bergline.table.overwrite import Overwrite
from bergline.table.produce import check_writable
from bergline.table.removal import Everything, Removal, RemovedFiles, RemovedPartitions


class TableWriting(TableHandle):
    """Rows as Arrow data, or files that were written for this table."""

    def check_branch(self, branch: str) -> None:
        """Refuse a tag as the target of a write; a branch that does not exist is created by the write."""
        check_ref_name(branch)
        check_writable(self.metadata.refs.get(branch), branch)

    def append(
        self, rows: ArrowRows, *, branch: str = MAIN, summary: Mapping[str, str] | None = None, fast: bool = False
    ) -> Self:
        """Add rows to a branch; a branch that does not exist starts at the head of `main`.

        Now and then an append joins small manifests of earlier ones; a fast one never does.
        """
        self.check_branch(branch)
        _checked_summary(summary)
        return self.append_files(self._write(rows), branch=branch, summary=summary, fast=fast)

    def append_files(
        self,
        files: Sequence[DataFile],
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        fast: bool = False,
    ) -> Self:
        """Add files that were written for this table; they are deleted if the commit certainly failed."""
        _check_files(files)
        self.commit(Append(self.io, files, branch=branch, summary=self._summary | _checked_summary(summary), fast=fast))
        return self

    def overwrite(self, rows: ArrowRows, *, branch: str = MAIN, summary: Mapping[str, str] | None = None) -> Self:
        """Replace all rows of a branch."""
        self.check_branch(branch)
        _checked_summary(summary)
        return self.overwrite_files(self._write(rows), branch=branch, summary=summary)

    def overwrite_files(
        self,
        files: Sequence[DataFile],
        *,
        removed: Sequence[DataFile] | None = None,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
    ) -> Self:
        """Replace some files of a branch, by default all, by files that were written for this table."""
        _check_files(files)
        if removed is not None:
            _check_files(removed)
        removal = Everything() if removed is None else RemovedFiles(tuple(removed), must_exist=True)
        return self._overwrite(files, removal, branch, _checked_summary(summary))

    def replace_partitions(
        self, files: Sequence[DataFile], *, branch: str = MAIN, summary: Mapping[str, str] | None = None
    ) -> Self:
        """Replace every partition that the files have rows in; without files there is nothing to do."""
        _check_files(files)
        if not files:
            return self
        whole = not self.spec.fields
        partitions = {partition_key(f): (f.spec_id, f.partition) for f in files}
        removal = Everything() if whole else RemovedPartitions(tuple(partitions.values()))
        return self._overwrite(files, removal, branch, _checked_summary(summary) | {"replace-partitions": "true"})

    def _overwrite(self, files: Sequence[DataFile], removal: Removal, branch: str, summary: dict[str, str]) -> Self:
        self.commit(Overwrite(self.io, files, [removal], branch=branch, summary=self._summary | summary))
        return self

    def _write(self, rows: ArrowRows) -> list[DataFile]:
        with DataFileWriter(self.io, write_spec(self.metadata), f"00000-0-{uuid.uuid4()}") as writer:
            writer.write(rows)
            return writer.finish()


def _check_files(files: Sequence[DataFile]) -> None:
    if not isinstance(files, Sequence) or not all(isinstance(f, DataFile) for f in files):
        raise InvalidInputError(f"expected a list of data files, found {shown(files)}")


def _checked_summary(summary: Mapping[str, str] | None) -> dict[str, str]:
    return {} if summary is None else check_texts(summary, "summary entry")
