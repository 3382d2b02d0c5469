"""Late frames over Spark Connect: a plan whose leaf looks up its files when the plan is first sent.

Conditions are gathered where a filter is put directly on the table; those that `conditions` understands decide
which files are read. Spark Connect knows columns by the plan that they come from, so a filter keeps the ids of all
plans below it.
"""

import copy
import functools
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.expressions.predicate import all_of
from bergline.quoting import back_quoted
from bergline.spark.backends.connect.classes import connect_classes
from bergline.spark.backends.connect.conditions import known_part
from bergline.spark.runtime.backend import Read
from bergline.spark.runtime.errors import spark_errors
from bergline.spark.runtime.late_frames import LateMethods, LateRows
from bergline.spark.runtime.types import read_schema
from bergline.sql.text.tokens import Name
from bergline.table.scans.scan import TableScan


class ConnectLateRows(LateRows, frozen=True):
    """The model is the session."""

    def rows(self) -> DataFrame:
        """The rows of the files that may match, all of them: files are looked up now."""
        with spark_errors():
            return self.read(self.pruned(), self.model).alias(self.name[-1])

    def pruned(self) -> TableScan:
        """The scan with what the conditions ask of it, as far as we understand them."""
        scan = self.scan.with_columns(self.extra)
        found = [known_part(c, scan.table_schema, self.name[-1], self.model.client) for c in self.conditions]
        known = [part for part in found if part is not None]
        return scan.where(all_of(known)) if known else scan


def connect_late_frame(scan: TableScan, spark: Any, name: Name, hidden: frozenset[str], read: Read) -> DataFrame:
    """The frame of a table before any filter."""
    late = ConnectLateRows(scan, spark, name, ".".join(name[1:]), hidden, read)
    leaf, _ = _late_classes()
    return _frame(late, leaf(late))


@functools.cache
def _late_classes() -> tuple[type[Any], type[Any]]:
    """The plan's leaf and the frame, which are made when Spark Connect's own classes can be imported."""
    theirs = connect_classes()

    class LateRead(theirs.plan):  # type: ignore[name-defined, misc]
        """The rows of a table; `plan_id` is that of another leaf of which this one takes the place."""

        def __init__(self, late: ConnectLateRows, plan_id: int | None = None) -> None:
            super().__init__(None)
            self._late = late
            if plan_id is not None:
                self._root_plan_id = plan_id

        @functools.cached_property
        def _rows(self) -> Any:
            return self._late.rows()

        def plan(self, session: Any) -> Any:
            relation = self._rows._plan.plan(session)  # noqa: SLF001
            relation.common.plan_id = self._plan_id
            return relation

    class ConnectLateFrame(LateMethods, theirs.frame):  # type: ignore[name-defined, misc]
        """A late frame of a session of Spark Connect."""

        _late: ConnectLateRows
        _core: Any
        """The filters on the leaf, without what hides its hidden columns."""

        def filter(self, condition: Column | str) -> DataFrame:
            late = self._late.with_condition(condition)
            rows = theirs.frame(_with_leaf(self._core, late), self._session)
            return _frame(late, rows.filter(condition)._plan)  # noqa: SLF001

        def rows_with(self, hidden: tuple[str, ...]) -> DataFrame:
            core = _with_leaf(self._core, self._late.with_extra(hidden))
            return theirs.frame(core, self._session)  # type: ignore[no-any-return]

        def _col(self, name: str, is_metadata_column: bool = False) -> Any:  # noqa: FBT002  (Spark's signature)
            return theirs.frame(self._core, self._session)._col(name, is_metadata_column)  # noqa: SLF001

        def __getitem__(self, item: Any) -> Any:
            return F.col(item) if isinstance(item, str) and item in self._late.hidden else super().__getitem__(item)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__") or name in {"_late", "_core"}:
                raise AttributeError(name)
            return F.col(name) if name in self._late.hidden else super().__getattr__(name)

    return LateRead, ConnectLateFrame


def _frame(late: ConnectLateRows, core: Any) -> DataFrame:
    theirs, (_, frame_class) = connect_classes(), _late_classes()
    shown = theirs.frame(core, late.model)
    columns = read_schema(late.scan.schema)
    if late.extra:
        shown = shown.select(*(back_quoted(f.name) for f in columns))
    frame = frame_class(shown._plan, late.model)  # noqa: SLF001
    frame._late, frame._core, frame._cached_schema = late, core, columns  # noqa: SLF001
    return frame  # type: ignore[no-any-return]


def _with_leaf(plan: Any, late: ConnectLateRows) -> Any:
    """The same filters, with the ids that they have, on a leaf that looks up other files."""
    leaf, _ = _late_classes()
    if isinstance(plan, leaf):
        return leaf(late, plan._plan_id)  # noqa: SLF001
    twin = copy.copy(plan)
    twin._child = _with_leaf(plan._child, late)  # noqa: SLF001
    return twin
