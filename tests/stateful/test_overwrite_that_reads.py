"""Two writers append while a third reads the table and replaces what it read: no acknowledged row is ever lost.

In every second round the third writes only after somebody appended, so that what it read is surely old; in the others
all three race.
"""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bergline
from bergline import Table
from bergline.errors import ConflictError
from bergline.table.scans.scan import TableScan
from support.fixtures.concurrency import LONG_S, run_at_once
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.long

ROUNDS = 40
"""Of each of the five ways to overwrite: 200 in all."""
WRITERS = 2


def replace_table(table: Table, read: TableScan, lake: bergline.Lake) -> None:
    with lake.stage_table(table.name, ORDERS, partition_by=["region"], replace=True, validate_from=read) as new:
        new.overwrite(read.to_arrow(), isolation="none")


Overwrite = Callable[[Table, TableScan, bergline.Lake], object]
OVERWRITES: dict[str, Overwrite] = {
    "scan as rows": lambda table, read, _: table.overwrite(read),
    "rows of a scan": lambda table, read, _: table.overwrite(read.to_arrow(), validate_from=read),
    "filter": lambda table, read, _: table.overwrite(read.to_arrow(), "id >= -2", validate_from=read.snapshot_id),
    "partitions": lambda table, read, _: table.overwrite_partitions(read.to_arrow(), validate_from=read),
    "replaced table": replace_table,
}


class Rounds:
    """What was acknowledged, and who may go on."""

    def __init__(self, uri: str, write: Overwrite) -> None:
        self._uri = uri
        self._write = write
        self.acknowledged = [-2, -1]
        self.conflicts = 0
        self._begin = threading.Barrier(WRITERS + 1, timeout=LONG_S)
        self._was_read = [threading.Event() for _ in range(ROUNDS)]
        self._appended = [threading.Event() for _ in range(ROUNDS)]

    @contextlib.contextmanager
    def _lake(self) -> Iterator[bergline.Lake]:
        """A lake of its own; who fails leaves nobody waiting."""
        with bergline.connect(self._uri) as lake:
            try:
                yield lake
            except threading.BrokenBarrierError:
                return  # another says what is wrong
            except BaseException:
                self._begin.abort()
                raise

    def append(self, writer: int) -> None:
        with self._lake() as lake:
            for number in range(ROUNDS):
                self._begin.wait()
                if number % 2:
                    assert self._was_read[number].wait(LONG_S)
                order = number * WRITERS + writer
                lake.load_table("db.orders").append(order_rows(order, region="eu" if order % 3 else "us"))
                self.acknowledged.append(order)
                self._appended[number].set()

    def overwrite(self) -> None:
        with self._lake() as lake:
            for number in range(ROUNDS):
                self._begin.wait()
                table = lake.load_table("db.orders")
                read = table.scan()
                self._was_read[number].set()
                if number % 2:
                    assert self._appended[number].wait(LONG_S)
                self._until_it_is_in(table, read, lake, stale=number % 2 > 0)

    def _until_it_is_in(self, table: Table, read: TableScan, lake: bergline.Lake, *, stale: bool) -> None:
        while True:
            try:
                self._write(table, read, lake)
            except ConflictError:
                self.conflicts += 1
                stale = False
                read = table.refresh().scan()
            else:
                assert not stale, "it replaced rows that it had not read"
                return


@pytest.mark.parametrize("way", OVERWRITES)
def test_no_acknowledged_row_is_lost_beside_an_overwrite_that_reads(tmp_path: Path, way: str) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    with bergline.connect(uri, create=True) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.orders", ORDERS, partition_by=["region"])
        table.append(order_rows(-2)).append(order_rows(-1, region="us"))
        rounds = Rounds(uri, OVERWRITES[way])
        run_at_once(rounds.overwrite, *(lambda writer=w: rounds.append(writer) for w in range(WRITERS)))
        found = Counter(lake.load_table("db.orders").scan().to_arrow()["id"].to_pylist())
    assert len(rounds.acknowledged) == 2 + ROUNDS * WRITERS
    assert found == Counter(rounds.acknowledged)
    assert rounds.conflicts >= ROUNDS // 2
