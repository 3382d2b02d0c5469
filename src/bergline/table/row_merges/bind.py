"""Merges and updates bound to the columns of a table and its source rows."""

import uuid
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from bergline.errors import BerglineError, InvalidInputError, UnsupportedError
from bergline.expressions.parse import parse_tree
from bergline.expressions.predicate import (
    ALWAYS_TRUE,
    UNKNOWN,
    And,
    Comparison,
    IsIn,
    Predicate,
    all_of,
    bind,
    columns_of,
)
from bergline.expressions.times import NANOS_PER_DAY, Instant, TimeOfDay
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    BINARY,
    DATE,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
)
from bergline.table.row_expressions.casts import TIMESTAMPS, is_time
from bergline.table.row_expressions.comparisons import conjunction, in_common_type
from bergline.table.row_expressions.parse import (
    Names,
    bind_tree,
    column_place,
    conjuncts,
    parse_condition,
    parse_sql,
)
from bergline.table.row_expressions.rows import RowExpression, Rows
from bergline.table.row_merges.assignments import (
    Assignments,
    bind_insert,
    bind_update,
    same_names,
    with_defaults,
)
from bergline.table.row_merges.clauses import (
    TARGET,
    Action,
    RowMergeRequest,
    UpdateRequest,
    ValueClause,
    clause_before_others,
)
from bergline.table.row_merges.source import SourceRows
from bergline.table.scans.scan import to_predicate

_MOST_LISTED: Final = 200
"""The most distinct keys that a scan's filter lists; for more it has the lowest and the highest."""
_NANOS_PER_UNIT: Final[dict[IcebergType, int]] = {
    DATE: NANOS_PER_DAY,
    TIME: 1000,
    TIMESTAMP: 1000,
    TIMESTAMPTZ: 1000,
    TIMESTAMP_NS: 1,
    TIMESTAMPTZ_NS: 1,
}


class BoundClause(msgspec.Struct, frozen=True):
    """A condition, and what to do with a row for which it holds."""

    action: Action
    condition: RowExpression | None = None
    values: Assignments = {}


class JoinKey(msgspec.Struct, frozen=True):
    """`target = source`, both in a common type."""

    target: RowExpression
    source: RowExpression
    text: str


class BoundMerge(msgspec.Struct, frozen=True):
    """Everything needed to find the rows that change."""

    target_alias: str
    source_alias: str
    scan_filter: Predicate = ALWAYS_TRUE
    """A bound predicate that is true for every target row that can change."""
    keys: tuple[JoinKey, ...] = ()
    condition: RowExpression | None = None
    """What must hold for a pair besides equal keys."""
    matched: tuple[BoundClause, ...] = ()
    not_matched: tuple[BoundClause, ...] = ()
    by_source: tuple[BoundClause, ...] = ()
    only_changed: bool = False
    unique_source: bool = False

    @property
    def one_source_row(self) -> bool:
        """Whether a target row may have only one source row; a row that is unconditionally deleted may have several."""
        only_delete = [c.action for c in self.matched] == ["delete"] and self.matched[0].condition is None
        return bool(self.matched) and not only_delete

    @property
    def target_columns(self) -> set[str]:
        """The target's columns that are needed to find the rows that change."""
        clauses = (*self.matched, *self.by_source)
        used = [key.target for key in self.keys] + [e for e in (self.condition, *(c.condition for c in clauses)) if e]
        return {place.name for e in used for place in e.places if place.side == self.target_alias}


def bind_update_request(request: UpdateRequest, target: Schema, names: Names, *, by_engine: bool = False) -> BoundMerge:
    """An UPDATE as a merge without source rows: every row for which the condition holds is not matched.

    An engine evaluates the condition itself, in its own time zone: see `_filter_of`.
    """
    values = bind_update(request.values, target, TARGET, names)
    condition: RowExpression | None = None
    if not isinstance(request.where, str):
        scan_filter = bind(to_predicate(request.where), target)
    else:
        try:
            scan_filter = bind(to_predicate(request.where), target)
        except UnsupportedError:
            condition = parse_condition(request.where, names)
        if condition is not None or by_engine:
            trees = conjuncts(parse_sql(request.where))
            scan_filter = _filter_of(request.where, trees, target, TARGET, names, any_zone=by_engine)
    clause = BoundClause("update", condition, values)
    return BoundMerge(TARGET, "", scan_filter, by_source=(clause,))


def bind_merge(
    request: RowMergeRequest, target: Schema, source: SourceRows, names: Names, *, by_engine: bool = False
) -> BoundMerge:
    """Bind the condition and the clauses; the scan is limited to the keys that the source has.

    An engine evaluates the condition itself, in its own time zone: see `_filter_of`.
    """
    keys, rest, own_filter = _bind_on(request, target, names, any_zone=by_engine)
    bound: dict[str, list[BoundClause]] = {"matched": [], "not matched": [], "not matched by source": []}
    if (early := clause_before_others(request.clauses)) is not None:
        raise InvalidInputError(
            f"expected a condition for every clause WHEN {early.when.upper()} but the last, found none in "
            f"{early.heading}"
        )
    for clause in request.clauses:
        bound[clause.when].append(_bind_clause(clause, request, target, source.schema, names))
    merge = BoundMerge(
        request.target_alias,
        request.source_alias,
        keys=keys,
        condition=rest,
        matched=tuple(bound["matched"]),
        not_matched=tuple(bound["not matched"]),
        by_source=tuple(bound["not matched by source"]),
        only_changed=request.only_changed,
        unique_source=request.unique_source,
    )
    if merge.by_source:
        return merge
    plain = [key for key in keys if not by_engine or _is_same_in_any_zone(key, target, source.schema)]
    ranges = list(_key_filters(plain, source, target, request))
    return msgspec.structs.replace(merge, scan_filter=all_of([own_filter, *ranges]))


def _bind_on(
    request: RowMergeRequest, target: Schema, names: Names, *, any_zone: bool
) -> tuple[tuple[JoinKey, ...], RowExpression | None, Predicate]:
    """The keys of the join, the rest of the condition, and what of it concerns only the target, bound."""
    if isinstance(request.on, str):
        text = request.on
        parse_condition(text, names)
        trees = conjuncts(parse_sql(text))
    else:
        trees = [_equality(column, request) for column in request.on]
        text = " AND ".join(tree.sql(dialect="spark") for tree in trees)
    keys, rest, own = [], [], []
    for tree in trees:
        key = _join_key(tree, text, names, request)
        if key is not None:
            keys.append(key)
            continue
        rest.append(bind_tree(tree, text, names))
        own.append(tree)
    condition = conjunction(rest, text) if rest else None
    return tuple(keys), condition, _filter_of(text, own, target, request.target_alias, names, any_zone=any_zone)


def _equality(column: str, request: RowMergeRequest) -> exp.Expression:
    sides = [
        exp.Column(this=exp.to_identifier(column, quoted=True), table=exp.to_identifier(alias, quoted=True))
        for alias in (request.target_alias, request.source_alias)
    ]
    return exp.EQ(this=sides[0], expression=sides[1])


def _join_key(tree: exp.Expression, text: str, names: Names, request: RowMergeRequest) -> JoinKey | None:
    """A join key, if a condition is an equality of a target expression and a source expression."""
    if not isinstance(tree, exp.EQ):
        return None
    left, right = (bind_tree(part, text, names) for part in (tree.this, tree.expression))
    sides = [{place.side for place in e.places} for e in (left, right)]
    if sides == [{request.source_alias}, {request.target_alias}]:
        left, right = right, left
    elif sides != [{request.target_alias}, {request.source_alias}]:
        return None
    bind_tree(tree, text, names)  # raises an error that says what cannot be compared
    left, right = in_common_type([left, right], text)
    return JoinKey(left, right, left.text)


def _bind_clause(
    clause: ValueClause, request: RowMergeRequest, target: Schema, source: Schema, names: Names
) -> BoundClause:
    """A clause sees only the sides of which it has a row."""
    aliases = {
        "matched": (request.target_alias, request.source_alias),
        "not matched": (request.source_alias,),
        "not matched by source": (request.target_alias,),
    }[clause.when]
    visible = names.only(*aliases)
    condition = None if clause.condition is None else parse_condition(clause.condition, visible)
    if clause.action == "delete":
        return BoundClause("delete", condition)
    if clause.values is None:
        heading, partial = clause.heading, request.partial
        values = same_names(source, target, request.source_alias, heading, partial=partial)
        if clause.action == "insert":
            return BoundClause("insert", condition, with_defaults(values, target))
        keys = set(request.on) if partial and not isinstance(request.on, str) else set()
        return BoundClause("update", condition, {name: v for name, v in values.items() if name not in keys})
    binder = bind_update if clause.action == "update" else bind_insert
    return BoundClause(clause.action, condition, binder(clause.values, target, request.target_alias, visible))


def _filter_of(
    text: str, trees: Sequence[exp.Expression], target: Schema, alias: str, names: Names, *, any_zone: bool
) -> Predicate:
    """The bound filter for a scan, from conditions that must all hold: those that compare target columns with literals.

    Times without a zone count as UTC here; with `any_zone`, only conditions with the same meaning in all time zones
    count.
    """
    found = []
    for tree in trees:
        try:
            plain = _unqualified(tree, alias, names, text)
            if plain is None:
                continue
            predicate = parse_tree(plain, text)
            if not (any_zone and _depends_on_zone(plain, predicate, target)):
                found.append(bind(predicate, target))
        except BerglineError:
            continue  # the condition is still evaluated on the rows
    return all_of(found)


def _depends_on_zone(tree: exp.Expression, predicate: Predicate, target: Schema) -> bool:
    """Whether a comparison with literals depends on the time zone; dates compared with dates do not."""
    if any(target.find(name).type in TIMESTAMPS for name in columns_of(predicate)):
        return True
    return any(cast.is_type("timestamp", "timestamptz", "timestampntz") for cast in tree.find_all(exp.Cast))


def _is_same_in_any_zone(key: JoinKey, target: Schema, source: Schema) -> bool:
    """Whether both sides are plain columns, of the same type if it is a date or a timestamp."""
    if key.target.column is None or key.source.column is None:
        return False
    first, second = (s.find(".".join(e.column or ())).type for s, e in ((target, key.target), (source, key.source)))
    return first == second or not (is_time(first) or is_time(second))


def _unqualified(tree: exp.Expression, alias: str, names: Names, text: str) -> exp.Expression | None:
    """The condition with unqualified names of the target's columns; None if it names others."""
    plain = exp.Paren(this=tree.copy())
    for column in list(plain.find_all(exp.Column)):
        place, path, _ = column_place(column, names, text)
        if place.side != alias:
            return None
        column.replace(exp.Column(this=exp.to_identifier(".".join((place.name, *path)), quoted=True)))
    return plain


def _key_filters(
    keys: Sequence[JoinKey], source: SourceRows, target: Schema, request: RowMergeRequest
) -> Iterator[Predicate]:
    """A filter for each key that is a target column: the values that the source has."""
    rows = Rows.of({request.source_alias: source.table}, source.table.num_rows)
    for key in keys:
        values = key.source.evaluate(rows)
        if values.null_count == len(values):
            yield UNKNOWN
            continue
        # Arrow has no kernels for UUIDs
        plain = values.cast(pa.binary(16)) if key.source.type == UUID else values
        found = _values_filter(key, pc.unique(plain.drop_null()), target)
        if found is None:
            continue
        try:
            yield bind(found, target)
        except BerglineError:
            continue  # values of another type are left to the join


def _values_filter(key: JoinKey, distinct: pa.Array, target: Schema) -> Predicate | None:
    """A filter with the list of values, or their range; None if they cannot be compared in a scan."""
    if key.target.column is None:
        return None
    name, type_ = target.names_by_id[target.find(".".join(key.target.column)).id], key.source.type
    if len(distinct) <= _MOST_LISTED:
        listed = _literals(distinct, type_)
        return None if listed is None else IsIn(name, tuple(listed))
    ends = _extremes(distinct, type_)
    return None if ends is None else And(Comparison(name, ">=", ends[0]), Comparison(name, "<=", ends[1]))


def _extremes(values: pa.Array, type_: IcebergType) -> list[Any] | None:
    if type_ == UUID:
        return None  # readers disagree on the order of UUIDs
    ordered = values.take(pc.sort_indices(values.cast(pa.binary()) if isinstance(type_, FixedType) else values))
    return _literals(ordered.take(pa.array([0, len(ordered) - 1])), type_)


def _is_simple(type_: IcebergType) -> bool:
    return type_ in (INT, LONG, STRING, BINARY) or isinstance(type_, DecimalType | FixedType)


def _literals(values: pa.Array, type_: IcebergType) -> list[Any] | None:
    """Values as literals of a predicate; None if they are not comparable that way."""
    if _is_simple(type_):
        return list(values.to_pylist())
    if type_ == UUID:
        return [uuid.UUID(bytes=v) for v in values.to_pylist()]
    if (unit := _NANOS_PER_UNIT.get(type_)) is None:
        return None  # floats have NaN and two zeros, booleans are not worth it
    kind = TimeOfDay if type_ == TIME else Instant
    whole = values.cast(pa.int32()) if type_ == DATE else values.cast(pa.int64())
    return [kind(Fraction(number * unit)) for number in whole.to_pylist()]
