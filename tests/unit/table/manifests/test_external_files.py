"""Files that callers give: theirs whatever comes, unless they hand them over."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, RefusedError, UnavailableError
from bergline.format.manifest.manifest import DataFile
from support.fixtures.competing_writers import LosingTable, files, rival_lake
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

FUTURE = dt.datetime(2099, 1, 1, tzinfo=dt.UTC)


def data_files(table: Table, row_filter: str | None = None) -> list[DataFile]:
    return [p.file for p in table.scan(row_filter).plan().files]


CALLS: dict[str, Callable[..., Any]] = {
    "append_files": lambda t, files, **options: t.append_files(files, **options),
    "overwrite_files": lambda t, files, **options: t.overwrite_files(files, **options),
    "replace_partitions": lambda t, files, **options: t.replace_partitions(files, **options),
    "row_delta": lambda t, files, **options: t.row_delta(add=files, **options),
    "rewrite_files": lambda t, files, **options: t.rewrite_files(add=files, remove=data_files(t, "id = 1"), **options),
}
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@pytest.fixture
def table(lake: Lake) -> Table:
    made = lake.create_table("db.t", ORDERS, properties={"commit.retry.num-retries": "0"})
    made.append(order_rows(1)).append(order_rows(2))
    made.refs.create_tag("v1")
    return made


each_ownership = pytest.mark.parametrize("handed_over", [False, True], ids=["given", "handed over"])


@each_call
@each_ownership
def test_live_files_stay_when_a_call_with_them_fails(table: Table, call: Callable[..., Any], handed_over: bool) -> None:
    with pytest.raises(RefusedError):
        call(table, data_files(table, "id = 2"), branch="v1", discard_on_failure=handed_over)
    assert ids(table.scan().to_arrow()) == [1, 2]


@pytest.mark.parametrize("name", ["append_files", "overwrite_files", "replace_partitions"])
def test_files_that_only_a_tag_needs_stay_when_they_are_handed_over(table: Table, name: str) -> None:
    old = data_files(table, "id = 2")
    table.overwrite(order_rows(1))
    spelt = [msgspec.structs.replace(f, file_path=f.file_path.removeprefix("file://")) for f in old]
    with pytest.raises(RefusedError):
        CALLS[name](table, [*spelt, *written_files(table, order_rows(3))], branch="v1", discard_on_failure=True)
    assert ids(table.scan(ref="v1").to_arrow()) == [1, 2]
    assert len(files(table, "*.parquet")) == 3


def test_a_file_that_the_same_transaction_added_stays_when_it_is_handed_over(table: Table) -> None:
    new = written_files(table, order_rows(3))
    with table.transaction() as tx:
        tx.append_files(new)
        with pytest.raises(InvalidInputError, match="which is on branch `main` already"):
            tx.append_files(new, discard_on_failure=True)
    assert ids(table.scan().to_arrow()) == [1, 2, 3]


@each_call
@each_ownership
def test_new_files_stay_when_a_call_fails_unless_they_are_handed_over(
    table: Table, call: Callable[..., Any], handed_over: bool
) -> None:
    (new,) = written_files(table, order_rows(1))
    with pytest.raises(RefusedError):
        _in_failing_transaction(table, lambda tx: call(tx, [new], discard_on_failure=handed_over))
    assert table.io.exists(new.file_path) is not handed_over


def _in_failing_transaction(table: Table, change: Callable[[Table], object]) -> None:
    with table.transaction() as tx:
        change(tx)
        raise RefusedError("changed my mind")


def test_a_store_that_does_not_answer_has_changed_nothing_and_the_call_can_be_made_again(
    lake: Lake, table: Table
) -> None:
    def refuse() -> None:
        raise UnavailableError("not now")

    silent, _ = rival_lake(lake, before_swap=refuse)
    files = written_files(table, order_rows(3))
    with pytest.raises(UnavailableError):
        silent.load_table("db.t").append_files(files)
    table.append_files(files)
    assert ids(table.scan().to_arrow()) == [1, 2, 3]


def test_a_row_delta_without_files_is_refused(table: Table) -> None:
    with pytest.raises(InvalidInputError, match="expected files to add or to remove, found none"):
        table.row_delta()


@each_call
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"file_path": "file:///nowhere/x.parquet"}, "expected a file, found none at file:///nowhere/x.parquet"),
        ({"record_count": 7}, "expected 7 rows, found 1 in "),
        ({"file_format": "parquet"}, "expected the format PARQUET, ORC, AVRO, found `parquet`"),
        ({"file_format": "LANCE"}, "expected the format PARQUET, ORC, AVRO, found `LANCE`"),
    ],
)
def test_files_that_are_not_as_they_are_said_to_be_are_refused(
    table: Table, call: Callable[..., Any], wrong: dict[str, Any], message: str
) -> None:
    (new,) = written_files(table, order_rows(1))
    before = table.metadata_location
    with pytest.raises(InvalidInputError, match=message):
        call(table, [msgspec.structs.replace(new, **wrong)])
    assert table.refresh().metadata_location == before


@each_call
def test_a_file_that_is_named_twice_is_refused(table: Table, call: Callable[..., Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"expected each file once, found .* twice"):
        call(table, written_files(table, order_rows(1)) * 2)


@each_call
@each_ownership
@pytest.mark.parametrize("prefix", ["file://", ""])
def test_a_file_that_is_live_on_the_branch_is_refused(
    table: Table, call: Callable[..., Any], prefix: str, handed_over: bool
) -> None:
    (live,) = data_files(table, "id = 2")
    again = msgspec.structs.replace(live, file_path=prefix + live.file_path.removeprefix("file://"))
    with pytest.raises(InvalidInputError, match="which is on branch `main` already"):
        call(table, [again], discard_on_failure=handed_over)
    assert ids(table.refresh().scan().to_arrow()) == [1, 2]


def test_a_file_that_another_adds_meanwhile_is_refused(lake: Lake, table: Table) -> None:
    lake.load_table("db.t").set_properties({"commit.retry.num-retries": "4"})
    new = written_files(table, order_rows(3))
    losing = LosingTable(lake, "db.t", lambda: lake.load_table("db.t").append_files(new))
    with pytest.raises(InvalidInputError, match="which is on branch `main` already"):
        losing.table.append_files(new)
    assert ids(table.refresh().scan().to_arrow()) == [1, 2, 3]


@pytest.mark.parametrize("options", [{}, {"wap_id": "w"}], ids=["plain", "staged"])
@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"rewrite_files"}))
def test_a_file_that_expiry_deletes_meanwhile_is_refused(lake: Lake, name: str, options: dict[str, str]) -> None:
    table = lake.create_table("db.t", ORDERS)
    (old,) = data_files(table.append(order_rows(1)))
    table.overwrite(order_rows(2))
    losing = LosingTable(lake, "db.t", lambda: lake.load_table("db.t").expire(older_than=FUTURE))
    with pytest.raises(InvalidInputError, match="expected a file, found none at"):
        CALLS[name](losing.table, [old], **options)
    assert not table.io.exists(old.file_path)
    assert ids(table.refresh().scan().to_arrow()) == [2]
    assert len(table.metadata.snapshots) == 1


def test_a_file_that_expiry_deletes_meanwhile_is_refused_in_a_transaction(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS)
    (old,) = data_files(table.append(order_rows(1)))
    table.overwrite(order_rows(2))
    losing = LosingTable(lake, "db.t", lambda: lake.load_table("db.t").expire(older_than=FUTURE))
    with (
        pytest.raises(InvalidInputError, match="expected a file, found none at"),
        losing.table.transaction() as tx,
    ):
        tx.append_files([old])
    assert ids(table.refresh().scan().to_arrow()) == [2]


def test_a_file_of_another_branch_may_be_added(table: Table) -> None:
    new = written_files(table, order_rows(3))
    table.append_files(new, branch="staging").append_files(new)
    assert ids(table.scan().to_arrow()) == [1, 2, 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda t, files: t.row_delta(remove=files),
        lambda t, files: t.row_delta(remove=files, isolation="none"),
        lambda t, files: t.overwrite_files([], removed=files),
    ],
)
def test_files_to_remove_that_were_never_there_are_refused(
    lake: Lake, table: Table, call: Callable[[Table, list[DataFile]], Any]
) -> None:
    other = lake.create_table("db.other", ORDERS).append(order_rows(5))
    before = table.metadata_location
    with pytest.raises(InvalidInputError, match=r"expected files of branch `main` to remove, found .*/other/"):
        call(table, [*data_files(table, "id = 1"), *data_files(other)])
    assert table.refresh().metadata_location == before
