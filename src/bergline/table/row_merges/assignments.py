"""SET and INSERT lists bound to a table's columns: the value of a row for each column."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa

from bergline.arguments import check_text, shown
from bergline.datafiles.file.arrow_schema import arrow_field
from bergline.datafiles.write.fit import fit_to_schema
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.schema.schema import Schema
from bergline.format.types.defaults import write_value
from bergline.format.types.types import NestedField, child_fields
from bergline.table.row_expressions.casts import assigned, check_whole, is_number
from bergline.table.row_expressions.parse import Names, number_literal, parse_expression
from bergline.table.row_expressions.rows import (
    ColumnPlace,
    RowExpression,
    Rows,
    column_expression,
    literal_expression,
    places_of,
)

Assignments = Mapping[str, RowExpression]
"""Values by top-level column, of the column's type."""


def bind_update(values: Mapping[str, Any], target: Schema, alias: str, names: Names) -> Assignments:
    """The columns that an UPDATE sets, complete ones for nested fields; the others keep their values."""
    given = _by_field(values, target, alias)
    top: dict[str, dict[tuple[str, ...], RowExpression]] = {}
    for field_id, (name, value) in given.items():
        path = target.paths[field_id]
        bound = bind_value(value, target.ids[field_id], name, names)
        top.setdefault(path[0], {})[path[1:]] = bound
    fields = {field.name: field for field in target.fields}
    return {name: _nested(fields[name], parts, ColumnPlace(alias, name), name) for name, parts in top.items()}


def bind_insert(values: Mapping[str, Any], target: Schema, alias: str, names: Names) -> Assignments:
    """The columns of a new row; those that are not given get their default, or null."""
    given = {}
    for field_id, (name, value) in _by_field(values, target, alias).items():
        if len(target.paths[field_id]) > 1:
            raise UnsupportedError(f"expected whole columns in an insert, found the nested `{name}`")
        given[target.ids[field_id].name] = bind_value(value, target.ids[field_id], name, names)
    return {field.name: given[field.name] if field.name in given else _absent(field) for field in target.fields}


def same_names(source: Schema, target: Schema, alias: str, heading: str, *, partial: bool) -> dict[str, RowExpression]:
    """The source's columns for the target's of the same name, exactly or ignoring case; all of them, unless partial."""
    found = {}
    for field in target.fields:
        match = _named(source, field.name)
        if match is not None:
            place = ColumnPlace(alias, match.name)
            value = column_expression(place, (), match.type, f"{alias}.{match.name}")
            found[field.name] = assigned(value, field, field.name)
        elif not partial:
            raise InvalidInputError(
                f"expected the source to have column `{field.name}` for {heading} of all columns, found "
                + (", ".join(f"`{f.name}`" for f in source.fields) or "none"),
                hints=["give the values of the columns one by one"],
            )
    return found


def with_defaults(given: Assignments, target: Schema) -> Assignments:
    """The columns of a new row, with defaults for those that are not given."""
    return {field.name: given[field.name] if field.name in given else _absent(field) for field in target.fields}


def bind_value(value: Any, field: NestedField, column: str, names: Names) -> RowExpression:
    """SQL text, or a Python value as a literal, converted to what the column stores."""
    if isinstance(value, str):
        if value.strip().upper() == "DEFAULT":
            return _absent(field)
        return assigned(parse_expression(value, names), field, column)
    return _python_value(value, field, column)


def _python_value(value: Any, field: NestedField, column: str) -> RowExpression:
    """Numbers are assigned like SQL literals, everything else like values of appended rows."""
    check_whole(pa.array([value.as_py()], value.type) if isinstance(value, pa.Scalar) else value, field, column)
    try:
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool) and is_number(field.type):
            one = assigned(number_literal(value, shown(value)), field, column).evaluate(Rows(1, {}))
        else:
            one = _fitting(value, field)
    except InvalidInputError as error:
        raise InvalidInputError(f"expected `{field.type}` for column `{column}`, found {shown(value)}") from error

    def run(rows: Rows) -> pa.Array:
        return one.take(pa.repeat(pa.scalar(0, pa.int64()), rows.count))

    return RowExpression(field.type, run, text=shown(value))


def _fitting(value: Any, field: NestedField) -> pa.Array:
    rows: Any = [{field.name: value}]
    if isinstance(value, pa.Scalar):
        rows = pa.table({field.name: pa.array([value.as_py()], value.type)})
    optional = msgspec.structs.replace(field, required=False)
    return fit_to_schema(rows, Schema(fields=(optional,))).column(0).combine_chunks()


def _by_field(values: Mapping[str, Any], target: Schema, alias: str) -> dict[int, tuple[str, Any]]:
    """The values by field id; refuses unknown columns, and two values for one place."""
    if not isinstance(values, Mapping) or not values:
        raise InvalidInputError(f"expected a value for at least one column, found {shown(values)}")
    found: dict[int, tuple[str, Any]] = {}
    for name, value in values.items():
        field = _find(check_text(name, "text for a column's name"), target, alias)
        path = target.paths.get(field.id)
        if path is None:
            raise UnsupportedError(f"expected a column outside lists and maps to set, found `{name}`")
        for other, (other_name, _) in found.items():
            known = target.paths[other]
            if path[: len(known)] == known or known[: len(path)] == path:
                raise InvalidInputError(f"expected one value for column `{name}`, found another for `{other_name}`")
        found[field.id] = (name, value)
    return found


def _find(name: str, target: Schema, alias: str) -> NestedField:
    first, _, rest = name.partition(".")
    try:
        return target.find(name)
    except NotFoundError:
        if rest and first.casefold() == alias.casefold():
            return target.find(rest)
        raise


def _named(schema: Schema, name: str) -> NestedField | None:
    for fold in (str, str.casefold):
        found = [f for f in schema.fields if fold(f.name) == fold(name)]
        if len(found) == 1:
            return found[0]
    return None


def _absent(field: NestedField) -> RowExpression:
    value = write_value(field)
    if value is None and field.required:
        raise InvalidInputError(f"expected a value for the required column `{field.name}`, found none")
    return literal_expression(field.type, value, "DEFAULT")


def _nested(
    field: NestedField, parts: Mapping[tuple[str, ...], RowExpression], place: ColumnPlace, name: str
) -> RowExpression:
    """A column with some of its nested fields replaced; if a struct was null, its other fields become null."""
    if () in parts:
        return parts[()]
    places = places_of(*parts.values()) | {place}
    return RowExpression(field.type, lambda rows: _replaced(rows.columns[place], field, parts, rows), places, name)


def _replaced(
    old: pa.Array, field: NestedField, parts: Mapping[tuple[str, ...], RowExpression], rows: Rows
) -> pa.Array:
    if () in parts:
        return parts[()].evaluate(rows)
    children, fields = [], child_fields(field.type)
    # not field(), which would show what is below a null struct
    for child, values in zip(fields, old.flatten(), strict=True):
        inside = {path[1:]: value for path, value in parts.items() if path[0] == child.name}
        children.append(_replaced(values, child, inside, rows) if inside else values)
    return pa.StructArray.from_arrays(children, fields=[arrow_field(child).with_nullable(True) for child in fields])
