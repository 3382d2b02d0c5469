"""ANALYZE TABLE: what is counted, and what metadata knows already."""

import pytest

from bergline import Table
from bergline.errors import NotFoundError
from bergline.sql.statements.analyze_table import AnalyzeTable, AnalyzeTables
from support.fixtures.rows import order_rows
from support.fixtures.sql_statements import Session, check_unreadable, meaning

T = ("db", "t")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ANALYZE TABLE db.t COMPUTE STATISTICS NOSCAN", AnalyzeTable(T)),
        ("ANALYZE TABLE db.t COMPUTE STATISTICS FOR COLUMNS a, b.c", AnalyzeTable(T, ("a", "b.c"))),
        ("ANALYZE TABLE db.t COMPUTE STATISTICS FOR ALL COLUMNS", AnalyzeTable(T, ())),
        ("ANALYZE TABLES IN db COMPUTE STATISTICS", AnalyzeTables(("db",))),
    ],
)
def test_statements_mean(text: str, expected: object) -> None:
    assert meaning(text) == expected


def test_what_cannot_be_read_keeps_its_error_and_its_subject() -> None:
    text = "ANALYZE TABLE db.t PARTITION (a = 1) COMPUTE STATISTICS"
    check_unreadable(text, "cannot analyze one partition of a lake table", {T, ("db",)})


def test_columns_get_counts_of_distinct_values(run: Session, orders: Table) -> None:
    orders.append(order_rows(1, 2))
    run("ANALYZE TABLE db.orders COMPUTE STATISTICS")
    run("ANALYZE TABLES IN db COMPUTE STATISTICS")
    assert orders.refresh().metadata.statistics == ()
    run("ANALYZE TABLE db.orders COMPUTE STATISTICS FOR COLUMNS ID")
    (file,) = orders.refresh().metadata.statistics
    assert [blob.fields for blob in file.blob_metadata] == [(1,)]


@pytest.mark.usefixtures("orders")
def test_what_does_not_exist_is_an_error(run: Session) -> None:
    with pytest.raises(NotFoundError, match=r"no table `db\.nope`"):
        run("ANALYZE TABLE db.nope COMPUTE STATISTICS")
    with pytest.raises(NotFoundError, match="`nope`"):
        run("ANALYZE TABLE db.orders COMPUTE STATISTICS FOR COLUMNS nope")
