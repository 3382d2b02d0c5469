"""A table copied to another place by the list: the same rows there, whatever becomes of the old place."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from bergline.io.locations import local_path
from bergline.scan.manifests import load_manifest_list
from bergline.table.relocation.rewrite_path import RewrittenPaths
from support.fixtures.add_deletes import add_deletes, equality_deletes
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long


def copied(done: RewrittenPaths) -> list[tuple[str, str]]:
    """Copy what the list says; what was copied before is not copied again."""
    assert done.file_list_location
    lines = Path(local_path(done.file_list_location)).read_text().splitlines()
    pairs = [(source, target) for source, target in (line.split(",") for line in lines)]
    for source, target in pairs:
        path = Path(local_path(target))
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(local_path(source), path)
    return pairs


@contextlib.contextmanager
def registered(place: Path, done: RewrittenPaths, name: str = "db.copy") -> Iterator[Table]:
    """The copy in a lake of its own."""
    with bergline.connect(f"sqlite:///{place}/{name}.db", create=True) as other:
        other.create_namespace("db", if_not_exists=True)
        table = other.register_table(name, f"file://{place}/t/metadata/{done.latest_version}")
        check_lengths(table)
        yield table


def check_lengths(table: Table) -> None:
    for snapshot in table.metadata.snapshots:
        for manifest in load_manifest_list(table.io, snapshot):
            assert manifest.manifest_length == len(table.io.read(manifest.manifest_path))
    for file in table.inspect("all_files").to_pylist():
        assert file["file_size_in_bytes"] == len(table.io.read(file["file_path"]))


def filled(lake: Lake, version: str) -> Table:
    mode = {"write.delete.mode": "merge-on-read", "write.delete.granularity": "partition"} if version != "1" else {}
    table = lake.create_table("db.t", ORDERS, partition_by=["region"], properties={"format-version": version, **mode})
    table.append(order_rows(1, 2, 3)).append(order_rows(4, 5, region="us"))
    table.refs.create_tag("v1")
    table.delete("id = 2")
    table.delete("id = 4")
    table.compute_statistics()
    table.compute_partition_statistics()
    return table


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_copy_has_the_rows_of_every_version(lake: Lake, tmp_path: Path, version: str) -> None:
    table, place = filled(lake, version), tmp_path / "elsewhere"
    before = table.metadata_location
    done = table.rewrite_path(table.location, f"file://{place}/t")
    assert table.refresh().metadata_location == before
    assert done.latest_version == before.rpartition("/")[2]
    assert done.rewritten_delete_files == (0 if version == "1" else 2)
    copied(done)
    shutil.rmtree(local_path(table.location))
    with registered(place, done) as copy:
        assert copy.location == f"file://{place}/t"
        assert ids(copy.scan().to_arrow()) == [1, 3, 5]
        assert ids(copy.scan(ref="v1").to_arrow()) == [1, 2, 3, 4, 5]
        assert copy.io.exists(copy.metadata.statistics[0].statistics_path)
        assert copy.io.exists(copy.metadata.partition_statistics[0].statistics_path)
        log = [e.metadata_file for e in copy.metadata.metadata_log]
        assert [path for path in log if not path.startswith(f"file://{place}/t/metadata/")] == []
        assert ids(copy.append(order_rows(9)).scan().to_arrow()) == [1, 3, 5, 9]


def test_position_deletes_of_several_files_and_by_equality_apply(lake: Lake, tmp_path: Path) -> None:
    properties = {"write.delete.mode": "merge-on-read", "write.delete.granularity": "partition"}
    table = lake.create_table("db.t", ORDERS, properties=properties)
    table.append(order_rows(1, 2, 3)).append(order_rows(4, 5))
    table.delete("id IN (1, 4)")
    add_deletes(table, equality_deletes(table, pa.table({"id": [5]}), [1]))
    done = table.rewrite_path(table.location, f"file://{tmp_path}/elsewhere/t")
    assert done.rewritten_delete_files == 1
    copied(done)
    with registered(tmp_path / "elsewhere", done) as copy:
        assert ids(copy.scan().to_arrow()) == [2, 3]


@pytest.mark.parametrize("version", ["2", "3"])
def test_later_versions_are_copied_alone(lake: Lake, tmp_path: Path, version: str) -> None:
    table, place = filled(lake, version), tmp_path / "elsewhere"
    first = table.rewrite_path(table.location, f"file://{place}/t")
    before = {target for _, target in copied(first)}
    table.append(order_rows(7)).delete("id = 1")
    then = table.rewrite_path(table.location, f"file://{place}/t", start_version=first.latest_version)
    later = {target for _, target in copied(then)}
    assert not {path for path in before & later if not path.endswith((".stats", ".parquet")) or "/data/" in path}
    with registered(place, then) as copy:
        assert ids(copy.scan().to_arrow()) == [3, 5, 7]
    with registered(place, first, "db.first") as copy:
        assert ids(copy.scan().to_arrow()) == [1, 3, 5]


def test_an_earlier_version_can_be_the_last(lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("db.t", ORDERS).append(order_rows(1))
    earlier = table.metadata_location.rpartition("/")[2]
    table.append(order_rows(2))
    done = table.rewrite_path(table.location, f"file://{tmp_path}/e/t", end_version=earlier)
    assert done.latest_version == earlier
    copied(done)
    with registered(tmp_path / "e", done) as copy:
        assert ids(copy.scan().to_arrow()) == [1]


def test_files_are_staged_where_they_are_asked_for(orders: Table, tmp_path: Path) -> None:
    orders.append(order_rows(1))
    staging = tmp_path / "staging"
    done = orders.rewrite_path(
        f"{orders.location}/", "s3://bucket/t/", staging_location=f"file://{staging}/", create_file_list=False
    )
    assert (done.staging_location, done.file_list_location) == (f"file://{staging}", None)
    assert (
        f'"s3://bucket/t/metadata/{done.latest_version}"'
        not in (staging / "metadata" / done.latest_version).read_text()
    )
    assert '"location":"s3://bucket/t"' in (staging / "metadata" / done.latest_version).read_text()
    with pytest.raises(AlreadyExistsError):
        orders.rewrite_path(orders.location, "s3://bucket/t", staging_location=f"file://{staging}")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("", "/x"), InvalidInputError, "expected two different prefixes"),
        (("/x", "/x/"), InvalidInputError, "expected two different prefixes"),
        ((3, "/x"), InvalidInputError, "expected text for source_prefix"),
        (("file:///nowhere", "/x"), InvalidInputError, "expected locations below file:///nowhere, found file"),
    ],
)
def test_prefixes_that_make_no_sense_are_refused(
    orders: Table, arguments: Any, error: type[Exception], message: str
) -> None:
    orders.append(order_rows(1))
    before = orders.io.list(orders.location)
    with pytest.raises(error, match=message):
        orders.rewrite_path(*arguments)
    assert orders.io.list(orders.location) == before


def test_unknown_versions_and_files_elsewhere_leave_nothing(lake: Lake, orders: Table, tmp_path: Path) -> None:
    orders.append(order_rows(1))
    with pytest.raises(NotFoundError, match=r"no metadata file `nope\.json` in the table's log"):
        orders.rewrite_path(orders.location, "/x", start_version="nope.json")
    other = lake.create_table("db.other", ORDERS).append(order_rows(2))
    (file,) = [planned.file for planned in other.scan().plan().files]
    orders.append_files([file])
    before = orders.io.list(orders.location)
    with pytest.raises(InvalidInputError, match=r"expected locations below .*orders, found .*other"):
        orders.rewrite_path(orders.location, "/x")
    assert orders.io.list(orders.location) == before
    with orders.transaction() as inside, pytest.raises(InvalidInputError, match="expected no transaction"):
        inside.rewrite_path(orders.location, "/x")
