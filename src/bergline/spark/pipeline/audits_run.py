"""Audits run on Spark: one pass over each table for all audits that are aggregates, samples only of failures."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, assert_never

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.errors import NotFoundError
from bergline.format.metadata.refs import MAIN
from bergline.quoting import back_quoted_path
from bergline.spark.pipeline.audit_kinds import (
    Audit,
    ChangeAudit,
    FunctionAudit,
    MeasureAudit,
    QueryAudit,
    ReferenceAudit,
    RowAudit,
    UniqueAudit,
)
from bergline.spark.reads.scan import read
from bergline.table.table import Table

_SAMPLE = 5
_COUNT = "rows"
_OnePass = RowAudit | MeasureAudit | ChangeAudit


class AuditResult(msgspec.Struct, frozen=True):
    """The result of one audit, with some of the rows that fail it."""

    audit: str
    table: str | None
    passed: bool
    expected: str
    found: str
    sample: tuple[dict[str, Any], ...] = ()

    def __str__(self) -> str:
        if self.passed:
            return f"ok      {self.audit}: {self.found}"
        line = f"FAILED  {self.audit}: expected {self.expected}, found {self.found}"
        return "\n".join([line, *(f"          {_shown_row(row)}" for row in self.sample)])


def check_audit(audit: Audit, tables: Mapping[str, Table]) -> None:
    """NotFoundError for tables and columns that do not exist."""
    if isinstance(audit, QueryAudit | FunctionAudit):
        return
    _table_of(audit.name, audit.table, tables)
    if not isinstance(audit, ChangeAudit):
        for column in audit.columns:
            column_path(tables[audit.table], column)
    if isinstance(audit, ReferenceAudit):
        other = _table_of(audit.name, audit.other, tables)
        for column in audit.other_columns:
            column_path(other, column)


def column_path(table: Table, name: str) -> tuple[str, ...]:
    """The path of a column through its structs; names ignore case, as Spark's do."""
    names = {known.casefold(): field for known, field in table.schema.names.items()}
    field = names.get(name.casefold())
    if field is None:
        known = table.schema.names
        raise NotFoundError(f"no column `{name}` in `{table.name}`", kind="column", name=name, known=known)
    return table.schema.paths[field.id]


class AuditRun:
    """The tables as they were loaded, at a branch; `run` is what functions are given."""

    def __init__(self, spark: SparkSession, tables: Mapping[str, Table], branch: str, run: Any) -> None:
        self._spark = spark
        self._tables = tables
        self._branch = branch
        self._run = run
        self._frames: dict[tuple[str, str], DataFrame] = {}

    def results(self, audits: Sequence[Audit]) -> tuple[AuditResult, ...]:
        """The result of every audit, in their order. One that cannot be run has failed."""
        measured: dict[str, AuditResult] = {}
        for table in dict.fromkeys(a.table for a in audits if isinstance(a, _OnePass)):
            measured |= self._one_pass(table, [a for a in audits if isinstance(a, _OnePass) and a.table == table])
        return tuple(measured.get(audit.name) or _guarded(audit, self._single(audit)) for audit in audits)

    def _single(self, audit: Audit) -> Callable[[], AuditResult]:
        match audit:
            case UniqueAudit():
                return lambda: self._unique(audit)
            case ReferenceAudit():
                return lambda: self._references(audit)
            case QueryAudit():
                return lambda: _by_rows(audit, self._spark.sql(audit.sql))
            case FunctionAudit():
                return lambda: _by_answer(audit, audit.function(self._run))
            case RowAudit() | MeasureAudit() | ChangeAudit():
                return lambda: self._one_pass(audit.table, [audit])[audit.name]
        assert_never(audit)

    def _one_pass(self, table: str, audits: Sequence[_OnePass]) -> dict[str, AuditResult]:
        """All of them in one job; if it fails, each by itself, to find which one is broken."""
        try:
            values = self._values(table, self._branch, audits)
            changes = [a for a in audits if isinstance(a, ChangeAudit)]
            before = self._values(table, MAIN, changes) if changes and MAIN in self._tables[table].refs else {}
        except PySparkException as error:
            if len(audits) == 1:
                return {audits[0].name: _broken(audits[0], error)}
            return {a.name: result for a in audits for result in self._one_pass(table, [a]).values()}
        return {a.name: self._judged(a, values[a.name], values[_COUNT], before.get(a.name)) for a in audits}

    def _values(self, table: str, ref: str, audits: Sequence[_OnePass]) -> dict[str, Any]:
        columns = [self._measure(audit).alias(str(place)) for place, audit in enumerate(audits)]
        (row,) = self._frame(table, ref).agg(F.count(F.lit(1)), *columns).collect()
        return {_COUNT: row[0]} | {audit.name: row[place + 1] for place, audit in enumerate(audits)}

    def _measure(self, audit: _OnePass) -> Column:
        match audit:
            case RowAudit():
                return F.count_if(audit.is_bad(self._column(audit.table)))
            case MeasureAudit():
                return audit.measure(self._column(audit.table))
            case ChangeAudit():
                return F.expr(audit.measure)
        assert_never(audit)

    def _judged(self, audit: _OnePass, value: Any, rows: int, before: Any) -> AuditResult:
        match audit:
            case RowAudit() if value:
                bad = self._frame(audit.table).where(audit.is_bad(self._column(audit.table)))
                return _result(audit, False, f"{value:,} of {rows:,} rows otherwise", _sample(bad))
            case RowAudit():
                return _result(audit, True, f"all of {rows:,} rows")
            case MeasureAudit():
                return _result(audit, audit.holds(value), audit.found(value))
            case ChangeAudit():
                return _judged_change(audit, value, before)
        assert_never(audit)

    def _unique(self, audit: UniqueAudit) -> AuditResult:
        keys = [self._column(audit.table)(c).alias(f"_{i}") for i, c in enumerate(audit.columns)]
        names = [f"_{i}" for i in range(len(keys))]
        rows = self._frame(audit.table).select(*keys).dropna(subset=names)
        twice = rows.groupBy(*names).agg(F.count("*").alias("n")).where("n > 1")
        (totals,) = twice.agg(F.count("*"), F.sum("n")).collect()
        if not totals[0]:
            return _result(audit, True, "no two rows the same")
        sample = _sample(twice.select(*(F.col(n).alias(c) for n, c in zip(names, audit.columns, strict=True)), "n"))
        return _result(audit, False, f"{totals[0]:,} values that {totals[1]:,} rows share", sample)

    def _references(self, audit: ReferenceAudit) -> AuditResult:
        mine = [self._column(audit.table)(c) for c in audit.columns]
        theirs = [self._column(audit.other)(c) for c in audit.other_columns]
        names = [f"_bergline_{i}" for i in range(len(mine))]
        rows = self._frame(audit.table).withColumns(dict(zip(names, mine, strict=True))).dropna(subset=names)
        known = self._frame(audit.other).select(*(c.alias(n) for c, n in zip(theirs, names, strict=True)))
        lost = rows.join(known, names, "left_anti").drop(*names)
        count = lost.count()
        if not count:
            return _result(audit, True, "all there")
        return _result(audit, False, f"{count:,} rows whose value is not there", _sample(lost))

    def _column(self, table: str) -> Callable[[str], Column]:
        def column(name: str) -> Column:
            return F.col(back_quoted_path(column_path(self._tables[table], name)))

        return column

    def _frame(self, table: str, ref: str | None = None) -> DataFrame:
        key = table, ref or self._branch
        if key not in self._frames:
            self._frames[key] = read(self._tables[table].scan(ref=key[1]), self._spark)
        return self._frames[key]


def _table_of(audit: str, table: str, tables: Mapping[str, Table]) -> Table:
    if table not in tables:
        raise NotFoundError(f"no table `{table}` in the pipeline, for {audit}", kind="table", name=table, known=tables)
    return tables[table]


def _guarded(audit: Audit, run: Callable[[], AuditResult]) -> AuditResult:
    try:
        return run()
    except Exception as error:  # noqa: BLE001  (the user's own code may raise anything: an audit without a result has not passed)
        return _broken(audit, error)


def _broken(audit: Audit, error: Exception) -> AuditResult:
    (line, *_) = str(error).strip().splitlines() or [""]
    return _result(audit, False, f"that it cannot be run: {type(error).__name__}: {line}")


def _by_rows(audit: QueryAudit | FunctionAudit, rows: DataFrame) -> AuditResult:
    sample = _sample(rows, _SAMPLE + 1)
    if not sample:
        return _result(audit, True, "no rows")
    found = f"{len(sample)} rows" if len(sample) <= _SAMPLE else f"more than {_SAMPLE} rows"
    return _result(audit, False, found, sample[:_SAMPLE])


def _by_answer(audit: FunctionAudit, answer: Any) -> AuditResult:
    match answer:
        case None | True:
            return _result(audit, True, "holds")
        case False:
            return _result(audit, False, "that it does not")
        case str():
            return _result(audit, False, answer)
        case DataFrame():
            return _by_rows(audit, answer)
    return _result(audit, False, f"an answer that is none: {answer!r}")


def _judged_change(audit: ChangeAudit, value: Any, before: Any) -> AuditResult:
    if not before:
        return _result(audit, True, f"{value}, and nothing on main to compare with")
    if value is None:
        return _result(audit, False, f"none, {before} on main")
    if not (_is_number(value) and _is_number(before)):
        return _result(audit, False, f"that it cannot be compared: {value}, {before} on main, which are no numbers")
    by = (float(value) - float(before)) / abs(float(before))
    holds = (audit.at_least is None or by >= audit.at_least) and (audit.at_most is None or by <= audit.at_most)
    return _result(audit, holds, f"{by:+.1%}: {value}, {before} on main")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal)


def _result(audit: Audit, passed: bool, found: str, sample: tuple[dict[str, Any], ...] = ()) -> AuditResult:
    return AuditResult(audit.name, audit.table, passed, audit.expected, found, sample)


def _sample(rows: DataFrame, count: int = _SAMPLE) -> tuple[dict[str, Any], ...]:
    return tuple(row.asDict() for row in rows.limit(count).collect())


def _shown_row(row: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in row.items())
