"""Frames whose files are looked up late: what those of classic Spark and Spark Connect have in common."""

import re
from collections.abc import Iterable
from typing import Any, Self

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)
from pyspark.sql import types as T  # noqa: N812

from bergline.quoting import back_quoted
from bergline.spark.runtime.backend import Read
from bergline.spark.runtime.types import read_schema
from bergline.table.scans.scan import TableScan

_STAR = "*"


class LateRows(msgspec.Struct, frozen=True):
    """What is asked for: a scan, conditions on it, and columns of `hidden` ones that must be there."""

    scan: TableScan
    model: Any
    """What all frames of one table share."""
    name: tuple[str, ...]
    """What columns may be qualified by: lake, namespace and table, or some of these from the end."""
    label: str
    """The table, in words."""
    hidden: frozenset[str]
    read: Read
    conditions: tuple[Column | str, ...] = ()
    extra: tuple[str, ...] = ()

    def mentioned(self, texts: Iterable[Any]) -> tuple[str, ...]:
        """The hidden columns that names or conditions are about."""
        words = {word for text in texts for word in re.findall(r"\w+", str(text))}
        return tuple(sorted(self.hidden & words))

    def with_extra(self, names: tuple[str, ...]) -> Self:
        """The same rows with hidden columns too."""
        return msgspec.structs.replace(self, extra=tuple(dict.fromkeys((*self.extra, *names))))

    def with_condition(self, condition: Column | str) -> Self:
        """Those of the rows that match a condition too, with the hidden columns that it needs."""
        wider = self.with_extra(self.mentioned([condition]))
        return msgspec.structs.replace(wider, conditions=(*self.conditions, condition))

    def pruned(self) -> TableScan:
        """The scan with what the conditions ask of it."""
        raise NotImplementedError


class LateMethods(DataFrame):
    """Gathers filters; everything else goes to a real frame, which is made on first use."""

    _late: LateRows

    @property
    def schema(self) -> T.StructType:
        """The table's columns."""
        return read_schema(self._late.scan.schema)

    def rows_with(self, hidden: tuple[str, ...]) -> DataFrame:
        """The rows, as a frame of Spark's own, with hidden columns too."""
        raise NotImplementedError

    def where(self, condition: Column | str) -> DataFrame:
        """The matching rows; files that can have none are not looked at."""
        return self.filter(condition)

    def select(self, *cols: Any) -> DataFrame:
        """Columns of the table, and those that tell where a row comes from."""
        asked = list(cols[0]) if len(cols) == 1 and isinstance(cols[0], list | tuple) else list(cols)
        hidden = self._late.mentioned(asked)
        if not hidden:
            return super().select(*cols)
        own = [back_quoted(f.name) for f in self.schema]
        named = [name for column in asked for name in (own if _is_star(column) else [column])]
        return self.rows_with(hidden).select(*named)

    def selectExpr(self, *expr: Any) -> DataFrame:  # noqa: N802  (Spark's name)
        """The same for expressions."""
        texts = list(expr[0]) if len(expr) == 1 and isinstance(expr[0], list) else list(expr)
        if not self._late.mentioned(texts):
            return super().selectExpr(*expr)
        return self.select(*(text if _is_star(text) else F.expr(text) for text in texts))


def _is_star(column: Any) -> bool:
    return isinstance(column, str) and column.strip() == _STAR
