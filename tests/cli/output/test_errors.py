"""Exit codes, and errors on stderr."""

import pytest

from bergline.cli.output.errors import exit_code, exit_code_of_several, show_error
from bergline.errors import (
    BerglineError,
    CommitUnknownError,
    ConflictError,
    InvalidInputError,
    SqlSyntaxError,
    StorageError,
)

UNKNOWN = CommitUnknownError("nobody knows", table="db.t", metadata_location=None)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BerglineError("x"), 1),
        (StorageError("x"), 1),
        (RuntimeError("x"), 1),
        (InvalidInputError("x"), 2),
        (SqlSyntaxError("x", line=1, column=1), 2),
        (ConflictError("x"), 3),
        (UNKNOWN, 4),
    ],
)
def test_the_class_of_an_error_is_its_exit_code(error: Exception, code: int) -> None:
    assert exit_code(error) == code


def test_of_several_errors_the_one_that_is_worst_to_overlook_counts() -> None:
    assert exit_code_of_several([]) == 0
    assert exit_code_of_several([InvalidInputError("x"), StorageError("x")]) == 1
    assert exit_code_of_several([ConflictError("x"), UNKNOWN, StorageError("x")]) == 4


def test_brackets_are_no_markup_and_hints_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    show_error(BerglineError("no table `[red]x`", hints=["try `[/red]`"]), "here: ")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "error: here: no table `[red]x`\nhint: try `[/red]`\n")
