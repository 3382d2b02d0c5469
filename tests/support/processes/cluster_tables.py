"""What tests of a cluster look at: the files of tables, and what tasks have begun to write."""

import time
from collections.abc import Callable

from bergline import Table
from support.fixtures.concurrency import LONG_S
from support.processes.cluster_driver import ClusterDriver
from support.proxies.s3_proxy import Proxy
from support.servers.s3_server import S3Server

SMALL_FILES = {"write.target-file-size-bytes": "20000", "write.distribution-mode": "none"}


def through(proxy: Proxy, server: S3Server) -> dict[str, str]:
    """How a lake, or a session, gets to the server through a proxy."""
    return {**server.properties, "s3.endpoint": proxy.endpoint, "s3.request-timeout": str(LONG_S)}


def files_of(table: Table) -> list[str]:
    """The data files that manifests name."""
    return [planned.file.file_path for planned in table.refresh().scan().plan().files]


def ids_of(table: Table) -> list[int]:
    found: list[int] = table.refresh().scan(columns=["id"]).to_arrow().column("id").to_pylist()
    return sorted(found)


def written(table: Table) -> list[str]:
    """The data files that exist."""
    return table.io.list(f"{table.location}/data")


def wait_for_two_tasks(driver: ClusterDriver, begun: Callable[[], set[str]]) -> set[str]:
    """What has begun when that is two: a worker has one core, so each has a task that has written and cannot end."""
    end = time.monotonic() + LONG_S
    while len(found := begun()) < 2:
        driver.check_alive()
        assert time.monotonic() < end, f"no two tasks have begun to write, only {found}"
        time.sleep(0.05)
    return found
