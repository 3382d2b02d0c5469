"""Files are deleted in batches, side by side, and what remains is told."""

import threading
from collections.abc import Iterable

import pytest

from bergline.errors import StorageError, UnsupportedError
from bergline.io.memory import MemoryFileIO
from bergline.io.schemes import SchemeFileIO
from bergline.table.expiry.deletion import delete_files


class CountingIO(MemoryFileIO):
    """Remembers the batches, and how many were deleted at once; a bad name spoils its batch."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        super().__init__()
        self.batches: list[int] = []
        self.at_once = self.most_at_once = 0
        self._counting = threading.Lock()
        for name in names:
            self.create(name, b"")

    def delete(self, locations: Iterable[str]) -> list[str]:
        batch = list(locations)
        with self._counting:
            self.batches.append(len(batch))
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if any("bad" in name for name in batch):
                raise StorageError("cannot delete")
            return super().delete(batch)
        finally:
            with self._counting:
                self.at_once -= 1


def test_thousands_go_in_batches_by_no_more_threads_than_asked_for() -> None:
    names = [f"memory://x/{n}" for n in range(5_500)]
    io = CountingIO(names)
    told: list[tuple[int, int]] = []
    assert delete_files(io, names, threads=3, progress=lambda done, of: told.append((done, of))) == []
    assert io.list("memory://x") == []
    assert sorted(io.batches) == [500, *[1000] * 5]
    assert io.most_at_once <= 3
    assert told[-1] == (5_500, 5_500)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_few_files_are_one_request() -> None:
    io = CountingIO(["memory://x/1", "memory://x/2"])
    assert delete_files(io, ["memory://x/1", "memory://x/2", "memory://x/missing"]) == []
    assert io.batches == [3]


def test_nothing_to_delete_asks_nothing() -> None:
    io = CountingIO()
    assert delete_files(io, []) == []
    assert io.batches == []


def test_a_file_that_storage_refuses_does_not_keep_the_others() -> None:
    names = [f"memory://x/{n}" for n in range(5)]
    io = CountingIO(names)
    assert delete_files(io, [*names, "memory://x/bad"]) == ["memory://x/bad"]
    assert io.list("memory://x") == []


def test_a_scheme_that_nobody_knows_does_not_keep_the_others() -> None:
    memory = CountingIO(["memory://x/1"])
    io = SchemeFileIO({"memory": memory})
    with pytest.raises(UnsupportedError):
        io.delete(["hdfs://host/1"])
    assert delete_files(io, ["hdfs://host/1", "memory://x/1"]) == ["hdfs://host/1"]
    assert memory.list("memory://x") == []


def test_what_progress_raises_ends_the_deletion() -> None:
    def stop(_done: int, _of: int) -> None:
        raise KeyboardInterrupt

    names = [f"memory://x/{n}" for n in range(3_000)]
    with pytest.raises(KeyboardInterrupt):
        delete_files(CountingIO(names), names, threads=1, progress=stop)
