"""How rows are spread over tasks and ordered inside them before they are written, as Iceberg's properties say."""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.errors import UnsupportedError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.sort_order import UNSORTED, SortOrder
from bergline.format.partition.spec import PartitionSpec
from bergline.format.partition.transforms import Transform, Void
from bergline.format.schema.schema import Schema
from bergline.quoting import back_quoted
from bergline.spark.backends.choose import backend_of
from bergline.spark.runtime.executors import prepare_executors
from bergline.spark.writes.keys import key_column
from bergline.table.commits.isolation import RowLevelCommand
from bergline.table.evolution.properties import DISTRIBUTION_MODE, DISTRIBUTION_MODES, check_distribution_mode

_NONE, _HASH, _RANGE = DISTRIBUTION_MODES
_FANOUT = "write.spark.fanout.enabled"
_KEY = "_bergline_key_"
_NO_FILES = "file:/"
"""What functions of keys open."""
_WORTH_A_TASK = 64 << 20
"""So many bytes, of which a file has less once they are compressed."""


class ArrangedRows(NamedTuple):
    """Rows in the order in which they are to be written; `sort_order_id` says whether that is the table's own."""

    frame: DataFrame
    sort_order_id: int


def arrange_rows(rows: DataFrame, metadata: TableMetadata, command: RowLevelCommand | None = None) -> ArrangedRows:
    """Distribute rows by partition (hash, range) and sort them; `none` leaves them in their tasks.

    A row-level command may have a distribution mode of its own. Where there is nothing to do and nobody has said
    `none`, partitions of next to nothing are joined with their neighbours.
    """
    order, keys = _order(metadata), _SortKeys(rows, metadata.schema)
    partition = [keys.add(f.source_id, f.transform) for f in metadata.spec.fields if not isinstance(f.transform, Void)]
    clustering = [key for key in partition if key is not None]
    sorting = _sorting(keys, order)
    mode = _mode(metadata, command, is_partitioned=bool(partition), is_sorted=bool(order.fields))
    ordering = [key.asc_nulls_first() for key in clustering] + (sorting or [])
    frame = keys.frame()
    if mode == _HASH and clustering:
        frame = frame.hint("rebalance", *clustering)
    elif mode == _RANGE and ordering:
        frame = frame.repartitionByRange(*ordering)
    if ordering and (sorting or not _is_true(metadata.properties.get(_FANOUT, "false"))):
        frame = frame.sortWithinPartitions(*ordering)
    if frame is rows and command is None and DISTRIBUTION_MODE not in metadata.properties:
        frame = backend_of(rows).with_fewer_partitions(rows, _WORTH_A_TASK)
    return ArrangedRows(keys.dropped_from(frame), order.order_id if sorting else 0)


def sort_rows(
    rows: DataFrame,
    schema: Schema,
    order: SortOrder,
    *,
    spec: PartitionSpec | None,
    ranges: int,
    last: str | None = None,
) -> DataFrame:
    """Rows in so many ranges, sorted inside them: by partition if a spec is given, by an order, and by a last column.

    UnsupportedError for an order that Spark cannot sort by.
    """
    keys = _SortKeys(rows, schema)
    fields = [] if spec is None else [f for f in spec.fields if not isinstance(f.transform, Void)]
    clustering = [keys.add(f.source_id, f.transform) for f in fields]
    sorting = _sorting(keys, order)
    if order.fields and sorting is None:
        names = ", ".join(f"{f.transform}({schema.names_by_id.get(f.source_id)})" for f in order.fields)
        raise UnsupportedError(f"cannot sort rows on Spark by {names}")
    by_last = [] if last is None else [F.col(back_quoted(last)).asc_nulls_first()]
    ordering = [key.asc_nulls_first() for key in clustering if key is not None] + (sorting or []) + by_last
    frame = keys.frame()
    if not ordering:
        return frame.repartition(ranges)
    spread = frame.repartition(1) if ranges == 1 else frame.repartitionByRange(ranges, *ordering)
    return keys.dropped_from(spread.sortWithinPartitions(*ordering))


def arrange_local_rows(rows: DataFrame, metadata: TableMetadata) -> ArrangedRows:
    """Sort local rows by the table's order, in one task; the writer groups them by partition."""
    order, keys = _order(metadata), _SortKeys(rows, metadata.schema)
    sorting = _sorting(keys, order)
    if not sorting:
        return ArrangedRows(rows, 0)
    frame = keys.frame().coalesce(1).sortWithinPartitions(*sorting)
    return ArrangedRows(keys.dropped_from(frame), order.order_id)


class _SortKeys:
    """Transformed columns beside those of a frame, each once."""

    def __init__(self, rows: DataFrame, schema: Schema) -> None:
        self._rows = rows
        self._schema = schema
        self._added: dict[tuple[int, Transform], tuple[str, Column]] = {}
        self._names = rows.columns

    def add(self, source_id: int, transform: Transform) -> Column | None:
        """The column to sort by; None if the value is the same in all rows, or if Spark cannot compute it."""
        path = self._schema.paths.get(source_id)
        if path is None or path[0] not in self._names:
            return None
        place = (source_id, transform)
        if place not in self._added:
            value = key_column(source_id, transform, self._schema, self._prepare)
            if value is None:
                return None
            self._added[place] = (f"{_KEY}{len(self._added)}", value)
        return F.col(self._added[place][0])

    def _prepare(self) -> None:
        prepare_executors(backend_of(self._rows), _NO_FILES)

    def frame(self) -> DataFrame:
        """The rows with the keys."""
        return (
            self._rows.select("*", *(v.alias(name) for name, v in self._added.values())) if self._added else self._rows
        )

    def dropped_from(self, frame: DataFrame) -> DataFrame:
        """The frame's own columns."""
        return frame.drop(*(name for name, _ in self._added.values())) if self._added else frame


def _order(metadata: TableMetadata) -> SortOrder:
    return next((o for o in metadata.sort_orders if o.order_id == metadata.default_sort_order_id), UNSORTED)


def _sorting(keys: _SortKeys, order: SortOrder) -> list[Column] | None:
    """The terms of the table's order; None if it has none, or one that cannot be sorted by."""
    terms = []
    for field in order.fields:
        key = keys.add(field.source_id, field.transform)
        if key is None:
            return None
        nulls_first = field.null_order == "nulls-first"
        if field.direction == "asc":
            terms.append(key.asc_nulls_first() if nulls_first else key.asc_nulls_last())
        else:
            terms.append(key.desc_nulls_first() if nulls_first else key.desc_nulls_last())
    return terms or None


def _mode(metadata: TableMetadata, command: RowLevelCommand | None, *, is_partitioned: bool, is_sorted: bool) -> str:
    keys = (DISTRIBUTION_MODE,) if command is None else (f"write.{command}.distribution-mode", DISTRIBUTION_MODE)
    for key in keys:
        text = metadata.properties.get(key)
        if text is not None:
            return check_distribution_mode(key, text)
    if is_sorted:
        return _RANGE
    return _HASH if is_partitioned else _NONE


def _is_true(text: str) -> bool:
    return text.lower() == "true"
