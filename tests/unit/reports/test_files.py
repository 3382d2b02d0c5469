"""Files, sizes, partitions and deletes."""

from pathlib import Path

import pytest

from bergline import Lake, Table
from bergline.reports.files import FilesReport, files_report
from bergline.reports.schemas import version_at
from support.fixtures.rows import ORDERS, order_rows


@pytest.fixture
def parts(lake: Lake) -> Table:
    """Orders by region with a delete file in one."""
    table = lake.create_table(
        "db.parts", ORDERS, partition_by=["region"], properties={"write.delete.mode": "merge-on-read"}
    )
    return table.append(order_rows(1, 2, 3)).append(order_rows(4, region="us")).delete("id = 2")


def report_of(table: Table, ref: str = "main") -> FilesReport:
    return files_report(table, version_at(table.metadata, ref))


def test_files_are_counted_by_partition_with_deletes_that_wait(parts: Table) -> None:
    report = report_of(parts)
    assert (report.counts.data_files, report.counts.rows, report.counts.delete_files) == (2, 4, 1)
    assert (report.counts.small_files, report.counts.position_deletes) == (2, 1)
    by_name = {p.partition: p.counts for p in report.partitions}
    assert list(by_name) == ["region=eu", "region=us"]
    assert (by_name["region=eu"].rows, by_name["region=eu"].position_delete_files) == (3, 1)
    assert by_name["region=us"].delete_files == 0
    files = parts.inspect("files")
    assert report.counts.data_bytes + report.counts.delete_bytes == sum(files["file_size_in_bytes"].to_pylist())


def test_every_data_file_is_in_one_bin_of_the_histogram(parts: Table) -> None:
    report = report_of(parts)
    assert sum(b.files for b in report.histogram) == 2
    assert sum(b.bytes for b in report.histogram) == report.counts.data_bytes
    assert report.histogram[0].files > 0
    assert report.histogram[-1].files > 0


def test_deletion_vectors_are_counted_apart(lake: Lake) -> None:
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.vectors", ORDERS, properties=properties)
    counts = report_of(table.append(order_rows(1, 2, 3)).delete("id = 2")).counts
    assert (counts.deletion_vectors, counts.position_delete_files, counts.position_deletes) == (1, 0, 1)


def test_an_empty_table_has_no_files(orders: Table) -> None:
    report = report_of(orders)
    assert (report.snapshot_id, report.counts.data_files, report.histogram, report.partitions) == (None, 0, (), ())
    orders.append(order_rows(1))
    assert [p.partition for p in report_of(orders).partitions] == [""]


def test_partitions_of_earlier_specs_are_among_them(parts: Table) -> None:
    with parts.update_spec() as update:
        update.remove_field("region")
    parts.append(order_rows(9, region="asia"))
    assert [(p.partition, p.spec_id) for p in report_of(parts).partitions] == [
        ("", 1),
        ("region=eu", 0),
        ("region=us", 0),
    ]


def test_what_other_manifests_hold_is_shown_though_one_is_gone(reopened: Lake, parts: Table) -> None:
    gone = parts.inspect("manifests")["path"].to_pylist()[-1]
    Path(gone.removeprefix("file://")).unlink()
    report = report_of(reopened.load_table("db.parts"))
    assert gone in report.problems[0].message
    assert report.counts.data_files == 1


def test_a_manifest_list_that_is_gone_is_a_problem(reopened: Lake, parts: Table) -> None:
    snapshot = parts.current_snapshot
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    Path(snapshot.manifest_list.removeprefix("file://")).unlink()
    report = report_of(reopened.load_table("db.parts"))
    assert report.counts.data_files == 0
    assert snapshot.manifest_list in report.problems[0].message
