"""Planned files kept in columns."""

import pickle

import msgspec
import pytest

from bergline import Lake
from bergline.format.manifest.columns import METRICS
from bergline.scan.manifest_cache import forget_files
from bergline.scan.plan import PlannedFile
from bergline.scan.planned_files import PlannedFiles, paths_of, sizes_of
from support.fixtures.rows import ORDERS, order_rows


@pytest.fixture
def files(lake: Lake) -> PlannedFiles:
    """Five files in three manifests and two partitions."""
    table = lake.create_table("db.planned", ORDERS, partition_by=["region"])
    for first in (1, 3, 5):
        table.append(order_rows(first, first + 1))
    forget_files()
    found = table.scan().plan().files
    assert isinstance(found, PlannedFiles)
    return found


def test_files_are_a_sequence(files: PlannedFiles) -> None:
    listed = list(files)
    assert len(files) == len(listed)
    assert all(isinstance(f, PlannedFile) for f in listed)
    assert [files[n] for n in range(len(files))] == listed
    assert files[-1] == listed[-1]
    assert files[1:3] == tuple(listed[1:3])
    assert files == listed
    assert files != listed[1:]
    with pytest.raises(IndexError):
        files[len(files)]


def test_parts_of_the_files_are_those_of_the_sequence(lake: Lake, files: PlannedFiles) -> None:
    table = lake.load_table("db.planned")
    with table.update_spec() as spec:
        spec.remove_field("region")
    table.append(order_rows(7, 8))
    forget_files()
    found = table.scan().plan().files
    assert isinstance(found, PlannedFiles)
    listed = list(found)
    assert len({planned.file.spec_id for planned in listed}) == 2
    for start in range(len(listed) + 2):
        for length in range(len(listed) + 2):
            assert list(found.part(start, length)) == listed[start : start + length]
    places = [*reversed(range(0, len(listed), 2)), 1]
    assert found.picked(places) == [listed[place] for place in places]
    assert found.only_at(sorted(places)) == [listed[place] for place in sorted(places)]
    assert found.picked([]) == []


def test_files_without_metrics_are_else_the_same(files: PlannedFiles) -> None:
    for with_, without in zip(files, files.without_metrics, strict=True):
        assert with_.file.lower_bounds
        metrics = dict.fromkeys(METRICS)
        assert msgspec.structs.replace(with_.file, **metrics) == without.file


def test_pickled_files_are_plain_values(files: PlannedFiles) -> None:
    assert pickle.loads(pickle.dumps(files)) == tuple(files)  # noqa: S301  (our own)


def test_no_files_are_false(lake: Lake) -> None:
    table = lake.create_table("db.empty", ORDERS).append(order_rows(1))
    assert not table.scan("id = 99").plan().files
    assert table.scan("id = 1").plan().files


def test_paths_and_sizes_are_those_of_the_files(files: PlannedFiles) -> None:
    listed = list(files)
    assert paths_of(files) == paths_of(listed) == [planned.file.file_path for planned in listed]
    assert sizes_of(files) == sizes_of(listed) == [planned.file.file_size_in_bytes for planned in listed]
