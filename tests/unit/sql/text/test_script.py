"""Text with several statements is split where they end."""

import pytest

from bergline.errors import SqlSyntaxError
from bergline.sql.text.script import split_script

SCRIPT = """\
BEGIN
  DECLARE total INT DEFAULT 0;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN SELECT 'x;'; END;
  IF total = 0 THEN SET total = if(true, 1, 2); ELSE SET total = CASE WHEN total > 3 THEN 1 END; END IF;
  CASE WHEN total = 1 THEN SELECT repeat('a', 3); ELSE SELECT w.end AS begin, w.case FROM t w; END CASE;
  outer_loop: WHILE total < 3 DO REPEAT SET total = total + 1; UNTIL total > 2 END REPEAT; END WHILE outer_loop;
  FOR r AS SELECT 1 AS id DO BEGIN SELECT r.id; END; END FOR;
END"""


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("", (), ""),
        (" ;; -- nothing;\n; /* ; */", (), ""),
        ("SELECT 1", (), "SELECT 1"),
        ("SELECT 1;", ("SELECT 1",), ""),
        ("SELECT 1; SELECT\n2 ;SELECT 3", ("SELECT 1", "SELECT\n2"), "SELECT 3"),
        (
            "SELECT ';', \";\", `;`, r';' -- ; it's\n /* ; /* ' */ */;USE db",
            ("SELECT ';', \";\", `;`, r';' -- ; it's\n /* ; /* ' */ */",),
            "USE db",
        ),
        ("SELECT 'it''s; \\'; ';", ("SELECT 'it''s; \\'; '",), ""),
        (f"{SCRIPT};\nSELECT 2;", (SCRIPT, "SELECT 2"), ""),
        (f"once: {SCRIPT} once;\nSELECT 2;", (f"once: {SCRIPT} once", "SELECT 2"), ""),
        ("BEGIN SELECT 1; SELECT 2;", (), "BEGIN SELECT 1; SELECT 2;"),
        ("SELECT begin FROM t; SELECT 2;", ("SELECT begin FROM t", "SELECT 2"), ""),
    ],
)
def test_statements_end_at_their_semicolons(text: str, statements: tuple[str, ...], rest: str) -> None:
    found = split_script(text)
    assert (found.statements, found.rest) == (statements, rest)


@pytest.mark.parametrize("text", ["SELECT 'a;", "SELECT 1; /* ;", "SELECT `a;"])
def test_open_quotes_and_comments_are_errors(text: str) -> None:
    with pytest.raises(SqlSyntaxError):
        split_script(text)
