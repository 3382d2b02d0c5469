"""SQL scripts that read and change lake tables."""

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bergline import Table
from bergline.errors import InvalidInputError, NotFoundError
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.spark


def test_a_script_reads_and_changes_lake_tables(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 2, 3))
    script = """
    BEGIN
      DECLARE most BIGINT;
      DECLARE n INT DEFAULT 0;
      SET most = (SELECT max(id) FROM db.orders);
      WHILE (SELECT count(*) FROM db.orders) < :wanted DO
        SET most = most + 10;
        INSERT INTO db.orders VALUES (most, most * 1.5D, 'us');
        SET n = n + 1;
      END WHILE;
      IF EXISTS (SELECT 1 FROM db.orders WHERE id = 23) THEN
        UPDATE db.orders SET region = 'de' WHERE id = most - 10;
        DELETE FROM db.orders WHERE id < n;
      END IF;
      FOR row AS (SELECT id FROM db.orders WHERE region = 'de') DO
        MERGE INTO db.orders AS o USING (SELECT row.id AS id) AS s ON o.id = s.id
          WHEN MATCHED THEN UPDATE SET amount = -1;
      END FOR;
      SELECT id, amount, region, n FROM db.orders ORDER BY id;
    END
    """
    rows = spark.sql(script, {"wanted": 5}).collect()
    assert rows == [(2, 20.0, "eu", 2), (3, 30.0, "eu", 2), (13, -1.0, "de", 2), (23, 34.5, "us", 2)]
    assert spark.catalog.listTables() == []
    assert len(orders.refresh().metadata.snapshots) == 6


def test_errors_of_a_script_are_those_of_its_statements(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    before = orders.refresh().metadata_location
    with pytest.raises(NotFoundError, match=r"no table `db\.ordres`"):
        spark.sql("BEGIN INSERT INTO db.ordres VALUES (1, 1, 'a'); END")
    with pytest.raises(InvalidInputError):
        spark.sql("BEGIN SELECT 1; ALTER TABLE db.orders SET TBLPROPERTIES ('format-version' = 'x'); END")
    with pytest.raises(PySparkException) as caught:
        spark.sql("BEGIN SELECT nope FROM db.orders; END").collect()
    assert caught.value.getCondition() == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    with pytest.raises(PySparkException) as caught:
        spark.sql("BEGIN DELETE FROM db.orders WHERE id IN (SELECT; END")
    assert caught.value.getCondition() == "PARSE_SYNTAX_ERROR"
    assert orders.refresh().metadata_location == before
    assert spark.catalog.listTables() == []


def test_handlers_write_to_lake_tables(spark: SparkSession, orders: Table) -> None:
    script = """
    BEGIN
      DECLARE EXIT HANDLER FOR DIVIDE_BY_ZERO BEGIN
        INSERT INTO db.orders VALUES (99, 0, 'failed');
        SELECT count(*) AS n FROM db.orders;
      END;
      SELECT 1 / (SELECT count(*) FROM db.orders);
    END
    """
    assert spark.sql(script).collect() == [(1,)]
    assert orders.refresh().scan().to_arrow()["region"].to_pylist() == ["failed"]


def test_scripts_without_lake_tables_are_sparks(spark: SparkSession) -> None:
    assert spark.sql("BEGIN DECLARE x INT DEFAULT 1; SET x = x + 1; SELECT x AS `a.b`; END").collect() == [(2,)]


def test_a_script_reads_what_it_created(spark: SparkSession, orders: Table) -> None:
    script = """
    BEGIN
      DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN SELECT 'missing'; END;
      CREATE TABLE db.made AS SELECT 7 AS id;
      SELECT id FROM DB.Made;
      SELECT * FROM db.never_made;
    END
    """
    assert spark.sql(script).collect() == [("missing",)]
    spark.sql("DROP TABLE db.made")
    assert spark.sql(script.replace("SELECT * FROM db.never_made;", "")).collect() == [(7,)]
    dropped = script.replace("SELECT id FROM DB.Made;", "SELECT id FROM db.made; DROP TABLE db.made;")
    spark.sql("DROP TABLE db.made")
    assert spark.sql(dropped.replace("db.never_made", "db.made")).collect() == [("missing",)]
    assert orders.name
