"""The contract of FileIO as tests: subclass, return a storage and an empty directory in it, and pytest runs them."""

import os
import threading
import time
from abc import ABC, abstractmethod

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline.errors import AlreadyExistsError, FormatError, NotFoundError
from bergline.io.fileio import FileIO
from bergline.io.locations import normalized

KEYS = (
    "a b",
    "a%20b",
    "a%2Fb",
    "100%",
    "a+b",
    "a#b",
    "a?b",
    "dt=2024-01-01/x",
    "ünï/日本/😀",
    "a&b;c,d@e:f$g!",
    "(x)[y]{z}^~`",
    'it\'s "<q>"',
    "*|\\",
)
_CHUNK = 1024 * 1024
_MINUTE_MS = 60_000


class FileIOSuite(ABC):
    """The tests for every storage; `make_io` may be called several times and must then open the same storage.

    `large` is the size of an output that the storage does not write in one piece.
    """

    large = 4 * _CHUNK + 17

    @abstractmethod
    def make_io(self) -> FileIO:
        """The storage under test."""

    @abstractmethod
    def make_directory(self) -> str:
        """The location of an empty directory, the same throughout a test; without a trailing slash."""

    def test_what_is_created_can_be_read(self) -> None:
        io, place = self.make_io(), self.make_directory()
        for name, data in (("f", bytes(range(256))), ("empty", b""), ("deep/er/f", b"x")):
            io.create(f"{place}/{name}", data)
            assert self.make_io().read(f"{place}/{name}") == data
            assert io.exists(f"{place}/{name}")

    def test_object_that_is_too_large_is_refused(self) -> None:
        io, location = self.make_io(), f"{self.make_directory()}/f"
        io.create(location, b"12345")
        assert io.read(location, 5) == b"12345"
        with pytest.raises(FormatError, match=r"expected at most 4 bytes, found 5 in "):
            io.read(location, 4)
        with pytest.raises(NotFoundError):
            io.read(f"{location}-none", 4)

    def test_create_never_overwrites(self) -> None:
        io, location = self.make_io(), f"{self.make_directory()}/f"
        io.create(location, b"old")
        for data in (b"new", b"old"):
            with pytest.raises(AlreadyExistsError) as caught:
                io.create(location, data)
            assert caught.value.name == location
        assert io.read(location) == b"old"

    def test_one_of_many_creates_of_a_name_wins(self) -> None:
        io, location = self.make_io(), f"{self.make_directory()}/f"
        barrier, winners = threading.Barrier(8), []

        def race(number: int) -> None:
            barrier.wait()
            try:
                io.create(location, b"%d" % number)
            except AlreadyExistsError:
                return
            winners.append(b"%d" % number)

        threads = [threading.Thread(target=race, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert winners == [io.read(location)]

    def test_missing_object_is_not_found(self) -> None:
        io, location = self.make_io(), f"{self.make_directory()}/none"
        for read in (io.read, io.open_input, lambda place: io.read_range(place, 0, 1)):
            with pytest.raises(NotFoundError) as caught:
                read(location)
            assert caught.value.name == location
        assert not io.exists(location)

    def test_range_inside_the_object(self) -> None:
        io, location = self.make_io(), f"{self.make_directory()}/f"
        io.create(location, b"abcdef")
        for offset, length, expected in ((0, 6, b"abcdef"), (2, 3, b"cde"), (5, 1, b"f"), (0, 0, b""), (6, 0, b"")):
            assert io.read_range(location, offset, length) == expected

    def test_range_outside_the_object_is_one_error(self) -> None:
        io, location = self.make_io(), f"{self.make_directory()}/f"
        io.create(location, b"abcdef")
        for offset, length in ((0, 7), (6, 1), (7, 0), (-1, 1), (1, -1), (2**70, 1), (0, 2**70), (2**62, 2**62)):
            with pytest.raises(FormatError, match="found 6 bytes in all") as caught:
                io.read_range(location, offset, length)
            assert location in str(caught.value)

    def test_input_can_be_read_from_anywhere(self) -> None:
        io, location = self.make_io(), f"{self.make_directory()}/f"
        data = os.urandom(3 * _CHUNK + 5)
        io.create(location, data)
        with io.open_input(location) as stream:
            assert stream.seekable()
            assert stream.read(10) == data[:10]
            assert stream.tell() == 10
            for offset, length in ((2 * _CHUNK, 100), (0, _CHUNK + 1), (5, 5), (len(data) - 3, 10), (len(data) + 9, 1)):
                assert stream.seek(offset) == offset
                assert stream.read(length) == data[offset : offset + length]
            assert stream.seek(-7, os.SEEK_END) == len(data) - 7
            assert stream.seek(2, os.SEEK_CUR) == len(data) - 5
            assert stream.read() == data[-5:]
            assert stream.read() == b""

    def test_input_over_an_empty_object(self) -> None:
        io, location = self.make_io(), f"{self.make_directory()}/f"
        io.create(location, b"")
        with io.open_input(location) as stream:
            assert stream.read() == b""
            assert stream.seek(0, os.SEEK_END) == 0

    def test_output_is_visible_only_after_close(self) -> None:
        io = self.make_io()
        for size in (0, 1, 3 * _CHUNK, self.large):
            location = f"{self.make_directory()}/deep/{size}"
            data = os.urandom(_CHUNK) * (size // _CHUNK) + bytes(size % _CHUNK)
            output = io.create_output(location)
            for start in range(0, size, _CHUNK):
                output.stream().write(data[start : start + _CHUNK])
            assert output.stream().tell() == size
            assert not io.exists(location)
            assert output.close() == size
            assert io.read(location) == data

    def test_output_never_overwrites(self) -> None:
        io, location = self.make_io(), f"{self.make_directory()}/f"
        io.create(location, b"old")
        for size in (3, self.large):
            with pytest.raises(AlreadyExistsError):
                _write(io, location, size)
            assert io.read(location) == b"old"

    def test_output_that_lost_the_name_does_not_take_it_away(self) -> None:
        io = self.make_io()
        for size in (3, self.large):
            location = f"{self.make_directory()}/{size}/f"
            output = io.create_output(location)
            output.stream().write(bytes(size))
            io.create(location, b"winner")
            with pytest.raises(AlreadyExistsError):
                output.close()
            output.abort()
            assert io.read(location) == b"winner"
            assert io.list(f"{self.make_directory()}/{size}") == [normalized(location)]

    @pytest.mark.parametrize("closed", [False, True])
    def test_abort_leaves_nothing_and_may_be_repeated(self, closed: bool) -> None:
        io = self.make_io()
        for size in (0, 3, self.large):
            location = f"{self.make_directory()}/{size}/f"
            output = io.create_output(location)
            output.stream().write(bytes(size))
            if closed:
                output.close()
            output.abort()
            output.abort()
            assert not io.exists(location)
            assert io.list(f"{self.make_directory()}/{size}") == []
            io.create(location, b"free again")

    def test_parquet_can_be_written_and_read(self) -> None:
        io, location = self.make_io(), f"{self.make_directory()}/f.parquet"
        table = pa.table({"id": range(20_000), "text": [f"row {i}" for i in range(20_000)]})
        output = io.create_output(location)
        with pq.ParquetWriter(output.stream(), table.schema) as writer:
            writer.write_table(table, row_group_size=2000)
        output.close()
        with io.open_input(location) as stream, pq.ParquetFile(stream) as file:
            assert file.num_row_groups == 10
            assert file.read() == table

    def test_delete_removes_and_missing_objects_count_as_deleted(self) -> None:
        io, place = self.make_io(), self.make_directory()
        for name in ("a", "b", "c"):
            io.create(f"{place}/{name}", b"")
        assert io.delete([f"{place}/a", f"{place}/none", f"{place}/c", f"{place}/a"]) == []
        assert io.list(place) == [normalized(f"{place}/b")]
        assert io.delete([]) == []

    def test_list_gives_every_depth_and_no_neighbours(self) -> None:
        io, place = self.make_io(), self.make_directory()
        for name in ("a/b/1", "a/b/c/2", "a/bc/3", "a/d"):
            io.create(f"{place}/{name}", b"")
        expected = [normalized(f"{place}/{name}") for name in ("a/b/1", "a/b/c/2")]
        assert io.list(f"{place}/a/b") == io.list(f"{place}/a/b/") == expected
        assert io.list(f"{place}/a/none") == []
        assert len(io.list(place)) == 4

    def test_listed_files_have_size_and_time(self) -> None:
        io, place = self.make_io(), self.make_directory()
        sizes = {f"{place}/{name}": n for n, name in enumerate(("a/b/1", "a/b/c/2", "a/b/c/d/e/f/3", "a/bc/4", "a/5"))}
        before = time.time_ns() // 1_000_000
        for location, size in sizes.items():
            io.create(location, bytes(size))
        found = list(io.list_files(place))
        assert sorted(f.location for f in found) == io.list(place)
        assert {f.location: f.size for f in found} == {normalized(k): size for k, size in sizes.items()}
        assert all(abs(f.modified_ms - before) < _MINUTE_MS for f in found)
        assert sorted(f.location for f in io.list_files(f"{place}/a/b/")) == io.list(f"{place}/a/b")
        assert list(io.list_files(f"{place}/a/none")) == []

    def test_listed_files_of_many_directories(self) -> None:
        io, place = self.make_io(), self.make_directory()
        names = [f"{place}/d{n % 40}/e{n % 3}/{n}" for n in range(120)]
        for name in names:
            io.create(name, b"")
        assert sorted(f.location for f in io.list_files(place)) == sorted(map(normalized, names))

    @pytest.mark.parametrize("key", KEYS)
    def test_names_are_taken_as_they_stand(self, key: str) -> None:
        io, place = self.make_io(), self.make_directory()
        location = f"{place}/{key}"
        io.create(location, key.encode())
        assert io.read(location) == key.encode()
        assert io.read_range(location, 0, 1) == key.encode()[:1]
        assert io.list(place) == [f.location for f in io.list_files(place)] == [normalized(location)]
        assert io.delete([location]) == []
        assert not io.exists(location)


def _write(io: FileIO, location: str, size: int) -> None:
    output = io.create_output(location)
    try:
        output.stream().write(bytes(size))
        output.close()
    except BaseException:
        output.abort()
        raise
