"""Row delta: rows added and deleted in one snapshot, checked against what others did meanwhile."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError
from bergline.format.manifest.manifest import DataFile
from bergline.table.operations.delete import write_deletes_by_position
from bergline.table.operations.row_delta import RowDelta
from support.fixtures.add_deletes import deletion_vectors, equality_deletes, position_deletes
from support.fixtures.competing_writers import LosingTable
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

VERSIONS = ["2", "3"]


def new_table(lake: Lake, version: str, **options: Any) -> Table:
    return lake.create_table(
        "db.t", ORDERS, properties={"format-version": version, **options.pop("properties", {})}, **options
    )


def found(table: Table, **options: Any) -> list[int]:
    return ids(table.scan(**options).to_arrow())


def head(table: Table) -> int:
    assert table.current_snapshot is not None
    return table.current_snapshot.snapshot_id


def summary(table: Table) -> dict[str, str]:
    assert table.current_snapshot is not None
    return table.current_snapshot.summary


def data_files(table: Table) -> list[DataFile]:
    return [p.file for p in table.scan().plan().files]


def by_position(table: Table, *positions: int, path: str | None = None) -> tuple[DataFile, ...]:
    """Deletes of positions in a data file, by default the first, as the table's version has them."""
    wanted = {path or data_files(table)[0].file_path: positions}
    return deletion_vectors(table, wanted) if table.metadata.format_version > 2 else (position_deletes(table, wanted),)


def delete_where(table: Table, text: str, **options: Any) -> Table:
    """Merge on read, as `table.delete` does it."""
    plan = table.scan(text).plan()
    made = write_deletes_by_position(table.io, table.metadata, plan)
    return table.row_delta(deletes=made.deletes, remove=made.replaced, referenced=made.referenced, **options)


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_are_added_and_deleted_in_one_snapshot(lake: Lake, version: str) -> None:
    table = new_table(lake, version).append(order_rows(1, 2, 3))
    table.row_delta(add=written_files(table, order_rows(9)), deletes=by_position(table, 1))
    assert found(table) == [1, 3, 9]
    expected = {
        "operation": "overwrite",
        "added-records": "1",
        "added-position-deletes": "1",
        "total-position-deletes": "1",
        "total-delete-files": "1",
        "total-records": "4",
    }
    assert expected.items() <= summary(table).items()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_delta_says_what_it_did(lake: Lake, version: str) -> None:
    table = new_table(lake, version).append(order_rows(1, 2, 3))
    table.row_delta(add=written_files(table, order_rows(4)))
    assert summary(table)["operation"] == "append"
    table.row_delta(deletes=by_position(table, 0))
    assert summary(table)["operation"] == "delete"
    table.row_delta(remove=[f for f in data_files(table) if f.record_count == 1])
    assert summary(table)["operation"] == "overwrite"
    assert summary(table)["deleted-data-files"] == "1"


def test_equality_deletes_are_taken_and_spare_rows_of_their_own_snapshot(lake: Lake) -> None:
    for version in VERSIONS:
        table = new_table(lake, version).append(order_rows(1, 2))
        table.row_delta(
            add=written_files(table, order_rows(2, 3)), deletes=[equality_deletes(table, pa.table({"id": [2]}), [1])]
        )
        assert found(table) == [1, 2, 3]
        lake.drop_table("db.t")


def test_a_removed_delete_file_brings_its_rows_back(lake: Lake) -> None:
    table = new_table(lake, "2").append(order_rows(1, 2))
    deletes = by_position(table, 0)
    table.row_delta(deletes=deletes)
    assert found(table) == [2]
    table.row_delta(remove=deletes)
    assert found(table) == [1, 2]
    assert summary(table)["removed-position-delete-files"] == "1"


def test_a_branch_is_written_and_main_stays(lake: Lake) -> None:
    table = new_table(lake, "3").append(order_rows(1, 2))
    table.row_delta(deletes=by_position(table, 0), branch="dev")
    assert (found(table), found(table, ref="dev")) == ([1, 2], [2])
    table.refs.create_tag("v1")
    with pytest.raises(RefusedError, match="tags do not move"):
        table.row_delta(deletes=by_position(table, 0), branch="v1")


@pytest.mark.parametrize(
    ("version", "make", "message"),
    [
        ("1", position_deletes, "expected format version 2 or higher"),
        ("2", deletion_vectors, "expected position delete files in a table of format version 2"),
        ("3", position_deletes, "expected deletion vectors in a table of format version 3"),
    ],
)
def test_each_version_takes_its_own_kind_of_deletes(
    lake: Lake, version: str, make: Callable[..., Any], message: str
) -> None:
    table = new_table(lake, version).append(order_rows(1, 2))
    made = make(table, {data_files(table)[0].file_path: [0]})
    with pytest.raises(InvalidInputError, match=message):
        table.row_delta(deletes=made if isinstance(made, tuple) else (made,))
    assert found(table) == [1, 2]


def test_position_deletes_are_refused_where_another_upgraded_the_table(lake: Lake) -> None:
    table = new_table(lake, "2").append(order_rows(1, 2))
    losing = LosingTable(lake, "db.t", lambda: lake.load_table("db.t").set_properties({"format-version": "3"}))
    with pytest.raises(InvalidInputError, match="expected deletion vectors"):
        losing.table.row_delta(deletes=by_position(table, 0))


def test_a_second_deletion_vector_must_replace_the_first(lake: Lake) -> None:
    table = new_table(lake, "3").append(order_rows(1, 2, 3))
    first = by_position(table, 0)
    table.row_delta(deletes=first)
    with pytest.raises(ConflictError, match="to be removed with the new one"):
        table.row_delta(deletes=by_position(table, 1))
    table.row_delta(deletes=by_position(table, 0, 1), remove=first)
    assert found(table) == [3]
    assert summary(table)["total-position-deletes"] == "2"
    assert summary(table)["removed-dvs"] == "1"


@pytest.mark.parametrize("version", VERSIONS)
def test_removing_a_file_and_deleting_its_rows_contradict(lake: Lake, version: str) -> None:
    table = new_table(lake, version).append(order_rows(1, 2))
    with pytest.raises(InvalidInputError, match="found both"):
        table.row_delta(deletes=by_position(table, 0), remove=data_files(table))


@pytest.mark.parametrize("files", [["a"], "abc", None])
def test_only_files_of_the_right_kind_are_taken(lake: Lake, files: Any) -> None:
    table = new_table(lake, "2").append(order_rows(1, 2))
    with pytest.raises(InvalidInputError, match="expected a list of delete files"):
        table.row_delta(deletes=files)
    with pytest.raises(InvalidInputError, match="expected a list of data files"):
        table.row_delta(add=[*by_position(table, 0)])


def test_an_unknown_partition_spec_is_refused(lake: Lake) -> None:
    table = new_table(lake, "2")
    (file,) = written_files(table, order_rows(1))
    for broken in (
        DataFile(file.file_path, "PARQUET", (), 1, 1, spec_id=7),
        DataFile(file.file_path, "PARQUET", ("eu",), 1, 1),
    ):
        with pytest.raises(InvalidInputError, match="expected a partition spec of"):
            table.row_delta(add=[broken])


@pytest.mark.parametrize("version", VERSIONS)
def test_concurrent_appends_pass_at_snapshot_isolation_and_conflict_when_serializable(lake: Lake, version: str) -> None:
    table = new_table(lake, version).append(order_rows(1, 2))
    rival = lake.load_table("db.t")
    rival.append(order_rows(3))
    with pytest.raises(ConflictError, match=r"\(append on `main`, .*\) came first and added"):
        delete_where(table, "id = 1")
    stale = table  # a failed commit does not move the handle
    delete_where(stale, "id = 1", row_filter="id = 1")
    assert found(table) == [2, 3]
    since = head(table)
    rival.refresh().append(order_rows(4))
    table.row_delta(deletes=by_position(table, 0, path=_path_with(table, 3)), since=since, isolation="snapshot")
    assert found(table) == [2, 4]


def _path_with(table: Table, order: int) -> str:
    (planned,) = table.scan(f"id = {order}").plan().files
    return planned.file.file_path


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("isolation", ["serializable", "snapshot", "none"])
def test_deletes_on_a_file_that_was_rewritten_meanwhile_always_conflict(
    lake: Lake, version: str, isolation: str
) -> None:
    table = new_table(lake, version).append(order_rows(1, 2))
    deletes = by_position(table, 0)
    lake.load_table("db.t").overwrite(order_rows(1, 2, 3))
    with pytest.raises(ConflictError, match="which this one builds on"):
        table.row_delta(deletes=deletes, isolation=isolation, row_filter="id = 1")
    assert found(table.refresh()) == [1, 2, 3]


def test_two_deletion_vectors_for_one_file_conflict_at_every_level(lake: Lake) -> None:
    table = new_table(lake, "3").append(order_rows(1, 2, 3))
    delete_where(lake.load_table("db.t"), "id = 1")
    with pytest.raises(ConflictError, match="added a deletion vector for"):
        table.row_delta(deletes=by_position(table, 1), isolation="none")
    assert found(table.refresh()) == [2, 3]


def test_two_position_deletes_of_one_file_both_count(lake: Lake) -> None:
    table = new_table(lake, "2").append(order_rows(1, 2, 3))
    delete_where(lake.load_table("db.t"), "id = 1")
    table.row_delta(deletes=by_position(table, 1))
    assert found(table) == [3]


def test_new_versions_of_rows_conflict_with_deletes_of_them(lake: Lake) -> None:
    table = new_table(lake, "2").append(order_rows(1, 2, 3))
    new, deletes = written_files(table, order_rows(2)), by_position(table, 1)
    delete_where(lake.load_table("db.t"), "id = 1")
    with pytest.raises(ConflictError, match="came first and added the delete file"):
        table.row_delta(add=new, deletes=deletes, isolation="snapshot")


@pytest.mark.parametrize("version", VERSIONS)
def test_each_lost_attempt_writes_one_list_and_no_manifest(lake: Lake, version: str) -> None:
    table = new_table(lake, version).append(order_rows(1, 2)).append(order_rows(3, 4))
    appends = [lambda i=i: lake.load_table("db.t").append(order_rows(i)) for i in (10, 11, 12)]
    losing = LosingTable(lake, "db.t", *appends)
    losing.table.row_delta(
        add=written_files(table, order_rows(9)),
        deletes=by_position(table, 0, path=_path_with(table, 1)),
        remove=[f for f in data_files(table) if f.file_path == _path_with(table, 3)],
        isolation="none",
    )
    assert losing.lists == [1, 1, 1, 1]
    assert losing.manifests == [3, 0, 0, 0]  # new data, new deletes, the manifest without the removed file
    assert found(losing.table) == [2, 9, 10, 11, 12]


def test_files_that_are_handed_over_go_with_a_delta_that_certainly_failed(lake: Lake) -> None:
    table = new_table(lake, "3").append(order_rows(1, 2)).append(order_rows(3))
    made = write_deletes_by_position(table.io, table.metadata, table.scan("id <> 2").plan())
    lake.load_table("db.t").overwrite(order_rows(7))
    with pytest.raises(ConflictError):
        table.row_delta(deletes=made.deletes, remove=made.replaced, discard_on_failure=True)
    with pytest.raises(NotFoundError):
        table.io.read(made.deletes[0].file_path)


def test_a_file_that_must_be_removed_and_is_gone_is_a_conflict(lake: Lake) -> None:
    table = new_table(lake, "2").append(order_rows(1))
    gone = data_files(table)
    lake.load_table("db.t").overwrite(order_rows(2))
    with pytest.raises(ConflictError):
        table.row_delta(add=written_files(table, order_rows(5)), remove=gone, row_filter="id = 77")


def test_own_operation_can_be_committed_with_explicit_start(lake: Lake) -> None:
    table = new_table(lake, "2").append(order_rows(1))
    start = head(table)
    table.append(order_rows(2))
    operation = RowDelta(table.io, by_position(table, 0, path=_path_with(table, 1)), since=start)
    table.commit(operation)
    assert found(table) == [2]


@pytest.mark.parametrize("missing", ["referenced_data_file", "content_offset", "content_size_in_bytes", "equality_ids"])
def test_delete_files_that_nobody_could_read_are_refused(lake: Lake, missing: str) -> None:
    table = new_table(lake, "3").append(order_rows(1, 2))
    by_equality = missing == "equality_ids"
    good = equality_deletes(table, pa.table({"id": [2]}), [1]) if by_equality else by_position(table, 0)[0]
    with pytest.raises(InvalidInputError, match="found none"):
        table.row_delta(deletes=[msgspec.structs.replace(good, **{missing: None})])


def test_a_filter_that_never_fitted_is_bad_input_and_one_that_fits_no_more_a_conflict(lake: Lake) -> None:
    table = new_table(lake, "2").append(order_rows(1, 2))
    with pytest.raises(NotFoundError, match="nope"):
        table.row_delta(deletes=by_position(table, 0), row_filter="nope = 1")
    with lake.load_table("db.t").update_schema() as schema:
        schema.rename_column("amount", "price")
    lake.load_table("db.t").append(order_rows(3).rename_columns(["id", "price", "region"]))
    with pytest.raises(ConflictError, match="came first and added"):
        table.row_delta(deletes=by_position(table, 0), row_filter="amount > 5")
    with lake.load_table("db.t").update_schema() as schema:
        schema.drop_column("price")
    with pytest.raises(ConflictError, match="no longer fits the table: expected column `amount`, found it drop"):
        table.row_delta(deletes=by_position(table, 0), row_filter="amount > 5")


def test_deletes_by_equality_without_checks_do_not_mind_that_their_start_has_expired(lake: Lake) -> None:
    table = new_table(lake, "2").append(order_rows(1, 2))
    rival = lake.load_table("db.t")
    for i in (3, 4, 5):
        rival.append(order_rows(i))
    rival.expire(older_than=dt.datetime.now(dt.UTC), retain_last=1)
    deletes = [equality_deletes(table, pa.table({"id": [1, 4]}), [1])]
    with pytest.raises(ConflictError, match="has expired"):
        table.row_delta(deletes=deletes)
    table.row_delta(deletes=[equality_deletes(table, pa.table({"id": [1, 4]}), [1])], isolation="none")
    assert found(table) == [2, 3, 5]


@pytest.mark.parametrize("isolation", ["snapshot", "serializable", "none"])
def test_removed_data_file_that_others_replaced_is_a_conflict(lake: Lake, isolation: str) -> None:
    table = new_table(lake, "2").append(order_rows(1, 2)).append(order_rows(3))
    (gone,) = [p.file for p in table.scan("id = 1").plan().files]
    lake.load_table("db.t").compact()
    if isolation == "none":
        table.row_delta(remove=[gone], isolation=isolation)
    else:
        with pytest.raises(ConflictError, match=r"replace on `main`, .*came first and removed"):
            table.row_delta(remove=[gone], isolation=isolation)
    assert found(lake.load_table("db.t")) == [1, 2, 3]
