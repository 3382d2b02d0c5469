"""Whether a manifest may list files with matching rows, judged by its partition summaries."""

from collections.abc import Sequence

from bergline.errors import FormatError
from bergline.expressions.bounds import ColumnFacts, may_hold
from bergline.expressions.fold import fold
from bergline.expressions.metrics import reliable
from bergline.expressions.predicate import Predicate
from bergline.expressions.project import partition_schema
from bergline.format.manifest.manifest import FieldSummary
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.schema import Schema
from bergline.format.types.single_values import decode_value
from bergline.format.types.types import DOUBLE, FLOAT, IcebergType


def may_match_manifest(
    projected: Predicate, summaries: Sequence[FieldSummary] | None, spec: PartitionSpec, schema: Schema
) -> bool:
    """False only if the inclusive projection is true for no file in the manifest; summaries may be missing."""
    if summaries is None:
        return True
    if len(summaries) != len(spec.fields):
        raise FormatError(f"expected {len(spec.fields)} partition summaries, found {len(summaries)}")
    by_id = {field.field_id: summary for field, summary in zip(spec.fields, summaries, strict=True)}
    columns = partition_schema(spec, schema).names
    return fold(
        projected,
        constant=lambda value: value is True,
        leaf=lambda leaf, negated: may_hold(
            leaf, negated, _facts(by_id[columns[leaf.column].id], columns[leaf.column].type)
        ),
        both=lambda left, right: left and right,
        either=lambda left, right: left or right,
    )


def _facts(summary: FieldSummary, type_: IcebergType) -> ColumnFacts:
    bounds = (summary.lower_bound, summary.upper_bound)
    lower, upper = reliable(*(None if b is None else decode_value(type_, b) for b in bounds))
    # spec: bounds are null if all values are null or NaN
    only_missing = bounds == (None, None) and (summary.contains_null or summary.contains_nan is True)
    return ColumnFacts(
        lower,
        upper,
        may_be_null=summary.contains_null,
        may_be_nan=type_ in (FLOAT, DOUBLE) and summary.contains_nan is not False,
        may_be_value=not only_missing,
    )
