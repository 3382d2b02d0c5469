"""Planned files in columns: counting them is free, and each object is created on access."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, overload

import msgspec
import polars as pl

from bergline.format.manifest.columns import METRICS, files_of
from bergline.format.manifest.manifest import DataFile, partition_key_of
from bergline.format.partition.columns import partition_column, partition_values
from bergline.format.types.types import IcebergType
from bergline.scan.plan import PlannedFile

_CHUNK = 1024


class FileGroup(msgspec.Struct, frozen=True):
    """The files of one partition spec; `deletes` holds what applies to each, or is empty if there are no deletes."""

    frame: pl.DataFrame
    spec_id: int
    partition: Mapping[int, IcebergType]
    deletes: Sequence[tuple[DataFile, ...]] = ()

    def only(self, mask: pl.Series) -> "FileGroup":
        """The files for which the mask is true."""
        deletes = list(compress(self.deletes, mask)) if self.deletes else ()
        return FileGroup(self.frame.filter(mask), self.spec_id, self.partition, deletes)

    @property
    def without_metrics(self) -> "FileGroup":
        """The files without metrics."""
        frame = self.frame.with_columns(pl.lit(None, self.frame.schema[name]).alias(name) for name in METRICS)
        return FileGroup(frame, self.spec_id, self.partition, self.deletes)

    @property
    def partition_hashes(self) -> pl.Series:
        """For each file a hash of its partition spec and values."""
        columns = [
            partition_column(self.frame, field_id, type_).alias(str(field_id))
            for field_id, type_ in self.partition.items()
            if str(field_id) in self.frame.columns
        ]
        spec = pl.repeat(self.spec_id, self.frame.height, dtype=pl.Int64, eager=True).alias("spec")
        return pl.DataFrame([spec, *columns]).hash_rows()

    @property
    def partition_keys(self) -> Iterator[tuple[Any, ...]]:
        """The partition key of each file."""
        values = [partition_values(self.frame, field_id, type_) for field_id, type_ in self.partition.items()]
        rows = zip(*values, strict=True) if values else [()] * self.frame.height
        return (partition_key_of(self.spec_id, row) for row in rows)

    def planned(self, start: int, length: int) -> Iterator[PlannedFile]:
        """Some of the files."""
        part = self.frame.slice(start, length)
        deletes = self.deletes[start : start + length] or [()] * part.height
        files = files_of(part, self.partition, self.spec_id)
        for file, number, applied in zip(files, part["sequence_number"].to_list(), deletes, strict=True):
            yield PlannedFile(file, number, applied)


class PlannedFiles(Sequence[PlannedFile]):
    """All files of a plan, in the order of their manifests within each partition spec."""

    def __init__(self, groups: Sequence[FileGroup]) -> None:
        self._groups = [g for g in groups if g.frame.height]
        self._length = sum(g.frame.height for g in self._groups)

    def __len__(self) -> int:
        return self._length

    @property
    def paths(self) -> list[str]:
        """The paths of the files."""
        return [path for group in self._groups for path in group.frame["file_path"].to_list()]

    @property
    def sizes(self) -> list[int]:
        """The sizes of the files in bytes."""
        return [size for group in self._groups for size in group.frame["file_size_in_bytes"].to_list()]

    @property
    def records(self) -> int:
        """How many rows the files have, including deleted ones."""
        return sum(int(group.frame["record_count"].sum()) for group in self._groups)

    @property
    def without_metrics(self) -> "PlannedFiles":
        """The same files without metrics, which take most of the memory."""
        return PlannedFiles([g.without_metrics for g in self._groups])

    def part(self, start: int, length: int) -> Iterator[PlannedFile]:
        """Some of the files, without creating objects for the others."""
        for group in self._groups:
            if length > 0 and start < group.frame.height:
                taken = min(length, group.frame.height - start)
                yield from group.planned(start, taken)
                length -= taken
            start = max(0, start - group.frame.height)

    def only_at(self, places: Sequence[int]) -> "PlannedFiles":
        """The files at these ascending positions, in columns."""
        groups = []
        first = 0
        for group in self._groups:
            start, stop = (bisect_left(places, first + end) for end in (0, group.frame.height))
            own = [place - first for place in places[start:stop]]
            deletes = [group.deletes[place] for place in own] if group.deletes else ()
            groups.append(FileGroup(group.frame[own], group.spec_id, group.partition, deletes))
            first += group.frame.height
        return PlannedFiles(groups)

    def picked(self, places: Sequence[int]) -> list[PlannedFile]:
        """The files at these positions, in their order, without creating objects for the others."""
        ascending = sorted(places)
        found = dict(zip(ascending, self.only_at(ascending), strict=True))
        return [found[place] for place in places]

    def window(self, start: int, length: int) -> "PlannedFiles":
        """Some of the files, in columns."""
        groups = []
        for group in self._groups:
            deletes = group.deletes[start : start + length]
            groups.append(FileGroup(group.frame.slice(start, length), group.spec_id, group.partition, deletes))
            length -= groups[-1].frame.height
            start = max(0, start - group.frame.height)
        return PlannedFiles(groups)

    def split(self, choose: Callable[[FileGroup], pl.Series]) -> tuple["PlannedFiles", "PlannedFiles"]:
        """The files for which a mask is true, and the others."""
        parts = self.parts(lambda group: choose(group).fill_null(False))
        return parts.get(True, PlannedFiles([])), parts.get(False, PlannedFiles([]))

    def at(self, paths: Iterable[str]) -> "PlannedFiles":
        """The files with these paths."""
        wanted = pl.Series(paths, dtype=pl.String).implode()
        return self.split(lambda group: group.frame["file_path"].is_in(wanted))[0]

    def parts(self, choose: Callable[[FileGroup], pl.Series]) -> dict[Any, "PlannedFiles"]:
        """The files grouped by the given choice for each."""
        found: dict[Any, list[FileGroup]] = {}
        for group in self._groups:
            chosen = choose(group)
            for value in chosen.unique(maintain_order=True).to_list():
                found.setdefault(value, []).append(group.only(chosen.eq_missing(value)))
        return {value: PlannedFiles(groups) for value, groups in found.items()}

    @property
    def groups(self) -> Sequence[FileGroup]:
        """The files of each partition spec."""
        return self._groups

    def __iter__(self) -> Iterator[PlannedFile]:
        for group in self._groups:
            for start in range(0, group.frame.height, _CHUNK):
                yield from group.planned(start, _CHUNK)

    @overload
    def __getitem__(self, index: int) -> PlannedFile: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PlannedFile]: ...
    def __getitem__(self, index: int | slice) -> PlannedFile | Sequence[PlannedFile]:
        if isinstance(index, slice):
            return tuple(self)[index]
        place = range(self._length)[index]
        for group in self._groups:
            if place < group.frame.height:
                return next(group.planned(place, 1))
            place -= group.frame.height
        raise IndexError(index)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # compared by content, and not hashable

    def __repr__(self) -> str:
        return f"PlannedFiles({self._length} files)"

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


def sizes_of(files: Sequence[PlannedFile]) -> list[int]:
    """The sizes of files in bytes, without creating their objects."""
    return files.sizes if isinstance(files, PlannedFiles) else [planned.file.file_size_in_bytes for planned in files]


def records_of(files: Sequence[PlannedFile]) -> int:
    """How many rows files have, including deleted ones, without creating their objects."""
    return files.records if isinstance(files, PlannedFiles) else sum(planned.file.record_count for planned in files)


def paths_of(files: Sequence[PlannedFile]) -> list[str]:
    """The paths of files, without creating their objects."""
    return files.paths if isinstance(files, PlannedFiles) else [planned.file.file_path for planned in files]
