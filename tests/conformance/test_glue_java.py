"""Java's GlueCatalog and bergline on one AWS Glue."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import bergline
from bergline import Lake
from support.fixtures.concurrency import AtOnce
from support.fixtures.rows import ORDERS, ids, order_rows
from support.servers.glue_server import REGION, GlueProxy
from support.servers.peers import OfficialError, OfficialRuntime

pytestmark = pytest.mark.official

SET_KEYS = """
for name, value in (("aws.accessKeyId", "key"), ("aws.secretAccessKey", "secret")):
    jvm.java.lang.System.setProperty(name, value)
"""
FORGET_KEYS = """
for name in ("aws.accessKeyId", "aws.secretAccessKey"):
    jvm.java.lang.System.clearProperty(name)
"""


@pytest.fixture(scope="module")
def runtime(official_aws: OfficialRuntime) -> Iterator[OfficialRuntime]:
    official_aws.python(SET_KEYS)
    yield official_aws
    official_aws.python(FORGET_KEYS)


@pytest.fixture
def java(runtime: OfficialRuntime, glue: GlueProxy, tmp_path: Path) -> OfficialRuntime:
    options = {
        "catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        "io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
        "warehouse": f"file://{tmp_path}",
        "glue.endpoint": glue.endpoint,
        "client.region": REGION,
        "http-client.type": "urlconnection",
        "cache-enabled": "false",
    }
    runtime.open_catalog("glue", options)
    return runtime


@pytest.fixture
def ours(glue: GlueProxy, tmp_path: Path) -> Iterator[Lake]:
    with bergline.connect("glue://", warehouse=tmp_path, properties=glue.properties) as lake:
        lake.create_namespace("db", {"comment": "shared", "owner": "us"})
        yield lake


def storage(glue: GlueProxy) -> dict[str, Any]:
    shown: dict[str, Any] = glue.table("db", "orders")["StorageDescriptor"]
    shown.pop("AdditionalLocations", None)
    return shown


def java_ids(java: OfficialRuntime, table: str) -> list[int]:
    return sorted(row[0] for row in java.sql(f"SELECT id FROM {table}"))


def test_commits_in_turn_and_the_columns_that_glue_shows(glue: GlueProxy, ours: Lake, java: OfficialRuntime) -> None:
    orders = ours.create_table("db.orders", ORDERS).append(order_rows(1))
    by_us = storage(glue)
    java.sql("INSERT INTO db.orders VALUES (2, 20.0, 'eu')")
    assert storage(glue) == by_us
    orders.append(order_rows(3))
    java.sql("ALTER TABLE db.orders ADD COLUMN note string COMMENT 'what they said'")
    java.sql("ALTER TABLE db.orders RENAME COLUMN region TO area")
    by_java = storage(glue)
    orders.refresh().delete("id = 2")
    assert storage(glue) == by_java
    assert ids(orders.scan().to_arrow()) == java_ids(java, "db.orders") == [1, 3]


def test_names_and_namespaces_are_shared(ours: Lake, java: OfficialRuntime) -> None:
    assert ("Comment", "shared") in java.sql("DESCRIBE NAMESPACE db")
    java.sql("CREATE TABLE db.theirs (id bigint) USING iceberg")
    java.sql("INSERT INTO db.theirs VALUES (1)")
    ours.rename_table("db.theirs", "db.ours")
    assert java_ids(java, "db.ours") == [1]
    java.sql("ALTER TABLE db.ours RENAME TO db.again")
    assert ours.list_tables("db") == ["db.again"]
    ours.drop_table("db.again")
    assert java.sql("SHOW TABLES IN db") == []


def test_nothing_is_lost_when_both_append_at_once(ours: Lake, java: OfficialRuntime) -> None:
    ours.create_table("db.orders", ORDERS)
    acknowledged: list[int] = []

    def append_ours(first: int) -> None:
        table = ours.load_table("db.orders")
        for number in range(first, first + 6):
            table.append(order_rows(number))
            acknowledged.append(number)

    beside = AtOnce(*(partial(append_ours, first) for first in (100, 200)))
    beside.start()
    for number in range(300, 306):
        try:
            java.sql(f"INSERT INTO db.orders VALUES ({number}, 1.0, 'eu')")
        except OfficialError as error:
            assert "CommitFailedException" in str(error)  # noqa: PT017  (the others may win each of its five attempts)
        else:
            acknowledged.append(number)
    beside.join()
    assert len(acknowledged) >= 12
    assert ids(ours.load_table("db.orders").scan().to_arrow()) == sorted(acknowledged)
    assert java_ids(java, "db.orders") == sorted(acknowledged)
