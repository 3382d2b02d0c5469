"""How files are dealt out to tasks: large ones in parts, small ones together, every row group once."""

from bergline.format.manifest.manifest import DataFile
from bergline.scan.plan import PlannedFile
from bergline.spark.reads.arrow import pack, split

MEGABYTE = 1024 * 1024


def planned(size: int, groups: int = 1) -> PlannedFile:
    offsets = tuple(4 + n * (size // groups) for n in range(groups))
    file = DataFile(
        "file:///f.parquet", "PARQUET", (), 100, size * MEGABYTE, split_offsets=tuple(o * MEGABYTE for o in offsets)
    )
    return PlannedFile(file, 1)


def test_large_files_are_split_between_row_groups() -> None:
    parts = [(p.first, p.end) for p in split(planned(1000, 10), 250 * MEGABYTE)]
    assert parts == [(0, 3), (3, 6), (6, 9), (9, None)]
    assert [(p.first, p.end) for p in split(planned(1000, 1), 250 * MEGABYTE)] == [(0, None)]
    assert [(p.first, p.end) for p in split(planned(100, 10), 250 * MEGABYTE)] == [(0, None)]


def test_small_files_share_tasks_and_cores_have_some_each() -> None:
    tasks = pack([planned(1) for _ in range(1000)], 4)
    assert 4 <= len(tasks) <= 50
    assert sum(len(task) for task in tasks) == 1000
    assert len(pack([planned(1) for _ in range(4)], 4)) == 4
    assert len(pack([planned(1000, 10)], 2)) == 5
