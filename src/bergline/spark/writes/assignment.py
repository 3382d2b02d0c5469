"""Which column of a query goes to which column of a table, by Spark's store assignment, in one place.

What does not fit is an AnalysisException with the condition that Spark gives it for its own tables.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.schema.schema import Schema
from bergline.format.types.defaults import write_value
from bergline.format.types.types import UNKNOWN, NestedField
from bergline.quoting import back_quoted
from bergline.spark.backends.choose import backend_of
from bergline.spark.runtime.types import spark_type
from bergline.spark.writes.projection import SqlOrColumn, project
from bergline.spark.writes.store_assignment import (
    AssignmentRules,
    ansi_cast,
    assignment_rules,
    find_misfit,
    plain_type,
    stored_value,
)

_ARITY = "INSERT_COLUMN_ARITY_MISMATCH"
_INCOMPATIBLE = "INCOMPATIBLE_DATA_FOR_TABLE"


def assign(
    frame: DataFrame,
    schema: Schema,
    *,
    by_name: bool,
    columns: Sequence[str] | None = None,
    constants: Mapping[str, Column] | None = None,
    rules: AssignmentRules | None = None,
) -> DataFrame:
    """The frame's rows with a table's columns, in order and type; InvalidInputError says which column does not fit.

    By position they go to the table's columns in order, or to those listed; by name to those of the same name.
    `constants` are columns that the query does not give. The others are left out: they have their default, or null.
    The rules are what the session's settings say, unless they are given.
    """
    rules = assignment_rules(frame.sparkSession) if rules is None else rules
    if not _is_as_stored(frame, schema):
        rules.check_has_policy()
    given = {top_level(schema, name, rules).name: value for name, value in (constants or {}).items()}
    sources = _by_name(frame, schema, rules) if by_name else _by_position(frame, schema, rules, columns, set(given))
    if both := [name for name in sources if name in given]:
        raise InvalidInputError(
            f"expected one value for column `{both[0]}`, found one in PARTITION and one in the query"
        )
    types = [column.dataType for column in frame.schema]
    told, texts = _told_apart(frame)

    def stored(field: NestedField) -> SqlOrColumn:
        place = sources[field.name]
        return _checked(texts[place], types[place], field, rules, by_name=by_name)

    chosen: dict[str, SqlOrColumn] = {}
    for field in schema.fields:
        if field.type == UNKNOWN:  # it has nothing but nulls, which are not written
            if field.name in sources:
                stored(field)
            continue
        if field.name in given:
            value: SqlOrColumn = ansi_cast(given[field.name], spark_type(field.type, field.name), field.name)
        elif field.name in sources:
            value = stored(field)
        else:
            _check_may_be_absent(field, rules)
            continue
        chosen[field.name] = value
    return _projected(told, texts, chosen)


def top_level(schema: Schema, name: str, rules: AssignmentRules, condition: str | None = None) -> NestedField:
    """The column of this name, in any case unless the settings say otherwise; NotFoundError with the near names."""
    exact = [f for f in schema.fields if f.name == name]
    found = exact or [f for f in schema.fields if rules.same_name(f.name, name)]
    if len(found) == 1:
        return found[0]
    known = [f.name for f in schema.fields]
    message = f"no column `{name}`: the table has {_names(known)}"
    raise NotFoundError(message, kind="column", name=name, known=known, condition=condition)


def _projected(frame: DataFrame, texts: Sequence[str], chosen: Mapping[str, SqlOrColumn]) -> DataFrame:
    """The columns that were chosen; where these are all of the frame's as they are, there is nothing to do."""
    if [value if isinstance(value, str) else "" for value in chosen.values()] != texts:
        return project(frame, chosen.items())
    return frame if list(chosen) == frame.columns else backend_of(frame).with_names(frame, list(chosen))


def _told_apart(frame: DataFrame) -> tuple[DataFrame, list[str]]:
    """A frame, and its columns as SQL texts; they are numbered if several have one name."""
    names = frame.columns
    if len({name.casefold() for name in names}) == len(names):
        return frame, [back_quoted(name) for name in names]
    numbers = [f"_{position}" for position in range(len(names))]
    return backend_of(frame).with_names(frame, numbers), numbers


def _is_as_stored(frame: DataFrame, schema: Schema) -> bool:
    """Whether a frame has exactly the columns of a table: no policy has anything to say then."""
    wanted = [(f.name, plain_type(spark_type(f.type, f.name))) for f in schema.fields if f.type != UNKNOWN]
    return [(column.name, plain_type(column.dataType)) for column in frame.schema] == wanted


def _by_position(
    frame: DataFrame, schema: Schema, rules: AssignmentRules, columns: Sequence[str] | None, given: set[str]
) -> dict[str, int]:
    if columns is not None:
        targets = [top_level(schema, c, rules).name for c in columns]
    else:
        targets = [f.name for f in schema.fields if f.name not in given]
    if len(set(targets)) != len(targets):
        message = f"expected each column once, found {_names(targets)}"
        raise InvalidInputError(message, condition="COLUMN_ALREADY_EXISTS")
    if len(frame.columns) != len(targets):
        message = f"expected {len(targets)} columns ({_names(targets)}), found {len(frame.columns)}"
        which = "NOT_ENOUGH" if len(frame.columns) < len(targets) else "TOO_MANY"
        raise InvalidInputError(f"{message} ({_names(frame.columns)})", condition=f"{_ARITY}.{which}_DATA_COLUMNS")
    return {target: position for position, target in enumerate(targets)}


def _by_name(frame: DataFrame, schema: Schema, rules: AssignmentRules) -> dict[str, int]:
    sources: dict[str, int] = {}
    for position, column in enumerate(frame.columns):
        target = top_level(schema, column, rules, f"{_INCOMPATIBLE}.EXTRA_COLUMNS").name
        if target in sources:
            message = f"expected column `{target}` once, found `{frame.columns[sources[target]]}` and `{column}`"
            raise InvalidInputError(message, condition=f"{_INCOMPATIBLE}.AMBIGUOUS_COLUMN_NAME")
        sources[target] = position
    return sources


def _checked(text: str, found: T.DataType, field: NestedField, rules: AssignmentRules, *, by_name: bool) -> SqlOrColumn:
    target = spark_type(field.type, field.name)
    if misfit := find_misfit(found, target, field.name, rules, by_name=by_name):
        message = f"expected {misfit.expected}, found {misfit.found} for column `{misfit.path}`"
        raise InvalidInputError(message, condition=misfit.condition)
    return stored_value(text, found, target, rules, by_name=by_name, column=field.name)


def _check_may_be_absent(field: NestedField, rules: AssignmentRules) -> None:
    if (field.required or not rules.nulls_for_missing) and write_value(field) is None:
        kind = "required column" if field.required else "column"
        message = f"expected a value for the {kind} `{field.name}`, found none"
        raise InvalidInputError(message, condition=f"{_INCOMPATIBLE}.CANNOT_FIND_DATA")


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{n}`" for n in names) or "none"
