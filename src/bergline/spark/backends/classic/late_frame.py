"""A table as a DataFrame whose files are looked up late: filters put on it first decide which.

Table and columns are fixed when it is made. Every other use of the frame finds its files and goes on as Spark's own.
All frames that come from one table share their columns, as Spark's do: `orders.filter(orders.id > 5)` prunes files, and
`orders.id` is a column of the result.
"""

from functools import cached_property
from typing import Any, Self

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from bergline.quoting import back_quoted
from bergline.spark.backends.classic.catalyst import class_of
from bergline.spark.backends.classic.parsed import analyzed, counting_as, frame_of, qualified
from bergline.spark.backends.classic.pushed_filters import placeholder, placeholder_numbers, pushed_filters
from bergline.spark.runtime.backend import Read
from bergline.spark.runtime.errors import spark_errors
from bergline.spark.runtime.late_frames import LateMethods, LateRows
from bergline.spark.runtime.types import read_schema
from bergline.sql.text.tokens import Name
from bergline.table.scans.scan import TableScan


class ClassicLateRows(LateRows, frozen=True):
    """The model is a frame without files that has the scan's columns; all frames of one table share them."""

    @property
    def probe(self) -> DataFrame:
        """The conditions, on no files."""
        return self._filtered(self._model_with_extra())

    def rows(self) -> DataFrame:
        """The rows: files are looked up now."""
        with spark_errors():
            found = self.read(self.pruned(), self.model.sparkSession)
        return self._filtered(qualified(with_columns_of(found, self._model_with_extra()), self.name))

    def pruned(self) -> TableScan:
        """The scan with what the conditions ask of it."""
        scan = self.scan.with_columns(self.extra)
        if not self.conditions:
            return scan
        probe = self.probe
        (number,) = placeholder_numbers(probe)
        return scan.where(pushed_filters(probe, {number: scan.table_schema})[number])

    def with_last(self, condition: Column | None) -> Self:
        """The same with another last condition, if there is one."""
        if condition is None:
            return self
        return msgspec.structs.replace(self, conditions=(*self.conditions[:-1], condition))

    def _model_with_extra(self) -> DataFrame:
        if not self.extra:
            return self.model  # type: ignore[no-any-return]
        columns = read_schema(self.scan.with_columns(self.extra).schema)
        return qualified(with_columns_of(placeholder(self.model.sparkSession, columns).rows, self.model), self.name)

    def _filtered(self, frame: DataFrame) -> DataFrame:
        for condition in self.conditions:
            frame = frame.filter(condition)
        return frame


def classic_late_frame(
    scan: TableScan, spark: SparkSession, name: Name, hidden: frozenset[str], read: Read
) -> DataFrame:
    """The frame of a table before any filter."""
    model = qualified(placeholder(spark, read_schema(scan.schema)).rows, name)
    return LateFrame(ClassicLateRows(scan, model, name, ".".join(name[1:]), hidden, read))


class LateFrame(LateMethods, ClassicDataFrame):
    """A late frame of a classic session."""

    _late: ClassicLateRows

    def __new__(cls, *_: Any) -> Self:
        """Spark's own takes a plan, which is not known yet."""
        return object.__new__(cls)

    def __init__(self, late: ClassicLateRows) -> None:
        ClassicDataFrame.__init__(self, None, late.model.sparkSession)
        del self._jdf  # made on first use, by the property below
        self._late = late

    @cached_property
    def _jdf(self) -> Any:
        try:
            rows = self._late.rows()
        except AttributeError as error:  # Python would look for another `_jdf`
            raise RuntimeError(f"cannot read `{self._late.label}`: {error}") from error
        if self._late.extra:
            rows = rows.select(*(back_quoted(f.name) for f in self.schema))
        return rows._jdf  # noqa: SLF001

    def filter(self, condition: Column | str) -> DataFrame:
        """The matching rows; files that can have none are not looked at."""
        late = self._late.with_condition(condition)
        probe = late.probe  # what Spark refuses, it refuses here
        if probe._jdf.queryExecution().isLazyAnalysis():  # noqa: SLF001  (a subquery: only the query around it tells)
            return super().filter(condition)
        return LateFrame(late if late.extra else late.with_last(resolved_condition(probe)))

    def rows_with(self, hidden: tuple[str, ...]) -> DataFrame:
        """The rows, as a frame of Spark's own, with hidden columns too."""
        return self._late.with_extra(hidden).rows()

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, str) and item in self._late.hidden:
            return F.col(item)
        if isinstance(item, str | int):
            return self._late.model[item]
        return super().__getitem__(item)

    def __getattr__(self, name: str) -> Column:
        # `_jdf` is asked for here only if an AttributeError came out of it: the model has no rows
        if name.startswith("__") or name in {"_late", "_jdf"}:
            raise AttributeError(name)
        return F.col(name) if name in self._late.hidden else getattr(self._late.model, name)


def with_columns_of(frame: DataFrame, model: DataFrame) -> DataFrame:
    """The same rows, whose first columns have the ids of the model's; the rest stay as they are."""
    return frame_of(counting_as(analyzed(frame), analyzed(model).output(), frame.sparkSession), frame.sparkSession)


def resolved_condition(filtered: DataFrame) -> Column | None:
    """The last condition that a frame was filtered by, as Spark has resolved it; None if it cannot be found.

    It can be put on any frame whose columns have the same ids: the session's time zone and other settings, variables
    and functions have gone into it already.
    """
    plan = filtered._jdf.queryExecution().analyzed()  # noqa: SLF001  (only the plan has it)
    if class_of(plan) != "Filter":
        return None
    jvm = filtered.sparkSession.sparkContext._jvm  # noqa: SLF001
    return ClassicColumn(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(plan.condition()))  # type: ignore[union-attr]
