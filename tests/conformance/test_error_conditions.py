"""What is wrong with a statement has Spark's class, condition and SQLSTATE, here and in the official runtime."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.servers.peers import OfficialRuntime

pytestmark = pytest.mark.spark

TABLES = """
CREATE TABLE db.t (id INT NOT NULL, s STRING, p STRUCT<x: INT, y: STRING>, l ARRAY<INT>)
CREATE TABLE db.mor (id INT NOT NULL, s STRING) TBLPROPERTIES ('write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read')
CREATE TABLE db.pt (id INT, day STRING) PARTITIONED BY (day)
CREATE TABLE db.d (d DECIMAL(5,2))
CREATE VIEW db.v AS SELECT id FROM db.t
INSERT INTO db.t VALUES (1, 'a', named_struct('x', 1, 'y', 'u'), array(1)), (2, 'b', null, null)
INSERT INTO db.mor VALUES (1, 'a'), (2, 'b')
CREATE TEMPORARY VIEW src AS SELECT * FROM VALUES (1, 'x'), (1, 'y') AS v(id, s)
"""  # noqa: E501  (a statement is a line)
ANSWERS = """
def answer(text):
    try:
        spark.sql(text).collect()
    except Exception as error:
        if not hasattr(error, "getCondition"):
            return str(error)
        bases = [base.__name__ for base in type(error).__mro__ if base.__module__ == "pyspark.errors.exceptions.base"]
        return f"{bases[0]} {error.getCondition()} {error.getSqlState()}: {text}"
    return f"ran: {text}"

for text in tables:
    spark.sql(text)
result = [answer(text) for text in statements]
"""
CONDITIONS = (Path(__file__).parent / "error_conditions.txt").read_text().splitlines()


TABLE_LINES = [line for line in TABLES.splitlines() if line]
STATEMENTS = [line.split(": ", 1)[1] for line in CONDITIONS]


def test_errors_have_the_classes_and_conditions_of_spark(spark: SparkSession) -> None:
    spark.sql("USE lake")
    names: dict[str, Any] = {"spark": spark, "tables": TABLE_LINES, "statements": STATEMENTS}
    exec(ANSWERS, names)  # noqa: S102  (the same program on both sides)
    assert names["result"] == CONDITIONS


@pytest.mark.official
@pytest.mark.thorough  # it changes with versions of the runtime alone
def test_the_official_runtime_has_the_same(official_runtime: OfficialRuntime, tmp_path: Path) -> None:
    official_runtime.use_catalog(tmp_path / "theirs.db", tmp_path / "theirs", "lake")
    official_runtime.sql("CREATE NAMESPACE db")
    assert official_runtime.python(ANSWERS, tables=TABLE_LINES, statements=STATEMENTS) == CONDITIONS
