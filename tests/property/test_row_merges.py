"""Random updates, upserts, merges and deletes against the same changes to plain lists of dictionaries.

`n` identifies a row through all of its versions, so that in format version 3 it must keep its row id.
"""

import itertools
from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import bergline
from bergline import Lake, Table
from bergline.errors import InvalidInputError
from bergline.table.row_merges.clauses import RowCounts

pytestmark = pytest.mark.long

Row = dict[str, Any]
Value = Callable[[Row, Row], Any]
ARROW = pa.schema([pa.field("n", pa.int64(), nullable=False), ("k", pa.int32()), ("v", pa.int64()), ("s", pa.string())])
NAMES = ARROW.names


def both(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Unknown where one side is null, as in SQL."""
    return lambda a, b: None if a is None or b is None else compute(a, b)


GREATER, EQUAL, PLUS = both(lambda a, b: a > b), both(lambda a, b: a == b), both(lambda a, b: a + b)


def either(a: bool | None, b: bool | None) -> bool | None:
    """`a OR b`."""
    return True if a or b else None if a is None or b is None else False


ONS: list[tuple[Any, Value]] = [
    (["k"], lambda t, s: EQUAL(t["k"], s["k"])),
    (["n"], lambda t, s: t["n"] == s["n"]),
    (["k", "s"], lambda t, s: EQUAL(t["k"], s["k"]) and EQUAL(t["s"], s["s"])),
    ("source.k = target.k AND target.v > 0", lambda t, s: EQUAL(t["k"], s["k"]) and GREATER(t["v"], 0)),
    ("target.k + 1 = source.k", lambda t, s: EQUAL(PLUS(t["k"], 1), s["k"])),
    ("target.v > source.v AND source.s = 'a'", lambda t, s: GREATER(t["v"], s["v"]) and EQUAL(s["s"], "a")),
    ("target.k = source.k AND target.s <=> source.s", lambda t, s: EQUAL(t["k"], s["k"]) and t["s"] == s["s"]),
]
PAIR_CONDITIONS: list[tuple[str, Value]] = [
    ("target.v > source.v", lambda t, s: GREATER(t["v"], s["v"])),
    ("source.v IS NULL", lambda _, s: s["v"] is None),
    ("target.s = 'a' OR source.k > 1", lambda t, s: either(EQUAL(t["s"], "a"), GREATER(s["k"], 1))),
]
OWN_CONDITIONS: list[tuple[str, Value]] = [
    ("v > 1", lambda r, _: GREATER(r["v"], 1)),
    ("NOT (k = 1)", lambda r, _: None if r["k"] is None else r["k"] != 1),
    ("s IN ('a', NULL) OR v % 2 = 0", lambda r, _: either(True if r["s"] == "a" else None, even(r["v"]))),
    ("coalesce(k, v) IS NULL", lambda r, _: r["k"] is None and r["v"] is None),
]
SETS: list[tuple[str, str, Value]] = [
    ("v", "source.v", lambda _, s: s["v"]),
    ("v", "coalesce(target.v, 0) + source.n", lambda t, s: (t["v"] or 0) + s["n"]),
    ("k", "source.k", lambda _, s: s["k"]),
    ("s", "target.s || source.s", lambda t, s: PLUS(t["s"], s["s"])),
]
OWN_SETS: list[tuple[str, Any, Value]] = [
    ("v", "v * 2", lambda r, _: None if r["v"] is None else r["v"] * 2),
    ("k", None, lambda *_: None),
    ("s", "CASE WHEN v > 1 THEN 'high' ELSE s END", lambda r, _: "high" if GREATER(r["v"], 1) else r["s"]),
    ("v", 5, lambda *_: 5),
]


def even(value: int | None) -> bool | None:
    return None if value is None else value % 2 == 0


class Clause(msgspec.Struct, frozen=True):
    """A clause as text, and what it means."""

    kind: str
    condition: tuple[str, Value] | None
    change: Any = None


class Statement(msgspec.Struct, frozen=True):
    """One call."""

    kind: str
    arguments: tuple[Any, ...] = ()


values = st.none() | st.integers(0, 2)
plain_rows = st.builds(
    lambda n, k, v, s: dict(zip(NAMES, (n, k, v, s), strict=True)),
    st.integers(0, 12),
    values,
    values,
    st.sampled_from([None, "a", "b"]),
)
sources = st.lists(plain_rows, max_size=5, unique_by=lambda row: row["n"])
loose_sources = st.lists(plain_rows, max_size=4)
matched = st.one_of(
    st.builds(Clause, st.just("update"), st.none() | st.sampled_from(PAIR_CONDITIONS), st.sampled_from(SETS)),
    st.builds(Clause, st.just("update all"), st.none() | st.sampled_from(PAIR_CONDITIONS)),
    st.builds(Clause, st.just("delete"), st.none() | st.sampled_from(PAIR_CONDITIONS)),
)
own_conditions = st.none() | st.sampled_from(OWN_CONDITIONS)
not_matched = st.one_of(
    st.builds(Clause, st.just("insert all"), own_conditions),
    st.builds(Clause, st.just("insert"), own_conditions),
)
by_source = st.one_of(
    st.builds(Clause, st.just("update"), own_conditions, st.sampled_from(OWN_SETS)),
    st.builds(Clause, st.just("delete"), own_conditions),
)
statements = st.one_of(
    st.builds(Statement, st.just("append"), st.tuples(sources)),
    st.builds(Statement, st.just("upsert"), st.tuples(sources)),
    st.builds(Statement, st.just("update"), st.tuples(own_conditions, st.sampled_from(OWN_SETS))),
    st.builds(Statement, st.just("delete"), st.tuples(st.integers(0, 12))),
    st.builds(
        Statement,
        st.just("merge"),
        st.tuples(
            loose_sources,
            st.sampled_from(ONS),
            st.lists(matched, max_size=2),
            st.lists(not_matched, max_size=2),
            st.lists(by_source, max_size=2),
        ),
    ),
)


def holds(clause: Clause, first: Row, second: Row) -> bool:
    return clause.condition is None or clause.condition[1](first, second) is True


def ordered(clauses: list[Clause]) -> list[Clause]:
    """Only the last clause of a kind may have no condition."""
    return [c for c in clauses[:-1] if c.condition is not None] + clauses[-1:]


class Model:
    """The rows, and the numbers of those that the last statement wrote."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.written: set[int] = set()
        self._next = itertools.count(100)

    def fresh(self, rows: list[Row]) -> list[Row]:
        """Rows with numbers that no other has."""
        return [row | {"n": next(self._next)} for row in rows]

    def update(self, condition: tuple[str, Value] | None, change: tuple[str, Any, Value]) -> RowCounts:
        clause = Clause("update", condition, change)
        return self._replace([self._changed(row, [clause], {}) for row in self.rows], [])

    def upsert(self, source: list[Row]) -> RowCounts:
        by_number = {row["n"]: row for row in source}
        changed = [(by_number.get(row["n"], row), by_number.get(row["n"], row) != row) for row in self.rows]
        known = {row["n"] for row in self.rows}
        return self._replace(changed, [row for row in source if row["n"] not in known])

    def merge(self, source: list[Row], on: Value, clauses: tuple[list[Clause], ...]) -> RowCounts | None:
        """None if a target row has several source rows."""
        matched, not_matched, by_source = clauses
        several_allowed = not matched or [(c.kind, c.condition) for c in matched] == [("delete", None)]
        changed, used = [], set()
        for row in self.rows:
            found = [number for number, other in enumerate(source) if on(row, other) is True]
            used.update(found)
            if len(found) > 1 and not several_allowed:
                return None
            taken, other = (matched, source[found[0]]) if found else (by_source, {})
            changed.append(self._changed(row, taken, other))
        new = []
        for number, row in enumerate(source):
            clause = next((c for c in not_matched if holds(c, row, {})), None)
            if number not in used and clause is not None:
                new.append(
                    row if clause.kind == "insert all" else row | {"s": "new", "v": PLUS(row["v"], 1), "k": None}
                )
        return self._replace(changed, new)

    def _changed(self, row: Row, clauses: list[Clause], other: Row) -> tuple[Row | None, bool]:
        clause = next((c for c in clauses if holds(c, row, other)), None)
        if clause is None:
            return row, False
        if clause.kind == "delete":
            return None, True
        if clause.kind == "update all":
            return row | {name: other[name] for name in NAMES if name != "n"}, True
        column, _, value = clause.change
        return row | {column: value(row, other)}, True

    def _replace(self, changed: list[tuple[Row | None, bool]], new: list[Row]) -> RowCounts:
        self.rows = [row for row, _ in changed if row is not None] + new
        updated = [row["n"] for row, is_changed in changed if is_changed and row is not None]
        self.written = {*updated, *(row["n"] for row in new)}
        deleted = sum(row is None for row, _ in changed)
        return RowCounts(rows_updated=len(updated), rows_inserted=len(new), rows_deleted=deleted)


def run_merge(table: Table, source: list[Row], on: Any, clauses: tuple[list[Clause], ...]) -> RowCounts:
    matched, not_matched, by_source = clauses
    merge = table.merge(pa.Table.from_pylist(source, ARROW), on=on)
    for clause in matched:
        text = clause.condition and clause.condition[0]
        if clause.kind == "update":
            merge = merge.when_matched_update({clause.change[0]: clause.change[1]}, text)
        elif clause.kind == "update all":
            others = {name: f"source.{name}" for name in NAMES if name != "n"}
            merge = merge.when_matched_update(others, text)
        else:
            merge = merge.when_matched_delete(text)
    for clause in not_matched:
        text = clause.condition and clause.condition[0]
        if clause.kind == "insert all":
            merge = merge.when_not_matched_insert_all(text)
        else:
            merge = merge.when_not_matched_insert({"n": "n", "v": "v + 1", "s": "'new'"}, text)
    for clause in by_source:
        text = clause.condition and clause.condition[0]
        if clause.kind == "update":
            merge = merge.when_not_matched_by_source_update({clause.change[0]: clause.change[1]}, text)
        else:
            merge = merge.when_not_matched_by_source_delete(text)
    return merge.execute()


def run(table: Table, model: Model, statement: Statement) -> None:
    match statement:
        case Statement("append", (rows,)):
            new = model.fresh(rows)
            table.append(pa.Table.from_pylist(new, ARROW))
            model.rows += new
            model.written = {row["n"] for row in new}
        case Statement("upsert", (rows,)):
            assert table.upsert(pa.Table.from_pylist(rows, ARROW), keys=["n"]) == model.upsert(rows)
        case Statement("update", (condition, change)):
            where = None if condition is None else condition[0]
            counts = table.update({change[0]: change[1]}, where)
            assert counts == model.update(condition, change)
        case Statement("delete", (number,)):
            table.delete(f"n = {number}")
            model.rows = [row for row in model.rows if row["n"] != number]
            model.written = set()
        case Statement("merge", (source, (text, on), *clauses)):
            parts = tuple(map(ordered, clauses))
            if not any(parts):
                return
            # inserted rows get numbers of their own, unless they are matched by them
            rows = source if text == ["n"] else model.fresh(source)
            if len({row["n"] for row in rows}) < len(rows):
                return
            expected = model.merge(rows, on, parts)
            if expected is None:
                event("several source rows")
                with pytest.raises(InvalidInputError, match="at most one source row"):
                    run_merge(table, rows, text, parts)
                model.written = set()
            else:
                assert run_merge(table, rows, text, parts) == expected


def open_table(lake: Lake, version: str, mode: str, partition_by: list[str]) -> Table:
    modes = {f"write.{command}.mode": mode for command in ("delete", "update", "merge")}
    return lake.create_table("db.t", ARROW, partition_by=partition_by, properties={"format-version": version} | modes)


@settings(max_examples=40, deadline=None)
@given(
    version=st.sampled_from(["1", "2", "3"]),
    mode=st.sampled_from(["copy-on-write", "merge-on-read"]),
    partition_by=st.sampled_from([[], ["k"], ["truncate(2, v)"]]),
    first=st.lists(plain_rows, min_size=2, max_size=8, unique_by=lambda row: row["n"]),
    work=st.lists(statements, min_size=1, max_size=6),
)
def test_rows_change_as_in_plain_python(
    version: str, mode: str, partition_by: list[str], first: list[Row], work: list[Statement]
) -> None:
    with bergline.connect("memory:") as lake:
        lake.create_namespace("db")
        table, model = open_table(lake, version, mode, partition_by), Model()
        half = len(first) // 2
        for rows in (first[:half], first[half:]):
            table.append(pa.Table.from_pylist(rows, ARROW))
            model.rows += rows
        known = lineage(table)
        for statement in work:
            event(statement.kind)
            run(table, model, statement)
            found = table.scan().to_arrow().to_pylist()
            assert sorted(found, key=str) == sorted(model.rows, key=str)
            known = check_lineage(table, model, known)


def lineage(table: Table) -> dict[int, tuple[int, int]]:
    if table.metadata.format_version < 3:
        return {}
    columns = ["n", "_row_id", "_last_updated_sequence_number"]
    rows = table.scan(columns=columns).to_arrow().to_pylist()
    return {row["n"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in rows}


def check_lineage(table: Table, model: Model, known: dict[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Rows keep their ids, and the number of the commit that changed them last."""
    now = lineage(table)
    assert len({row_id for row_id, _ in now.values()}) == len(now)
    for number, (row_id, sequence_number) in now.items():
        if number in known:
            assert row_id == known[number][0]
        if number in model.written:
            assert sequence_number == table.metadata.last_sequence_number
        else:
            assert sequence_number == known[number][1]
    return now
