"""A table as a DataFrame whose files are looked up late: filters put on it first decide which.

Table and snapshot are fixed when it is made. Every other use of the frame finds its files and goes on as Spark's own.
All frames that come from one table share their columns, as Spark's do: `orders.filter(orders.id > 5)` prunes files, and
`orders.id` is a column of the result.
"""

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Self

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from bergline.spark.errors import spark_errors
from bergline.spark.pushed import placeholder, pushed_filters
from bergline.spark.read_scan import read
from bergline.spark.read_types import read_schema
from bergline.spark.same_columns import with_columns_of
from bergline.table.scan import TableScan

_STAR = "*"


class LateRows(msgspec.Struct, frozen=True):
    """What is asked for: a scan, conditions on it, and columns of `hidden` ones that must be there."""

    scan: TableScan
    model: Any
    """A frame without files that has the scan's columns; all frames of one table share them."""
    name: str
    hidden: frozenset[str]
    conditions: tuple[Column | str, ...] = ()
    extra: tuple[str, ...] = ()

    @property
    def probe(self) -> DataFrame:
        """The conditions, on no files."""
        return self._filtered(self._model_with_extra())

    def mentioned(self, texts: Iterable[Any]) -> tuple[str, ...]:
        """The hidden columns that names or conditions are about."""
        words = {word for text in texts for word in re.findall(r"\w+", str(text))}
        return tuple(sorted(self.hidden & words))

    def with_extra(self, names: tuple[str, ...]) -> "LateRows":
        """The same rows with hidden columns too."""
        return msgspec.structs.replace(self, extra=tuple(dict.fromkeys((*self.extra, *names))))

    def rows(self) -> DataFrame:
        """The rows: files are looked up now."""
        with spark_errors():
            found = read(self.pruned(), self.model.sparkSession)
        return self._filtered(with_columns_of(found, self._model_with_extra()).alias(self.name))

    def pruned(self) -> TableScan:
        """The scan with what the conditions ask of it."""
        scan = self.scan.with_columns(self.extra)
        if not self.conditions:
            return scan
        (row_filter,) = pushed_filters(self.probe, [scan.table_schema])
        return scan.where(row_filter)

    def _model_with_extra(self) -> DataFrame:
        if not self.extra:
            return self.model  # type: ignore[no-any-return]
        columns = read_schema(self.scan.with_columns(self.extra).schema)
        return with_columns_of(placeholder(self.model.sparkSession, columns), self.model).alias(self.name)

    def _filtered(self, frame: DataFrame) -> DataFrame:
        for condition in self.conditions:
            frame = frame.filter(condition)
        return frame


def late_frame(scan: TableScan, spark: SparkSession, name: str, hidden: frozenset[str]) -> DataFrame:
    """The rows of a scan; columns may be qualified by the name, and hidden ones are there for who asks for them."""
    model = placeholder(spark, read_schema(scan.schema)).alias(name)
    return LateFrame(LateRows(scan, model, name, hidden))


class LateFrame(ClassicDataFrame):
    """Gathers filters; everything else goes to the real frame, which is made on first use."""

    def __new__(cls, *_: Any) -> Self:
        """Spark's own takes a plan, which is not known yet."""
        return object.__new__(cls)

    def __init__(self, late: LateRows) -> None:
        super().__init__(None, late.model.sparkSession)
        del self._jdf  # made on first use, by the property below
        self._late = late

    @cached_property
    def _jdf(self) -> Any:
        rows = self._late.rows()
        if self._late.extra:
            rows = rows.select(*(_quoted(f.name) for f in self.schema))
        return rows._jdf  # noqa: SLF001

    @property
    def schema(self) -> T.StructType:
        """The table's columns."""
        return read_schema(self._late.scan.schema)

    def filter(self, condition: Column | str) -> DataFrame:
        """The matching rows; files that can have none are not looked at."""
        late = self._late.with_extra(self._late.mentioned([condition]))
        late = msgspec.structs.replace(late, conditions=(*late.conditions, condition))
        _ = late.probe  # what Spark refuses, it refuses here
        return LateFrame(late)

    def where(self, condition: Column | str) -> DataFrame:
        """The same."""
        return self.filter(condition)

    def select(self, *cols: Any) -> DataFrame:
        """Columns of the table, and those that tell where a row comes from."""
        asked = list(cols[0]) if len(cols) == 1 and isinstance(cols[0], list | tuple) else list(cols)
        hidden = self._late.mentioned(asked)
        if not hidden:
            return super().select(*cols)
        own = [_quoted(f.name) for f in self.schema]
        named = [name for column in asked for name in (own if _is_star(column) else [column])]
        return self._late.with_extra(hidden).rows().select(*named)

    def selectExpr(self, *expr: Any) -> DataFrame:  # noqa: N802  (Spark's name)
        """The same for expressions."""
        texts = list(expr[0]) if len(expr) == 1 and isinstance(expr[0], list) else list(expr)
        if not self._late.mentioned(texts):
            return super().selectExpr(*expr)
        return self.select(*(text if _is_star(text) else F.expr(text) for text in texts))

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, str) and item in self._late.hidden:
            return F.col(item)
        if isinstance(item, str | int):
            return self._late.model[item]
        return super().__getitem__(item)

    def __getattr__(self, name: str) -> Column:
        if name.startswith("__") or name == "_late":
            raise AttributeError(name)
        return F.col(name) if name in self._late.hidden else getattr(self._late.model, name)


def _is_star(column: Any) -> bool:
    return isinstance(column, str) and column.strip() == _STAR


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
