"""`spark.catalog` on lakes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import StorageLevel
from pyspark.errors import (
    AnalysisException,
)
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from bergline import Lake, Table
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def _without_views(spark: SparkSession) -> Iterator[None]:
    yield
    for name in ("v", "w"):
        spark.catalog.dropTempView(name)
    spark.catalog.dropGlobalTempView("v")
    spark.catalog.clearCache()


@pytest.fixture
def filled(orders: Table) -> Table:
    """Two files: orders 1 and 2, order 3."""
    return orders.append(order_rows(1, 2)).append(order_rows(3))


def test_tables_are_cached_by_name(spark: SparkSession, filled: Table) -> None:
    catalog = spark.catalog
    assert not catalog.isCached("db.orders")
    catalog.cacheTable("db.orders")
    assert catalog.isCached("db.orders")
    catalog.refreshTable("db.orders")
    assert catalog.isCached("db.orders")
    assert spark.table("db.orders").count() == 3
    catalog.uncacheTable("db.orders")
    assert not catalog.isCached("db.orders")
    catalog.cacheTable("db.orders", StorageLevel.DISK_ONLY)
    assert catalog.isCached("db.orders")
    catalog.clearCache()
    assert not catalog.isCached("db.orders")
    cached = spark.table("db.orders").cache()
    assert catalog.isCached("db.orders")
    cached.unpersist()
    for method in (catalog.refreshTable, catalog.cacheTable, catalog.uncacheTable, catalog.isCached):
        with pytest.raises(AnalysisException, match=r"no table `db\.ordres`"):
            method("db.ordres")
    spark.range(2).createOrReplaceTempView("v")
    catalog.cacheTable("v")
    assert catalog.isCached("v")
    assert len(filled.refresh().metadata.snapshots) == 2


def test_lakes_are_listed_among_the_catalogs(spark: SparkSession) -> None:
    assert [catalog.name for catalog in spark.catalog.listCatalogs()] == ["spark_catalog", "lake"]
    assert [catalog.name for catalog in spark.catalog.listCatalogs("l*")] == ["lake"]
    assert [row[0] for row in spark.sql("SHOW CATALOGS").collect()] == ["lake", "spark_catalog"]


@pytest.fixture
def other(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    """A second lake, attached by name."""
    with bergline.connect(f"sqlite:///{tmp_path}/other/catalog.db", create=True) as lake:
        lake.create_namespace("db")
        lake.create_table("db.orders", ORDERS).append(order_rows(7))
        bergline.spark.attach(spark, lake, name="other", default=False)
        yield lake


def test_catalog_lists_what_lakes_have(spark: SparkSession, orders: Table, lake: Lake, other: Lake) -> None:
    lake.update_namespace("db", {"comment": "words"})
    spark.sql("CREATE TABLE db.parts (id INT NOT NULL COMMENT 'key', `a b` ARRAY<INT>) PARTITIONED BY (id) COMMENT 'c'")
    catalog = spark.catalog
    assert next((d.name, d.catalog, d.description) for d in catalog.listDatabases()) == ("db", "lake", "words")
    assert [d.name for d in catalog.listDatabases()] == ["db", "default"]
    assert [d.name for d in catalog.listDatabases("def*")] == ["default"]
    assert catalog.getDatabase("db").name == "db"
    assert [catalog.databaseExists(n) for n in ("db", "other.db", "default", "lake", "nope", "lake.nope")] == [
        *(True, True, True, True),
        *(False, False),
    ]
    assert [(t.name, t.catalog, t.namespace, t.description) for t in catalog.listTables("db")] == [
        ("orders", "lake", ["db"], None),
        ("parts", "lake", ["db"], "c"),
    ]
    assert [t.name for t in catalog.listTables("other.db", "o*")] == ["orders"]
    assert catalog.getTable("other.db.orders").catalog == "other"
    assert [catalog.tableExists(n) for n in ("db.orders", "other.db.orders", "db.nope", "nope.t")] == [
        *(True, True, False, False)
    ]
    columns = catalog.listColumns("db.parts")
    assert [(c.name, c.description, c.dataType, c.nullable, c.isPartition) for c in columns] == [
        ("id", "key", "int", False, True),
        ("a b", None, "array<int>", True, False),
    ]
    with pytest.raises(AnalysisException, match=r"no table `db\.nope`"):
        catalog.listColumns("db.nope")


def test_catalog_knows_and_says_what_is_in_use(spark: SparkSession, orders: Table, other: Lake) -> None:
    catalog = spark.catalog
    assert (catalog.currentCatalog(), catalog.currentDatabase()) == ("spark_catalog", "default")
    spark.range(1).createOrReplaceTempView("only_a_view")
    try:
        assert "only_a_view" in [t.name for t in catalog.listTables()]
        catalog.setCurrentDatabase("db")
        assert (catalog.currentCatalog(), catalog.currentDatabase()) == ("lake", "db")
        assert [t.name for t in catalog.listTables()] == ["orders"]
        assert [catalog.tableExists(n) for n in ("orders", "only_a_view", "nope")] == [True, True, False]
        catalog.setCurrentCatalog("other")
        assert [d.catalog for d in catalog.listDatabases()] == ["other"]
        assert catalog.currentDatabase() == ""
    finally:
        catalog.dropTempView("only_a_view")
        catalog.setCurrentCatalog("spark_catalog")
    assert catalog.currentDatabase() == "default"
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        catalog.setCurrentDatabase("nope")
