"""bergline beside PyIceberg, both in one run: reading and writing metadata, small appends, planning a scan.

Prints one line per case: both times (best of the rounds), and how many times faster bergline is.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table.metadata import TableMetadataUtil

import bergline
from bergline import Table
from bergline.format.metadata.json import parse_metadata, render_metadata
from bergline.format.metadata.table_metadata import SnapshotLogEntry
from results import report, times

SCHEMA = pa.schema([("id", pa.int64()), ("amount", pa.float64()), ("region", pa.string())])
ROWS = pa.table({"id": [1, 2, 3], "amount": [1.0, 2.0, 3.0], "region": ["a", "b", "c"]}, schema=SCHEMA)
SNAPSHOTS = 2000
APPENDS = 30


def many_snapshots(table: Table) -> bytes:
    """A metadata file with many snapshots, made from a table with one."""
    metadata = table.append(ROWS).metadata
    (first,) = metadata.snapshots
    snapshots = tuple(
        msgspec.structs.replace(first, snapshot_id=first.snapshot_id - n, sequence_number=n + 1)
        for n in reversed(range(SNAPSHOTS))
    )
    log = tuple(SnapshotLogEntry(first.timestamp_ms, s.snapshot_id) for s in snapshots)
    return render_metadata(
        msgspec.structs.replace(metadata, snapshots=snapshots, snapshot_log=log, last_sequence_number=SNAPSHOTS)
    )


def bench_metadata(data: bytes) -> None:
    ours = times(5, lambda: render_metadata(parse_metadata(data, "bench")))
    theirs = times(3, lambda: TableMetadataUtil.parse_raw(data.decode()).model_dump_json())
    report(f"parse and write metadata with {SNAPSHOTS:,} snapshots", ours, theirs)


def bench_appends(ours: Table, theirs: Any) -> None:
    rows = ROWS.cast(theirs.schema().as_arrow())
    mine = times(APPENDS, lambda: ours.append(ROWS))
    other = times(APPENDS, lambda: theirs.append(rows))
    report("append 3 rows", mine, other)


def bench_plan(ours: Table, theirs: Any) -> None:
    mine = times(5, lambda: ours.scan("id > 1").plan())
    other = times(5, lambda: list(theirs.scan("id > 1").plan_files()))
    report(f"plan a filtered scan over {len(ours.scan().plan().files)} manifests", mine, other)


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        bergline.connect(f"sqlite:///{directory}/ours/catalog.db", create=True) as lake,
    ):
        lake.create_namespace("db")
        Path(directory, "theirs").mkdir()
        catalog = SqlCatalog("lake", uri=f"sqlite:///{directory}/theirs/catalog.db", warehouse=f"{directory}/theirs")
        catalog.create_namespace("db")
        bench_metadata(many_snapshots(lake.create_table("db.many", SCHEMA)))
        ours, theirs = lake.create_table("db.t", SCHEMA), catalog.create_table("db.t", SCHEMA)
        bench_appends(ours, theirs)
        bench_plan(ours, theirs)
        catalog.close()


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
