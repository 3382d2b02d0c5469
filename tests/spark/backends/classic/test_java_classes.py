"""Classes of the JVM that are looked up once."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from bergline.spark.backends.classic.java_classes import new_object, scala_map, session_facts, table_alias

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("size", [0, 1, 4, 5])
def test_scala_maps_of_every_size(spark_session: SparkSession, size: int) -> None:
    found: Any = scala_map(spark_session, [(f"k{n}", f"v{n}") for n in range(size)])
    assert found.size() == size
    assert [found.apply(f"k{n}") for n in range(size)] == [f"v{n}" for n in range(size)]


def test_sessions_are_told_apart(spark_session: SparkSession) -> None:
    other = spark_session.newSession()
    first, second = session_facts(spark_session), session_facts(other)
    assert first.session_id != second.session_id
    assert session_facts(spark_session) is first
    assert second.parser.parsePlan("SELECT 1").nodeName() == "Project"


def test_aliases_have_their_qualifier(spark_session: SparkSession) -> None:
    assert table_alias(spark_session, ("lake", "db", "t")).toString() == "lake.db.t"
    assert table_alias(spark_session, ("t",)).toString() == "t"
    assert new_object(spark_session, "java.util.ArrayList").isEmpty()
