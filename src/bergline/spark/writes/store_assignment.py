"""Spark's ANSI store assignment: whether a value of one type may go into a column of another, and the cast for it."""

from collections.abc import Iterator
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)
from pyspark.sql import types as T  # noqa: N812

from bergline.spark.backends.choose import backend_class

_INCOMPATIBLE = "INCOMPATIBLE_DATA_FOR_TABLE"
_TIMES = (T.DateType, T.TimestampType, T.TimestampNTZType)


class Misfit(NamedTuple):
    """A type that does not fit, and where inside the column."""

    path: str
    expected: str
    found: str
    condition: str = f"{_INCOMPATIBLE}.CANNOT_SAFELY_CAST"


def find_misfit(source: T.DataType, target: T.DataType, path: str, *, by_name: bool) -> Misfit | None:
    """The first place where a value of one type cannot be stored as another; None if all fits."""
    match source, target:
        case T.ArrayType(), T.ArrayType():
            return find_misfit(source.elementType, target.elementType, f"{path}.element", by_name=by_name)
        case T.MapType(), T.MapType():
            return find_misfit(source.keyType, target.keyType, f"{path}.key", by_name=by_name) or find_misfit(
                source.valueType, target.valueType, f"{path}.value", by_name=by_name
            )
        case T.StructType(), T.StructType():
            return _struct_misfit(source, target, path, by_name=by_name)
    if _fits(source, target):
        return None
    return Misfit(path, f"`{target.simpleString()}`", f"`{source.simpleString()}`")


def stored_value(
    value: Column, source: T.DataType, target: T.DataType, *, by_name: bool, column: str | None = None
) -> Column:
    """The value as it is stored; the types must fit. By name, fields that a struct lacks are left to the writer.

    A number that is too large is an error that names the column.
    """
    if plain_type(source) == plain_type(target):
        return value
    if isinstance(source, T.NullType) or not (by_name and _has_struct(target)):
        return ansi_cast(value, plain_type(target), column)

    def inner(child: Column, source: T.DataType, target: T.DataType) -> Column:
        return stored_value(child, source, target, by_name=by_name)

    match source, target:
        case T.StructType(), T.StructType():
            pairs = _pairs_by_name(source, target)
            fields = [inner(value.getField(s.name), s.dataType, t.dataType).alias(t.name) for s, t in pairs]
            return F.when(value.isNotNull(), F.struct(*fields))
        case T.ArrayType(), T.ArrayType():
            return F.transform(value, lambda item: inner(item, source.elementType, target.elementType))
        case T.MapType(), T.MapType():
            keys = F.transform_keys(value, lambda k, _: inner(k, source.keyType, target.keyType))
            return F.transform_values(keys, lambda _, v: inner(v, source.valueType, target.valueType))
    return ansi_cast(value, plain_type(target))


def ansi_cast(value: Column, target: T.DataType, column: str | None = None) -> Column:
    """A cast that fails where a value does not fit, whatever `spark.sql.ansi.enabled` says; errors name the column."""
    return backend_class(value).ansi_cast(value, target, column)


def plain_type(type_: T.DataType) -> T.DataType:
    """The type without field ids and nullability, for comparing and casting."""
    match type_:
        case T.ArrayType():
            return T.ArrayType(plain_type(type_.elementType))
        case T.MapType():
            return T.MapType(plain_type(type_.keyType), plain_type(type_.valueType))
        case T.StructType():
            return T.StructType([T.StructField(f.name, plain_type(f.dataType)) for f in type_])
        case T.StringType():
            return T.StringType()
    return type_


def _fits(source: T.DataType, target: T.DataType) -> bool:
    if isinstance(source, T.NullType):
        return True
    if isinstance(target, T.StringType):
        return isinstance(source, T.AtomicType)
    if isinstance(source, T.NumericType) and isinstance(target, T.NumericType):
        return True
    if isinstance(source, _TIMES) and isinstance(target, _TIMES):
        return True
    return plain_type(source) == plain_type(target)


def _struct_misfit(source: T.StructType, target: T.StructType, path: str, *, by_name: bool) -> Misfit | None:
    if by_name:
        if unknown := [s.name for s in source if _field_named(target, s.name) is None]:
            lacks = any(_field_named(source, t.name) is None for t in target)
            condition = f"{_INCOMPATIBLE}.{'CANNOT_FIND_DATA' if lacks else 'EXTRA_STRUCT_FIELDS'}"
            return Misfit(path, f"fields {_names(target)}", f"`{unknown[0]}`", condition)
        pairs = list(_pairs_by_name(source, target))
        if twice := [t.name for _, t in pairs if [p.name for _, p in pairs].count(t.name) > 1]:
            return Misfit(path, f"field `{twice[0]}` once", "it twice", f"{_INCOMPATIBLE}.AMBIGUOUS_COLUMN_NAME")
    else:
        if len(source) != len(target):
            condition = (
                f"{_INCOMPATIBLE}.{'STRUCT_MISSING_FIELDS' if len(source) < len(target) else 'EXTRA_STRUCT_FIELDS'}"
            )
            found = f"{len(source)} ({_names(source)})"
            return Misfit(path, f"{len(target)} fields ({_names(target)})", found, condition)
        pairs = list(zip(source, target, strict=True))
    misfits = (find_misfit(s.dataType, t.dataType, f"{path}.{t.name}", by_name=by_name) for s, t in pairs)
    return next((misfit for misfit in misfits if misfit), None)


def _pairs_by_name(source: T.StructType, target: T.StructType) -> Iterator[tuple[T.StructField, T.StructField]]:
    """The source's fields in the target's order."""
    for field in target:
        for candidate in source:
            if _field_named(target, candidate.name) == field:
                yield candidate, field


def _field_named(struct: T.StructType, name: str) -> T.StructField | None:
    for fold in (str, str.casefold):
        found = [f for f in struct if fold(f.name) == fold(name)]
        if len(found) == 1:
            return found[0]
    return None


def _has_struct(type_: T.DataType) -> bool:
    match type_:
        case T.StructType():
            return True
        case T.ArrayType():
            return _has_struct(type_.elementType)
        case T.MapType():
            return _has_struct(type_.keyType) or _has_struct(type_.valueType)
    return False


def _names(struct: T.StructType) -> str:
    return ", ".join(f"`{f.name}`" for f in struct)
