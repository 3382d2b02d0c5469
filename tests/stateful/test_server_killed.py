"""`bergline serve` killed and started again while writers work: the history holds what they were told, once."""

import os
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import bergline
from bergline.catalog.sql.records import records_of
from bergline.errors import BerglineError, CommitUnknownError
from bergline.format.metadata.json import parse_metadata
from support.fixtures.concurrency import LONG_S, AtOnce
from support.servers.bergline_server import BerglineServer

COLUMNS = pa.schema([("id", pa.int64())])
KILLS = max(2, int(os.environ.get("BERGLINE_EXAMPLES", "0")) // 50)
WRITERS = 3
QUICK = {
    "commit.status-check.min-wait-ms": "20",
    "commit.retry.min-wait-ms": "5",
    "commit.retry.num-retries": "20",
    "write.metadata.previous-versions-max": "100000",
}


@pytest.mark.server
def test_every_acknowledged_commit_is_there_once_and_no_refused_one(tmp_path: Path) -> None:
    response: dict[str, list[int]] = {"done": [], "refused": [], "perhaps": []}
    over = threading.Event()

    def write(uri: str, writer: int) -> None:
        with bergline.connect(uri) as lake:
            number = writer * 1_000_000
            while not over.is_set():
                number += 1
                try:
                    lake.load_table("db.orders").append(pa.table({"id": [number]}, schema=COLUMNS))
                    response["done"].append(number)
                except CommitUnknownError:
                    response["perhaps"].append(number)
                except BerglineError:
                    response["refused"].append(number)
                    time.sleep(0.05)

    with BerglineServer(tmp_path) as server:
        with bergline.connect(server.uri) as lake:
            lake.create_namespace("db")
            lake.create_table("db.orders", COLUMNS, properties=QUICK)
        writers = AtOnce(*(partial(write, server.uri, n) for n in range(WRITERS)))
        writers.start()
        try:
            for _ in range(KILLS):
                reached, end = len(response["done"]) + 3, time.monotonic() + LONG_S
                while len(response["done"]) < reached:
                    assert time.monotonic() < end, response
                    time.sleep(0.01)
                server.kill()
                server.start()
        finally:
            over.set()
        writers.join()
    check(f"sqlite:///{tmp_path}/catalog.db", response)


def check(uri: str, response: dict[str, list[int]]) -> None:
    """The rows and the whole line of metadata files, read without the server."""
    with bergline.connect(uri) as lake:
        table = lake.load_table("db.orders")
        rows = Counter(table.scan().to_arrow()["id"].to_pylist())
        audit = [e for e in records_of(lake.catalog).audit() if e.operation in {"create_table", "commit_table"}]
        assert max(rows.values()) == 1
        assert set(response["done"]) <= rows.keys()
        assert not set(response["refused"]) & rows.keys()
        assert rows.keys() <= {*response["done"], *response["perhaps"]}
        files = [e.metadata_file for e in table.metadata.metadata_log]
        line = [*files, lake.catalog.pointer(table.name)]
        assert list(dict.fromkeys(e.metadata_location for e in audit)) == line
        assert len(audit) == 1 + len(table.metadata.snapshots)
        for place, location in enumerate(line):
            log = parse_metadata(lake.catalog.io.read(location), location).metadata_log
            assert [e.metadata_file for e in log] == line[:place]
