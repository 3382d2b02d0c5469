"""What statements mean, which tables they name, and that all other text stays as it was written."""

import pytest

from bergline.errors import UnsupportedError
from bergline.sql.parse.analyze import analyze
from bergline.sql.rewrite.tables import rewrite_query
from bergline.sql.statements.statements import AsOf, Insert, OtherStatement, Query, QueryWrapper
from bergline.sql.statements.table_statements import CreateTable


def rewritten(text: str, *ours: tuple[str, ...]) -> str:
    query = analyze(text)
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


@pytest.mark.parametrize(
    ("clause", "as_of"),
    [
        ("VERSION AS OF 'staging'", AsOf("version", "staging")),
        ("FOR VERSION AS OF 8027658604211071520", AsOf("version", 8027658604211071520)),
        ("TIMESTAMP AS OF TIMESTAMP '2026-01-01 00:00:00'", AsOf("timestamp", "2026-01-01 00:00:00")),
        ("FOR SYSTEM_TIME AS OF 1700000000", AsOf("timestamp", 1700000000)),
        ("TIMESTAMP AS OF DATE '2026-01-01'", AsOf("timestamp", None, "DATE '2026-01-01'")),
        (
            "TIMESTAMP AS OF now() - INTERVAL 1 DAY 2 HOURS",
            AsOf("timestamp", None, "now() - INTERVAL 1 DAY 2 HOURS"),
        ),
        ("TIMESTAMP AS OF '2026-01-01' || x.y", AsOf("timestamp", None, "'2026-01-01' || x.y")),
        ("TIMESTAMP AS OF (SELECT max(at) FROM s.t)", AsOf("timestamp", None, "(SELECT max(at) FROM s.t)")),
        ("TIMESTAMP AS OF :when::timestamp", AsOf("timestamp", None, ":when::timestamp")),
        ("TIMESTAMP AS OF -INTERVAL '1 day' + now()", AsOf("timestamp", None, "-INTERVAL '1 day' + now()")),
        ("", None),
    ],
)
def test_time_travel_is_understood(clause: str, as_of: AsOf | None) -> None:
    query = analyze(f"SELECT * FROM db.orders {clause}")
    assert isinstance(query, Query)
    assert query.tables[0].as_of == as_of


@pytest.mark.parametrize(
    ("text", "overwrite", "columns", "source"),
    [
        ("INSERT INTO db.orders VALUES (1, 'a;b')", False, None, "VALUES (1, 'a;b')"),
        ("INSERT INTO TABLE db.orders SELECT * FROM x.y;", False, None, "SELECT * FROM x.y"),
        ("INSERT OVERWRITE db.orders SELECT 1", True, None, "SELECT 1"),
        ("INSERT OVERWRITE TABLE db.orders (id, `a b`) SELECT 1, 2", True, ("id", "a b"), "SELECT 1, 2"),
        ("INSERT INTO db.orders (SELECT 1)", False, None, "(SELECT 1)"),
        (
            "WITH q AS (SELECT 1) INSERT INTO db.orders SELECT * FROM q",
            False,
            None,
            "WITH q AS (SELECT 1) SELECT * FROM q",
        ),
    ],
)
def test_insert_is_split_into_target_and_source(text: str, overwrite: bool, columns: object, source: str) -> None:
    insert = analyze(text)
    assert isinstance(insert, Insert)
    assert (insert.table, insert.overwrite, insert.columns, " ".join(insert.source.split())) == (
        ("db", "orders"),
        overwrite,
        columns,
        source,
    )


def test_insert_into_another_table_still_finds_what_it_reads() -> None:
    insert = analyze("INSERT INTO spark_table SELECT * FROM db.orders VERSION AS OF 'v1'")
    assert isinstance(insert, Insert | OtherStatement)
    insert = analyze("INSERT INTO s.t SELECT * FROM db.orders VERSION AS OF 'v1'")
    assert isinstance(insert, Insert)
    assert [use.name for use in insert.whole.tables] == [("db", "orders")]
    assert (
        rewrite_query(insert.whole, {insert.whole.tables[0]: "f"}).text
        == "INSERT INTO s.t SELECT * FROM {f} AS `orders`"
    )


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("DELETE FROM db.orders WHERE id = 1", OtherStatement("DELETE", (("db", "orders"),), subject=("db", "orders"))),
        ("MERGE INTO orders USING x ON a = b", OtherStatement("MERGE", (), subject=("orders",))),
        ("TRUNCATE TABLE orders", OtherStatement("TRUNCATE", (), subject=("orders",))),
        ("SHOW FUNCTIONS", OtherStatement("SHOW", ())),
        ("DROP VIEW db.v", OtherStatement("DROP", (("db", "v"),))),
        ("CREATE VIEW v AS SELECT * FROM db.orders", OtherStatement("CREATE VIEW", (("db", "orders"),))),
        ("", OtherStatement("", ())),
    ],
)
def test_other_statements_mean(text: str, meaning: object) -> None:
    assert analyze(text) == meaning


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("CREATE TEMP VIEW v AS ", "CREATE VIEW"),
        ("create or replace global temporary view v (a comment 'AS', b) COMMENT 'x' AS\n", "CREATE VIEW"),
        ("EXPLAIN ", "EXPLAIN"),
        ("/* why */ EXPLAIN FORMATTED ", "EXPLAIN"),
        ("DESCRIBE QUERY ", "DESCRIBE QUERY"),
        ("DESC ", "DESCRIBE QUERY"),
        ("CACHE TABLE v AS ", "CACHE TABLE"),
        ("CACHE LAZY TABLE v OPTIONS ('a' = 'AS') ", "CACHE TABLE"),
    ],
)
def test_query_is_found_behind_the_words_of_a_statement(head: str, kind: str) -> None:
    query = analyze("SELECT id FROM db.orders")
    assert analyze(f"{head}SELECT id FROM db.orders") == QueryWrapper(kind, head, query)  # type: ignore[arg-type]


def test_explained_insert_knows_its_rows() -> None:
    explained = analyze("EXPLAIN INSERT INTO s.t SELECT id FROM db.orders")
    assert isinstance(explained, QueryWrapper)
    assert (explained.target, (explained.source or "").strip()) == (("s", "t"), "SELECT id FROM db.orders")
    assert explained.query.text == "INSERT INTO s.t SELECT id FROM db.orders"


def names_read(text: str) -> list[tuple[str, ...]]:
    query = analyze(text)
    assert isinstance(query, Query)
    return [use.name for use in query.tables]


def test_names_of_one_part_are_tables_unless_with_named_them() -> None:
    assert names_read("SELECT * FROM orders o JOIN items ON true") == [("orders",), ("items",)]
    assert names_read("WITH orders AS (SELECT * FROM orders) SELECT * FROM Orders") == [("orders",)]
    assert names_read("WITH a AS (SELECT 1), b AS (SELECT * FROM a JOIN c) SELECT * FROM b, c") == [("c",), ("c",)]
    assert names_read("WITH b AS (SELECT * FROM a), a AS (SELECT 1) SELECT * FROM a") == [("a",)]
    assert names_read("SELECT * FROM (WITH q AS (SELECT 1) SELECT * FROM q) JOIN q") == [("q",)]
    assert names_read("SELECT * FROM range(5)") == []
    assert rewritten("SELECT orders.id FROM orders") == "SELECT orders.id FROM {f0} AS `orders`"


def test_create_as_keeps_its_query_and_what_it_reads() -> None:
    text = "CREATE TABLE db.new USING iceberg PARTITIONED BY (a) AS WITH q AS (SELECT 1) SELECT * FROM q, db.old;"
    statement = analyze(text)
    assert isinstance(statement, CreateTable)
    assert statement.source == "WITH q AS (SELECT 1) SELECT * FROM q, db.old"
    assert statement.partition_by == ("a",)
    assert statement.whole is not None
    (use,) = statement.whole.tables
    assert text[use.start : use.end] == "db.old"


def test_other_formats_are_sparks_even_where_the_rest_is_not_understood() -> None:
    text = "CREATE TABLE s.t (a INTERVAL DAY) USING parquet CLUSTERED BY (a, b) SORTED BY (c) INTO 4 BUCKETS"
    statement = analyze(text)
    assert isinstance(statement, OtherStatement)
    assert statement.subject is None
    copy = analyze("CREATE TABLE s.t USING parquet AS SELECT * FROM db.orders")
    assert isinstance(copy, Query)
    assert rewrite_query(copy, {copy.tables[0]: "f"}).text.endswith("AS SELECT * FROM {f} AS `orders`")


def test_text_that_cannot_be_read_keeps_its_error_for_later() -> None:
    statement = analyze("SELECT FROM WHERE db.orders")
    assert isinstance(statement, OtherStatement)
    assert statement.tables == (("db", "orders"),)
    assert statement.error is not None
    assert (statement.error.line, statement.error.column) == (1, 17)


def test_text_without_tokens_keeps_its_error_and_its_names() -> None:
    statement = analyze("SELECT * FROM db.orders WHERE s = 'open")
    assert isinstance(statement, OtherStatement)
    assert statement.keyword == "SELECT"
    assert ("db", "orders") in statement.tables
    assert statement.error is not None


def test_raw_strings_are_strings() -> None:
    assert rewritten(r"SELECT r'\' FROM db.orders o") == r"SELECT r'\' FROM {f0} o"
