"""How names and text are quoted, and that nothing else in the package does it by hand."""

import pytest

from bergline.quoting import back_quoted, back_quoted_path, dotted, quoted_name, quoted_text, without_back_quotes
from bergline.sql.text.tokens import tokenize
from support.paths import ROOT


@pytest.mark.parametrize("name", ["id", "order id", "a`b", "``", "a.b", "日"])
def test_name_in_back_quotes_reads_as_itself(name: str) -> None:
    assert without_back_quotes(back_quoted(name)) == name
    assert [token.value for token in tokenize(back_quoted(name))] == [name, ""]


def test_name_is_quoted_only_where_it_needs_it() -> None:
    assert dotted(("db", "order id", "_x1", "1x", "a`b")) == "db.`order id`._x1.`1x`.`a``b`"
    assert back_quoted_path(("point", "x")) == "`point`.`x`"
    assert quoted_name('a"b', '"') == '"a""b"'


@pytest.mark.parametrize("text", ["", "it's", "a\\b", "two\nlines", '"'])
def test_text_in_quotes_reads_as_itself(text: str) -> None:
    assert [token.value for token in tokenize(quoted_text(text))] == [text, ""]


def test_back_quotes_are_escaped_in_one_module() -> None:
    home = ROOT / "src/bergline/quoting.py"
    by_hand = [p for p in home.parent.rglob("*.py") if p != home and 'replace("`"' in p.read_text().replace("'", '"')]
    assert by_hand == []
