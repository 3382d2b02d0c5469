"""A table as a user holds it: a handle that its own commits move forward in place."""

import datetime as dt
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa

from bergline.catalog.catalog import Catalog, LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.errors import BerglineError, CommitUnknownError, InvalidInputError
from bergline.expressions.predicate import Predicate
from bergline.format.arguments import check_list, check_texts, check_whole, shown
from bergline.format.manifest import DataFile, partition_key
from bergline.format.metadata import TableMetadata
from bergline.format.partition import PartitionSpec
from bergline.format.refs import MAIN, check_ref_name
from bergline.format.schema import Schema
from bergline.format.snapshot import Snapshot
from bergline.format.updates import RemoveProperties, SetProperties
from bergline.io.fileio import FileIO
from bergline.parquet.fit import ArrowRows
from bergline.parquet.write import DataFileWriter
from bergline.parquet.write_spec import write_spec
from bergline.table.append import Append
from bergline.table.commit import Timing, commit
from bergline.table.expire import Expire, ExpiryResult
from bergline.table.known_properties import check_properties
from bergline.table.metadata_tables import metadata_table
from bergline.table.operation import Change, MetadataOperation, Operation
from bergline.table.overwrite import Overwrite
from bergline.table.produce import check_writable
from bergline.table.refs import Refs
from bergline.table.retention import ExpiryWish
from bergline.table.scan import TableScan
from bergline.table.version import resolve_version


class Table:
    """`refresh` looks again; every other method that changes the table is one commit."""

    def __init__(
        self,
        catalog: Catalog,
        loaded: LoadedTable,
        *,
        timing: Timing | None = None,
        summary: Mapping[str, str] | None = None,
    ) -> None:
        self._catalog = catalog
        self._loaded = loaded
        self._timing = timing or Timing()
        self._summary = dict(summary or {})
        self.refs = Refs(lambda: self.metadata, self.commit, self.io)

    def __repr__(self) -> str:
        return f"Table({str(self.name)!r}, {self.metadata_location!r})"

    @property
    def name(self) -> TableName:
        """Namespace and name."""
        return self._loaded.name

    @property
    def io(self) -> FileIO:
        """Where the table's files are."""
        return self._catalog.io

    @property
    def metadata(self) -> TableMetadata:
        """The table as last loaded."""
        return self._loaded.metadata

    @property
    def metadata_location(self) -> str:
        """The pointer as last loaded."""
        return self._loaded.metadata_location

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.schema

    @property
    def spec(self) -> PartitionSpec:
        """The partition spec for new files."""
        return self.metadata.spec

    @property
    def location(self) -> str:
        """Where new files go."""
        return self.metadata.location

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return dict(self.metadata.properties)

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The head of `main`."""
        return self.metadata.current_snapshot

    def refresh(self) -> "Table":
        """Look again."""
        self._loaded = self._catalog.load_table(self.name)
        return self

    def check_branch(self, branch: str) -> None:
        """Refuse a tag as the target of a write; a branch that does not exist is created by the write."""
        check_ref_name(branch)
        check_writable(self.metadata.refs.get(branch), branch)

    def append(self, rows: ArrowRows, *, branch: str = MAIN, summary: Mapping[str, str] | None = None) -> "Table":
        """Add rows to a branch; a branch that does not exist starts at the head of `main`."""
        self.check_branch(branch)
        _checked_summary(summary)
        return self.append_files(self._write(rows), branch=branch, summary=summary)

    def append_files(
        self, files: Sequence[DataFile], *, branch: str = MAIN, summary: Mapping[str, str] | None = None
    ) -> "Table":
        """Add files that were written for this table; they are deleted if the commit certainly failed."""
        _check_files(files)
        operation = Append(self.io, files, branch=branch, summary=self._summary | _checked_summary(summary))
        return self._commit_files(operation, files)

    def overwrite(self, rows: ArrowRows, *, branch: str = MAIN, summary: Mapping[str, str] | None = None) -> "Table":
        """Replace all rows of a branch."""
        self.check_branch(branch)
        _checked_summary(summary)
        return self.overwrite_files(self._write(rows), branch=branch, summary=summary)

    def overwrite_files(
        self,
        files: Sequence[DataFile],
        *,
        removes: Callable[[DataFile], bool] = lambda _: True,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
    ) -> "Table":
        """Replace the files that `removes` picks, by default all, by files that were written for this table."""
        _check_files(files)
        operation = Overwrite(self.io, files, removes, branch=branch, summary=self._summary | _checked_summary(summary))
        return self._commit_files(operation, files)

    def replace_partitions(
        self, files: Sequence[DataFile], *, branch: str = MAIN, summary: Mapping[str, str] | None = None
    ) -> "Table":
        """Replace every partition that the files have rows in; without files there is nothing to do."""
        _check_files(files)
        if not files:
            return self
        replaced = {partition_key(f) for f in files}
        return self.overwrite_files(
            files,
            removes=lambda file: partition_key(file) in replaced,
            branch=branch,
            summary=_checked_summary(summary) | {"replace-partitions": "true"},
        )

    def scan(
        self,
        row_filter: str | Predicate | None = None,
        *,
        ref: str | None = None,
        snapshot_id: int | None = None,
        as_of: dt.datetime | None = None,
        as_of_ms: int | None = None,
        columns: Sequence[str] | None = None,
    ) -> TableScan:
        """A read of `main`, a ref, a snapshot or a moment (as a datetime, or in milliseconds since 1970)."""
        if as_of is not None:
            as_of_ms = _millis(as_of)
        version = resolve_version(self.metadata, ref=ref, snapshot_id=snapshot_id, as_of_ms=as_of_ms)
        return TableScan(self.io, self.metadata, version, row_filter, columns)

    def inspect(self, name: str) -> pa.Table:
        """A metadata table: refs, snapshots, history."""
        return metadata_table(self.metadata, name)

    def expire(
        self,
        *,
        older_than: dt.datetime | None = None,
        retain_last: int | None = None,
        snapshot_ids: Iterable[int] = (),
    ) -> ExpiryResult:
        """Forget snapshots that no live ref protects, and delete the files that only they needed."""
        if not isinstance(snapshot_ids, Iterable):
            raise InvalidInputError(f"expected a list of snapshot ids, found {shown(snapshot_ids)}")
        wish = ExpiryWish(
            None if older_than is None else _millis(older_than),
            None if retain_last is None else check_whole(retain_last, "retain_last"),
            frozenset([check_whole(i, "a snapshot id") for i in snapshot_ids]),
        )
        operation = Expire(self.io, wish)
        self.commit(operation)
        return operation.result

    def set_properties(self, updates: Mapping[str, str] | None = None, *, remove: Iterable[str] = ()) -> "Table":
        """Set and remove table properties."""
        set_ = check_texts({} if updates is None else updates, "property")
        removed = check_list(remove, "property name")
        check_properties(set_, self.schema, remove=removed, base=self.metadata.properties)
        changes = (SetProperties(set_),) if set_ else ()
        removals = (RemoveProperties(removed),) if removed else ()
        self.commit(MetadataOperation(lambda _: Change((*changes, *removals))))
        return self

    def commit(self, operation: Operation) -> TableMetadata:
        """Bring an operation in and move this handle forward."""
        self._loaded = commit(self._catalog, self.name, self.metadata.table_uuid, operation, self._timing)
        return self.metadata

    def _write(self, rows: ArrowRows) -> list[DataFile]:
        with DataFileWriter(self.io, write_spec(self.metadata), f"00000-0-{uuid.uuid4()}") as writer:
            writer.write(rows)
            return writer.finish()

    def _commit_files(self, operation: Operation, files: Sequence[DataFile]) -> "Table":
        try:
            self.commit(operation)
        except CommitUnknownError:
            raise
        except BerglineError:
            self.io.delete([f.file_path for f in files])
            raise
        return self


def _check_files(files: Sequence[DataFile]) -> None:
    if not isinstance(files, Sequence) or not all(isinstance(f, DataFile) for f in files):
        raise InvalidInputError(f"expected a list of data files, found {shown(files)}")


def _checked_summary(summary: Mapping[str, str] | None) -> dict[str, str]:
    return {} if summary is None else check_texts(summary, "summary entry")


def _millis(moment: dt.datetime) -> int:
    if not isinstance(moment, dt.datetime):
        raise InvalidInputError(f"expected a datetime with a time zone, found {moment!r}")
    if moment.tzinfo is None:
        raise InvalidInputError(f"expected a time with a time zone, found {moment.isoformat()}")
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)
