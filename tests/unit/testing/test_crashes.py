"""Processes that die between any two steps."""

import pytest

from bergline.io.memory import MemoryFileIO
from bergline.testing.crashes import Crash, CrashingFileIO, Steps


def test_every_step_from_the_crash_on_raises() -> None:
    steps = Steps(crash_at=3)
    steps.take()
    steps.take()
    for _ in range(2):
        with pytest.raises(Crash):
            steps.take()
    assert steps.taken == 4


def test_crash_is_no_error_that_could_be_handled() -> None:
    assert not issubclass(Crash, Exception)


@pytest.mark.parametrize(("crash_at", "exists"), [(1, False), (2, True), (3, True)])
def test_file_is_created_before_or_after_the_crash(crash_at: int, exists: bool) -> None:
    io = MemoryFileIO()
    if crash_at < 3:
        with pytest.raises(Crash):
            CrashingFileIO(io, Steps(crash_at)).create("memory:/a", b"1")
    else:
        CrashingFileIO(io, Steps(crash_at)).create("memory:/a", b"1")
    assert io.exists("memory:/a") is exists


def test_delete_may_stop_between_two_files() -> None:
    io = MemoryFileIO()
    for name in ("a", "b"):
        io.create(f"memory:/{name}", b"1")
    with pytest.raises(Crash):
        CrashingFileIO(io, Steps(crash_at=2)).delete(["memory:/a", "memory:/b"])
    assert io.list("memory:/") == ["memory:/b"]


def test_dead_process_does_not_clean_up_its_output() -> None:
    io = MemoryFileIO()
    crashing = CrashingFileIO(io, Steps(crash_at=2))
    output = crashing.create_output("memory:/a")
    output.stream().write(b"1")
    with pytest.raises(Crash):
        output.close()
    with pytest.raises(Crash):
        output.abort()
    crashing.end()
    assert not io.exists("memory:/a")
