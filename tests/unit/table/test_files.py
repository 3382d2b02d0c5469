"""Files that were written elsewhere: added, replaced, removed; and discarded only if the caller says so."""

import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, RefusedError, UnsupportedError
from support.fixtures.competing_writers import files
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows


def test_files_are_added_and_replaced(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["region"])
    table.append_files(written_files(table, order_rows(1))).append_files(
        written_files(table, order_rows(2, region="us"))
    )
    table.replace_partitions(written_files(table, order_rows(3)))
    assert ids(table.scan().to_arrow()) == [2, 3]
    old = [p.file for p in table.scan("id = 2").plan().files]
    table.overwrite_files(written_files(table, order_rows(4, region="us")), removed=old)
    assert ids(table.scan().to_arrow()) == [3, 4]


@pytest.mark.parametrize("discard", [False, True])
def test_files_of_a_failed_commit_stay_unless_they_are_to_be_discarded(orders: Table, discard: bool) -> None:
    orders.append(order_rows(1)).refs.create_tag("v1")
    new = written_files(orders, order_rows(2))
    with pytest.raises(RefusedError, match="it is a tag"):
        orders.append_files(new, branch="v1", discard_on_failure=discard)
    assert orders.io.exists(new[0].file_path) is not discard


def test_live_file_is_never_discarded(orders: Table) -> None:
    live = written_files(orders.append(order_rows(1)), order_rows(2))
    orders.append_files(live)
    with pytest.raises(InvalidInputError, match="is on branch `main` already"):
        orders.append_files(live, discard_on_failure=True)
    assert ids(orders.scan().to_arrow()) == [1, 2]


def test_arguments_that_are_no_files_are_refused_before_anything_is_written(orders: Table) -> None:
    new = written_files(orders, order_rows(1))
    before = files(orders, "**/*")
    for call in (orders.append_files, orders.overwrite_files, orders.replace_partitions):
        with pytest.raises(InvalidInputError, match="expected a list of data files"):
            call(["a.parquet"])  # type: ignore[list-item]
    with pytest.raises(InvalidInputError, match="expected files to add or to remove, found none"):
        orders.row_delta()
    with pytest.raises(InvalidInputError, match="expected a list of delete files"):
        orders.row_delta(deletes=new)
    assert files(orders, "**/*") == before


def test_sequence_number_is_unsupported_in_a_transaction(orders: Table) -> None:
    old = [p.file for p in orders.append(order_rows(1)).scan().plan().files]
    new = written_files(orders, order_rows(1))
    with orders.transaction() as inside, pytest.raises(UnsupportedError, match="no sequence number in a transaction"):
        inside.rewrite_files(add=new, remove=old, sequence_number=1)
