"""Which column of a query goes to which column of a table, by Spark's ANSI store assignment, in one place."""

import contextlib
import threading
from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.errors import InvalidInputError
from bergline.format.schema import Schema
from bergline.spark.types import spark_schema

_ANSI = "spark.sql.ansi.enabled"
_ANSI_LOCK = threading.Lock()
_NUMBERS = (T.NumericType,)
_TIMES = (T.DateType, T.TimestampType, T.TimestampNTZType)
_ATOMIC = (T.AtomicType,)


def assign_by_position(frame: DataFrame, schema: Schema, columns: Sequence[str] | None) -> DataFrame:
    """INSERT: the query's columns in order go to the table's, or to those listed; the others become null."""
    targets = [f.name for f in schema.fields] if columns is None else [schema.find(c).name for c in columns]
    if len(set(targets)) != len(targets):
        raise InvalidInputError(f"expected each column once, found {_names(targets)}")
    if len(frame.columns) != len(targets):
        raise InvalidInputError(
            f"expected {len(targets)} columns ({_names(targets)}), found {len(frame.columns)} ({_names(frame.columns)})"
        )
    numbered = frame.toDF(*(f"_{i}" for i in range(len(targets))))
    return _assign(numbered, schema, {t: f"_{i}" for i, t in enumerate(targets)})


def assign_by_name(frame: DataFrame, schema: Schema) -> DataFrame:
    """DataFrame writes: columns of the same name; the others become null."""
    sources: dict[str, str] = {}
    for column in frame.columns:
        target = schema.find(column).name
        if target in sources:
            raise InvalidInputError(f"expected column `{target}` once, found `{sources[target]}` and `{column}`")
        sources[target] = column
    return _assign(frame, schema, sources)


def _assign(frame: DataFrame, schema: Schema, sources: dict[str, str]) -> DataFrame:
    fields = {f.name: f for f in spark_schema(schema)}
    chosen: list[Column] = []
    for column in schema.fields:
        field = fields[column.name]
        source = sources.get(column.name)
        if source is None:
            if column.required:
                raise InvalidInputError(f"expected a value for the required column `{column.name}`, found none")
            continue
        found = frame.schema[source].dataType
        if not can_store(found, field.dataType):
            raise InvalidInputError(
                f"expected `{field.dataType.simpleString()}`, found `{found.simpleString()}` for column `{column.name}`"
            )
        value = frame[f"`{source.replace('`', '``')}`"]
        same = _plain(found) == _plain(field.dataType)
        chosen.append((value if same else value.cast(_plain(field.dataType))).alias(column.name))
    with _ansi_casts(frame.sparkSession):
        return frame.select(*chosen)


def can_store(source: T.DataType, target: T.DataType) -> bool:
    """Spark's ANSI rule: whether a value of one type may be stored in a column of another."""
    match source, target:
        case T.NullType(), _:
            return True
        case T.ArrayType(), T.ArrayType():
            return can_store(source.elementType, target.elementType)
        case T.MapType(), T.MapType():
            return can_store(source.keyType, target.keyType) and can_store(source.valueType, target.valueType)
        case T.StructType(), T.StructType():
            return len(source) == len(target) and all(
                s.name == t.name and can_store(s.dataType, t.dataType) for s, t in zip(source, target, strict=True)
            )
        case T.StringType(), T.StringType():
            return True
        case T.StringType(), _:
            return False
        case _, T.StringType():
            return isinstance(source, _ATOMIC) and not isinstance(source, T.BinaryType)
    if isinstance(source, _NUMBERS) and isinstance(target, _NUMBERS):
        return True
    if isinstance(source, _TIMES) and isinstance(target, _TIMES):
        return True
    return _plain(source) == _plain(target)


def _plain(type_: T.DataType) -> T.DataType:
    """The type without field ids and nullability, for comparing and casting."""
    match type_:
        case T.ArrayType():
            return T.ArrayType(_plain(type_.elementType))
        case T.MapType():
            return T.MapType(_plain(type_.keyType), _plain(type_.valueType))
        case T.StructType():
            return T.StructType([T.StructField(f.name, _plain(f.dataType)) for f in type_])
        case T.StringType():
            return T.StringType()
    return type_


@contextlib.contextmanager
def _ansi_casts(spark: SparkSession) -> Iterator[None]:
    """Casts made here fail on overflow, whatever the session says: storing must never change a value."""
    with _ANSI_LOCK:
        before = str(spark.conf.get(_ANSI))
        if before == "true":
            yield
            return
        spark.conf.set(_ANSI, "true")
        try:
            yield
        finally:
            spark.conf.set(_ANSI, before)


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{n}`" for n in names) or "none"
