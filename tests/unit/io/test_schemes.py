"""Storage by scheme."""

from pathlib import Path

import pytest

from bergline.errors import UnsupportedError
from bergline.io.memory import MemoryFileIO
from bergline.io.schemes import SchemeFileIO


@pytest.fixture
def memory() -> MemoryFileIO:
    return MemoryFileIO()


@pytest.fixture
def both(memory: MemoryFileIO) -> SchemeFileIO:
    return SchemeFileIO({"memory": memory})


def test_each_location_goes_to_the_storage_of_its_scheme(
    both: SchemeFileIO, memory: MemoryFileIO, tmp_path: Path
) -> None:
    both.create("memory:/a", b"m")
    both.create(f"file://{tmp_path}/a", b"f")
    assert memory.read("memory:/a") == both.read("memory:/a") == b"m"
    with both.open_input(f"{tmp_path}/a") as stream:
        assert stream.read() == (tmp_path / "a").read_bytes() == b"f"
    assert both.list("memory:/") == ["memory:/a"]


def test_outputs_go_to_the_storage_of_their_scheme(both: SchemeFileIO, memory: MemoryFileIO) -> None:
    output = both.create_output("memory:/b")
    output.stream().write(b"x")
    output.close()
    assert both.exists("memory:/b")
    assert memory.read("memory:/b") == b"x"


def test_delete_reaches_every_storage(both: SchemeFileIO, tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    both.create("memory:/a", b"")
    both.create(f"{tmp_path}/a", b"")
    assert both.delete(["memory:/a", f"{tmp_path}/a", f"{tmp_path}/dir"]) == [f"{tmp_path}/dir"]
    assert not both.exists("memory:/a")
    assert not both.exists(f"{tmp_path}/a")


def test_unknown_scheme_is_not_supported(both: SchemeFileIO) -> None:
    with pytest.raises(UnsupportedError, match=r"schemes abfs, .* file, .* memory, .* found `hdfs://host/x`"):
        both.read("hdfs://host/x")
