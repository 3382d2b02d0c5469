"""A healthy table of every kind has no finding; tables are checked one by one, by namespace, or all."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pytest

import bergline
from bergline import Lake, Table
from bergline.catalog.identifiers import parse_table_name
from bergline.errors import NotFoundError
from bergline.reports.check.check import check_table, check_tables
from support.fixtures.add_deletes import add_deletes, deletion_vectors, equality_deletes, position_deletes
from support.fixtures.damaged_tables import check, data_files, new_table, open_lake, path_of, rows

LATER = dt.datetime(2200, 1, 1, tzinfo=dt.UTC)


def v1(lake: Lake) -> None:
    new_table(lake, version=1)


def empty(lake: Lake) -> None:
    new_table(lake, commits=0)


def deletes(lake: Lake) -> None:
    table = new_table(lake)
    file = data_files(table)[0]
    add_deletes(table, position_deletes(table, {file.file_path: [0]}))
    add_deletes(table, equality_deletes(table, rows(0).slice(0, 1).select(["id"]), [1], ("north",)))


def vectors(lake: Lake) -> None:
    table = new_table(lake, version=3)
    add_deletes(table, *deletion_vectors(table, {data_files(table)[0].file_path: [0]}))
    table.delete("id = 12")


def upgraded(lake: Lake) -> None:
    table = new_table(lake, version=1)
    table.upgrade_format(2)
    table.append(rows(20))
    table.upgrade_format(3)
    table.append(rows(30))
    table.rewrite_manifests()


def upgraded_with_a_branch(lake: Lake) -> None:
    """Both branches give row ids to the manifests from before."""
    table = new_table(lake, version=2)
    table.refs.create_branch("audit")
    table.upgrade_format(3)
    table.append(rows(20), branch="audit")
    table.append(rows(30)).append(rows(40))
    table.append(rows(50), branch="audit")


def refs(lake: Lake) -> None:
    table = new_table(lake)
    table.refs.create_branch("audit")
    table.refs.create_tag("v1", at=table.metadata.snapshots[0].snapshot_id)
    table.append(rows(20), branch="audit")
    table.append(rows(30))
    table.refs.merge("audit", into="main")


def staged(lake: Lake) -> None:
    new_table(lake, write_wap_enabled="true").append(rows(20), wap_id="run-1")


def expired(lake: Lake) -> None:
    table = new_table(lake, commits=4)
    table.compact()
    assert table.expire(older_than=LATER, retain_last=1).deleted_data_files


def rolled_back(lake: Lake) -> None:
    table = new_table(lake, commits=3)
    table.refs.rollback(to=table.metadata.snapshots[0].snapshot_id)
    table.append(rows(40))


def evolved(lake: Lake) -> None:
    table = new_table(lake)
    with table.update_spec() as spec:
        spec.remove_field("region")
    table.replace_sort_order(["id"])
    with table.update_schema() as schema:
        schema.add_column("note", "string")
    table.append(rows(20))
    table.compute_statistics()
    table.compute_partition_statistics()


@pytest.mark.parametrize(
    "make",
    [v1, empty, deletes, vectors, upgraded, upgraded_with_a_branch, refs, staged, expired, rolled_back, evolved],
    ids=lambda m: m.__name__,
)
def test_healthy_table_has_no_finding(tmp_path: Path, make: Callable[[Lake], None]) -> None:
    with open_lake(tmp_path) as lake:
        make(lake)
        snapshots = len(lake.load_table("db.orders").metadata.snapshots)
    found = check(tmp_path, deep=True)
    assert [str(finding) for finding in found.findings] == []
    assert found.ok
    assert found.snapshots == snapshots


def test_all_tables_or_those_of_a_namespace_are_checked(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        new_table(lake, "db.a")
        path_of(data_files(new_table(lake, "raw.b"))[0].file_path).unlink()
        everything = check_tables(lake)
        assert [(t.table, t.ok) for t in everything.tables] == [("db.a", True), ("raw.b", False)]
        assert not everything.ok
        assert check_tables(lake, namespace="db").ok
        with pytest.raises(NotFoundError, match=r"db\.c"):
            check_tables(lake, tables=["db.c"])


def test_check_changes_nothing(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        path_of(data_files(new_table(lake))[0].file_path).unlink()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert not check(tmp_path, deep=True).ok
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


def test_table_that_expires_files_meanwhile_is_checked_once_more(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake, commits=2)
        table.delete("id >= 0")
        expired: list[Table] = []

        def expire_once(_: str, what: str, *__: int) -> None:
            if what == "manifests" and not expired:
                expired.append(table)
                table.expire(retain_last=1, older_than=LATER)

        found = check_table(lake.catalog, parse_table_name("db.orders"), progress=expire_once)
    assert not list(path_of(table.location).rglob("*.parquet"))
    assert found.findings == ()


def test_files_of_another_store_are_looked_at() -> None:
    with bergline.connect("memory:") as lake:
        table = new_table(lake)
        assert check_tables(lake, deep=True).tables[0].findings == ()
        lost, emptied = (file.file_path for file in data_files(table)[:2])
        table.io.delete([lost, emptied])
        table.io.create(emptied, b"")
        (found,) = check_tables(lake, deep=True).tables
    assert {finding.code for finding in found.findings if finding.place == lost} == {"data-file-missing"}
    assert {finding.code for finding in found.findings if finding.place == emptied} == {
        "data-file-size",
        "data-file-unreadable",
    }
