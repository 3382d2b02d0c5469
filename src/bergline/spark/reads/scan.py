"""A scan plan as a DataFrame: each group of its files by one of two readers, which must give the same rows."""

import functools
from collections.abc import Callable, Sequence

import msgspec
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.format.schema.reserved import POS, RESERVED_IDS
from bergline.format.schema.schema import Schema
from bergline.format.types.types import NestedField
from bergline.io.fileio import FileIO
from bergline.quoting import back_quoted
from bergline.scan.plan import ScanPlan
from bergline.scan.restrictions import check_rows_readable
from bergline.spark.backends.choose import backend_of
from bergline.spark.pushdown.provenance import with_provenance
from bergline.spark.reads.arrow import read_arrow
from bergline.spark.reads.cached import CACHED
from bergline.spark.reads.changelog import read_changelog, read_changelog_scan
from bergline.spark.reads.errors import remember_scan
from bergline.spark.reads.evidence import FileEvidence
from bergline.spark.reads.following import FollowedName, FollowedRead
from bergline.spark.reads.groups import ReadGroup, read_groups
from bergline.spark.reads.native import read_guard, read_native
from bergline.spark.reads.planning import ExecutorWork, plan_read, read_on_executors
from bergline.spark.reads.relations import KEPT, has_few_files, relation_key
from bergline.spark.runtime.arrow_rows import in_spark
from bergline.spark.runtime.backend import NO_SESSION, SparkBackend
from bergline.spark.runtime.types import comment_metadata, read_schema, unreadable
from bergline.sql.text.tokens import Name
from bergline.table.references.changed_rows import Changelog
from bergline.table.scans.changelog_scan import ChangelogScan
from bergline.table.scans.scan import TableScan, expiry_told

_POSITIONS = Schema(fields=(POS,))
Used = Callable[[], frozenset[str] | None]
"""Says which columns a query uses, None if that is not known; asked only where Spark does not see to it itself."""


def all_columns() -> None:
    """Nothing is known of what will be used."""
    return


def read(scan: TableScan | Changelog, spark: SparkSession, used: Used = all_columns) -> DataFrame:
    """A planned scan as a DataFrame, or changes; columns that are not used are there, but must not be looked at."""
    if isinstance(scan, Changelog):
        return read_changelog(scan, spark)
    with expiry_told(scan):
        return _read_scan(scan, spark, used)


def _read_scan(scan: TableScan, spark: SparkSession, used: Used) -> DataFrame:
    if isinstance(scan, ChangelogScan):
        remember_scan(scan)
        return read_changelog_scan(scan, spark, used)
    kept = whole_relation(scan, backend_of(spark))
    if kept is not None:
        return kept
    planned = plan_read(scan, backend_of(spark))
    if planned.work is None:
        remember_scan(scan)
    followed = _followed(scan, backend_of(spark))
    rows = read_plan(planned.plan, spark, scan.io, used, planned.work, followed=followed)
    return with_provenance(rows, scan)


def _followed(scan: TableScan, backend: SparkBackend) -> FollowedRead | None:
    """How the frame of a scan follows its table; None if it stays what it is."""
    is_plain = type(scan) is TableScan and backend.knows_files
    return FollowedRead(scan, scan.followed, backend) if is_plain and isinstance(scan.followed, FollowedName) else None


def whole_relation(scan: TableScan, backend: SparkBackend) -> DataFrame | None:
    """The frame of a table that is read whole, whatever a query needs of it: kept already, or of few files.

    None if it matters which files and columns a query needs.
    """
    check_rows_readable(scan.metadata)  # a frame may be kept from before
    cached = CACHED.find(scan, backend)
    if cached is not None:
        return cached.rows
    key = relation_key(scan, backend)
    if key is None:
        return None
    remember_scan(scan)
    is_known, kept = KEPT.find(key)
    if is_known or not has_few_files(scan) or unreadable(scan.schema):
        return kept
    plan = scan.plan()
    groups = choose_groups(plan, backend, scan.io)[1]
    if any(group.reader != "native" for group in groups):
        KEPT.keep(key, None, scan)
        return None
    rows = with_provenance(_frame(plan, plan, groups, backend, scan.io, followed=_followed(scan, backend)), scan)
    KEPT.keep(key, rows, scan)
    return rows


def late_frame(scan: TableScan, spark: SparkSession, name: Name, hidden: frozenset[str]) -> DataFrame:
    """A scan as a DataFrame whose files are looked up late: filters put on it first decide which.

    Columns may be qualified by the table's full name, and hidden ones can be selected.
    """
    return backend_of(spark).late_frame(scan, name, hidden, read)


def read_plan(
    plan: ScanPlan,
    spark: SparkSession,
    io: FileIO,
    used: Used = all_columns,
    work: ExecutorWork | None = None,
    *,
    followed: FollowedRead | None = None,
) -> DataFrame:
    """The rows of a plan, whose files are looked up by tasks if there is work; the executors get the storage."""
    backend = backend_of(spark)
    lacking = unreadable(plan.schema)
    if lacking:
        kept = tuple(f for f in plan.schema.fields if f.name not in lacking)
        rows = _read(
            msgspec.structs.replace(plan, schema=Schema(fields=kept)), backend, io, used, work, followed=followed
        )
        # Spark drops the columns that nobody asks for, and what they would have said
        return rows.select(
            *(
                F.raise_error(F.lit(lacking[f.name])).alias(f.name) if f.name in lacking else F.col(back_quoted(f.name))
                for f in plan.schema.fields
            )
        )
    return _read(plan, backend, io, used, work, followed=followed)


def choose_groups(
    plan: ScanPlan, backend: SparkBackend | None, io: FileIO, used: Used = all_columns
) -> tuple[ScanPlan, list[ReadGroup]]:
    """Which reader gets which files, for the columns that are used; they are asked for only where that matters.

    The plan that comes back has no others. Footers are looked at only for columns of files that their manifests, or
    earlier reads, say nothing of.
    """
    evidence, s3_refusal = FileEvidence(io, backend), NO_SESSION if backend is None else backend.s3a_refusal()
    groups = read_groups(plan, evidence.known, s3_refusal)
    if all(group.reader == "native" for group in groups):
        return plan, groups
    plan = _narrow(plan, used)
    return plan, read_groups(plan, evidence.look_up, s3_refusal)


def _narrow(plan: ScanPlan, used: Used) -> ScanPlan:
    """The plan with the columns that are used."""
    names = used()
    if names is None:
        return plan
    # who names `_deleted` gets deleted rows too, whatever becomes of the column
    kept = tuple(f for f in plan.schema.fields if f.name in names or f.id in RESERVED_IDS)
    return msgspec.structs.replace(plan, schema=Schema(fields=kept))


def _read(
    plan: ScanPlan,
    backend: SparkBackend,
    io: FileIO,
    used: Used,
    work: ExecutorWork | None,
    *,
    followed: FollowedRead | None,
) -> DataFrame:
    if work is None:
        return _frame(plan, *choose_groups(plan, backend, io, used), backend, io, followed=followed)
    narrow = _narrow(plan, used)
    read = functools.partial(read_on_executors, work=work, backend=backend, io=io)
    rows = _together(plan, narrow, [_with_columns(narrow, read)], backend)
    return rows if followed is None else read_guard(rows, followed.guard(), backend)


def _frame(
    plan: ScanPlan,
    narrow: ScanPlan,
    groups: Sequence[ReadGroup],
    backend: SparkBackend,
    io: FileIO,
    *,
    followed: FollowedRead | None,
) -> DataFrame:
    """The groups of a plan together; columns that the narrow plan lacks are there, but must not be looked at."""
    # whether a frame follows its table must not depend on the columns that a query uses: all of its places agree
    places = None if followed is None or narrow is not plan else followed.settle(plan, groups)
    if followed is not None and places is not None:
        frames = [
            read_native(plan, group, backend, io, functools.partial(followed.relation, number))
            for number, group in enumerate(places)
        ]
        return _together(plan, plan, frames, backend)
    rows = _together(plan, narrow, [_read_group(group, narrow, backend, io) for group in groups], backend)
    return rows if followed is None else read_guard(rows, followed.guard(), backend)


def _together(plan: ScanPlan, narrow: ScanPlan, frames: Sequence[DataFrame], backend: SparkBackend) -> DataFrame:
    if not frames:
        columns = [in_spark(pa.nulls(0, field.type)) for field in arrow_schema(plan.schema)]
        rows = pa.table(columns, names=[f.name for f in plan.schema.fields])
        return backend.spark.createDataFrame(rows, read_schema(plan.schema))
    together = functools.reduce(DataFrame.unionAll, frames)
    kept = narrow.schema.fields
    if len(kept) == len(plan.schema.fields) and not any(f.doc for f in kept if f.id not in RESERVED_IDS):
        return together
    return together.select(
        *(
            _commented(F.col(back_quoted(f.name)) if f in kept else _not_read(f.name).cast(t.dataType), f)
            for f, t in zip(plan.schema.fields, read_schema(plan.schema), strict=True)
        )
    )


def _commented(column: Column, field: NestedField) -> Column:
    """A column with the words about it."""
    comment = comment_metadata(field)
    return column.alias(field.name) if comment is None else column.alias(field.name, metadata=comment)


def _read_group(group: ReadGroup, plan: ScanPlan, backend: SparkBackend, io: FileIO) -> DataFrame:
    if group.reader == "native":
        return read_native(plan, group, backend, io)
    return _with_columns(plan, functools.partial(read_arrow, files=group.files, backend=backend, io=io))


def _with_columns(plan: ScanPlan, read: Callable[[ScanPlan], DataFrame]) -> DataFrame:
    """What is read of a plan by `read`, which must be asked for some column."""
    if plan.schema.fields:
        return read(plan)
    # positions cost nothing to read, and tell how many rows there are
    return read(msgspec.structs.replace(plan, schema=_POSITIONS)).select()


def _not_read(name: str) -> Column:
    return F.raise_error(F.lit(f"expected a query that does not use column `{name}`, found that it does"))
