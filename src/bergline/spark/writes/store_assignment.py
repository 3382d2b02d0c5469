"""Spark's store assignment: whether a value of one type may go into a column of another, and the cast for it.

What may go where is a setting of the session, and so is whether names that differ in case are the same.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)
from pyspark.sql import types as T  # noqa: N812

from bergline.errors import UnsupportedError
from bergline.spark.backends.choose import backend_class
from bergline.spark.writes.projection import SqlOrColumn

_POLICY = "spark.sql.storeAssignmentPolicy"
_CASE_SENSITIVE = "spark.sql.caseSensitive"
_NULLS = "spark.sql.defaultColumn.useNullsForMissingDefaultValues"
_INCOMPATIBLE = "INCOMPATIBLE_DATA_FOR_TABLE"
_TIMES = (T.DateType, T.TimestampType, T.TimestampNTZType)
_WIDTHS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType)
"""Numbers from narrow to wide, in Spark's order: what is lost of a `bigint` as a `float` does not count."""
_DIGITS = {T.ByteType: 3, T.ShortType: 5, T.IntegerType: 10, T.LongType: 20}
"""How many digits a decimal needs for any whole number of a type, as Spark counts them."""
_UPCASTS = {
    (T.DateType, T.TimestampType),
    (T.DateType, T.TimestampNTZType),
    (T.TimestampNTZType, T.TimestampType),
    (T.TimestampType, T.TimestampNTZType),
    (T.TimestampType, T.LongType),
    (T.LongType, T.TimestampType),
}


class AssignmentRules(NamedTuple):
    """What a session's settings say about values that are stored."""

    policy: str = "ANSI"
    is_case_sensitive: bool = False
    nulls_for_missing: bool = True
    """Whether a column without a value and without a default gets null."""

    def same_name(self, one: str, other: str) -> bool:
        """Whether two names mean the same column, or field."""
        return self.key_of(one) == self.key_of(other)

    def key_of(self, name: str) -> str:
        """What names that mean the same have in common."""
        return name if self.is_case_sensitive else name.casefold()

    def check_has_policy(self) -> None:
        """Refuse the policy that Spark refuses for tables like ours."""
        if self.policy == "LEGACY":
            message = f"expected ANSI or STRICT as {_POLICY}, found LEGACY, which Spark has for its own tables only"
            raise UnsupportedError(message, condition="_LEGACY_ERROR_TEMP_1000")


def assignment_rules(spark: SparkSession) -> AssignmentRules:
    """What the settings of a session say now."""
    policy, is_case_sensitive, nulls = (str(spark.conf.get(name)) for name in (_POLICY, _CASE_SENSITIVE, _NULLS))
    return AssignmentRules(policy.upper(), is_case_sensitive.lower() == "true", nulls.lower() == "true")


class Misfit(NamedTuple):
    """A type that does not fit, and where inside the column."""

    path: str
    expected: str
    found: str
    condition: str = f"{_INCOMPATIBLE}.CANNOT_SAFELY_CAST"


def find_misfit(
    source: T.DataType, target: T.DataType, path: str, rules: AssignmentRules, *, by_name: bool
) -> Misfit | None:
    """The first place where a value of one type cannot be stored as another; None if all fits."""
    match source, target:
        case T.ArrayType(), T.ArrayType():
            return find_misfit(source.elementType, target.elementType, f"{path}.element", rules, by_name=by_name)
        case T.MapType(), T.MapType():
            return find_misfit(source.keyType, target.keyType, f"{path}.key", rules, by_name=by_name) or find_misfit(
                source.valueType, target.valueType, f"{path}.value", rules, by_name=by_name
            )
        case T.StructType(), T.StructType():
            return _struct_misfit(source, target, path, rules, by_name=by_name)
    if (_is_wider if rules.policy == "STRICT" else _fits)(source, target):
        return None
    return Misfit(path, f"`{target.simpleString()}`", f"`{source.simpleString()}`")


def stored_value(
    text: str, source: T.DataType, target: T.DataType, rules: AssignmentRules, *, by_name: bool, column: str
) -> SqlOrColumn:
    """The value of an SQL text as it is stored in a column; the types must fit.

    By name, fields that a struct lacks are left to the writer. A number that is too large is an error that names the
    column.
    """
    if plain_type(source) == plain_type(target):
        return text
    if _casts_alike(source, target):
        return f"CAST({text} AS {atomic_name(target)})"
    return _stored(F.expr(text), source, target, rules, by_name=by_name, column=column)


def atomic_name(type_: T.DataType) -> str:
    """What an SQL text calls a type that is not nested, whatever the session means by a timestamp."""
    return "timestamp_ltz" if isinstance(type_, T.TimestampType) else type_.simpleString()


def _casts_alike(source: T.DataType, target: T.DataType) -> bool:
    """Whether a cast cannot fail and is the same under all settings, so that SQL text says it."""
    match source, target:
        case T.NullType(), _:
            return isinstance(target, (T.NumericType, T.BooleanType, T.BinaryType, *_TIMES))
        case T.DecimalType(), T.FloatType() | T.DoubleType():
            return True
        case T.NumericType(), T.NumericType():
            return _is_wider(source, target)
    return isinstance(source, _TIMES) and isinstance(target, _TIMES)


def _stored(
    value: Column,
    source: T.DataType,
    target: T.DataType,
    rules: AssignmentRules,
    *,
    by_name: bool,
    column: str | None = None,
) -> Column:
    if plain_type(source) == plain_type(target):
        return value
    if isinstance(source, T.NullType) or not (by_name and _has_struct(target)):
        return ansi_cast(value, plain_type(target), column)

    def inner(child: Column, source: T.DataType, target: T.DataType) -> Column:
        return _stored(child, source, target, rules, by_name=by_name)

    match source, target:
        case T.StructType(), T.StructType():
            pairs = _pairs_by_name(source, target, rules)
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


def _is_wider(source: T.DataType, target: T.DataType) -> bool:
    """Whether the target holds every value of the source, as Spark's policy STRICT has it; none holds a bare NULL."""
    if not isinstance(source, T.AtomicType):
        return not isinstance(source, T.NullType) and plain_type(source) == plain_type(target)
    kinds = type(source), type(target)
    if isinstance(target, T.StringType) or kinds in _UPCASTS or plain_type(source) == plain_type(target):
        return True
    match source, target:
        case T.DecimalType(), T.DecimalType():
            whole = target.precision - target.scale >= source.precision - source.scale
            return whole and target.scale >= source.scale
        case T.DecimalType(), T.IntegralType():
            return source.scale == 0 and source.precision < _DIGITS[type(target)]
        case T.IntegralType(), T.DecimalType():
            return target.precision - target.scale >= _DIGITS[type(source)]
    return all(kind in _WIDTHS for kind in kinds) and _WIDTHS.index(kinds[0]) < _WIDTHS.index(kinds[1])


def _struct_misfit(
    source: T.StructType, target: T.StructType, path: str, rules: AssignmentRules, *, by_name: bool
) -> Misfit | None:
    if by_name:
        found = zip(source, _fields_named(target, source.names, rules), strict=True)
        if unknown := [s.name for s, field in found if field is None]:
            lacks = None in _fields_named(source, target.names, rules)
            condition = f"{_INCOMPATIBLE}.{'CANNOT_FIND_DATA' if lacks else 'EXTRA_STRUCT_FIELDS'}"
            return Misfit(path, f"fields {_names(target)}", f"`{unknown[0]}`", condition)
        pairs = list(_pairs_by_name(source, target, rules))
        if twice := next((t.name for (_, t), (_, other) in pairwise(pairs) if t is other), None):
            return Misfit(path, f"field `{twice}` once", "it twice", f"{_INCOMPATIBLE}.AMBIGUOUS_COLUMN_NAME")
    else:
        if len(source) != len(target):
            condition = (
                f"{_INCOMPATIBLE}.{'STRUCT_MISSING_FIELDS' if len(source) < len(target) else 'EXTRA_STRUCT_FIELDS'}"
            )
            given = f"{len(source)} ({_names(source)})"
            return Misfit(path, f"{len(target)} fields ({_names(target)})", given, condition)
        pairs = list(zip(source, target, strict=True))
    misfits = (find_misfit(s.dataType, t.dataType, f"{path}.{t.name}", rules, by_name=by_name) for s, t in pairs)
    return next((misfit for misfit in misfits if misfit), None)


def _pairs_by_name(
    source: T.StructType, target: T.StructType, rules: AssignmentRules
) -> Iterator[tuple[T.StructField, T.StructField]]:
    """The source's fields in the target's order."""
    places = {id(field): place for place, field in enumerate(target)}
    found = zip(source, _fields_named(target, source.names, rules), strict=True)
    pairs = ((candidate, field) for candidate, field in found if field is not None)
    yield from sorted(pairs, key=lambda pair: places[id(pair[1])])


def _fields_named(struct: T.StructType, names: Iterable[str], rules: AssignmentRules) -> Iterator[T.StructField | None]:
    """The field of each name: an exact match first, then by what the settings say. Structs may have many fields."""
    exact = {field.name: field for field in reversed(struct.fields)}
    alike: dict[str, list[T.StructField]] = {}
    for field in struct:
        alike.setdefault(rules.key_of(field.name), []).append(field)
    for name in names:
        others = alike.get(rules.key_of(name), [])
        yield exact.get(name) or (others[0] if len(others) == 1 else None)


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
