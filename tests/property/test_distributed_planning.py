"""Scans planned in tasks, by runs of manifests: the same files with the same deletes as planned in one process."""

import itertools
import pickle
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import bergline
from bergline import Lake
from bergline.catalog.identifiers import TableName
from bergline.format.manifest.manifest import DataFile
from bergline.scan.manifest_runs import freeze_scan, read_deletes, runs_of
from bergline.scan.plan import PlannedFile
from bergline.scan.planned_files import PlannedFiles
from bergline.scan.shipped_files import unship
from bergline.spark.backends.choose import backend_of
from bergline.spark.reads import planning
from bergline.spark.reads.planning_tasks import FindFilesTask, PackTask
from bergline.spark.reads.scan import read
from bergline.table.scans.scan import TableScan
from support.fixtures.handwritten_tables import HandwrittenTable
from support.fixtures.sql_filters import EVERYTHING, sql_filters
from support.fixtures.table_strategies import comparable, tables

FORMATS = ("AVRO", "ORC", "PARQUET")
METRICS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def bare(file: DataFile) -> DataFile:
    return msgspec.structs.replace(file, **dict.fromkeys(METRICS))


def by_path(files: object) -> list[PlannedFile]:
    """Planned files without the metrics of the data files, in an order of their own."""
    assert isinstance(files, PlannedFiles | tuple | list)
    return sorted(
        (msgspec.structs.replace(planned, file=bare(planned.file)) for planned in files),
        key=lambda planned: planned.file.file_path,
    )


def scan_of(lake: Lake, handwritten: HandwrittenTable, data: st.DataObject) -> TableScan:
    text, _ = data.draw(st.just(EVERYTHING) | sql_filters(comparable(handwritten.schemas[-1])))
    return lake.load_table("db.hand").scan(text)


def check_tasks(handwritten: HandwrittenTable, data: st.DataObject) -> None:
    """What tasks find and what they give on, without Spark between them."""
    lake = bergline.connect("memory:")
    lake.create_namespace("db")
    location = handwritten.finish()
    for path, content in handwritten.files.items():
        lake.catalog.io.create(path, content)
    lake.catalog.store.create(TableName(("db",), "hand"), location)
    scan = scan_of(lake, handwritten, data)
    local = scan.plan()
    outline = scan.outline()
    assert msgspec.structs.replace(local, files=(), key_columns=()) == outline
    frozen, manifests = freeze_scan(scan.io, scan.metadata, outline)
    if data.draw(st.booleans()):
        frozen = read_deletes(scan.io, frozen)
    frozen = pickle.loads(pickle.dumps(frozen))  # noqa: S301  (our own)
    runs = list(runs_of(manifests, data.draw(st.integers(1, 5))))
    assert [m for run in runs for m in run] == manifests

    found = [FindFilesTask(scan.io, frozen, 1000).find(run) for run in enumerate(runs)]
    assert sum(each.files for each in found) == len(local.files)
    assert sum(each.rows for each in found) == sum(p.file.record_count for p in local.files)
    assert sum(each.size for each in found) == sum(p.file.file_size_in_bytes for p in local.files)
    shipped = unship(each.shipped for each in found if each.shipped is not None)
    assert by_path(shipped) == by_path(local.files)
    compared = {i for p in local.files for d in p.deletes for i in d.equality_ids or ()}
    assert frozen.keys(shipped) == tuple(key for key in local.key_columns if key.field_id in compared)

    packer = PackTask(scan.io, frozen)
    work = (pack for run in runs for pack in packer.packed(frozen.plan(scan.io, run).without_metrics))
    packs = [pickle.loads(pack) for pack in work]  # noqa: S301  (our own)
    assert by_path([part.planned for _, parts in packs for part in parts]) == by_path(local.files)


_numbers = itertools.count()
slowly = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], report_multiple_bugs=False)


@given(tables(2, formats=FORMATS), st.data())
@slowly
def test_tasks_plan_a_v2_table_as_one_process_does(handwritten: HandwrittenTable, data: st.DataObject) -> None:
    check_tasks(handwritten, data)


@given(st.sampled_from([1, 3]).flatmap(tables), st.data())
@slowly
def test_tasks_plan_a_table_of_other_versions_as_one_process_does(
    handwritten: HandwrittenTable, data: st.DataObject
) -> None:
    check_tasks(handwritten, data)


@pytest.fixture
def distributed(spark: SparkSession) -> Iterator[SparkSession]:
    """A session that asks for planning on the executors."""
    setting = f"{planning.SETTINGS}data-planning-mode"
    spark.conf.set(setting, "distributed")
    yield spark
    spark.conf.unset(setting)


@pytest.mark.spark
@pytest.mark.usefixtures("pruned_reads")
@given(st.data())
@settings(slowly, max_examples=2, suppress_health_check=list(HealthCheck))
def test_spark_plans_and_reads_as_one_process_does(
    distributed: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    for version in (2, 3):
        root = tmp_path / f"made{next(_numbers)}"
        made = data.draw(tables(version, f"file://{root}"))
        location = made.finish()
        for path, content in made.files.items():
            file = Path(path.removeprefix("file://"))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        text, _ = data.draw(st.just(EVERYTHING) | sql_filters(comparable(made.schemas[-1])))
        scan = lake.register_table(f"db.{root.name}", location).scan(text)
        expected = sorted(map(str, scan.to_arrow().to_pylist()))
        found = planning.plan_read(scan, backend_of(distributed))
        assert by_path(found.plan.files) == by_path(scan.plan().files)
        with monkeypatch.context() as patched:
            patched.setattr(planning, "MOST_IN_DRIVER", 0)
            few = planning.plan_read(scan, backend_of(distributed))
            assert (few.work is None) == (not found.plan.files)
            assert not few.plan.files
            rows = read(scan, distributed)
            assert sorted(map(str, rows.toArrow().to_pylist())) == expected
            assert rows.count() == len(expected)
