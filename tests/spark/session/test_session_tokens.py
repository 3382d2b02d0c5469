"""The text of a statement is tokenized once on its way through an attached session."""

import pytest
from pyspark.sql import SparkSession

from bergline import Table
from support.fixtures.rows import order_rows
from support.fixtures.sql_statements import count_tokenized

pytestmark = pytest.mark.spark


@pytest.fixture
def filled(orders: Table) -> Table:
    """Two files: orders 1 and 2, order 3."""
    return orders.append(order_rows(1, 2)).append(order_rows(3))


def test_text_is_tokenized_once_on_its_way(spark: SparkSession, filled: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    filled.refs.create_tag("v1")
    counted = count_tokenized(monkeypatch)
    statements = {
        "SELECT _pos, * FROM db.orders VERSION AS OF 'v1' WHERE id > 1": [],
        "SELECT IDENTIFIER('id') FROM db.orders": ["id"],
        "EXPLAIN SELECT id FROM db.orders": [],
        "INSERT INTO db.orders VALUES (9, DEFAULT, 'eu')": [
            "                      VALUES (9, CAST(NULL AS double), 'eu')"
        ],
        "CALL system.ancestors_of('db.orders')": ["db.orders"],
        "ALTER TABLE db.orders CREATE BRANCH b": [],
        "CREATE TABLE db.copy USING iceberg AS SELECT id FROM db.orders WHERE id > 1": [],
        "EXECUTE IMMEDIATE 'SELECT id FROM db.orders'": ["SELECT id FROM db.orders"],
    }
    for text, others in statements.items():
        counted.clear()
        spark.sql(text).collect()
        assert counted == dict.fromkeys([text, *others], 1)
