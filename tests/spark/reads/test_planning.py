"""Scans whose files are looked up on the executors."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

import bergline.spark
from bergline import Lake, Table
from bergline.errors import FormatError, InvalidInputError
from bergline.io.locations import local_path
from bergline.scan.manifest_cache import forget_files
from bergline.scan.manifests import load_manifest_list
from bergline.spark.backends.choose import backend_of
from bergline.spark.reads import planning
from bergline.spark.reads.planning import SETTINGS, plan_read
from bergline.table.scans.planning_mode import DATA_MODE, DELETE_MODE
from support.fixtures.rows import ORDERS, order_rows

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("pruned_reads")]

MODE = f"{SETTINGS}data-planning-mode"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, whose planning mode a test may set."""
    yield spark
    spark.conf.unset(MODE)


@pytest.fixture
def table(lake: Lake) -> Table:
    """Six files in as many manifests, and a deleted row."""
    properties = {"write.delete.mode": "merge-on-read", DATA_MODE: "distributed"}
    table = lake.create_table("db.t", ORDERS, properties=properties)
    for first in range(0, 12, 2):
        table.append(order_rows(first, first + 1))
    return table.delete("id = 5")


def ids(spark: SparkSession, condition: str = "true") -> list[int]:
    return sorted(row.id for row in spark.table("db.t").where(condition).select("id").collect())


EXPECTED = [n for n in range(12) if n != 5]


def test_files_found_on_the_executors_are_read_like_others(session: SparkSession, table: Table) -> None:
    frame = session.table("db.t").where("id >= 4 AND id < 8")
    told = bergline.spark.explain_read(frame)
    assert told.startswith(
        f"db.t: 2 files of snapshot {table.current_snapshot.snapshot_id}, planned on the executors\n"
    )
    assert "\n  native with deletes: 2 files, because" in told  # few rows are read with those of the other
    assert sorted(row.id for row in frame.collect()) == [4, 6, 7]
    assert ids(session) == EXPECTED
    session.conf.set(MODE, "LOCAL")
    assert "planned on" not in bergline.spark.explain_read(session.table("db.t"))
    assert ids(session) == EXPECTED


def test_a_driver_lists_no_more_files_than_it_may(
    session: SparkSession, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "MOST_IN_DRIVER", 2)
    for mode in ("distributed", "auto"):
        table.set_properties({DATA_MODE: mode})
        told = bergline.spark.explain_read(session.table("db.t"))
        assert "about 6 files" in told
        assert told.endswith(
            "planned on the executors\n  arrow: all files, because there are too many for the driver to list"
        )
        assert ids(session) == EXPECTED
        assert ids(session, "id > 2") == EXPECTED[3:]
        assert ids(session, "id > 9") == [10, 11]
        assert session.table("db.t").count() == len(EXPECTED)
    assert "planned on" not in bergline.spark.explain_read(session.table("db.t").where("id > 9"))


def test_runs_with_more_than_their_share_are_asked_again(
    session: SparkSession, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "MOST_IN_DRIVER", 5)
    monkeypatch.setattr(planning, "_FEWEST_IN_RUN", 1)
    monkeypatch.setattr(planning, "_RUNS_PER_CORE", 100)
    scan = table.scan("id < 4 OR id = 7")
    found = plan_read(scan, backend_of(session))
    assert found.on_executors
    assert [p.file.file_path for p in found.plan.files] == [p.file.file_path for p in scan.plan().files]
    assert len(found.plan.files) == 3


def test_aggregates_are_known_of_files_that_only_tasks_list(
    session: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "MOST_IN_DRIVER", 2)
    table = lake.create_table("db.gone", ORDERS)
    for first in range(0, 12, 2):
        table.append(order_rows(first, first + 1))
    for planned in table.scan().plan().files:
        Path(local_path(planned.file.file_path)).unlink()
    query = "SELECT count(*), count(region), min(id), max(id) FROM db.gone"
    assert tuple(session.sql(query).collect()[0]) == (12, 12, 0, 11)


@pytest.mark.parametrize("mode", ["local", "distributed"])
def test_deletes_are_matched_wherever_they_are_read(session: SparkSession, table: Table, mode: str) -> None:
    table.set_properties({DELETE_MODE: mode})
    assert ids(session, "id > 3") == EXPECTED[4:]


def test_a_mode_that_does_not_exist_is_refused_by_name(session: SparkSession, table: Table) -> None:
    with pytest.raises(InvalidInputError, match="expected auto, local, distributed for `read"):
        table.set_properties({DATA_MODE: "everywhere"})
    session.conf.set(MODE, "here")
    with pytest.raises(IllegalArgumentException, match=f"for `{MODE}`, found `here`"):
        session.table("db.t").collect()


def test_a_damaged_manifest_is_named_by_the_error_of_a_task(session: SparkSession, table: Table) -> None:
    manifest = load_manifest_list(table.io, table.current_snapshot)[-1]
    Path(local_path(manifest.manifest_path)).write_bytes(b"no manifest")
    forget_files()
    with pytest.raises(FormatError, match=f"expected an Avro file, .*{manifest.manifest_path}"):
        ids(session)
