"""Which column of a query goes to which column of a table, by Spark's ANSI store assignment, in one place.

What does not fit is an AnalysisException with the condition that Spark gives it for its own tables.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame

from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.schema.schema import Schema
from bergline.format.types.defaults import write_value
from bergline.format.types.types import UNKNOWN, NestedField
from bergline.spark.runtime.types import spark_type
from bergline.spark.writes.store_assignment import ansi_cast, find_misfit, stored_value

_ARITY = "INSERT_COLUMN_ARITY_MISMATCH"
_INCOMPATIBLE = "INCOMPATIBLE_DATA_FOR_TABLE"


def assign(
    frame: DataFrame,
    schema: Schema,
    *,
    by_name: bool,
    columns: Sequence[str] | None = None,
    constants: Mapping[str, Column] | None = None,
) -> DataFrame:
    """The frame's rows with a table's columns, in order and type; InvalidInputError says which column does not fit.

    By position they go to the table's columns in order, or to those listed; by name to those of the same name.
    `constants` are columns that the query does not give. The others are left out: they have their default, or null.
    """
    given = {top_level(schema, name).name: value for name, value in (constants or {}).items()}
    sources = _by_name(frame, schema) if by_name else _by_position(frame, schema, columns, set(given))
    if both := [name for name in sources if name in given]:
        raise InvalidInputError(
            f"expected one value for column `{both[0]}`, found one in PARTITION and one in the query"
        )
    numbered = frame.toDF(*(f"_{i}" for i in range(len(frame.columns))))
    chosen: dict[str, Column] = {}
    for field in schema.fields:
        if field.type == UNKNOWN:  # it has nothing but nulls, which are not written
            if field.name in sources:
                _checked(numbered, sources[field.name], field, by_name=by_name)
            continue
        if field.name in given:
            value = ansi_cast(given[field.name], spark_type(field.type, field.name), field.name)
        elif field.name in sources:
            value = _checked(numbered, sources[field.name], field, by_name=by_name)
        else:
            _check_may_be_absent(field)
            continue
        chosen[field.name] = value
    return numbered.select(*chosen.values()).toDF(*chosen)


def top_level(schema: Schema, name: str, condition: str | None = None) -> NestedField:
    """The column of this name, in any case; NotFoundError with the near names."""
    for fold in (str, str.casefold):
        found = [f for f in schema.fields if fold(f.name) == fold(name)]
        if len(found) == 1:
            return found[0]
    known = [f.name for f in schema.fields]
    message = f"no column `{name}`: the table has {_names(known)}"
    raise NotFoundError(message, kind="column", name=name, known=known, condition=condition)


def _by_position(frame: DataFrame, schema: Schema, columns: Sequence[str] | None, given: set[str]) -> dict[str, int]:
    targets = [top_level(schema, c).name for c in columns] if columns is not None else [f.name for f in schema.fields]
    if columns is None:
        targets = [name for name in targets if name not in given]
    if len(set(targets)) != len(targets):
        message = f"expected each column once, found {_names(targets)}"
        raise InvalidInputError(message, condition="COLUMN_ALREADY_EXISTS")
    if len(frame.columns) != len(targets):
        message = f"expected {len(targets)} columns ({_names(targets)}), found {len(frame.columns)}"
        which = "NOT_ENOUGH" if len(frame.columns) < len(targets) else "TOO_MANY"
        raise InvalidInputError(f"{message} ({_names(frame.columns)})", condition=f"{_ARITY}.{which}_DATA_COLUMNS")
    return {target: position for position, target in enumerate(targets)}


def _by_name(frame: DataFrame, schema: Schema) -> dict[str, int]:
    sources: dict[str, int] = {}
    for position, column in enumerate(frame.columns):
        target = top_level(schema, column, f"{_INCOMPATIBLE}.EXTRA_COLUMNS").name
        if target in sources:
            message = f"expected column `{target}` once, found `{frame.columns[sources[target]]}` and `{column}`"
            raise InvalidInputError(message, condition=f"{_INCOMPATIBLE}.AMBIGUOUS_COLUMN_NAME")
        sources[target] = position
    return sources


def _checked(frame: DataFrame, position: int, field: NestedField, *, by_name: bool) -> Column:
    found, target = frame.schema[position].dataType, spark_type(field.type, field.name)
    if misfit := find_misfit(found, target, field.name, by_name=by_name):
        message = f"expected {misfit.expected}, found {misfit.found} for column `{misfit.path}`"
        raise InvalidInputError(message, condition=misfit.condition)
    return stored_value(frame[f"_{position}"], found, target, by_name=by_name, column=field.name)


def _check_may_be_absent(field: NestedField) -> None:
    if field.required and write_value(field) is None:
        message = f"expected a value for the required column `{field.name}`, found none"
        raise InvalidInputError(message, condition=f"{_INCOMPATIBLE}.CANNOT_FIND_DATA")


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{n}`" for n in names) or "none"
