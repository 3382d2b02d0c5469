"""Progress: nothing in a pipe; on a terminal how much is done."""

import io
import sys

import pytest

from bergline.cli.output.progress import progress_line


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_shown_where_stderr_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_line() as show:
        assert show is None


@pytest.mark.parametrize(("in_bytes", "amount"), [(False, "2/3"), (True, "2/3 bytes")])
def test_amounts_and_the_end_of_one_task_before_the_next(
    monkeypatch: pytest.MonkeyPatch, in_bytes: bool, amount: str
) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with progress_line(in_bytes=in_bytes) as show:
        assert show is not None
        show("db.[orders]: files", 1, 100)
        show("db.[orders]: files", 50, 100)
        show("contents", 2, 3)
    last = screen.getvalue()
    assert "contents" in last
    assert amount in last
