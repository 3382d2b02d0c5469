"""Storage behind a fence."""

from pathlib import Path

import pytest

from bergline.errors import BerglineError, RefusedError
from bergline.io.fenced import FencedFileIO
from bergline.io.schemes import SchemeFileIO


@pytest.fixture
def io(tmp_path: Path) -> FencedFileIO:
    for place in ("in", "in/secret", "out"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "a").write_text("x")
    return FencedFileIO(SchemeFileIO(), [f"{tmp_path}/in", "s3://bucket/in"], denied=[f"{tmp_path}/in/secret"])


def test_inside_everything_works(io: FencedFileIO, tmp_path: Path) -> None:
    place = f"file://{tmp_path}/in"
    assert io.read(f"{place}/a") == b"x"
    assert io.read_range(f"{place}/a", 0, 1) == b"x"
    with io.open_input(f"{place}/a") as stream:
        assert stream.read() == b"x"
    io.create(f"{place}/b", b"y")
    output = io.create_output(f"{place}/c")
    output.stream().write(b"z")
    output.close()
    assert io.exists(f"{place}/b")
    assert f"{place}/c" in io.list(place)
    assert any(f.location == f"{place}/c" for f in io.list_files(place))
    assert io.delete([f"{place}/b"]) == []


@pytest.mark.parametrize(
    "location",
    ["{}/out/a", "file://{}/out/a", "{}/in/../out/a", "{}/inside", "{}/in/secret/a", "/etc/passwd", "{}/in/link/a"],
)
def test_outside_nothing_does(io: FencedFileIO, tmp_path: Path, location: str) -> None:
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    location = location.format(tmp_path)
    for call in (io.read, io.exists, io.open_input, io.list, io.list_files, io.create_output, io.check):
        with pytest.raises(RefusedError, match="in the warehouse"):
            call(location)
    with pytest.raises(RefusedError):
        io.create(location, b"")
    with pytest.raises(RefusedError):
        io.read_range(location, 0, 1)
    assert io.delete([location]) == [location]
    assert (tmp_path / "out" / "a").exists()


@pytest.mark.parametrize("location", ["s3://bucket/other", "s3://other/in/a", "s3://bucket/in/../x", "s3://bucket/inn"])
def test_buckets_have_fences_too(io: FencedFileIO, location: str) -> None:
    with pytest.raises(BerglineError):
        io.check(location)
    assert io.check("s3a://bucket/in/a") == "s3a://bucket/in/a"
    assert io.check("s3://bucket/in") == "s3://bucket/in"
