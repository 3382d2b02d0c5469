"""What destroys shows its plan and asks."""

import io

import pytest
import typer

from bergline.cli.output.plans import confirm
from bergline.errors import InvalidInputError
from support.processes.command_line import Terminal


@pytest.mark.parametrize("answer", ["", "\n", "n\n", "nope\n", "maybe y\n"])
def test_only_yes_goes_ahead(answer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    with pytest.raises(typer.Exit) as ended:
        confirm("drop all", yes=False)
    assert ended.value.exit_code == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "drop all\nGo ahead? [y/N] nothing was done\n")


@pytest.mark.parametrize("answer", ["y\n", "YES\n"])
def test_yes_is_taken(answer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    confirm("drop all", yes=False)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "drop all\nGo ahead? [y/N] ")


def test_without_a_terminal_only_the_option_goes_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(InvalidInputError, match="nothing was done"):
        confirm("drop all", yes=False)
    confirm("drop all", yes=True)
