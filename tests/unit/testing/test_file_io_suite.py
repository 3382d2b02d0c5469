"""The suite for storage finds storage that breaks the contract."""

from collections.abc import Iterable

import pytest

from bergline.io.fileio import FileIO
from bergline.io.memory import MemoryFileIO
from bergline.testing.file_io_suite import FileIOSuite


class Overwriting(MemoryFileIO):
    def create(self, location: str, data: bytes) -> None:
        self.delete([location])
        super().create(location, data)


class ShortReads(MemoryFileIO):
    def read_range(self, location: str, offset: int, length: int) -> bytes:
        return super().read_range(location, offset, length)[:-1]


class ListingNeighbours(MemoryFileIO):
    def list(self, prefix: str) -> list[str]:
        return super().list(prefix.rpartition("/")[0])


class ReportingMissing(MemoryFileIO):
    def delete(self, locations: Iterable[str]) -> list[str]:
        named = list(locations)
        missing = [location for location in named if not self.exists(location)]
        return [*super().delete(named), *missing]


def suite(kind: type[MemoryFileIO]) -> FileIOSuite:
    io = kind()

    class Suite(FileIOSuite):
        def make_io(self) -> FileIO:
            return io

        def make_directory(self) -> str:
            return "memory:/warehouse/empty"

    return Suite()


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (Overwriting, "test_create_never_overwrites"),
        (ShortReads, "test_range_inside_the_object"),
        (ListingNeighbours, "test_list_gives_every_depth_and_no_neighbours"),
        (ReportingMissing, "test_delete_removes_and_missing_objects_count_as_deleted"),
    ],
)
def test_broken_storage_fails_and_a_right_one_passes(kind: type[MemoryFileIO], test: str) -> None:
    getattr(suite(MemoryFileIO), test)()
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        getattr(suite(kind), test)()
