"""Predicates on rows as predicates on the partition values of their files.

A projected predicate names the fields of the spec, and is evaluated with `partition_schema` as its schema.
"""

from collections.abc import Iterator

from bergline.errors import InvalidInputError
from bergline.expressions.fold import fold, normal_test
from bergline.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Always,
    And,
    ColumnTest,
    Not,
    Or,
    Predicate,
    all_of,
    any_of,
)
from bergline.expressions.transformed import project_test
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.schema.schema import Schema
from bergline.format.types.types import IcebergType, NestedField


def project_inclusive(predicate: Predicate, spec: PartitionSpec, schema: Schema) -> Predicate:
    """True for the partition of every row that a bound predicate is true for: all others can be skipped."""
    return fold(
        predicate,
        constant=lambda value: Always(value is True),
        test=lambda test, negated: inclusive_test(test, negated, spec, schema),
        both=both,
        either=either,
    )


def project_strict(predicate: Predicate, spec: PartitionSpec, schema: Schema) -> Predicate:
    """True only for partitions in which a bound predicate is true for every row that there can be."""
    return fold(
        predicate,
        constant=lambda value: Always(value is True),
        test=lambda test, negated: strict_test(test, negated, spec, schema),
        both=both,
        either=either,
    )


def inclusive_test(test: ColumnTest, negated: bool, spec: PartitionSpec, schema: Schema) -> Predicate:
    """All that a test implies for the fields of its column."""
    projections = (
        project_test(field.transform, source, field.name, test, negated)
        for field, source in _fields_of(test.column, spec, schema)
    )
    return all_of([p for p in projections if p != ALWAYS_TRUE])


def strict_test(test: ColumnTest, negated: bool, spec: PartitionSpec, schema: Schema) -> Predicate:
    """Where one field rules out the opposite of a test, the test is true: for every row, as none is null there."""
    opposite, flipped = normal_test(test, negated=not negated)
    projections = (
        project_test(field.transform, source, field.name, opposite, flipped)
        for field, source in _fields_of(test.column, spec, schema)
    )
    return any_of([_negation(p) for p in projections if p != ALWAYS_TRUE])


def partition_schema(spec: PartitionSpec, schema: Schema) -> Schema:
    """The partition fields that predicates can be projected to, as columns; their source columns are in the schema."""
    known = ((field, _source_type(field, schema)) for field in spec.fields)
    return Schema(
        fields=tuple(
            NestedField(field.field_id, field.name, False, field.transform.result_type(source))
            for field, source in known
            if source is not None
        )
    )


def both(left: Predicate, right: Predicate) -> Predicate:
    """And, without constants where they decide nothing."""
    if left == ALWAYS_TRUE or right == ALWAYS_FALSE:
        return right
    return left if right == ALWAYS_TRUE or left == ALWAYS_FALSE else And(left, right)


def either(left: Predicate, right: Predicate) -> Predicate:
    """Or, without constants where they decide nothing."""
    if left == ALWAYS_FALSE or right == ALWAYS_TRUE:
        return right
    return left if right == ALWAYS_FALSE or left == ALWAYS_TRUE else Or(left, right)


def _fields_of(column: str, spec: PartitionSpec, schema: Schema) -> Iterator[tuple[PartitionField, IcebergType]]:
    source_id = schema.names[column].id
    for field in spec.fields:
        if field.source_id == source_id and (source := _source_type(field, schema)) is not None:
            yield field, source


def _source_type(field: PartitionField, schema: Schema) -> IcebergType | None:
    """The type of a field's source; None if it was dropped or the transform cannot take it."""
    source = schema.ids.get(field.source_id)
    if source is None:
        return None
    try:
        field.transform.result_type(source.type)
    except InvalidInputError:
        return None
    return source.type


def _negation(predicate: Predicate) -> Predicate:
    return fold(
        predicate,
        constant=Always,
        test=lambda test, negated: Not(test) if negated else test,
        both=And,
        either=Or,
        negated=True,
    )
