"""`table.update`, `upsert` and `merge` on executors: Spark finds the rows that change, and writes their new versions.

Only the source rows, file names, counts and positions are in the driver's memory.
"""

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.arguments import shown
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.reserved import METADATA_COLUMNS
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    DATE,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARIANT,
    MapType,
    NestedField,
    child_fields,
    walk_fields,
)
from bergline.io.fileio import FileIO
from bergline.quoting import back_quoted, back_quoted_path
from bergline.scan.plan import ScanPlan
from bergline.spark.backends.choose import session_backend
from bergline.spark.merge.changes import BY_SOURCE, checks_cardinality, merge_changes
from bergline.spark.merge.frames import FrameClause, FrameMerge, frame_clauses
from bergline.spark.merge.several_sources import SeveralSources
from bergline.spark.query_text.assigned_fields import assigned_fields, default_literal, qualifiers_of
from bergline.spark.reads.planning import ReadPlan
from bergline.spark.reads.scan import read_plan
from bergline.spark.rows.change_task import ADDS, DELETES
from bergline.spark.rows.changes import ChangedRows, write_changes
from bergline.spark.rows.engine import SparkRowEngine
from bergline.spark.rows.statements import changed_twice, place_columns, update_changes
from bergline.spark.runtime.arrow_rows import arrow_frame
from bergline.spark.runtime.backend import check_running
from bergline.spark.writes.store_assignment import AssignmentRules
from bergline.sql.text.names import parse_name
from bergline.table.engine.row_engine import RowEngine
from bergline.table.operations.row_changes import RowChanges
from bergline.table.row_merges.clauses import TARGET, RowCounts, RowMergeRequest, UpdateRequest, ValueClause
from bergline.table.row_merges.find_changes import MergeChanges
from bergline.table.row_merges.source import SourceRows

_LITERALS: Final = (bool, int, float, Decimal, str, bytes, type(None))


def row_engine(spark: SparkSession) -> RowEngine:
    """What Table methods take as `engine`, to find, rewrite and delete rows on a session's executors."""
    check_running(session_backend(spark))
    return SparkMergeEngine(spark)


class SparkMergeEngine(SparkRowEngine):
    """A row engine that also finds the rows that an update or a merge changes."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self._spark = spark

    def find_changes(
        self,
        io: FileIO,
        metadata: TableMetadata,
        read: ScanPlan,
        request: RowMergeRequest | UpdateRequest,
        source: SourceRows,
    ) -> MergeChanges:
        """Join the rows of a scan with the source, and write what becomes of them; an error leaves no file."""
        self._prepare(metadata.location)
        places = tuple(METADATA_COLUMNS[name] for name in place_columns(metadata))
        wanted = Schema(fields=(*places, *metadata.schema.fields))
        target = read_plan(msgspec.structs.replace(read, schema=wanted), self._spark, io)
        if isinstance(request, UpdateRequest):
            changes = _update_frame(request, target, metadata)
            return _merge_changes(write_changes(changes, io, metadata, "update", ReadPlan(read), twice=changed_twice))
        merge = self._frame_merge(request, metadata, source)
        changes = merge_changes(merge.joined(target), merge.clauses, metadata, AssignmentRules())
        on = _condition(request, metadata.schema)
        several = SeveralSources(lambda _: read, on, request.target_alias, metadata.schema, io, self._spark)
        twice = several if checks_cardinality(request.clauses) else None
        return _merge_changes(write_changes(changes, io, metadata, "merge", ReadPlan(read), twice=twice))

    def _frame_merge(self, request: RowMergeRequest, metadata: TableMetadata, source: SourceRows) -> FrameMerge:
        schema = metadata.schema
        rows = arrow_frame(self._spark, source.table).alias(request.source_alias)
        clauses = [_frame_clause(clause, request, schema, source.schema) for clause in request.clauses]
        return FrameMerge(
            rows,
            F.expr(_condition(request, schema)),
            frame_clauses(clauses, schema, (request.target_alias,), source.table.column_names, evolves=False),
            (request.target_alias,),
            metadata,
        )


def _merge_changes(changed: ChangedRows) -> MergeChanges:
    counts, updated = changed.counts, DELETES | ADDS
    rows_updated = counts.get(updated, 0) + counts.get(updated | BY_SOURCE, 0)
    gone = sum(map(len, changed.deleted.values()))
    return MergeChanges(
        RowChanges(changed.deleted, changed.added),
        RowCounts(rows_updated, counts.get(ADDS, 0), gone - rows_updated),
    )


def _update_frame(request: UpdateRequest, target: DataFrame, metadata: TableMetadata) -> DataFrame:
    if request.where is not None and not isinstance(request.where, str):
        raise UnsupportedError(f"expected a condition as SQL text with an engine, found {shown(request.where)}")
    rows = target.alias(TARGET)
    rows = rows if request.where is None else rows.where(F.expr(request.where))
    names = [(parse_name(name, "a column name"), "") for name in request.values]
    fields = assigned_fields(names, metadata.schema, qualifiers_of((TARGET,), None))
    values = [_value(value, f.field) for value, f in zip(request.values.values(), fields, strict=True)]
    own = [F.col(back_quoted(name)) for name in target.columns]
    return update_changes(rows.select(*own, *values), fields, metadata, AssignmentRules())


def _frame_clause(clause: ValueClause, request: RowMergeRequest, target: Schema, source: Schema) -> FrameClause:
    condition = None if clause.condition is None else F.expr(clause.condition)
    if clause.action == "delete" or (clause.has_star and not request.partial):
        return FrameClause(clause.when, clause.action, condition)
    if clause.values is not None:
        fields = assigned_fields(
            [(parse_name(name, "a column name"), "") for name in clause.values],
            target,
            qualifiers_of((request.target_alias,), None),
        )
        pairs = zip(clause.values.items(), fields, strict=True)
        given = {name: _value(value, assigned.field) for (name, value), assigned in pairs}
        return FrameClause(clause.when, clause.action, condition, given)
    present = [field for field in target.fields if field.name in source.names]
    values = {back_quoted(f.name): F.expr(back_quoted_path((request.source_alias, f.name))) for f in present}
    if clause.action == "insert":
        return FrameClause(clause.when, clause.action, condition, values)
    others = [f for f in present if f.name not in request.on]
    changed = {name: value for name, value in values.items() if name in {back_quoted(f.name) for f in others}}
    return FrameClause(clause.when, clause.action, _differs(others, request), changed)


def _differs(fields: list[NestedField], request: RowMergeRequest) -> Column:
    """Whether a source row would change one of these columns."""
    same = F.lit(True)
    for field in fields:
        sides = [back_quoted_path((alias, field.name)) for alias in (request.target_alias, request.source_alias)]
        if isinstance(field.type, MapType):  # Spark does not compare maps
            sides = [f"map_entries({side})" for side in sides]
        if field.type == VARIANT:  # nor variants: text and types together tell them apart
            sides = [f"struct(to_json({side}), schema_of_variant({side}))" for side in sides]
        elif any(inner.type == VARIANT for _, inner in walk_fields(child_fields(field.type))):
            return F.lit(True)
        same = same & F.expr(f"{sides[0]} <=> {sides[1]}")
    return ~same


def _condition(request: RowMergeRequest, target: Schema) -> str:
    if isinstance(request.on, str):
        return request.on
    paths = [target.paths[target.find(name).id] for name in request.on]
    aliases = (request.target_alias, request.source_alias)
    return " AND ".join(" = ".join(back_quoted_path((alias, *path)) for alias in aliases) for path in paths)


def _value(value: Any, field: NestedField) -> Column:
    """SQL text, or a Python value as a literal."""
    if isinstance(value, str):
        return F.expr(default_literal(field) if value.strip().upper() == "DEFAULT" else value)
    plain = value.as_py() if isinstance(value, pa.Scalar) else value
    plain = str(plain) if isinstance(plain, uuid.UUID) else plain
    if isinstance(plain, dt.date):
        return _time_literal(plain, field)
    if not isinstance(plain, _LITERALS):
        raise UnsupportedError(f"expected a plain value or SQL text with an engine, found {shown(value)}")
    return F.lit(plain)


def _time_literal(value: dt.date, field: NestedField) -> Column:
    """A date or time as given, whatever the time zones of the session and of this process are.

    It fits only columns that have a zone if it has one, as without an engine.
    """
    kind, text = DATE, f"DATE '{value.isoformat()}'"
    if isinstance(value, dt.datetime):
        kind, text = TIMESTAMP, f"TIMESTAMP_NTZ '{value.isoformat(' ')}'"
        if value.utcoffset() is not None:
            kind, text = TIMESTAMPTZ, f"TIMESTAMP_LTZ '{value.astimezone(dt.UTC).isoformat(' ')}'"
    if field.type != kind:
        raise InvalidInputError(f"expected `{field.type}` for column `{field.name}`, found {shown(value)}")
    return F.expr(text)
