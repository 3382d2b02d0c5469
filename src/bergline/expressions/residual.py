"""Residuals: what remains of a predicate for the rows of a file whose partition is known."""

from collections.abc import Sequence
from typing import Any

from bergline.expressions.evaluate import evaluate
from bergline.expressions.fold import fold
from bergline.expressions.predicate import ALWAYS_FALSE, ALWAYS_TRUE, Always, ColumnPredicate, Not, Predicate
from bergline.expressions.project import both, either, project_leaf_inclusive, project_leaf_strict
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.schema import Schema


def residual(predicate: Predicate, spec: PartitionSpec, partition: Sequence[Any], schema: Schema) -> Predicate:
    """The bound predicate without what the partition decides; true for the same rows of that partition.

    It may be false where the bound predicate is unknown: such rows do not match either way.
    """
    values = {field.name: value for field, value in zip(spec.fields, partition, strict=True)}

    def on_leaf(leaf: ColumnPredicate, negated: bool) -> Predicate:
        if evaluate(project_leaf_strict(leaf, negated, spec, schema), values.__getitem__) is True:
            return ALWAYS_TRUE
        if evaluate(project_leaf_inclusive(leaf, negated, spec, schema), values.__getitem__) is not True:
            return ALWAYS_FALSE
        return Not(leaf) if negated else leaf

    return fold(predicate, constant=lambda value: Always(value is True), leaf=on_leaf, both=both, either=either)
