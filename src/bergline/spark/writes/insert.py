"""INSERT on lake tables: writes the query's rows as PARTITION, column list, REPLACE WHERE and options say."""

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)
from pyspark.sql import types as T  # noqa: N812

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.expressions.bound_filter import BoundFilter
from bergline.format.partition.transforms import Identity
from bergline.spark.pushdown.condition import exact_condition, exact_equality
from bergline.spark.runtime.types import spark_type
from bergline.spark.writes.assignment import assign, top_level
from bergline.spark.writes.evolution import evolved, merges_schema, taken_columns
from bergline.spark.writes.options import OverwriteMode, WriteOptions, parse_write_options
from bergline.spark.writes.rows import TableWrite
from bergline.spark.writes.scope import WritingSession
from bergline.spark.writes.store_assignment import ansi_cast, assignment_rules
from bergline.spark.writes.target import resolve_write_target
from bergline.sql.names.resolve import Target
from bergline.sql.queries.query import Insert
from bergline.table.engine.row_engine import RowEngine
from bergline.table.table import Table

_NO_PARTITION = "NON_PARTITION_COLUMN"
_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
_KEPT_LITERAL = "spark.sql.legacy.keepPartitionSpecAsStringLiteral"
_KEPT_NULL = "spark.sql.legacy.parseNullPartitionSpecAsStringLiteral"


def run_insert(
    session: WritingSession, insert: Insert, target: Target, source: DataFrame, *, engine: RowEngine
) -> None:
    """Write the rows of an INSERT's query; the engine rewrites files of which it replaces some rows."""
    options = parse_write_options(insert.options)
    if insert.if_not_exists:
        raise UnsupportedError("cannot run INSERT with IF NOT EXISTS on lake tables")
    write_target = resolve_write_target(session, target, options.branch)
    columns: Sequence[str] | None = insert.columns
    taken = T.StructType()
    if insert.schema_evolution or merges_schema(target.table, options):
        columns, taken = _evolving_columns(insert, source, target.table)
    with evolved(target, taken) as changing:
        spark, table = session.spark, changing.table
        write = TableWrite(spark, table, write_target, options)
        statics = static_values(spark, insert.partition, table)
        condition = insert.replace_where
        row_filter = None if condition is None else exact_condition(spark, table.schema, condition)
        rows = assign(source, table.schema, by_name=insert.by_name, columns=columns, constants=statics)
        if row_filter is None and insert.overwrite and _overwrite_mode(spark, options) == "static":
            row_filter = _static_filter(spark, table, statics)
        if row_filter is not None:
            write.overwrite_where(rows, row_filter, engine)
        elif not insert.overwrite:
            write.append(rows)
        else:
            overwrite_rows(spark, write, rows, options)


def _evolving_columns(insert: Insert, source: DataFrame, table: Table) -> tuple[Sequence[str] | None, T.StructType]:
    """The columns that a query's go to, by position, and what the table takes over of them.

    Without a list they are the table's, then new ones by the query's names.
    """
    if insert.by_name:
        return None, taken_columns(source.schema, table)
    names: Sequence[str] | None = insert.columns
    if names is None:
        given = {name.casefold() for name, value in insert.partition if value is not None}
        known = [field.name for field in table.schema.fields if field.name.casefold() not in given]
        names = [*known[: len(source.columns)], *source.columns[len(known) :]]
        if len(source.columns) < len(known):
            return None, T.StructType()  # the assignment says that there are too few
    if len(names) != len(source.columns):
        return names, T.StructType()
    fields = zip(names, source.schema.fields, strict=True)
    return names, taken_columns(
        T.StructType([T.StructField(n, f.dataType, True, f.metadata) for n, f in fields]), table
    )


def overwrite_rows(spark: SparkSession, write: TableWrite, rows: DataFrame, options: WriteOptions) -> None:
    """Replace the partitions that the rows are in, or all rows, by the session's overwrite mode."""
    mode = _overwrite_mode(spark, options)
    match mode:
        case "dynamic":
            write.overwrite_partitions(rows)
        case "static":
            write.overwrite(rows)
        case _:
            assert_never(mode)


def _overwrite_mode(spark: SparkSession, options: WriteOptions) -> OverwriteMode:
    return options.overwrite_mode or _session_mode(spark)


def _session_mode(spark: SparkSession) -> OverwriteMode:
    return "dynamic" if str(spark.conf.get(_OVERWRITE_MODE)).lower() == "dynamic" else "static"


def static_values(spark: SparkSession, partition: Iterable[tuple[str, str | None]], table: Table) -> dict[str, Column]:
    """The columns of PARTITION (…) that have values; all of them must be partition columns as they are."""
    given = list(partition)
    if not given:
        return {}
    rules = assignment_rules(spark)
    sources = [f.source_id for f in table.spec.fields if isinstance(f.transform, Identity)]
    identities = [f.name for f in table.schema.fields if f.id in sources]
    statics: dict[str, Column] = {}
    seen: set[str] = set()
    for name, value in given:
        field = top_level(table.schema, name, rules, _NO_PARTITION)
        if field.name not in identities:
            columns = ", ".join(f"`{n}`" for n in identities) or "none"
            raise InvalidInputError(
                f"expected columns that the table is partitioned by as they are ({columns}), found `{name}`",
                condition=_NO_PARTITION,
            )
        if field.name in seen:
            message = f"expected `{field.name}` once in PARTITION, found it twice"
            raise InvalidInputError(message, condition="DUPLICATE_KEY")
        seen.add(field.name)
        if value is not None:
            is_text = value[0] not in "'\"" and _is_text(spark, value)
            found = F.lit(value) if is_text else F.expr(value)
            statics[field.name] = ansi_cast(found, spark_type(field.type, field.name), field.name)
    return statics


def _is_text(spark: SparkSession, value: str) -> bool:
    """Whether a value of PARTITION that is not in quotes means its own text: settings may say so."""
    names = [_KEPT_LITERAL, *([_KEPT_NULL] if value.upper() == "NULL" else [])]
    return any(str(spark.conf.get(name)).lower() == "true" for name in names)


def _static_filter(spark: SparkSession, table: Table, statics: Mapping[str, Column]) -> BoundFilter | None:
    """The rows that have the static values; None for all rows."""
    return exact_equality(spark, table.schema, statics) if statics else None
