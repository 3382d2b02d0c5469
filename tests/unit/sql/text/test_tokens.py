"""SQL text and its tokens: made once, and the same for parts of the text as for the text that they are."""

import pytest

from bergline.errors import SqlSyntaxError
from bergline.sql.text.tokens import PLAIN, Dialect, SqlText, TokenKind, tokenize
from support.fixtures.sql_statements import count_tokenized

TEXT = "SELECT 'a;b', `c``d`, r'\\' -- why\n FROM /* of /* what */ */ db.t WHERE x >= 1.5e3;"


def test_tokens_have_values_and_places() -> None:
    tokens = tokenize("a.`b``c` <=> 'it''s\\n' 12 1L")
    assert [(t.kind, t.value) for t in tokens] == [
        (TokenKind.WORD, "a"),
        (TokenKind.SYMBOL, "."),
        (TokenKind.QUOTED, "b`c"),
        (TokenKind.SYMBOL, "<=>"),
        (TokenKind.STRING, "it's\n"),
        (TokenKind.NUMBER, "12"),
        (TokenKind.WORD, "1L"),
        (TokenKind.END, ""),
    ]
    assert all(t.text == "a.`b``c` <=> 'it''s\\n' 12 1L"[t.start : t.end] for t in tokens)


@pytest.mark.parametrize(("text", "column"), [("SELECT 'open", 8), ("SELECT `open", 8), ("a /* b /* c */", 3)])
def test_open_quotes_and_comments_are_errors(text: str, column: int) -> None:
    with pytest.raises(SqlSyntaxError, match="left open") as caught:
        _ = SqlText(text).tokens
    assert (caught.value.line, caught.value.column) == (1, column)


def test_text_is_tokenized_when_it_is_asked_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = count_tokenized(monkeypatch)
    sql = SqlText(TEXT)
    assert not counted
    assert sql.first_word == "SELECT"
    assert sql.has_word("WHERE")
    assert not sql.has_word("WHY")
    assert counted == {TEXT: 1}


def test_parts_have_the_tokens_of_their_text(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = SqlText(TEXT)
    start = TEXT.index("FROM")
    parts = [
        sql.part(start),
        sql.part(0, start),
        sql.part(start, TEXT.index("WHERE")),
        sql.without_semicolon(),
        sql.blanked([(0, start), (TEXT.index("x"), TEXT.index(">="))]),
    ]
    assert [part.tokens for part in parts] == [tokenize(part.text) for part in parts]
    counted = count_tokenized(monkeypatch)
    assert sql.part(start).part(0, 4).first_word == "FROM"
    assert not counted


def test_blanked_text_keeps_lines_and_offsets() -> None:
    assert SqlText("a\nb\nc d").blanked([(0, 4)]).text == " \n \nc d"


def test_edited_text_is_a_new_value_with_tokens_of_its_own() -> None:
    sql = SqlText("SELECT a, b")
    edited = sql.edited([(10, 11, "x y"), (7, 8, "1")])
    assert edited == SqlText("SELECT 1, x y")
    assert edited.tokens == tokenize("SELECT 1, x y")
    assert sql.edited([]) is sql


def test_strings_are_what_the_dialect_makes_of_them() -> None:
    def value(text: str, dialect: Dialect) -> str:
        return SqlText(f"COMMENT {text}", dialect).part(8).tokens[0].value

    assert value(r"'a\nb'", PLAIN) == "a\nb"
    assert value(r"'a\nb''c'", Dialect(keeps_backslashes=True)) == r"a\nb''c"
    assert value("'a''b'", PLAIN) == "a'b"
    assert value("'a''b'", Dialect(joins_strings=True)) == "ab"
    assert value('"a""b"', Dialect(joins_strings=True)) == "ab"
    assert SqlText("a b", Dialect(joins_strings=True)).edited([(0, 1, "c")]).dialect.joins_strings
