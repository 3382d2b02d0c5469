"""The page of files."""

from pathlib import Path

import pytest

from bergline import Lake, Table
from bergline.console.pages.files import files_page
from support.fixtures.console_pages import show
from support.fixtures.rows import ORDERS, order_rows

QUERY = {"name": "db.parts"}


@pytest.fixture
def parts(lake: Lake) -> Table:
    """Orders by region with a delete file."""
    properties = {"write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"], properties=properties)
    return table.append(order_rows(1, 2, 3)).append(order_rows(4, region="<b>")).delete("id = 2")


def test_partitions_sizes_and_deletes_are_shown(lake: Lake, parts: Table) -> None:
    shown = show(files_page, lake, QUERY)
    assert [p["partition"] for p in shown.values["partitions"]] == ["region=%3Cb%3E", "region=eu"]
    assert (shown.values["counts"]["rows"], shown.values["counts"]["delete_files"]) == (4, 1)
    assert sum(one["files"] for one in shown.values["histogram"]) == 2
    assert max(one["length"] for one in shown.values["histogram"]) == 100
    assert [one["label"] for one in shown.values["histogram"]] == ["less than 1 KiB"]
    assert "Position delete files 1" in shown.text


def test_files_at_another_ref(lake: Lake, parts: Table) -> None:
    parts.refs.create_branch("dev", at=parts.metadata.snapshots[0].snapshot_id)
    shown = show(files_page, lake, QUERY | {"ref": "dev"})
    assert (shown.values["counts"]["data_files"], shown.values["ref"]) == (1, "dev")
    assert "None: every row" in shown.text


def test_a_manifest_that_is_gone_is_said(reopened: Lake, parts: Table) -> None:
    gone = parts.inspect("manifests")["path"].to_pylist()[-1]
    Path(gone.removeprefix("file://")).unlink()
    shown = show(files_page, reopened, QUERY)
    assert gone in shown.text
    assert shown.values["counts"]["data_files"] == 1


def test_an_empty_table_has_no_files(lake: Lake, orders: Table) -> None:
    assert "There are no data files." in show(files_page, lake, {"name": "db.orders"}).text
