"""Lakes worth looking at, and a console over them."""

import contextlib
import socket
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import uvicorn

from bergline import Lake, Table
from bergline.format.metadata.json import render_metadata
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.format.metadata.snapshot import Snapshot
from bergline.server.console.app import Console
from bergline.server.console.local import LocalLake

HOSTILE = "<script>alert('x')</script>\"'&\u202eabc\u05d0" + "y" * 150
HOSTILE_TABLE = "<script>alert('x').<b>\"t'"
MANY = 2000
SCHEMA = pa.schema([("id", pa.int64()), ("region", pa.string())])
SECRET = "s" * 43
SHOWN: set[str] = set()
"""The addresses at which consoles let in who has the secret."""
_LONG_S = 60


def rows(*ids: int, region: str = "eu") -> pa.Table:
    return pa.table({"id": ids, "region": [region] * len(ids)}, schema=SCHEMA)


def tell_story(lake: Lake, name: str) -> Table:
    """Branches, a tag, a merge, a staged snapshot and deletes."""
    table = lake.create_table(name, SCHEMA, properties={"comment": f"orders {HOSTILE}"})
    table.append(rows(1, 2), summary={"engine-name": "spark", "engine-version": "4.1", "author": "ann"})
    table.refs.create_tag("v1")
    table.refs.create_branch("fork")
    table.append(rows(3, 4, 5))
    table.refs.create_branch("audit", min_snapshots_to_keep=3)
    table.append(rows(6), branch="audit")
    table.append(rows(7), branch="fork")
    table.delete("id = 2")
    table.append(rows(8), wap_id="night")
    return table


def tell_hostile_story(lake: Lake) -> None:
    """Names, comments and values that try to get out of their places."""
    lake.create_namespace(HOSTILE_TABLE.partition(".")[0])
    schema = pa.schema([pa.field(HOSTILE, pa.string(), metadata={"comment": HOSTILE})])
    table = lake.create_table(HOSTILE_TABLE, schema, properties={HOSTILE: HOSTILE, "comment": HOSTILE})
    table.append(pa.table({HOSTILE: [HOSTILE, "long " * 400]}, schema=schema), summary={"author": HOSTILE})
    table.refs.create_branch(HOSTILE)
    table.refs.create_tag(f"v{HOSTILE}")


def make_many_snapshots(lake: Lake, directory: Path) -> None:
    """A table of 2,000 snapshots on three branches, whose files nobody reads."""
    table = lake.create_table("db.many", SCHEMA)
    start = 1_700_000_000_000
    snapshots = tuple(
        Snapshot(
            snapshot_id=i,
            parent_snapshot_id=None if i == 1 else i - 1 - (i % 7 == 0 and i > 8),
            sequence_number=i,
            timestamp_ms=start + i * 60_000,
            manifest_list=f"file://{directory}/nothing-{i}.avro",
            summary={"operation": "append", "added-records": "5", "total-records": str(i * 5), "author": f"a{i % 5}"},
            schema_id=0,
        )
        for i in range(1, MANY + 1)
    )
    refs = {name: SnapshotRef(i, SnapshotRefType.BRANCH) for name, i in (("main", MANY), ("dev", 1996), ("old", 500))}
    metadata = msgspec.structs.replace(
        table.metadata,
        snapshots=snapshots,
        refs=refs,
        current_snapshot_id=MANY,
        last_sequence_number=MANY,
        last_updated_ms=start + MANY * 60_000,
    )
    file = directory / f"00001-{uuid.uuid4()}.metadata.json"
    file.write_bytes(render_metadata(metadata))
    lake.unregister_table("db.many")
    lake.register_table("db.many", f"file://{file}")


@contextlib.contextmanager
def shown(lake: Lake) -> Iterator[str]:
    """The address of a console over a lake, as `bergline ui` serves it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(Console(LocalLake(lake, SECRET)), ws="none", log_level="critical", access_log=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        SHOWN.add(address := f"http://127.0.0.1:{listening.getsockname()[1]}")
        try:
            yield address
        finally:
            SHOWN.remove(address)
            server.should_exit = True
            thread.join(_LONG_S)
        assert not thread.is_alive()
