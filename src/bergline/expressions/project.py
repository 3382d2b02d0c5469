"""Projections of row predicates to predicates on the partition values of files.

A projected predicate refers to the spec's partition fields; evaluate it with the schema of `partition_schema`.
"""

from collections.abc import Iterator

from bergline.errors import InvalidInputError
from bergline.expressions.fold import fold, normalized_leaf
from bergline.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Always,
    And,
    ColumnPredicate,
    Not,
    Or,
    Predicate,
    all_of,
    any_of,
)
from bergline.expressions.transform_projection import project_leaf
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.schema.schema import Schema
from bergline.format.types.types import IcebergType, NestedField


def project_inclusive(predicate: Predicate, spec: PartitionSpec, schema: Schema) -> Predicate:
    """Inclusive projection: true for the partition of every matching row, so all other partitions can be skipped."""
    return fold(
        predicate,
        constant=lambda value: Always(value is True),
        leaf=lambda leaf, negated: project_leaf_inclusive(leaf, negated, spec, schema),
        both=both,
        either=either,
    )


def project_strict(predicate: Predicate, spec: PartitionSpec, schema: Schema) -> Predicate:
    """Strict projection: true only for partitions in which every possible row matches."""
    return fold(
        predicate,
        constant=lambda value: Always(value is True),
        leaf=lambda leaf, negated: project_leaf_strict(leaf, negated, spec, schema),
        both=both,
        either=either,
    )


def project_leaf_inclusive(leaf: ColumnPredicate, negated: bool, spec: PartitionSpec, schema: Schema) -> Predicate:
    """What a leaf implies for every partition field of its column, combined by AND."""
    projections = (
        project_leaf(field.transform, source, field.name, leaf, negated)
        for field, source in _fields_of(leaf.column, spec, schema)
    )
    return all_of([p for p in projections if p != ALWAYS_TRUE])


def project_leaf_strict(leaf: ColumnPredicate, negated: bool, spec: PartitionSpec, schema: Schema) -> Predicate:
    """True where some partition field rules out the negation of the leaf; no row is null there."""
    opposite, flipped = normalized_leaf(leaf, negated=not negated)
    projections = (
        project_leaf(field.transform, source, field.name, opposite, flipped)
        for field, source in _fields_of(leaf.column, spec, schema)
    )
    return any_of([_negation(p) for p in projections if p != ALWAYS_TRUE])


def partition_schema(spec: PartitionSpec, schema: Schema) -> Schema:
    """The partition fields that predicates can be projected to, as a schema."""
    known = ((field, _source_type(field, schema)) for field in spec.fields)
    return Schema(
        fields=tuple(
            NestedField(field.field_id, field.name, False, field.transform.result_type(source))
            for field, source in known
            if source is not None
        )
    )


def both(left: Predicate, right: Predicate) -> Predicate:
    """AND, simplified where one side is constant."""
    if left == ALWAYS_TRUE or right == ALWAYS_FALSE:
        return right
    return left if right == ALWAYS_TRUE or left == ALWAYS_FALSE else And(left, right)


def either(left: Predicate, right: Predicate) -> Predicate:
    """OR, simplified where one side is constant."""
    if left == ALWAYS_FALSE or right == ALWAYS_TRUE:
        return right
    return left if right == ALWAYS_FALSE or left == ALWAYS_TRUE else Or(left, right)


def _fields_of(column: str, spec: PartitionSpec, schema: Schema) -> Iterator[tuple[PartitionField, IcebergType]]:
    source_id = schema.names[column].id
    for field in spec.fields:
        if field.source_id == source_id and (source := _source_type(field, schema)) is not None:
            yield field, source


def _source_type(field: PartitionField, schema: Schema) -> IcebergType | None:
    """The type of a field's source column; None if it was dropped or the transform does not accept it."""
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
        leaf=lambda leaf, negated: Not(leaf) if negated else leaf,
        both=And,
        either=Or,
        negated=True,
    )
