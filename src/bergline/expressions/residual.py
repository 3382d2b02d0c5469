"""What is left of a predicate for the rows of a file whose partition is known."""

from collections.abc import Sequence
from typing import Any

from bergline.expressions.evaluate import evaluate
from bergline.expressions.fold import fold
from bergline.expressions.predicate import ALWAYS_FALSE, ALWAYS_TRUE, Always, ColumnTest, Not, Predicate
from bergline.expressions.project import both, either, inclusive_test, strict_test
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.schema import Schema


def residual(predicate: Predicate, spec: PartitionSpec, partition: Sequence[Any], schema: Schema) -> Predicate:
    """A predicate that is true for the same rows of the partition as the bound one; what the partition decides is gone.

    Where the bound one is unknown it may be false instead: no such row is wanted either way.
    """
    values = {field.name: value for field, value in zip(spec.fields, partition, strict=True)}

    def test(leaf: ColumnTest, negated: bool) -> Predicate:
        if evaluate(strict_test(leaf, negated, spec, schema), values.__getitem__) is True:
            return ALWAYS_TRUE
        if evaluate(inclusive_test(leaf, negated, spec, schema), values.__getitem__) is not True:
            return ALWAYS_FALSE
        return Not(leaf) if negated else leaf

    return fold(predicate, constant=lambda value: Always(value is True), test=test, both=both, either=either)
