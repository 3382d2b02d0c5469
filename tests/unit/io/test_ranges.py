"""Parts of objects, read without the rest."""

from pathlib import Path

import pytest

from bergline.errors import FormatError, NotFoundError, StorageError
from bergline.io.memory import MemoryFileIO
from bergline.io.schemes import SchemeFileIO


@pytest.fixture(params=["file", "memory"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{tmp_path}/f" if request.param == "file" else "memory:/f"


@pytest.fixture
def files(location: str) -> SchemeFileIO:
    files = SchemeFileIO({"memory": MemoryFileIO()})
    files.create(location, b"abcdef")
    return files


@pytest.mark.parametrize(
    ("offset", "length", "expected"), [(0, 6, b"abcdef"), (2, 3, b"cde"), (5, 1, b"f"), (0, 0, b""), (6, 0, b"")]
)
def test_range_inside_the_object(files: SchemeFileIO, location: str, offset: int, length: int, expected: bytes) -> None:
    assert files.read_range(location, offset, length) == expected


@pytest.mark.parametrize(("offset", "length"), [(0, 7), (6, 1), (7, 0), (-1, 1), (1, -1), (2**70, 1), (0, 2**70)])
def test_range_outside_the_object_is_one_error(files: SchemeFileIO, location: str, offset: int, length: int) -> None:
    with pytest.raises(FormatError) as caught:
        files.read_range(location, offset, length)
    assert str(caught.value) == f"expected {length} bytes from byte {offset}, found 6 bytes in all in {location}"


def test_range_of_missing_object_is_not_found(files: SchemeFileIO, location: str) -> None:
    with pytest.raises(NotFoundError, match="no file"):
        files.read_range(location + "x", 0, 1)


def test_range_of_a_directory_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot read"):
        SchemeFileIO().read_range(str(tmp_path), 0, 1)
