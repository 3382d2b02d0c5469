"""Random MERGE statements on small tables, against a model in plain Python."""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from bergline import Lake
from bergline.errors import InvalidInputError

pytestmark = pytest.mark.spark

Row = tuple[int | None, int | None, str | None]
COLUMNS = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("c", pa.string())])
NONE: Row = (None, None, None)


class Pair(NamedTuple):
    """A row of the target and one of the source; a side that is not there is nulls."""

    t: Row
    s: Row


class Expression(NamedTuple):
    """A text, and what it means."""

    text: str
    value: Callable[[Pair], Any]


def _compare(text: str, left: Callable[[Pair], Any], right: Callable[[Pair], Any], *, same: bool) -> Expression:
    def value(pair: Pair) -> bool | None:
        one, other = left(pair), right(pair)
        return None if one is None or other is None else (one == other if same else one > other)

    return Expression(text, value)


def _plus(text: str, operand: Callable[[Pair], int | None], number: int) -> Expression:
    def value(pair: Pair) -> int | None:
        found = operand(pair)
        return None if found is None else found + number

    return Expression(text, value)


TARGET: list[Expression] = [
    _compare("t.n > 2", lambda p: p.t[1], lambda _: 2, same=False),
    Expression("t.c IS NULL", lambda p: p.t[2] is None),
    _compare("t.c = 'a'", lambda p: p.t[2], lambda _: "a", same=True),
]
SOURCE: list[Expression] = [
    _compare("s.n > 1", lambda p: p.s[1], lambda _: 1, same=False),
    Expression("s.c IS NULL", lambda p: p.s[2] is None),
    _compare("s.id = s.n", lambda p: p.s[0], lambda p: p.s[1], same=True),
]
BOTH: list[Expression] = [*TARGET, *SOURCE, _compare("t.n = s.n", lambda p: p.t[1], lambda p: p.s[1], same=True)]
TARGET_NUMBERS = [_plus("t.n + 1", lambda p: p.t[1], 1), Expression("NULL", lambda _: None)]
SOURCE_NUMBERS = [_plus("s.n + 10", lambda p: p.s[1], 10), Expression("7", lambda _: 7)]
ON: list[Expression] = [
    _compare("t.id = s.id", lambda p: p.t[0], lambda p: p.s[0], same=True),
    Expression("t.id <=> s.id", lambda p: p.t[0] == p.s[0]),
    Expression(
        "t.id = s.id AND t.c = 'a'",
        lambda p: p.t[0] is not None and p.t[0] == p.s[0] and p.t[2] == "a",
    ),
    _compare("t.n = s.n", lambda p: p.t[1], lambda p: p.s[1], same=True),
]


class Clause(msgspec.Struct, frozen=True):
    """A clause: its kind, condition, action, and the number that it sets."""

    kind: str
    condition: Expression | None
    action: str
    value: Expression

    @property
    def text(self) -> str:
        """In SQL."""
        also = "" if self.condition is None else f" AND {self.condition.text}"
        match self.action:
            case "delete":
                action = "DELETE"
            case "update":
                action = f"UPDATE SET n = {self.value.text}, c = 'u'"
            case "star":
                action = "UPDATE SET *" if self.kind == "MATCHED" else "INSERT *"
            case _:
                action = f"INSERT (n, id) VALUES ({self.value.text}, id)"
        return f"WHEN {self.kind}{also} THEN {action}"

    def result(self, pair: Pair) -> Row | None:
        """The new row; None if it goes."""
        match self.action:
            case "delete":
                return None
            case "update":
                return (pair.t[0], self.value.value(pair), "u")
            case "star":
                return pair.s
        return (pair.s[0], self.value.value(pair), None)


def _clauses(kind: str, conditions: list[Expression], actions: list[str], values: list[Expression]) -> Any:
    clause = st.builds(
        Clause, st.just(kind), st.sampled_from(conditions), st.sampled_from(actions), st.sampled_from(values)
    )
    last = st.one_of(st.none(), st.builds(msgspec.structs.replace, clause, condition=st.none()))
    return st.builds(lambda some, end: [*some, *([end] if end else [])], st.lists(clause, max_size=2), last)


ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 6)),
        st.one_of(st.none(), st.integers(0, 4)),
        st.one_of(st.none(), st.sampled_from("ab")),
    ),
    max_size=7,
)
CLAUSES = st.tuples(
    _clauses("MATCHED", BOTH, ["delete", "update", "star"], TARGET_NUMBERS + SOURCE_NUMBERS),
    _clauses("NOT MATCHED", SOURCE, ["insert", "star"], SOURCE_NUMBERS),
    _clauses("NOT MATCHED BY SOURCE", TARGET, ["delete", "update"], TARGET_NUMBERS),
).map(lambda parts: [clause for part in parts for clause in part])
LAYOUTS = st.tuples(
    st.sampled_from(["2", "3"]), st.sampled_from(["copy-on-write", "merge-on-read"]), st.sampled_from([(), ("c",)])
)


def merged(target: list[Row], source: list[Row], on: Expression, clauses: list[Clause]) -> list[Row] | None:
    """What MERGE makes of the rows of a table; None if two source rows match one of them and that is an error."""
    of = {kind: [c for c in clauses if c.kind == kind] for kind in ("MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE")}
    pairs = [
        (t, s) for t in range(len(target)) for s in range(len(source)) if on.value(Pair(target[t], source[s])) is True
    ]
    matched = of["MATCHED"]
    only_deletes = len(matched) == 1 and matched[0].action == "delete" and matched[0].condition is None
    if matched and not only_deletes and len({t for t, _ in pairs}) < len(pairs):
        return None
    result: list[Row | None] = []
    for number, row in enumerate(target):
        matches = [s for t, s in pairs if t == number]
        other = source[matches[0]] if matches else NONE
        result.append(_first(matched if matches else of["NOT MATCHED BY SOURCE"], Pair(row, other), row))
    for number, row in enumerate(source):
        if all(s != number for _, s in pairs):
            result.append(_first(of["NOT MATCHED"], Pair(NONE, row), None))
    return [row for row in result if row is not None]


def _first(clauses: list[Clause], pair: Pair, otherwise: Row | None) -> Row | None:
    for clause in clauses:
        if clause.condition is None or clause.condition.value(pair) is True:
            return clause.result(pair)
    return otherwise


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, ROWS, st.sampled_from(ON), CLAUSES, LAYOUTS, st.integers(0, 7))
def test_merge_does_what_the_model_does(
    spark: SparkSession,
    lake: Lake,
    target: list[Row],
    source: list[Row],
    on: Expression,
    clauses: list[Clause],
    layout: tuple[str, str, tuple[str, ...]],
    split: int,
) -> None:
    if not clauses:
        return
    version, mode, partition_by = layout
    if lake.table_exists("db.t"):
        lake.drop_table("db.t")
    properties = {"format-version": version, "write.merge.mode": mode}
    table = lake.create_table("db.t", COLUMNS, partition_by=partition_by, properties=properties)
    for part in (target[:split], target[split:]):
        if part:
            table.append(pa.table(list(zip(*part, strict=True)), schema=COLUMNS))
    spark.createDataFrame(source, "id bigint, n bigint, c string").createOrReplaceTempView("merge_source")
    text = f"MERGE INTO db.t AS t USING merge_source AS s ON {on.text} " + " ".join(c.text for c in clauses)
    expected = merged(target, source, on, clauses)
    before = table.refresh().metadata_location
    if expected is None:
        with pytest.raises(InvalidInputError, match="expected at most one source row"):
            spark.sql(text)
        assert table.refresh().metadata_location == before
        return
    spark.sql(text)
    found = table.refresh().scan().to_arrow().to_pylist()
    assert Counter(tuple(row.values()) for row in found) == Counter(expected), text
