"""The lines of errors in files."""

from pathlib import Path

import pytest

from bergline.cli.line_numbers import line_of_error, line_of_open_quote


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        ("CSV parse error: Expected 2 columns, got 3: …", 4),
        ("In CSV column #1: CSV conversion error to int64: invalid value 'x'", 5),
        ("In CSV column #9: CSV conversion error to int64: invalid value 'x'", None),
        ("In CSV column #0: CSV conversion error to string: invalid UTF8 data", None),
        ("something else", None),
        ("JSON parse error in row 1", 2),
        ("JSON parse error in row 99", None),
    ],
)
def test_line_is_where_the_row_begins(tmp_path: Path, reason: str, line: int | None) -> None:
    file = tmp_path / "a"
    file.write_text('a,b\n1,"\n2"\n1,2,3\n1,x\n')
    assert line_of_error(file, reason, 0) == line


@pytest.mark.parametrize(
    ("text", "line"),
    [('a\n"b"\n', None), ('a\n5"\n', None), ('a\n"b""\nc\n', 2), ("", None), ('"', 1), ('a\n"b"c"\nd\n', None)],
)
def test_open_quote_is_found(tmp_path: Path, text: str, line: int | None) -> None:
    file = tmp_path / "a"
    file.write_text(text)
    assert line_of_open_quote(file) == line


def test_line_that_is_not_utf8_is_found(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"a\n1\n\xff\n")
    assert line_of_error(file, "In CSV column #0: CSV conversion error to string: invalid UTF8 data", 0) == 3
