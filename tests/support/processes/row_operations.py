"""Operations on the rows of one table: what writers do, and what each means to a set of rows in plain Python."""

import datetime as dt
from collections import Counter
from collections.abc import Callable

import msgspec
import pyarrow as pa

from bergline import Table
from bergline.errors import ConflictError, NotFoundError

ROWS = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("part", pa.int64()), ("v", pa.int64()), ("log", pa.string())]
)
OPERATION = "test-operation"
PARTS = 3
ATTEMPTS = 8
Row = tuple[int, int, int, str]
"""The columns of `ROWS`; the log has the number of every operation that changed the row."""
State = Counter[Row]


class RowOperation(msgspec.Struct, frozen=True):
    """One operation: the rows that it is about are those of some ids, or of a range of ids with some values."""

    kind: str
    number: int
    ids: tuple[int, ...] = ()
    low: int = 0
    high: int = 0
    least: int = 0

    @property
    def condition(self) -> str:
        return f"id >= {self.low} AND id < {self.high} AND v >= {self.least}"

    @property
    def new_rows(self) -> list[Row]:
        return [(i, i % PARTS, (i * 7 + self.number) % 10, f"{self.kind[0]}{self.number}") for i in self.ids]

    def matches(self, row: Row) -> bool:
        return self.low <= row[0] < self.high and row[2] >= self.least


def run_operation(table: Table, text: str) -> int:
    """Carry out an operation, again where others came first; how often they did, or ConflictError."""
    operation = msgspec.json.decode(text, type=RowOperation)
    for lost in range(ATTEMPTS):
        try:
            _RUN[operation.kind](table.refresh(), operation, {OPERATION: str(operation.number)})
        except ConflictError:
            continue
        except NotFoundError as error:
            if error.kind != "file":
                raise
            continue  # expired while it was read
        return lost
    raise ConflictError(f"{operation} lost {ATTEMPTS} times")


def statement(operation: RowOperation, table: str) -> str:
    """The operation in SQL; of compaction and expiry the procedure."""
    rows = ", ".join(f"({id_}L, {part}L, {v}L, '{log}')" for id_, part, v, log in operation.new_rows)
    source = f"USING (SELECT * FROM VALUES {rows} AS s({', '.join(ROWS.names)})) source ON target.id = source.id"
    match operation.kind:
        case "append":
            return f"INSERT INTO {table} VALUES {rows}"
        case "delete":
            return f"DELETE FROM {table} WHERE {operation.condition}"
        case "update":
            assigned = f"v = v + 1, log = concat(log, ':u{operation.number}')"
            return f"UPDATE {table} SET {assigned} WHERE {operation.condition}"
        case "upsert":
            return f"MERGE INTO {table} target {source} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        case "merge":
            updated = "UPDATE SET v = source.v, log = concat(target.log, ':', source.log)"
            return (
                f"MERGE INTO {table} target {source} WHEN MATCHED AND target.v < 5 THEN {updated} "
                "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
            )
        case "expire":
            return f"CALL system.expire_snapshots(table => '{table}', older_than => now(), retain_last => 10)"
        case "manifests":
            return f"CALL system.rewrite_manifests('{table}')"
        case _:
            options = "map('min-input-files', '2', 'delete-file-threshold', '1')"
            return f"CALL system.rewrite_data_files(table => '{table}', options => {options})"


def apply_operation(operation: RowOperation, rows: State) -> State:
    """The rows after an operation."""
    return _APPLY[operation.kind](operation, rows)


def observed(table: Table, snapshot_id: int | None) -> State:
    """The rows of a snapshot."""
    if snapshot_id is None:
        return Counter()
    found = table.scan(snapshot_id=snapshot_id).to_arrow().select(ROWS.names)
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))


def as_arrow(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in rows], schema=ROWS)


def _append(table: Table, operation: RowOperation, summary: dict[str, str]) -> None:
    table.append(as_arrow(operation.new_rows), summary=summary)


def _delete(table: Table, operation: RowOperation, summary: dict[str, str]) -> None:
    table.delete(operation.condition, summary=summary)


def _update(table: Table, operation: RowOperation, summary: dict[str, str]) -> None:
    values = {"v": "v + 1", "log": f"concat(log, ':u{operation.number}')"}
    table.update(values, operation.condition, summary=summary)


def _upsert(table: Table, operation: RowOperation, summary: dict[str, str]) -> None:
    table.upsert(as_arrow(operation.new_rows), keys=["id"], summary=summary)


def _merge(table: Table, operation: RowOperation, summary: dict[str, str]) -> None:
    """Rows with small values are updated, those with large ones deleted, and others added."""
    (
        table.merge(as_arrow(operation.new_rows), on=["id"], summary=summary)
        .when_matched_update({"v": "source.v", "log": "concat(target.log, ':', source.log)"}, condition="target.v < 5")
        .when_matched_delete()
        .when_not_matched_insert_all()
        .execute()
    )


def _compact(table: Table, _: RowOperation, summary: dict[str, str]) -> None:
    table.compact(summary=summary)


def _manifests(table: Table, _: RowOperation, summary: dict[str, str]) -> None:
    table.rewrite_manifests(summary=summary)


def _expire(table: Table, operation: RowOperation, _: dict[str, str]) -> None:
    """With a level of 0 files stay, for those who look at all states afterwards."""
    level = "all" if operation.least else "none"
    table.expire(older_than=dt.datetime.now(dt.UTC), retain_last=10, level=level)


def _deleted(operation: RowOperation, rows: State) -> State:
    return Counter({row: count for row, count in rows.items() if not operation.matches(row)})


def _updated(operation: RowOperation, rows: State) -> State:
    def new(row: Row) -> Row:
        id_, part, v, log = row
        return (id_, part, v + 1, f"{log}:u{operation.number}") if operation.matches(row) else row

    return _mapped(rows, new)


def _upserted(operation: RowOperation, rows: State) -> State:
    return _merged_rows(operation, rows, lambda _, source: source)


def _merged(operation: RowOperation, rows: State) -> State:
    def matched(row: Row, source: Row) -> Row | None:
        return (row[0], row[1], source[2], f"{row[3]}:{source[3]}") if row[2] < 5 else None

    return _merged_rows(operation, rows, matched)


def _merged_rows(operation: RowOperation, rows: State, matched: Callable[[Row, Row], Row | None]) -> State:
    source = {row[0]: row for row in operation.new_rows}
    after = _mapped(rows, lambda row: matched(row, source[row[0]]) if row[0] in source else row)
    there = {row[0] for row in rows}
    return after + Counter(row for id_, row in source.items() if id_ not in there)


def _mapped(rows: State, new: Callable[[Row], Row | None]) -> State:
    after: State = Counter()
    for row, count in rows.items():
        if (changed := new(row)) is not None:
            after[changed] += count
    return after


_RUN: dict[str, Callable[[Table, RowOperation, dict[str, str]], None]] = {
    "append": _append,
    "delete": _delete,
    "update": _update,
    "upsert": _upsert,
    "merge": _merge,
    "compact": _compact,
    "manifests": _manifests,
    "expire": _expire,
}
_APPLY: dict[str, Callable[[RowOperation, State], State]] = {
    "append": lambda operation, rows: rows + Counter(operation.new_rows),
    "delete": _deleted,
    "update": _updated,
    "upsert": _upserted,
    "merge": _merged,
    "compact": lambda _, rows: rows,
    "manifests": lambda _, rows: rows,
    "expire": lambda _, rows: rows,
}
