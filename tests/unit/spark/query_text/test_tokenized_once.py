"""A statement's text is tokenized once, however many readers it passes on its way to Spark."""

import pytest

from bergline import Lake, Table
from bergline.errors import BerglineError
from bergline.spark.query_text.lake_functions import check_no_partition_functions, with_current_names
from bergline.spark.query_text.metadata_columns import find_metadata_columns
from bergline.spark.statements.immediate import with_identifiers
from bergline.spark.statements.inserts import source_with_defaults
from bergline.sql.analyze import analyze
from bergline.sql.names.resolve import Current, Lakes
from bergline.sql.queries.query import Insert, OtherStatement, Query, QueryWrapper
from bergline.sql.queries.rewritten import rewrite_query
from bergline.sql.statements.create_table import CreateTable
from bergline.sql.statements.other import check_not_of_lakes
from bergline.sql.text.tokens import SqlText
from support.fixtures.sql_statements import count_tokenized


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
