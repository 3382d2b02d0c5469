"""Rows for pages: the same rows, and a file that takes everything takes nothing of the server."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline import Lake, Table, connect
from bergline.errors import InvalidInputError, RefusedError, UnavailableError
from bergline.io.fenced import FencedFileIO
from bergline.io.memory import MemoryFileIO
from bergline.reports.difference import ref_difference
from bergline.reports.row_preview import PreviewJob, preview_job, preview_rows
from bergline.server.context.context import ServerContext
from bergline.server.planning.row_reading import RowReading
from support.fixtures.held_manifests import HeldManifests
from support.servers.asgi_client import AsgiClient

pytestmark = pytest.mark.long

SCHEMA = pa.schema([("text", pa.string())])
LOCAL = {"host": "localhost:8181"}


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with connect(f"sqlite:///{tmp_path}/lake/catalog.db", create=True) as opened:
        opened.create_namespace("db")
        yield opened


@pytest.fixture
def table(lake: Lake) -> Table:
    table = lake.create_table("db.t", SCHEMA)
    table.append(pa.table({"text": ["a", "b", "c"]}, schema=SCHEMA))
    return table


def bomb(lake: Lake, path: Path) -> Table:
    """500 rows of 32 MiB each, in a file of a few kilobytes."""
    table = lake.create_table("db.bomb", SCHEMA)
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 500, pa.int32()), pa.array(["a" * 2**25]))
    pq.write_table(pa.table({"text": long}), path, compression="zstd")
    assert path.stat().st_size < 4000
    table.add_files([str(path)])
    return lake.load_table("db.bomb")


def job(table: Table, row_filter: str = "") -> PreviewJob:
    return preview_job(table.scan(), row_filter, 500)


def test_process_reads_what_the_server_would_read_and_says_what_is_wrong(table: Table) -> None:
    reading = RowReading(table.io)
    assert reading.read("ann", job(table)) == preview_rows(job(table))
    assert reading.read("ann", job(table, "text > 'a'")).rows == [["b"], ["c"]]
    with pytest.raises(InvalidInputError, match="text"):
        reading.read("ann", job(table, "text > 1"))
    reading.close()
    with pytest.raises(UnavailableError, match="stopping"):
        reading.read("ann", job(table))


@pytest.mark.parametrize("row_filter", ["", "text <> 'b'"])
def test_file_that_takes_all_memory_ends_its_process_alone(
    lake: Lake, table: Table, tmp_path: Path, row_filter: str
) -> None:
    reading = RowReading(table.io, most_memory=600 * 2**20)
    with pytest.raises(RefusedError, match="cannot read the rows in 600 MiB of memory") as error:
        reading.read("ann", job(bomb(lake, tmp_path / "lake/bomb.parquet"), row_filter))
    assert "narrower filter" in error.value.hints[0]
    assert reading.read("ann", job(table)).rows == [["a"], ["b"], ["c"]]
    reading.close()


def test_reading_that_takes_too_long_ends(table: Table) -> None:
    HeldManifests(table)
    reading = RowReading(table.io, time_limit_s=0.2)
    with pytest.raises(UnavailableError, match=r"cannot read the rows in 0\.2 seconds"):
        reading.read("ann", job(table))
    reading.close()


def test_job_is_read_with_the_files_that_it_may_read(table: Table, tmp_path: Path) -> None:
    reading = RowReading(table.io)
    fenced = FencedFileIO(table.io, [f"{tmp_path}/elsewhere"])
    with pytest.raises(RefusedError, match="expected a location in the warehouse"):
        reading.read("ann", PreviewJob(fenced, table.metadata, table.scan().version, "", 10))
    reading.close()


def test_files_in_memory_are_read_in_this_process() -> None:
    with connect("memory:") as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", SCHEMA)
        table.append(pa.table({"text": ["a"]}, schema=SCHEMA))
        assert RowReading(MemoryFileIO()).read("ann", job(table)).rows == [["a"]]


def test_rows_that_differ_are_read_in_the_process_too(lake: Lake, table: Table, tmp_path: Path) -> None:
    reading = RowReading(table.io, most_memory=600 * 2**20)
    table.refs.create_branch("dev")
    table.append(pa.table({"text": ["d"]}, schema=SCHEMA), branch="dev")
    table = lake.load_table("db.t")
    read_rows = partial(reading.read, "ann")
    assert ref_difference(table, "main", "dev", read_rows=read_rows) == ref_difference(table, "main", "dev")
    huge = bomb(lake, tmp_path / "lake/bomb.parquet")
    huge.refs.create_branch("dev")
    huge.delete("true")
    found = ref_difference(lake.load_table("db.bomb"), "main", "dev", read_rows=read_rows)
    assert (found.sample, [p.what for p in found.problems]) == (None, ["rows that differ"])
    assert "cannot read the rows in 600 MiB of memory" in found.problems[0].message
    assert found.partitions[0].added_rows == 500
    reading.close()


def test_page_of_the_console_says_that_a_bound_is_met(context: ServerContext, tmp_path: Path) -> None:
    context.row_reading = RowReading(context.catalog.io, most_memory=600 * 2**20)
    lake = Lake(context.catalog, "lake")
    lake.create_namespace("db")
    bomb(lake, tmp_path / "lake/warehouse/bomb.parquet")
    with AsgiClient(context) as client:
        found = client("GET", "/table/rows.json", query={"name": "db.bomb"}, headers=LOCAL)
        page = client("GET", "/table/rows", query={"name": "db.bomb"}, headers=LOCAL)
    assert found.status == page.status == 200
    assert found.json["rows"] == []
    assert found.json["problem"]["message"] == "cannot read the rows in 600 MiB of memory"
    assert b"read fewer rows, or with a narrower filter" in page.body
