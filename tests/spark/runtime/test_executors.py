"""What is asked of executors before their first task."""

import pytest
from pyspark.sql import SparkSession

from bergline.spark.backends.choose import backend_of
from bergline.spark.runtime import executors

pytestmark = pytest.mark.spark


def test_tasks_in_this_python_are_not_asked_for_packages(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "_FOUND", {})
    jobs = spark.sparkContext.statusTracker()
    before = jobs.getJobIdsForGroup(None)
    assert executors.prepare_executors(backend_of(spark), "file:///data") == spark.sparkContext.defaultParallelism
    assert jobs.getJobIdsForGroup(None) == before
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/another/python")
    assert not executors._have_this_package(backend_of(spark))
