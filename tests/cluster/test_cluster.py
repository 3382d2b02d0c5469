"""A standalone cluster whose executors have neither our package nor most of what it imports elsewhere."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_driver import ClusterDriver
from peers import needs_java
from spark_cluster import SparkCluster, executor_python

from bergline import Lake
from bergline.spark.executors import NEEDED

pytestmark = pytest.mark.spark

PANDAS = ("pandas", "numpy", "python-dateutil", "pytz", "six", "tzdata")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    needs_java()
    with SparkCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def driver(cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterDriver]:
    directory = tmp_path_factory.mktemp("driver")
    python = executor_python(directory / "executors", NEEDED)
    with ClusterDriver(cluster.master, python, directory / "log.txt") as running:
        yield running


@pytest.fixture
def place(tmp_path: Path, lake: Lake) -> dict[str, Any]:
    """How the driver connects to this test's lake."""
    return {"uri": f"sqlite:///{tmp_path}/catalog.db"}


def test_package_is_not_there_before_it_is_sent(driver: ClusterDriver, place: dict[str, Any]) -> None:
    assert driver.run("cluster_jobs:import_us", place) == ["No module named 'bergline'"]
    driver.run("cluster_jobs:insert_on_branch", place)
    (sent,) = driver.run("cluster_jobs:import_us", place)
    assert "bergline-0.1.0.zip" in sent
