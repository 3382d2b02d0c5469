"""What statements mean, and what is kept of those that cannot be read."""

import pytest
from sql_statements import count_tokenized, meaning

from bergline import Lake, Table
from bergline.errors import BerglineError
from bergline.sql.analyze import analyze
from bergline.sql.names.resolve import Current, Lakes
from bergline.sql.queries.merge import MergeInto
from bergline.sql.queries.query import Insert, OtherStatement, Query, QueryWrapper, RowLevel, TruncateTable
from bergline.sql.queries.wrappers import ExplainedChange
from bergline.sql.rewrite.current_names import with_current_names
from bergline.sql.rewrite.identifier_clauses import with_identifiers
from bergline.sql.rewrite.insert_defaults import source_with_defaults
from bergline.sql.rewrite.metadata_columns import find_metadata_columns
from bergline.sql.rewrite.partition_functions import check_no_partition_functions
from bergline.sql.rewrite.tables import rewrite_query
from bergline.sql.statements.create_table import CreateTable
from bergline.sql.statements.other import check_not_of_lakes
from bergline.sql.text.tokens import SqlText


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TRUNCATE TABLE orders", TruncateTable(("orders",))),
        ("SHOW FUNCTIONS", OtherStatement("SHOW", ())),
        ("DROP FUNCTION db.f", OtherStatement("DROP", (("db", "f"),))),
        ("", OtherStatement("", ())),
    ],
)
def test_other_statements_mean(text: str, expected: object) -> None:
    assert meaning(text) == expected


def test_explained_insert_knows_its_rows() -> None:
    explained = meaning("EXPLAIN INSERT INTO s.t SELECT id FROM db.orders")
    assert isinstance(explained, QueryWrapper)
    assert explained.source is not None
    assert (explained.target, explained.source.text.strip()) == (("s", "t"), "SELECT id FROM db.orders")
    assert explained.query.text == "INSERT INTO s.t SELECT id FROM db.orders"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("DELETE FROM db.t WHERE a = 1", RowLevel),
        ("UPDATE db.t SET a = 1", RowLevel),
        ("MERGE INTO db.t USING s ON t.a = s.a WHEN MATCHED THEN DELETE", MergeInto),
    ],
)
def test_explained_change_is_the_statement_after_its_head(text: str, kind: type) -> None:
    explained = meaning(f"EXPLAIN FORMATTED {text}")
    assert isinstance(explained, ExplainedChange)
    assert explained.head.text == "EXPLAIN FORMATTED "
    assert isinstance(explained.change, kind)
    assert explained.change == meaning(text)


def test_create_as_keeps_its_query_and_what_it_reads() -> None:
    text = "CREATE TABLE db.new USING iceberg PARTITIONED BY (a) AS WITH q AS (SELECT 1) SELECT * FROM q, db.old;"
    statement = meaning(text)
    assert isinstance(statement, CreateTable)
    assert statement.source == SqlText("WITH q AS (SELECT 1) SELECT * FROM q, db.old")
    assert statement.query is not None
    assert statement.query.within == (text, text.index("WITH"))
    assert statement.partition_by == ("a",)
    assert statement.whole is not None
    (use,) = statement.whole.tables
    assert text[use.start : use.end] == "db.old"


def test_other_formats_are_sparks_even_where_the_rest_is_not_understood() -> None:
    text = "CREATE TABLE s.t (a INTERVAL DAY) USING parquet CLUSTERED BY (a, b) SORTED BY (c) INTO 4 BUCKETS"
    statement = meaning(text)
    assert isinstance(statement, CreateTable)
    assert isinstance(statement.refusal, BerglineError)
    copy = meaning("CREATE TABLE s.t USING csv CLUSTERED BY (a, b) INTO 4 BUCKETS AS SELECT * FROM db.orders")
    assert isinstance(copy, CreateTable)
    assert copy.whole is not None
    assert rewrite_query(copy.whole, {copy.whole.tables[0]: "f"}).text.endswith("AS SELECT * FROM {f} AS `orders`")


def test_text_that_cannot_be_read_keeps_its_error_for_later() -> None:
    statement = meaning("SELECT FROM WHERE db.orders")
    assert isinstance(statement, OtherStatement)
    assert statement.tables == (("db", "orders"),)
    assert statement.error is not None
    assert (statement.error.line, statement.error.column) == (1, 17)


def test_text_without_tokens_keeps_its_error_and_its_names() -> None:
    statement = meaning("SELECT * FROM db.orders WHERE s = 'open")
    assert isinstance(statement, OtherStatement)
    assert statement.keyword == "SELECT"
    assert ("db", "orders") in statement.tables
    assert statement.error is not None


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("SELECT _file, * FROM db.orders VERSION AS OF 'v1' WHERE id > 1", None),
        ("SELECT * FROM db.orders TIMESTAMP AS OF now() - INTERVAL 1 DAY", None),
        ("SELECT current_schema(), id FROM db.orders", "SELECT 'db' AS `current_schema()`, id FROM db.orders"),
        ("EXPLAIN FORMATTED SELECT id FROM db.orders", None),
        ("CREATE TEMP VIEW v AS SELECT id FROM db.orders", None),
        ("INSERT INTO db.orders SELECT id, amount, region FROM db.orders", None),
        (
            "INSERT INTO db.orders VALUES (1, DEFAULT, 'eu')",
            "                      VALUES (1, CAST(NULL AS double), 'eu')",
        ),
        ("CREATE TABLE db.t USING iceberg AS SELECT id FROM db.orders;", None),
        ("CALL system.expire_snapshots(table => :t)", None),
        ("ALTER TABLE db.orders CREATE BRANCH b RETAIN 3 DAYS", None),
        ("SHOW TBLPROPERTIES db.orders", None),
        ("DELETE FROM db.orders WHERE id = 1", None),
        ("SELEC id FROM db.orders", None),
    ],
)
def test_text_is_tokenized_once_and_again_only_where_it_is_edited(
    lake: Lake, orders: Table, monkeypatch: pytest.MonkeyPatch, text: str, edited: str | None
) -> None:
    counted = count_tokenized(monkeypatch)
    lakes = Lakes({"lake": lake}, "lake", Current("lake", ("db",)))
    sql, _ = with_identifiers(SqlText(text), None, lakes, lambda *_: None)
    statement = analyze(sql)
    queries: list[Query] = []
    match statement:
        case Query():
            queries.append(statement)
        case QueryWrapper(query=query) | CreateTable(query=Query() as query):
            queries.append(query)
        case Insert():
            source = source_with_defaults(statement, orders.schema)
            queries += [statement.whole, statement.source if source is statement.source.sql else read(source)]
        case OtherStatement():
            with pytest.raises(BerglineError):
                check_not_of_lakes(statement, lakes)
    for query in queries:
        known = with_current_names(query.sql, lakes)
        read_again = query if known is query.sql else read(known)
        check_no_partition_functions(known, lakes)
        available = dict.fromkeys(read_again.tables, frozenset({"_file"}))
        asked = find_metadata_columns(read_again, available)
        rewritten = rewrite_query(read_again, dict.fromkeys(read_again.tables, "f"), asked.edits)
        rewritten.sql.has_word("WHERE")
    assert counted == {text: 1} | ({} if edited is None else {edited: 1})


def read(sql: SqlText) -> Query:
    query = analyze(sql)
    assert isinstance(query, Query)
    return query
