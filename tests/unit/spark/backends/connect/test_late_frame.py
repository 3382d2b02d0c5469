"""Late frames over Spark Connect: what a plan asks for is known before it is sent; no server is needed to tell."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.connect import functions as F  # noqa: N812

from bergline import Table
from bergline.spark.backends.connect.late_frame import connect_late_frame
from support.fixtures.rows import order_rows

HIDDEN = frozenset({"_file"})


@pytest.fixture
def frame(orders: Table) -> Any:
    for n in (1, 2, 3):
        orders.append(order_rows(n))

    def read(*_: object) -> Any:
        raise AssertionError("no file is looked up before the plan is sent")

    return connect_late_frame(orders.scan(), SimpleNamespace(client=None), ("lake", "db", "orders"), HIDDEN, read)


def files(frame: Any) -> int:
    return len(frame._late.pruned().plan().files)


def test_filters_decide_which_files_are_read(frame: Any) -> None:
    assert files(frame) == 3
    assert files(frame.filter(F.col("id") > 1).where("id < 3")) == 1
    assert files(frame.filter(F.col("orders.id") == 7)) == 0
    assert files(frame.filter(F.length("region") == 2)) == 3


def test_frames_of_one_table_have_its_columns(frame: Any) -> None:
    filtered = frame.filter(frame.id > 1)
    assert filtered.schema == frame.schema
    assert frame.columns == ["id", "amount", "region"]
    assert filtered._plan._child._plan_id == frame._plan._plan_id


def test_hidden_columns_are_read_where_a_filter_names_them(frame: Any) -> None:
    filtered = frame.filter("_file LIKE 'x%'")
    assert filtered._late.extra == ("_file",)
    assert filtered.columns == ["id", "amount", "region"]
