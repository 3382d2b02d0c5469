"""Planned files kept in columns."""

import pickle

import pytest
from rows import ORDERS, order_rows

from bergline import Lake
from bergline.scan.plan import PlannedFile
from bergline.scan.planned_files import PlannedFiles


@pytest.fixture
def files(lake: Lake) -> PlannedFiles:
    """Five files in three manifests and two partitions."""
    table = lake.create_table("db.planned", ORDERS, partition_by=["region"])
    for first in (1, 3, 5):
        table.append(order_rows(first, first + 1))
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


def test_pickled_files_are_plain_values(files: PlannedFiles) -> None:
    assert pickle.loads(pickle.dumps(files)) == tuple(files)  # noqa: S301  (our own)


def test_no_files_are_false(lake: Lake) -> None:
    table = lake.create_table("db.empty", ORDERS).append(order_rows(1))
    assert not table.scan("id = 99").plan().files
    assert table.scan("id = 1").plan().files
