"""Objects written in pieces, on a store in memory; uploads that fail are tested on a real server in tests/s3."""

from collections.abc import Callable

import obstore
import pytest
from obstore.store import MemoryStore

from bergline.errors import AlreadyExistsError, InvalidInputError
from bergline.io.object_output import PART_BYTES, ObjectOutput
from bergline.io.object_store import ObjectStoreFileIO
from bergline.io.open_store import OpenStore

LOCATION = "s3://bucket/dir/file"
LARGE = 2 * PART_BYTES + 1


@pytest.fixture
def files() -> ObjectStoreFileIO:
    files = ObjectStoreFileIO()
    bucket = MemoryStore()
    files._stores["s3", "bucket"] = OpenStore(obstore, bucket, bucket)
    return files


@pytest.mark.parametrize("size", [0, 5, 2 * PART_BYTES, LARGE])
def test_object_is_visible_with_all_its_bytes_after_close(files: ObjectStoreFileIO, size: int) -> None:
    output = ObjectOutput(files, LOCATION)
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    for start in range(0, size, 3_000_001):
        output.stream().write(data[start : start + 3_000_001])
    assert output.stream().tell() == size
    assert not files.exists(LOCATION)
    assert output.close() == size
    assert files.read(LOCATION) == data


@pytest.mark.parametrize("size", [5, LARGE])
def test_object_that_exists_is_not_overwritten_and_survives_the_abort(files: ObjectStoreFileIO, size: int) -> None:
    output = ObjectOutput(files, LOCATION)
    output.stream().write(bytes(size))
    files.create(LOCATION, b"first")
    with pytest.raises(AlreadyExistsError):
        output.close()
    output.abort()
    assert files.read(LOCATION) == b"first"


@pytest.mark.parametrize("before_abort", [lambda _: None, ObjectOutput.close])
@pytest.mark.parametrize("size", [5, LARGE])
def test_abort_removes_the_object(
    files: ObjectStoreFileIO, before_abort: Callable[[ObjectOutput], object], size: int
) -> None:
    output = ObjectOutput(files, LOCATION)
    output.stream().write(bytes(size))
    before_abort(output)
    output.abort()
    output.abort()
    assert not files.exists(LOCATION)


def test_output_is_closed_once(files: ObjectStoreFileIO) -> None:
    output = ObjectOutput(files, LOCATION)
    output.close()
    with pytest.raises(InvalidInputError):
        output.close()
