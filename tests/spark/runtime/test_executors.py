"""What is asked of executors before their first task."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bergline.errors import UnsupportedError
from bergline.spark.backends.choose import backend_of
from bergline.spark.backends.classic.backend import ClassicBackend
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


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("pythonExec", "/no/python", 'Cannot run program "/no/python": '),
        ("pythonExec", "{broken}", "no libraries here"),
        ("pythonVer", "2.7", r"Python in worker has different version: .* than that in driver: 2\.7"),
    ],
)
def test_executors_without_a_python_that_fits_are_one_clear_error(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, setting: str, value: str, reason: str
) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no libraries here >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(executors, "_FOUND", {})
    monkeypatch.setattr(spark.sparkContext, setting, value.format(broken=broken))
    monkeypatch.setattr(ClassicBackend, "has_local_executors", property(lambda _: False))
    expected = f"expected a Python that runs tasks on Spark's executors, found none: .*{reason}"
    with pytest.raises(UnsupportedError, match=expected) as error:
        executors.prepare_executors(backend_of(spark), "file:///data")
    assert "PYSPARK_PYTHON" in error.value.hints[0]
