"""A plan cut into parts for tasks: between data files, those of a partition together."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from bergline.format.manifest.manifest import partition_key
from bergline.scan.plan import PlannedFile
from bergline.table.engine.plans import DeletedPositions, RewriteGroup, RewritePlan

_LARGEST_PART: Final = 128 * 1024 * 1024
_OPENING: Final = 4 * 1024 * 1024
"""What opening a file costs, in bytes that could be read meanwhile."""


def split_groups(plan: RewritePlan, cores: int) -> list[tuple[int, RewriteGroup]]:
    """The groups in parts, each with its group's number.

    Where rows are deleted, there are as many as there is use for; else each is of the size of a new file.
    """
    return [
        (number, part)
        for number, group in enumerate(plan.groups)
        for part in (group.splits if plan.delete_where is None and not group.without else _by_cores(group, cores))
    ]


def split_deleted(deleted: Sequence[DeletedPositions], cores: int) -> list[tuple[DeletedPositions, ...]]:
    """Known positions for each part, those of a data file in one."""
    by_path = {d.planned.file.file_path: d for d in deleted}
    parts = split_files([d.planned for d in deleted], cores)
    return [tuple(by_path[planned.file.file_path] for planned in part) for part in parts]


def split_files(files: Sequence[PlannedFile], cores: int) -> list[tuple[PlannedFile, ...]]:
    """Data files for each part: enough parts for all cores, none of them too large, and few partitions in each."""
    total = sum(map(_cost, files))
    limit = min(_LARGEST_PART, max(_OPENING, total // max(1, cores)))
    return list(_bins(_by_partition(files), limit))


def _by_cores(group: RewriteGroup, cores: int) -> Iterator[RewriteGroup]:
    for files in split_files(group.files, cores):
        paths = [planned.file.file_path for planned in files]
        without = {path: group.without[path] for path in paths if path in group.without}
        yield msgspec.structs.replace(group, files=files, without=without)


def _bins(files: Iterable[PlannedFile], limit: int) -> Iterator[tuple[PlannedFile, ...]]:
    """The files in order, in bins that are closed when they have reached the limit."""
    waiting: list[PlannedFile] = []
    size = 0
    for planned in files:
        waiting.append(planned)
        size += _cost(planned)
        if size >= limit:
            yield tuple(waiting)
            waiting, size = [], 0
    if waiting:
        yield tuple(waiting)


def _by_partition(files: Iterable[PlannedFile]) -> Iterator[PlannedFile]:
    together: dict[object, list[PlannedFile]] = {}
    for planned in files:
        together.setdefault(partition_key(planned.file), []).append(planned)
    return (planned for group in together.values() for planned in group)


def _cost(planned: PlannedFile) -> int:
    return planned.file.file_size_in_bytes + _OPENING
