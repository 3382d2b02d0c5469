"""Ranges of bytes; how the storages read them is in the suite of `bergline.testing`."""

from pathlib import Path

import pytest

from bergline.errors import FormatError, StorageError
from bergline.io.fileio import check_range
from bergline.io.schemes import SchemeFileIO


@pytest.mark.parametrize(("offset", "length"), [(0, 6), (2, 3), (5, 1), (0, 0), (6, 0)])
def test_range_inside_the_object_passes(offset: int, length: int) -> None:
    check_range("s3://bucket/x", offset, length, 6)


@pytest.mark.parametrize(("offset", "length"), [(0, 7), (6, 1), (7, 0), (-1, 1), (1, -1), (2**70, 1), (0, 2**70)])
def test_range_outside_the_object_is_one_error(offset: int, length: int) -> None:
    with pytest.raises(FormatError) as caught:
        check_range("s3://bucket/x", offset, length, 6)
    assert str(caught.value) == f"expected {length} bytes from byte {offset}, found 6 bytes in all in s3://bucket/x"


def test_range_of_a_directory_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot read"):
        SchemeFileIO().read_range(str(tmp_path), 0, 1)
