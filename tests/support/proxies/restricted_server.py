"""A server in this process with a table of people, behind a proxy that restricts what may be read of it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from bergline import Lake
from bergline.server.opening import open_server
from support.proxies.restricting_proxy import RestrictingProxy
from support.servers.server_on_socket import on_socket

PEOPLE = pa.table({"id": [1, 2], "name": ["Ada-secret", "Bob-secret"], "region": ["EU-secret", "US-secret"]})


@contextlib.contextmanager
def restricted_server(directory: Path) -> Iterator[RestrictingProxy]:
    """`db.people` has two snapshots on `main` and a branch `work`; it is not restricted yet."""
    opened = open_server(f"sqlite:///{directory}/catalog.db")
    lake = Lake(opened.catalog, "lake")
    lake.create_namespace("db")
    table = lake.create_table("db.people", PEOPLE.schema, partition_by=["region"]).append(PEOPLE)
    table.append(PEOPLE, branch="work")
    table.append(PEOPLE)
    lake.create_table("db.copy", PEOPLE.schema)
    with on_socket(opened) as port, RestrictingProxy(f"http://127.0.0.1:{port}") as running:
        yield running
    opened.catalog.close()
