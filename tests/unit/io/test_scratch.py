import pytest

from bergline.errors import AlreadyExistsError
from bergline.io.memory import MemoryFileIO
from bergline.io.scratch import ScratchFileIO


def test_new_files_are_seen_here_and_nowhere_else() -> None:
    below = MemoryFileIO()
    below.create("memory:/t/old", b"old")
    scratch = ScratchFileIO(below)
    scratch.create("memory:/t/new", b"new one")
    output = scratch.create_output("memory:/t/piece")
    output.stream().write(b"piece")
    assert output.close() == 5
    assert [scratch.read(name) for name in scratch.list("memory:/t")] == [b"new one", b"old", b"piece"]
    assert scratch.read_range("memory:/t/new", 4, 3) == b"one"
    with scratch.open_input("memory:/t/old") as stream:
        assert stream.read() == b"old"
    assert {f.location for f in scratch.list_files("memory:/t")} == set(scratch.list("memory:/t"))
    assert below.list("memory:/t") == ["memory:/t/old"]


def test_nothing_below_is_overwritten_or_deleted() -> None:
    below = MemoryFileIO()
    below.create("memory:/t/old", b"old")
    scratch = ScratchFileIO(below)
    for write in (lambda: scratch.create("memory:/t/old", b""), lambda: scratch.create_output("memory:/t/old")):
        with pytest.raises(AlreadyExistsError, match="exists already"):
            write()
    assert scratch.delete(["memory:/t/old"]) == []
    assert scratch.exists("memory:/t/old")
