"""Scripts that know nothing of lakes, and sessions that are started with theirs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bergline
from bergline import Table
from bergline.errors import InvalidInputError

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

JOB = """
import json, sys
from pyspark.sql import SparkSession, SQLContext

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
again = SparkSession.builder.getOrCreate()
found = [again is spark, sys.argv[1:], spark.conf.get("spark.sql.shuffle.partitions")]
spark.range(2).selectExpr("id", "1.5 AS amount", "'eu' AS region").writeTo("db.orders").append()
found.append(spark.newSession().sql("SELECT count(*) FROM db.orders").first()[0])
spark.stop()
spark = SparkSession.builder.getOrCreate()
found.append(spark.table("prod.db.orders").count())
spark.stop()
import bergline.spark
spark = bergline.spark.session("own", uri="sqlite:///own/catalog.db")
found += [spark.table("prod.db.orders").count(), spark.sql("SHOW NAMESPACES IN own").count()]
print(json.dumps(found))
raise SystemExit(3)
"""


def test_script_that_builds_its_sessions_has_the_lakes(tmp_path: Path, orders: Table) -> None:
    (tmp_path / "job.py").write_text(JOB)
    with bergline.connect(f"sqlite:///{tmp_path}/own/catalog.db", create=True) as own:
        own.create_namespace("empty")
    (tmp_path / "conf").mkdir()
    defaults = f"spark.bergline.prod.uri sqlite:///{tmp_path}/catalog.db\nspark.log.level ERROR\n"
    (tmp_path / "conf" / "spark-defaults.conf").write_text(defaults)
    options = ["--conf", "spark.sql.shuffle.partitions=3", "--conf", "spark.bergline.prod.busy-timeout=20"]
    done = subprocess.run(
        [sys.executable, "-m", "bergline.spark", *options, "job.py", "--day", "1"],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(tmp_path / "conf")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr[-3000:]
    assert json.loads(done.stdout) == [True, ["--day", "1"], "3", 2, 2, 2, 1]


def test_arguments_are_checked_before_spark_starts() -> None:
    for arguments, message in (
        ({"warehouse": "wh"}, "expected `uri` beside `warehouse` and `properties`, found none"),
        ({"uri": 5}, "expected a catalog like"),
        ({"name": ""}, "expected a name for the lake, found empty text"),
        ({"config": {"spark.driver.memory": 4}}, "expected text for setting of Spark `spark.driver.memory`, found 4"),
    ):
        with pytest.raises(InvalidInputError) as caught:
            bergline.spark.session(**arguments)
        assert message in str(caught.value)
