"""A read of one state of a table: planned here, run here on Arrow or elsewhere on Spark."""

import contextlib
import copy
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import msgspec
import polars as pl
import pyarrow as pa

from bergline.arguments import check_list, shown
from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.datafiles.read.reader import read_batches, read_plan
from bergline.datafiles.write.input_rows import bytes_inside
from bergline.errors import InvalidInputError, NotFoundError, StorageError, UnavailableError, UnsupportedError
from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import ALWAYS_TRUE, Predicate, all_of
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.notebook import drawn
from bergline.scan.plan import ScanPlan
from bergline.scan.planner import plan_scan, scan_outline
from bergline.table.scans.version import BranchRead, ReadVersion, real_branch, table_identity

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

from bergline.format.schema.reserved import METADATA_COLUMNS, PARTITION, partition_column
from bergline.format.types.types import NestedField
from bergline.table.scans.partition_union import partition_union


class TableScan:
    """A read that is fixed to one snapshot when created; `plan` looks up files."""

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        version: ReadVersion,
        row_filter: str | Predicate | None,
        columns: Sequence[str] | None,
    ) -> None:
        self.io = io
        self.followed: Hashable = None
        """The name by which an engine looks up the table again whenever it runs this read; None if it never does."""
        self._metadata = metadata
        self.version = version
        self._filter = to_predicate(row_filter)
        self._columns = version.schema
        if columns is not None:
            names = check_list(columns, "column")
            if not names:
                raise InvalidInputError("expected at least one column, found none")
            self._columns = select_columns(metadata, version.schema, names)

    def _repr_html_(self) -> str:
        return drawn("scan_html", self)

    @property
    def metadata(self) -> TableMetadata:
        """The table as it was when the scan was created."""
        return self._metadata

    @property
    def table_identity(self) -> str:
        """The table that is read, whatever its name."""
        return table_identity(self._metadata)

    @property
    def branch_read(self) -> BranchRead | None:
        """Which state of which branch is read; None for a tag, a snapshot id or a time."""
        version = self.version
        if version.branch is None:
            return None
        return BranchRead(self.table_identity, real_branch(self._metadata, version.branch), version.snapshot_id)

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that is read; None for an empty table."""
        return self.version.snapshot_id

    @property
    def table_schema(self) -> Schema:
        """The columns that a filter may use."""
        return self.version.schema

    @property
    def schema(self) -> Schema:
        """The columns that are read."""
        return self._columns

    @property
    def row_filter(self) -> Predicate:
        """The filter on the rows."""
        return self._filter

    def with_columns(self, names: Iterable[str]) -> Self:
        """The same read with more columns, such as `_file`, after the others."""
        wider = copy.copy(self)
        more = select_columns(self._metadata, self.version.schema, names)
        wider._columns = Schema(fields=(*self._columns.fields, *more.fields), schema_id=self._columns.schema_id)  # noqa: SLF001
        return wider

    def where(self, row_filter: str | Predicate) -> Self:
        """The same read of fewer rows."""
        narrower = copy.copy(self)
        narrower._filter = all_of([self._filter, to_predicate(row_filter)])  # noqa: SLF001  (a copy of its own)
        return narrower

    def as_branch(self, branch: str) -> Self:
        """The same read of `main`, for a branch that does not exist yet."""
        stand_in = copy.copy(self)
        stand_in.version = msgspec.structs.replace(self.version, branch=branch)
        return stand_in

    def plan(self) -> ScanPlan:
        """The data files that may hold matching rows."""
        with expiry_told(self):
            return plan_scan(
                self.io,
                self._metadata,
                self.version.snapshot_id,
                table_schema=self.version.schema,
                columns=self._columns,
                row_filter=self._filter,
            )

    def outline(self) -> ScanPlan:
        """The plan without its files, for engines that look them up elsewhere."""
        version = self.version
        return scan_outline(
            self._metadata,
            version.snapshot_id,
            table_schema=version.schema,
            columns=self._columns,
            row_filter=self._filter,
        )

    def to_arrow(self) -> pa.Table:
        """The rows."""
        with expiry_told(self):
            return read_plan(self.io, self.plan())

    def to_pandas(self, **options: Any) -> "pd.DataFrame":
        """The rows as a pandas DataFrame; whole numbers with nulls among them stay whole (`Int64`).

        Options are those of `pyarrow.Table.to_pandas`, such as `types_mapper=pandas.ArrowDtype`.
        """
        return _pandas_frame(self.to_arrow(), options)

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars DataFrame."""
        return pl.DataFrame(self.to_arrow())

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches; files are planned now and opened one after the other."""
        return self._batches(self.plan())

    def _batches(self, plan: ScanPlan) -> Iterator[pa.RecordBatch]:
        with expiry_told(self):
            yield from read_batches(self.io, plan)

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream for other libraries."""
        return pa.RecordBatchReader.from_batches(arrow_schema(self._columns), self.to_batches())


@contextlib.contextmanager
def expiry_told(scan: TableScan) -> Iterator[None]:
    """Errors about missing files say if the snapshot has expired since the scan was created."""
    try:
        yield
    except NotFoundError as error:
        if (expired := find_expiry(scan, error)) is not None:
            raise expired from error
        raise


def find_expiry(scan: TableScan, error: NotFoundError) -> NotFoundError | None:
    """The message for a missing file if the snapshot has expired since the scan was created; None if not."""
    snapshot = scan.metadata.snapshots_by_id.get(scan.version.snapshot_id or 0)
    if error.kind != "file" or snapshot is None or snapshot.manifest_list is None:
        return None
    with contextlib.suppress(StorageError, UnavailableError):
        # expiry removes the snapshot together with the files that nothing else needs
        if not scan.io.exists(snapshot.manifest_list):
            number = snapshot.snapshot_id
            return NotFoundError(
                f"no snapshot {number} any more, which this read was planned on: it has expired",
                kind="snapshot",
                name=str(number),
                hints=["read the table again, from its name on"],
            )
    return None


def _pandas_frame(rows: pa.Table, options: Mapping[str, Any]) -> "pd.DataFrame":
    """With defaults that keep all digits: pandas would turn whole numbers with nulls into floats."""
    try:
        import pandas as pd  # noqa: PLC0415  (only those who ask for it need it)
    except ModuleNotFoundError as error:
        raise UnsupportedError("cannot make a DataFrame without pandas", hints=["pip install pandas"]) from error
    if options:
        return rows.to_pandas(**options)
    exact = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype()}
    gaps = [
        f.name for f, column in zip(rows.schema, rows.columns, strict=True) if f.type in exact and column.null_count
    ]
    plain = pa.schema([f.with_type(bytes_inside(f.type, pa.binary())) for f in rows.schema])
    frame = rows.cast(plain).drop_columns(gaps).to_pandas(integer_object_nulls=True)
    if len(gaps) == rows.num_columns:
        frame = pd.DataFrame(index=pd.RangeIndex(rows.num_rows))
    for name in gaps:
        frame.insert(rows.column_names.index(name), name, rows[name].to_pandas(types_mapper=exact.get))
    return frame


def to_predicate(row_filter: str | Predicate | None) -> Predicate:
    """A caller's filter as a predicate: SQL text, a predicate, or None for all rows."""
    if row_filter is None:
        return ALWAYS_TRUE
    if isinstance(row_filter, str):
        return parse_predicate(row_filter)
    if not isinstance(row_filter, Predicate):
        raise InvalidInputError(f"expected a filter as SQL text, found {shown(row_filter)}")
    return row_filter


def select_columns(metadata: TableMetadata, schema: Schema, names: Iterable[str]) -> Schema:
    """The columns of these names, in the given order; a table's own column hides a reserved one."""
    fields: dict[int, NestedField] = {}
    for name in names:
        field = _find(metadata, schema, name)
        if field.id in fields:
            raise InvalidInputError(f"expected each column once, found `{field.name}` twice")
        fields[field.id] = field
    return Schema(fields=tuple(fields.values()), schema_id=schema.schema_id)


def _find(metadata: TableMetadata, schema: Schema, name: str) -> NestedField:
    if name not in schema.names:
        if name == PARTITION:
            return partition_column(partition_union(metadata))
        if name in METADATA_COLUMNS:
            return METADATA_COLUMNS[name]
    return schema.select([name]).fields[0]
