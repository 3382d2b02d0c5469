"""Changed rows as DataFrames: read in tasks, and matched by Spark: what cancels out, and what is an update.

Rows are equal if all values are, as in `table/scans/match_changes.py`: NaN equals NaN, and -0.0 is not 0.0.
"""

from collections.abc import Callable, Sequence
from functools import reduce

import msgspec
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)
from pyspark.sql import types as T  # noqa: N812

from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.datafiles.read.changelog import (
    CHANGE_COLUMNS,
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    changelog_schema,
)
from bergline.errors import UnsupportedError
from bergline.format.schema.reserved import (
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    COMMIT_SNAPSHOT_ID,
    POS,
    RESERVED_IDS,
    ROW_ID,
)
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.quoting import back_quoted
from bergline.scan.plan import ChangelogPlan, FileChange, ScanPlan
from bergline.spark.backends.choose import backend_of
from bergline.spark.reads.arrow import read_changed_files
from bergline.spark.runtime.arrow_rows import in_spark
from bergline.spark.runtime.backend import SparkBackend
from bergline.spark.runtime.types import read_schema, unreadable
from bergline.table.references.changed_rows import Changelog, needs_matching
from bergline.table.scans.changelog_scan import ChangelogScan, MatchRules

_HASH, _IDENTITY, _IMAGE = "bergline hash", "bergline identity", "bergline image"
_DELETES, _INSERTS, _PLACE, _SIGN = "bergline deletes", "bergline inserts", "bergline place", "bergline sign"
_TOTAL, _SO_FAR, _START = "bergline total", "bergline so far", "bergline start"
_TYPE, _ORDINAL, _SNAPSHOT = CHANGE_TYPE.name, CHANGE_ORDINAL.name, COMMIT_SNAPSHOT_ID.name


def read_changelog_scan(
    scan: ChangelogScan, spark: SparkSession, used: Callable[[], frozenset[str] | None]
) -> DataFrame:
    """Everything that snapshots added and deleted; columns that are not used are there, but must not be looked at."""
    plan, names = scan.plan_changes(), used()
    lacking = unreadable(plan.read.schema)
    if names is not None:
        unused = [f.name for f in plan.read.schema.fields if f.name not in names and f.id not in RESERVED_IDS]
        lacking = {n: f"expected a query that does not use column `{n}`, found that it does" for n in unused} | lacking
    kept = Schema(fields=tuple(f for f in plan.read.schema.fields if f.name not in lacking))
    # positions cost nothing to read, and tell how many rows there are
    read = msgspec.structs.replace(plan.read, schema=kept if kept.fields else Schema(fields=(POS,)))
    rows = _changed_rows(read, plan.changes, backend_of(spark), scan.io)
    return rows.select(
        *(
            _missing(lacking[f.name], f.dataType).alias(f.name) if f.name in lacking else _column(f.name)
            for f in read_schema(scan.schema)
        )
    )


def read_changelog(changes: Changelog, spark: SparkSession) -> DataFrame:
    """The changes without what cancels out, with update images if asked for; no row passes through this process."""
    plan, backend = changes.plan(), backend_of(spark)
    for name, reason in unreadable(plan.read.schema).items():
        raise UnsupportedError(f"cannot compare rows by column `{name}` in Spark: {reason}")
    plain, mixed = _split(plan, net=changes.rules.net)
    names = [f.name for f in changes.schema.fields]
    frames = []
    if plain or not mixed:
        frames.append(_changed_rows(plan.read, plain, backend, changes.io).select(*map(_column, names)))
    if mixed:
        rows = _changed_rows(plan.read, mixed, backend, changes.io)
        frames.append(_matched(rows, changes.rules).select(*map(_column, names)))
    return reduce(DataFrame.unionAll, frames)


def _split(plan: ChangelogPlan, *, net: bool) -> tuple[list[FileChange], list[FileChange]]:
    """The changes of snapshots that only add or only delete rows, and the others, of which rows must be matched."""
    parts: dict[int | None, list[FileChange]] = {}
    for change in plan.changes:
        parts.setdefault(None if net else change.ordinal, []).append(change)
    plain: list[FileChange] = []
    mixed: list[FileChange] = []
    for changes in parts.values():
        (mixed if needs_matching(changes) else plain).extend(changes)
    return plain, mixed


def _changed_rows(plan: ScanPlan, changes: Sequence[FileChange], backend: SparkBackend, io: FileIO) -> DataFrame:
    """The rows of data files that snapshots added and deleted."""
    if changes:
        return read_changed_files(plan, changes, backend, io)
    schema = changelog_schema(plan.schema)
    columns = [in_spark(pa.nulls(0, field.type)) for field in arrow_schema(schema)]
    rows = pa.table(columns, names=[f.name for f in schema.fields])
    return backend.spark.createDataFrame(rows, read_schema(schema))


def _matched(rows: DataFrame, rules: MatchRules) -> DataFrame:
    rows, keys = _with_keys(rows)
    if rules.by_row_id:
        return _without_carry_overs(_images_by_row_id(rows, keys), [*keys, _IMAGE])
    if rules.identifiers:  # rows of one identity stay in one task, whatever they are matched by
        rows = rows.repartition(*map(_column, rules.identifiers), *([] if rules.net else [_column(_ORDINAL)]))
    by_value = [*rules.identifiers, *keys]
    rows = _net(rows, by_value) if rules.net else _without_carry_overs(rows, by_value)
    return _images(rows, rules) if rules.identifiers else rows


def _with_keys(rows: DataFrame) -> tuple[DataFrame, list[str]]:
    """The rows with a hash, and the names of columns that are equal if and only if all values are."""
    own = [f for f in rows.schema if f.name not in {c.name for c in CHANGE_COLUMNS} and f.name != ROW_ID.name]
    own = [f for f in own if not isinstance(f.dataType, T.NullType)]
    keys, more = [], {}
    for number, field in enumerate(own):
        if _needs_text(field.dataType):
            keys.append(f"bergline key {number}")
            more[keys[-1]] = _comparable(_column(field.name), field.dataType)
        else:
            keys.append(field.name)
    rows = rows.withColumns(more) if more else rows
    # a hash first: rows are then sorted by numbers
    return rows.withColumn(_HASH, F.xxhash64(F.lit(0), *map(_column, keys))), [_HASH, *keys]


def _without_carry_overs(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Without rows that one snapshot deletes and inserts alike, which were only copied; images of updates stay."""
    group = Window.partitionBy(*map(_column, [*keys, _ORDINAL]))
    counted = rows.withColumns(
        {
            _DELETES: _count(DELETE).over(group),
            _INSERTS: _count(INSERT).over(group),
            _PLACE: F.row_number().over(group.orderBy(_column(_TYPE))),
        }
    )
    deletes, inserts, place = map(_column, (_DELETES, _INSERTS, _PLACE))
    left = F.when(_column(_TYPE) == DELETE, place <= deletes - inserts).when(_column(_TYPE) == INSERT, place <= inserts)
    return counted.filter(F.coalesce(left, F.lit(True)))


def _net(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """What is left of all changes of equal rows; see `_net` of `table/scans/match_changes.py`."""
    whole = Window.partitionBy(*map(_column, keys))
    ordered = whole.orderBy(_column(_ORDINAL), _column(_TYPE))
    up_to_here = ordered.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    all_rows = ordered.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    rows = rows.withColumn(_SIGN, F.when(_column(_TYPE) == INSERT, 1).otherwise(-1))
    rows = rows.withColumns(
        {
            _TOTAL: F.sum(_column(_SIGN)).over(all_rows),
            _SO_FAR: F.sum(_column(_SIGN)).over(up_to_here),
            _PLACE: F.row_number().over(ordered),
        }
    )
    begins = F.when(_column(_SO_FAR) == _column(_SIGN), F.struct(_column(_ORDINAL), _column(_SNAPSHOT)))
    rows = rows.withColumn(_START, F.last(begins, ignorenulls=True).over(all_rows))
    rows = rows.filter(_column(_PLACE) <= F.abs(_column(_TOTAL)))
    return rows.withColumns(
        {
            _TYPE: F.when(_column(_TOTAL) > 0, INSERT).otherwise(DELETE),
            _ORDINAL: _column(_START).getField(_ORDINAL),
            _SNAPSHOT: _column(_START).getField(_SNAPSHOT),
        }
    )


def _images(rows: DataFrame, rules: MatchRules) -> DataFrame:
    """A deleted and an inserted row that identifier columns identify, as images of an update."""
    group = [*rules.identifiers] if rules.net else [*rules.identifiers, _ORDINAL]
    whole = Window.partitionBy(*map(_column, group))
    rows = rows.withColumns(
        {
            _DELETES: _count(DELETE).over(whole),
            _PLACE: F.row_number().over(whole.orderBy(_column(_TYPE), _column(_HASH))),
            _INSERTS: _count(INSERT).over(whole),
        }
    )
    names = ", ".join(f"`{name}`" for name in rules.identifiers)
    several = f"expected rows that {names} identify to compute updates, found several of one identity"
    is_deleted, place = _column(_TYPE) == DELETE, _column(_PLACE)
    word = (
        F.when((_column(_DELETES) == 0) | (_column(_INSERTS) == 0), _column(_TYPE))
        .when(_column(_DELETES) > 1, F.raise_error(F.lit(several)).cast("string"))
        .when(place > 2, _column(_TYPE))  # noqa: PLR2004
        .otherwise(F.when(is_deleted, UPDATE_BEFORE).otherwise(UPDATE_AFTER))
    )
    return rows.withColumn(_TYPE, word)


def _images_by_row_id(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The same by row ids, which must be unique; equal images are left out."""
    own = F.coalesce(_column(ROW_ID.name), F.lit(-1) - F.monotonically_increasing_id())
    rows = rows.withColumn(_IDENTITY, own)
    group = Window.partitionBy(_column(_IDENTITY), _column(_ORDINAL))
    values = F.collect_set(F.struct(*map(_column, keys)))
    rows = rows.withColumns(
        {
            _IMAGE: (_count(DELETE).over(group) == 1) & (_count(INSERT).over(group) == 1),
            _TOTAL: F.size(values.over(group)),
        }
    )
    rows = rows.filter(~_column(_IMAGE) | (_column(_TOTAL) > 1))
    image = F.when(_column(_TYPE) == DELETE, UPDATE_BEFORE).otherwise(UPDATE_AFTER)
    return rows.withColumn(_TYPE, F.when(_column(_IMAGE), image).otherwise(_column(_TYPE)))


def _count(word: str) -> Column:
    return F.count(F.when(_column(_TYPE) == word, 1))


def _needs_text(kind: T.DataType) -> bool:
    """Whether Spark compares values otherwise than by all their bits, or not at all."""
    match kind:
        case T.FloatType() | T.DoubleType() | T.MapType() | T.VariantType():
            return True
        case T.ArrayType():
            return _needs_text(kind.elementType)
        case T.StructType():
            return any(_needs_text(f.dataType) for f in kind)
    return False


def _comparable(value: Column, kind: T.DataType) -> Column:
    """A value that is equal to another if and only if all of both is."""
    match kind:
        case T.FloatType() | T.DoubleType():
            return value.cast("string")  # 0.0 and -0.0 are two texts
        case T.VariantType():
            return F.when(value.isNotNull(), F.struct(F.to_json(value), F.schema_of_variant(value)))
        case T.MapType():
            entry = T.StructType([T.StructField("key", kind.keyType), T.StructField("value", kind.valueType)])
            return _comparable(F.map_entries(value), T.ArrayType(entry))
        case T.ArrayType() if _needs_text(kind.elementType):
            return F.transform(value, lambda element: _comparable(element, kind.elementType))
        case T.StructType() if _needs_text(kind):
            fields = [_comparable(value.getField(f.name), f.dataType).alias(f.name) for f in kind]
            return F.when(value.isNotNull(), F.struct(*fields))
    return value


def _column(name: str) -> Column:
    return F.col(back_quoted(name))


def _missing(reason: str, kind: T.DataType) -> Column:
    error = F.raise_error(F.lit(reason))
    return error if isinstance(kind, T.NullType) else error.cast(kind)
