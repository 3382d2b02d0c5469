"""Audits on Spark: what each finds, what it says of it, and that one pass over a table answers many."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bergline import Lake
from bergline.errors import InvalidInputError
from bergline.spark import audits
from bergline.spark.pipeline.audit_kinds import Audit
from bergline.spark.pipeline.audits_run import AuditResult, AuditRun

pytestmark = pytest.mark.spark

T, PARENTS = "db.t", "db.parents"
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("Kind", pa.string()),
        ("amount", pa.decimal128(10, 2)),
        ("a.b", pa.int64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("inner", pa.struct([("x", pa.int64())])),
    ]
)


def rows(*values: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, v, strict=True)) for v in values], schema=SCHEMA)


@pytest.fixture
def run(spark: SparkSession, lake: Lake) -> Callable[..., list[AuditResult]]:
    """Runs audits on a branch with four rows, beside a `main` with two."""
    parents = lake.create_table(PARENTS, pa.schema([("key", pa.int64())])).append(pa.table({"key": [1, 2]}))
    parents.refs.create_branch("b")
    table = lake.create_table(T, SCHEMA)
    now = dt.datetime.now(dt.UTC)
    old = now - dt.timedelta(days=3)
    table.append(rows((1, "x", Decimal(1), 1, old, {"x": 1}), (2, "y", Decimal(3), 1, old, {"x": 1})))
    new = now - dt.timedelta(hours=2)
    added = rows((2, "z", Decimal(-1), 2, new, {"x": 9}), (None, None, None, 3, None, None))
    table.append(added, branch="b")
    tables = {T: table, PARENTS: parents}
    return lambda *wanted: list(AuditRun(spark, tables, "b", "the run").results(wanted))


def test_audits_that_hold_pass(run: Callable[..., list[AuditResult]]) -> None:
    found = run(
        audits.row_count(T, at_least=4, at_most=4),
        audits.not_null(T, "a.b"),
        audits.in_range(T, "amount", at_least=-1, below=Decimal("3.01")),
        audits.in_range(T, "inner.x", above=0, at_most=9),
        audits.one_of(T, "kind", ["x", "y", "z"]),
        audits.satisfies(T, "id > 0 AND inner.x > 0"),
        audits.fresh(T, "at", within=dt.timedelta(hours=3)),
        audits.change(T, at_most=1.0),
        audits.change(T, "sum(amount)", at_least=-0.3, at_most=0, name="sum"),
        audits.change(PARENTS, at_least=0, at_most=0),
        audits.unique(T, "id", "kind"),
        audits.references(T, "id", PARENTS, "key"),
        audits.query("none", "SELECT 1 WHERE false"),
        audits.check("holds", lambda given: given == "the run"),
        audits.check("silent", lambda _: None),
    )
    assert [str(r) for r in found if not r.passed] == []
    assert [r.found for r in found if r.audit == "sum"] == ["-25.0%: 3.00, 4.00 on main"]


FAILING: list[tuple[Audit, str, list[Any]]] = [
    (audits.row_count(T, at_least=5), "4 rows", []),
    (audits.not_null(T, "ID", "kind"), "1 of 4 rows otherwise", [None]),
    (audits.in_range(T, "amount", above=1), "2 of 4 rows otherwise", [1, 2]),
    (audits.in_range(T, "inner.x", at_most=8), "1 of 4 rows otherwise", [2]),
    (audits.one_of(T, "kind", ["x", "y"]), "1 of 4 rows otherwise", [2]),
    (audits.satisfies(T, "amount >= 0"), "1 of 4 rows otherwise", [2]),
    (audits.satisfies(T, "no_such_column > 0"), "that it cannot be run: ", []),
    (audits.fresh(T, "at", within=dt.timedelta(hours=1)), "2:0", []),
    (audits.change(T, at_most=0.5), "+100.0%: 4, 2 on main", []),
    (audits.change(T, "sum(amount", at_most=0.5), "that it cannot be run: ", []),
    (audits.unique(T, "id"), "1 values that 2 rows share", [2]),
    (audits.references(T, "a.b", PARENTS, "key"), "1 rows whose value is not there", [None]),
    (audits.query("kinds", "SELECT 7 AS id"), "1 rows", [7]),
    (audits.check("no", lambda _: False), "that it does not", []),
    (audits.check("text", lambda _: "too late"), "too late", []),
    (audits.check("raises", lambda _: 1 / 0), "that it cannot be run: ZeroDivisionError: division by zero", []),
    (audits.check("other", lambda _: 3), "an answer that is none: 3", []),
]


def test_audits_that_do_not_hold_say_what_was_found_with_rows(run: Callable[..., list[AuditResult]]) -> None:
    found = run(*(audit for audit, _, _ in FAILING))
    for result, (audit, said, sample) in zip(found, FAILING, strict=True):
        assert (result.audit, result.table, result.expected) == (audit.name, audit.table, audit.expected)
        assert not result.passed
        assert result.found.startswith(said), result
        assert sorted((row["id"] for row in result.sample), key=str) == sorted(sample, key=str), result
    assert str(found[5]).splitlines()[0] == (
        "FAILED  satisfies(db.t, amount >= 0): expected amount >= 0, found 1 of 4 rows otherwise"
    )


def test_one_pass_over_a_table_answers_all_audits_of_rows(
    run: Callable[..., list[AuditResult]], spark: SparkSession
) -> None:
    def jobs(*wanted: Audit) -> int:
        group = f"audits-{len(wanted)}"
        spark.sparkContext.setJobGroup(group, "counted")
        assert all(r.passed for r in run(*wanted))
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))

    many = [audits.in_range(T, "a.b", at_least=-n) for n in range(3)]
    named = [audits.satisfies(T, f"id > -{n}") for n in range(1, 4)]
    assert jobs(audits.row_count(T)) == jobs(
        audits.row_count(T),
        audits.not_null(T, "a.b"),
        many[0],
        *named,
        audits.fresh(T, "at", within=dt.timedelta(days=1)),
    )
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: audits.in_range(T, "id"), "expected a limit (at_least, at_most, above, below), found none"),
        (lambda: audits.row_count(T, at_least=None), "expected a limit (at_least, at_most), found none"),
        (lambda: audits.change(T), "expected a limit (at_least, at_most), found none"),
        (lambda: audits.unique(T), "expected at least one column, found none"),
        (lambda: audits.references(T, ["a", "b"], PARENTS, "key"), "found 2 and 1"),
        (lambda: audits.one_of(T, "kind", "xyz"), "expected a list of values for `kind`, found 'xyz'"),
        (lambda: audits.fresh(T, "at", within=3), "expected a timedelta for `within`, found 3"),  # type: ignore[arg-type]
        (lambda: audits.check("c", True), "expected a function for audit `c`, found True"),  # type: ignore[arg-type]
        (lambda: audits.not_null(3, "id"), "expected a table name like `db.orders`, found 3"),  # type: ignore[arg-type]
    ],
)
def test_audits_that_make_no_sense_are_refused(make: Callable[[], Audit], said: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        make()
    assert said in str(caught.value)
