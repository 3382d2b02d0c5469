"""A cluster, and lakes on S3."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bergline
from support.servers.peers import needs_java
from support.servers.s3_server import S3Server
from support.servers.spark_cluster import SparkCluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    needs_java()
    with SparkCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def objects(tmp_path: Path, bucket: str, s3_server: S3Server) -> dict[str, Any]:
    """How to connect to a lake with its files on the S3 server."""
    place = {"uri": f"sqlite:///{tmp_path}/objects.db", "warehouse": bucket, "properties": s3_server.properties}
    with bergline.connect(**place, create=True) as lake:
        lake.create_namespace("db")
    return place
