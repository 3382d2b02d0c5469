"""A query with frames in place of lake tables, and one composed of parts: each part knows where it was written."""

import pytest

from bergline.errors import UnsupportedError
from bergline.sql.queries.query import Query
from bergline.sql.queries.rewritten import Composer, parameter_order, rewrite_query, written_place
from bergline.sql.text.tokens import SqlText
from support.fixtures.sql_statements import meaning


def rewritten(text: str, *ours: tuple[str, ...]) -> str:
    query = meaning(text)
    assert isinstance(query, Query)
    uses = [u for u in query.tables if not ours or u.name in ours]
    return rewrite_query(query, {use: f"f{i}" for i, use in enumerate(uses)}).text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM db.orders", "SELECT * FROM {f0} AS `orders`"),
        ("SELECT o.id FROM db.orders o", "SELECT o.id FROM {f0} o"),
        ("SELECT o.id FROM db.orders AS o WHERE o.id > 1", "SELECT o.id FROM {f0} AS o WHERE o.id > 1"),
        ("SELECT db.orders.id FROM db.orders", "SELECT orders.id FROM {f0} AS `orders`"),
        ("SELECT * FROM db.orders VERSION AS OF 'x' o", "SELECT * FROM {f0} o"),
        ("SELECT * FROM db.orders FOR SYSTEM_VERSION AS OF 12", "SELECT * FROM {f0} AS `orders`"),
        ("SELECT * FROM db.orders TIMESTAMP AS OF '2026-01-01' t", "SELECT * FROM {f0} t"),
        ("SELECT * FROM db.orders TIMESTAMP AS OF f(-1, (2)) - INTERVAL '1-2' YEAR TO MONTH t", "SELECT * FROM {f0} t"),
        ("SELECT timestamp AS of FROM db.orders", "SELECT timestamp AS of FROM {f0} AS `orders`"),
        ("SELECT timestamp AS of, id FROM db.orders", "SELECT timestamp AS of, id FROM {f0} AS `orders`"),
        ("SELECT 1 FROM db.orders TIMESTAMP AS OF now() WHERE id > 0", "SELECT 1 FROM {f0} AS `orders` WHERE id > 0"),
        (
            "SELECT * FROM a.`b c` -- {x}\n JOIN a.d USING (k)",
            "SELECT * FROM {f0} AS `b c` -- {{x}}\n JOIN {f1} AS `d` USING (k)",
        ),
        (
            "WITH q AS (SELECT * FROM db.orders) SELECT '{' FROM q",
            "WITH q AS (SELECT * FROM {f0} AS `orders`) SELECT '{{' FROM q",
        ),
        ("SELECT * FROM db.orders TABLESAMPLE (10 PERCENT)", "SELECT * FROM {f0} TABLESAMPLE (10 PERCENT)"),
        (
            "SELECT (SELECT max(id) FROM db.b) FROM db.a UNION ALL SELECT 1 FROM db.a",
            "SELECT (SELECT max(id) FROM {f0} AS `b`) FROM {f1} AS `a` UNION ALL SELECT 1 FROM {f2} AS `a`",
        ),
        ("SELECT '🧊' FROM db.orders o", "SELECT '🧊' FROM {f0} o"),
        ("SELECT /*+ BROADCAST(o) */ * FROM db.orders o", "SELECT /*+ BROADCAST(o) */ * FROM {f0} o"),
    ],
)
def test_only_table_names_and_their_clauses_are_replaced(text: str, expected: str) -> None:
    assert rewritten(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT lake.e.n.p.x FROM db.n JOIN lake.e.n ON `db`.`n`.`id` = e.N.id",
            "SELECT `lake.e.n`.p.x FROM {f0} AS `db.n` JOIN {f1} AS `lake.e.n` ON `db.n`.`id` = `lake.e.n`.id",
        ),
        ("SELECT * FROM db.n JOIN e.n USING (id)", "SELECT * FROM {f0} AS `db.n` JOIN {f1} AS `e.n` USING (id)"),
        (
            "SELECT 1 FROM db.n WHERE EXISTS (SELECT 1 FROM db.n WHERE db.n.id = 1)",
            "SELECT 1 FROM {f0} AS `n` WHERE EXISTS (SELECT 1 FROM {f1} AS `n` WHERE n.id = 1)",
        ),
        (
            "SELECT 1 FROM db.n WHERE EXISTS (SELECT 1 FROM e.t AS n WHERE id = db.n.id)",
            "SELECT 1 FROM {f0} AS `db.n` WHERE EXISTS (SELECT 1 FROM {f1} AS n WHERE id = `db.n`.id)",
        ),
        ("SELECT db.n.id FROM db.n, e.n AS m", "SELECT n.id FROM {f0} AS `n`, {f1} AS m"),
        ("SELECT db.n.id FROM db.n, db.n", "SELECT n.id FROM {f0} AS `n`, {f1} AS `n`"),
        (
            "SELECT n.id FROM db.n WHERE EXISTS (SELECT 1 FROM e.n WHERE n.id = 1)",
            "SELECT n.id FROM {f0} AS `n` WHERE EXISTS (SELECT 1 FROM {f1} AS `n` WHERE n.id = 1)",
        ),
    ],
)
def test_tables_that_end_in_the_same_name_are_told_apart_by_the_whole(text: str, expected: str) -> None:
    assert rewritten(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT db.n.id, n.x FROM db.n, e.n",
        "SELECT n.id FROM db.n WHERE EXISTS (SELECT 1 FROM e.n WHERE n.id = db.n.id + 1)",
        "WITH n AS (SELECT 1 AS id) SELECT n.id FROM n WHERE id IN (SELECT db.n.id FROM db.n)",
    ],
)
def test_columns_that_could_be_anothers_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedError, match=r"cannot tell `db\.n\.id` from columns of another `n`"):
        rewritten(text)


def test_tables_that_are_not_ours_stay() -> None:
    text = "SELECT a.id, other.b.id FROM db.a a JOIN other.b ON a.id = other.b.id"
    assert rewritten(text, ("db", "a")) == "SELECT a.id, other.b.id FROM {f0} a JOIN other.b ON a.id = other.b.id"


def test_raw_strings_are_strings() -> None:
    assert rewritten(r"SELECT r'\' FROM db.orders o") == r"SELECT r'\' FROM {f0} o"


def test_table_of_one_part_keeps_its_name_as_alias() -> None:
    assert rewritten("SELECT orders.id FROM orders") == "SELECT orders.id FROM {f0} AS `orders`"


def test_parts_know_where_they_were_written() -> None:
    statement = "MERGE x ON db.t.a = 1 SET b"
    composer = Composer(SqlText(statement))
    composer.add("SELECT ")
    composer.quote(statement.index("b", 20), len(statement))
    composer.add(" WHERE ")
    composer.quote(11, 21, ((11, 15, "`t`"),))
    composed = composer.result()
    assert composed.text == "SELECT b WHERE `t`.a = 1"
    for wanted in ("b", ".a", "1"):
        place = composed.text.index(wanted)
        written = written_place(composed.parts, place)
        assert statement[written:].startswith(wanted)


def test_a_place_between_parts_is_where_the_part_before_it_ends() -> None:
    composer = Composer(SqlText("abc def"))
    composer.quote(0, 3)
    composer.add(" and ")
    composer.quote(4, 7)
    assert [written_place(composer.result().parts, place) for place in (1, 5, 8, 99)] == [1, 3, 4, 7]


def test_parameters_without_names_are_known_by_their_order_in_the_statement() -> None:
    statement = SqlText("USING ? ON '?' = ? SET ?")
    composer = Composer(statement)
    composer.quote(23, 24)
    composer.add(", ")
    composer.quote(11, 18)
    composer.add(", ")
    composer.quote(6, 7)
    composed = composer.result()
    assert composed.text == "?, '?' = ?, ?"
    assert parameter_order(SqlText(composed.text), composed.parts, statement) == [2, 1, 0]
