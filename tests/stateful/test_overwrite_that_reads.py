"""Two writers append while a third reads the table and replaces what it read: no acknowledged row is ever lost.

In every second round the third writes only after somebody appended, so that what it read is surely old; in the others
all three race.
"""

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from at_once import LONG_S, run_at_once
from rows import ORDERS, order_rows

import bergline
from bergline import Table
from bergline.errors import ConflictError
from bergline.table.scan import TableScan

pytestmark = pytest.mark.long

ROUNDS = 200
WRITERS = 2


def replace_table(table: Table, read: TableScan, lake: bergline.Lake) -> None:
    with lake.stage_table(table.name, ORDERS, partition_by=["region"], replace=True, validate_from=read) as new:
        new.overwrite(read.to_arrow(), isolation="none")


Overwrite = Callable[[Table, TableScan, bergline.Lake], object]
OVERWRITES: list[Overwrite] = [
    lambda table, read, _: table.overwrite(read),
    lambda table, read, _: table.overwrite(read.to_arrow(), validate_from=read),
    lambda table, read, _: table.overwrite(read.to_arrow(), "id >= 0", validate_from=read.snapshot_id),
    lambda table, read, _: table.overwrite_partitions(read.to_arrow(), validate_from=read),
    replace_table,
]


class Rounds:
    """What was acknowledged, and who may go on."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self.acknowledged: list[int] = []
        self.conflicts = 0
        self._begin = threading.Barrier(WRITERS + 1, timeout=LONG_S)
        self._was_read = [threading.Event() for _ in range(ROUNDS)]
        self._appended = [threading.Event() for _ in range(ROUNDS)]

    def append(self, writer: int) -> None:
        with bergline.connect(self._uri, create=True) as lake:
            for number in range(ROUNDS):
                self._begin.wait()
                if number % 2:
                    assert self._was_read[number].wait(LONG_S)
                order = number * WRITERS + writer
                lake.load_table("db.orders").append(order_rows(order, region="eu" if order % 3 else "us"))
                self.acknowledged.append(order)
                self._appended[number].set()

    def overwrite(self) -> None:
        with bergline.connect(self._uri, create=True) as lake:
            for number in range(ROUNDS):
                self._begin.wait()
                table = lake.load_table("db.orders")
                read = table.scan()
                self._was_read[number].set()
                if number % 2:
                    assert self._appended[number].wait(LONG_S)
                self._until_it_is_in(OVERWRITES[number // 2 % len(OVERWRITES)], table, read, lake, stale=number % 2 > 0)

    def _until_it_is_in(
        self, write: Overwrite, table: Table, read: TableScan, lake: bergline.Lake, *, stale: bool
    ) -> None:
        while True:
            try:
                write(table, read, lake)
            except ConflictError:
                self.conflicts += 1
                stale = False
                read = table.refresh().scan()
            else:
                assert not stale, "it replaced rows that it had not read"
                return


@pytest.mark.timeout(LONG_S + 100)
def test_no_acknowledged_row_is_lost_beside_an_overwrite_that_reads(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    with bergline.connect(uri, create=True) as lake:
        lake.create_namespace("db")
        lake.create_table("db.orders", ORDERS, partition_by=["region"])
        rounds = Rounds(uri)
        run_at_once(rounds.overwrite, *(lambda writer=w: rounds.append(writer) for w in range(WRITERS)))
        found = Counter(lake.load_table("db.orders").scan().to_arrow()["id"].to_pylist())
    assert len(rounds.acknowledged) == ROUNDS * WRITERS
    assert found == Counter(rounds.acknowledged)
    assert rounds.conflicts >= ROUNDS // 2
