"""The new columns of rows that UPDATE and MERGE assign values to, by Spark's store assignment."""

from collections.abc import Mapping

from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import NestedField, StructType
from bergline.quoting import back_quoted
from bergline.spark.query_text.assigned_fields import AssignedField
from bergline.spark.runtime.types import is_cut, spark_type
from bergline.spark.writes.projection import SqlOrColumn
from bergline.spark.writes.store_assignment import AssignmentRules, find_misfit, stored_value
from bergline.sql.text.tokens import Name

_UNSAFE = "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST"


def assigned_value(
    text: str, found: T.DataType, assigned: AssignedField, rules: AssignmentRules, place: str = ""
) -> SqlOrColumn:
    """The value of an SQL text, of some type, as it is stored in a field.

    Structs go by the names of their fields, and need all of them. InvalidInputError, which ends with the place, for a
    type that does not fit.
    """
    rules.check_has_policy()
    path = ".".join(assigned.path)
    target = spark_type(assigned.field.type, path)
    misfit = find_misfit(found, target, path, rules, by_name=True)
    if misfit is not None:
        message = f"expected {misfit.expected}, found {misfit.found} for column `{misfit.path}`{place}"
        raise InvalidInputError(message, condition=misfit.condition)
    if lacking := _lacking(found, target, path, rules):
        message = f"expected a value for field `{lacking}`, found none in the struct{place}"
        raise InvalidInputError(message, condition="INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_FIND_DATA")
    return stored_value(text, found, target, rules, by_name=True, column=path)


def updated_columns(schema: Schema, values: Mapping[Name, str], old: Mapping[str, str]) -> dict[str, str]:
    """All columns of a table as texts: values, by the path of what they are assigned to, and else what was there."""
    return {field.name: _updated(field, (field.name,), values, old[field.name]) for field in schema.fields}


def _updated(field: NestedField, path: Name, values: Mapping[Name, str], old: str) -> str:
    if path in values:
        return values[path]
    if not isinstance(field.type, StructType) or not any(other[: len(path)] == path for other in values):
        if is_cut(field.type):
            raise UnsupportedError(
                f"cannot update rows on Spark, which would cut the nanoseconds of column `{'.'.join(path)}`",
                hints=["give the column a value too, or update the rows in Python: table.update(…)"],
            )
        return old
    names = [(child, back_quoted(child.name)) for child in field.type.fields]
    inner = (f"{_updated(c, (*path, c.name), values, f'{old}.{name}')} AS {name}" for c, name in names)
    return f"struct({', '.join(inner)})"


def _lacking(found: T.DataType, target: T.DataType, path: str, rules: AssignmentRules) -> str | None:
    """The first field of a struct that a value does not have; a null has all."""
    match found, target:
        case T.ArrayType(), T.ArrayType():
            return _lacking(found.elementType, target.elementType, f"{path}.element", rules)
        case T.MapType(), T.MapType():
            return _lacking(found.keyType, target.keyType, f"{path}.key", rules) or _lacking(
                found.valueType, target.valueType, f"{path}.value", rules
            )
        case T.StructType(), T.StructType():
            for field in target:
                source = next((given for given in found if rules.same_name(given.name, field.name)), None)
                inner = f"{path}.{field.name}"
                if source is None:
                    return inner
                if lacking := _lacking(source.dataType, field.dataType, inner, rules):
                    return lacking
    return None
