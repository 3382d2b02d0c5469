"""Conflict checks: which commits of others make an operation wrong, and what it is told about them."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import ConflictError, InvalidInputError
from bergline.expressions.bound_filter import bind_filter
from bergline.expressions.parse import parse_predicate
from bergline.format.manifest.manifest import DataFile, partition_key
from bergline.table.commits.history_window import EVERYTHING, Scope
from bergline.table.commits.isolation import Isolation, isolation_level
from bergline.table.commits.validate import Validation
from support.fixtures.add_deletes import add_deletes, deletion_vectors, equality_deletes, position_deletes
from support.fixtures.rows import ORDERS, order_rows


@pytest.fixture
def parts(lake: Lake) -> Table:
    """Orders by region, with one in `eu`."""
    return lake.create_table("db.parts", ORDERS, partition_by=["region"]).append(order_rows(1))


def validation(table: Table, since: int | None, branch: str = "main") -> Validation:
    metadata = table.refresh().metadata
    return Validation(table.io, metadata, metadata.head(branch), since=since, branch=branch)


def head(table: Table) -> int:
    assert table.current_snapshot is not None
    return table.current_snapshot.snapshot_id


def where(table: Table, text: str) -> Scope:
    return Scope(bind_filter(parse_predicate(text), table.schema))


def region(table: Table, name: str) -> Scope:
    (file,) = (p.file for p in table.scan(f"region = '{name}'").plan().files)
    return Scope(partitions=frozenset({partition_key(file)}))


def all_files(table: Table) -> list[DataFile]:
    return [p.file for p in table.scan().plan().files]


def test_no_commit_since_means_no_conflict(parts: Table) -> None:
    checks = validation(parts, head(parts))
    checks.check_no_new_data()
    checks.check_no_removed_data()
    checks.check_no_new_delete_files()
    checks.check_data_files_exist([f.file_path for f in all_files(parts)])


def test_a_new_file_that_may_match_names_who_added_it(parts: Table) -> None:
    since = head(parts)
    parts.append(order_rows(5))
    with pytest.raises(ConflictError) as caught:
        validation(parts, since).check_no_new_data(where(parts, "id = 5"))
    message = str(caught.value)
    assert f"cannot commit to `main`: snapshot {head(parts)} (append on `main`, 20" in message
    assert "in partition `region=eu`" in message
    assert caught.value.hints


@pytest.mark.parametrize("text", ["id = 6", "region = 'us'", "id > 5 OR region = 'us'"])
def test_a_new_file_that_cannot_match_is_no_conflict(parts: Table, text: str) -> None:
    since = head(parts)
    parts.append(order_rows(5))
    validation(parts, since).check_no_new_data(where(parts, text))


def test_only_the_given_partitions_count(parts: Table) -> None:
    parts.append(order_rows(2, region="us"))
    since, eu, us = head(parts), region(parts, "eu"), region(parts, "us")
    parts.append(order_rows(3))
    validation(parts, since).check_no_new_data(us)
    with pytest.raises(ConflictError, match="region=eu"):
        validation(parts, since).check_no_new_data(eu)


def test_removed_files_count_where_they_match(parts: Table) -> None:
    parts.append(order_rows(2, region="us"))
    since, eu = head(parts), region(parts, "eu")
    parts.overwrite_files([], removed=[f for f in all_files(parts) if f.partition == ("us",)])
    checks = validation(parts, since)
    checks.check_no_removed_data(where(parts, "region = 'eu'"))
    checks.check_no_removed_data(eu)
    for scope in (where(parts, "id = 2"), EVERYTHING):
        with pytest.raises(ConflictError, match=r"\(delete on `main`, .*\) came first and removed .*region=us"):
            checks.check_no_removed_data(scope)


def test_a_file_that_was_replaced_is_missed_and_one_that_was_deleted_only_if_asked(parts: Table) -> None:
    since, paths = head(parts), [f.file_path for f in all_files(parts)]
    parts.overwrite_files([])
    checks = validation(parts, since)
    checks.check_data_files_exist(paths)
    with pytest.raises(ConflictError, match="which this one builds on"):
        checks.check_data_files_exist(paths, also_deleted=True)
    parts.append(order_rows(2))
    since, paths = head(parts), [f.file_path for f in all_files(parts)]
    parts.overwrite(order_rows(3))
    with pytest.raises(ConflictError, match="which this one builds on"):
        validation(parts, since).check_data_files_exist(paths)
    validation(parts, since).check_data_files_exist(["another"])


def test_new_delete_files_count_where_they_may_be_about_the_rows(parts: Table) -> None:
    parts.append(order_rows(2, region="us"))
    since, eu, us = head(parts), region(parts, "eu"), region(parts, "us")
    (eu_file,) = (f for f in all_files(parts) if f.partition == ("eu",))
    add_deletes(parts, position_deletes(parts, {eu_file.file_path: [0]}))
    checks = validation(parts, since)
    for other in (us, where(parts, "region = 'us'")):
        checks.check_no_new_delete_files(other)
    for same in (eu, where(parts, "region = 'eu'"), where(parts, "id = 77"), EVERYTHING):
        with pytest.raises(ConflictError, match=r"came first and added the delete file .*region=eu"):
            checks.check_no_new_delete_files(same)


def test_deletes_by_position_count_for_the_files_that_they_are_about(parts: Table) -> None:
    parts.append(order_rows(2)).append(order_rows(3)).append(order_rows(4, region="us"))
    first, second, third, other = sorted(all_files(parts), key=lambda f: (f.partition, f.lower_bounds[1]))
    since = head(parts)
    add_deletes(parts, position_deletes(parts, {first.file_path: [0]}))
    checks = validation(parts, since)
    checks.check_no_new_deletes_for([second, third, other])
    for by_position_only in (False, True):
        with pytest.raises(ConflictError, match=f"deleted rows of {first.file_path}.*, which this one replaces"):
            checks.check_no_new_deletes_for([other, first], by_position_only=by_position_only)
    since = head(parts)
    add_deletes(parts, position_deletes(parts, {first.file_path: [0], second.file_path: [0]}))
    checks = validation(parts, since)
    checks.check_no_new_deletes_for([other])
    with pytest.raises(ConflictError, match="deleted rows of"):
        checks.check_no_new_deletes_for([third])  # a file about several may be about any of its partition


def test_deletes_by_equality_do_no_harm_where_rows_keep_their_number(parts: Table) -> None:
    parts.append(order_rows(2, region="us"))
    since, files = head(parts), all_files(parts)
    add_deletes(parts, equality_deletes(parts, pa.table({"id": [1]}), [1], ("eu",)))
    checks = validation(parts, since)
    checks.check_no_new_deletes_for(files, by_position_only=True)
    checks.check_no_new_deletes_for([f for f in files if f.partition == ("us",)])
    with pytest.raises(ConflictError, match="deleted rows of"):
        checks.check_no_new_deletes_for(files)


def test_deletes_from_before_the_start_are_no_conflict(parts: Table) -> None:
    (file,) = all_files(parts)
    add_deletes(parts, position_deletes(parts, {file.file_path: [0]}))
    since = head(parts)
    parts.append(order_rows(3, region="us"))
    parts.overwrite_files([], removed=[f for f in all_files(parts) if f.partition == ("us",)])
    checks = validation(parts, since)
    checks.check_no_new_deletes_for([file])
    checks.check_no_new_delete_files()


def test_only_vectors_for_the_same_files_exclude_each_other(lake: Lake) -> None:
    table = lake.create_table("db.v3", ORDERS, properties={"format-version": "3"})
    table.append(order_rows(1)).append(order_rows(2))
    since, (one, two) = head(table), [f.file_path for f in all_files(table)]
    add_deletes(table, *deletion_vectors(table, {one: [0]}))
    checks = validation(table, since)
    checks.check_no_new_vectors([two])
    with pytest.raises(ConflictError, match=f"added a deletion vector for {one}"):
        checks.check_no_new_vectors([two, one])


def test_commits_to_other_branches_are_no_conflict(parts: Table) -> None:
    since = head(parts)
    parts.append(order_rows(5), branch="dev")
    validation(parts, since).check_no_new_data()
    with pytest.raises(ConflictError, match="append on `dev`"):
        validation(parts, since, "dev").check_no_new_data()


def test_an_operation_that_saw_an_empty_branch_looks_at_everything(parts: Table) -> None:
    with pytest.raises(ConflictError, match="came first and added"):
        validation(parts, None).check_no_new_data()


def test_the_window_reaches_back_over_several_snapshots(parts: Table) -> None:
    since = head(parts)
    parts.append(order_rows(5)).append(order_rows(6)).append(order_rows(7))
    with pytest.raises(ConflictError, match=f"snapshot {parts.metadata.snapshots[1].snapshot_id} "):
        validation(parts, since).check_no_new_data(where(parts, "id = 5"))


@pytest.mark.parametrize("known", [True, False])
def test_an_expired_start_is_not_guessed_at(parts: Table, known: bool) -> None:
    since = head(parts)
    middle = head(parts.append(order_rows(2)))
    parts.append(order_rows(3)).expire(snapshot_ids=[since, middle] if known else [since])
    expected = f"since snapshot {since}: snapshot {middle if known else since}"
    if not known:  # the child of the start is there, and so is all that came after the start
        with pytest.raises(ConflictError, match="came first and added"):
            validation(parts, since).check_no_new_data()
        expected = f"since its beginning: snapshot {since}"
    with pytest.raises(ConflictError, match=f"{expected}, the parent of .*, has expired") as caught:
        validation(parts, since if known else None)
    assert "keep snapshots longer" in caught.value.hints[0]


def test_a_start_on_another_lineage_is_refused(parts: Table) -> None:
    since = head(parts.append(order_rows(5), branch="dev"))
    elsewhere = parts.metadata.refs["dev"].snapshot_id
    with pytest.raises(ConflictError, match=f"snapshot {elsewhere} is not in its history"):
        validation(parts.append(order_rows(6)), elsewhere)
    validation(parts, since)


@pytest.mark.parametrize("command", ["delete", "update", "merge"])
def test_isolation_comes_from_the_call_then_the_table_then_is_serializable(orders: Table, command: str) -> None:
    level: Callable[..., Isolation] = isolation_level
    assert level(orders.metadata, command) is Isolation.SERIALIZABLE
    orders.set_properties({f"write.{command}.isolation-level": "Snapshot"})
    assert level(orders.metadata, command) is Isolation.SNAPSHOT
    assert level(orders.metadata, command, "serializable") is Isolation.SERIALIZABLE
    with pytest.raises(InvalidInputError, match="expected serializable, snapshot or none for the isolation level"):
        level(orders.metadata, command, "read committed")
