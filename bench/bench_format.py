"""The format beside its peers, both sides in one run: metadata, manifests, planning 20,000 files in 200 manifests.

PyIceberg runs in this process, Java Iceberg in a Spark session of its own (the official runtime, warm). Each figure is
the best of some rounds. Planning is cold: what either side keeps decoded is dropped before every round.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import ManifestFile as PyManifestFile
from pyiceberg.manifest import clear_manifest_cache, write_manifest
from pyiceberg.table.metadata import TableMetadataUtil

import bergline
from bergline import Table
from bergline.format.manifest.avro import render_manifest
from bergline.format.manifest.columns import read_manifests_columns
from bergline.format.manifest.inheritance import added_entry
from bergline.format.manifest.manifest import ManifestFile
from bergline.format.metadata.json import parse_metadata, render_metadata
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation
from bergline.format.metadata.table_metadata import SnapshotLogEntry, TableMetadata
from bergline.scan.manifest_cache import MANIFESTS
from bergline.scan.manifests import load_manifest_list
from bergline.table.commits.snapshot_producer import Draft, SnapshotProducer
from made_up import SCHEMA, made_up_file, table_of
from results import report, times

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.servers.peers import OfficialRuntime

SNAPSHOTS = 2000
FILES, IN_MANIFESTS = 20_000, 200
LOW, HIGH = 100_000, 110_000
FILTER = f"c3 >= {LOW} AND c3 < {HIGH}"
JAVA_PLAN = """
import time
table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
size = jvm.org.apache.iceberg.relocated.com.google.common.collect.Iterables.size
e = jvm.org.apache.iceberg.expressions.Expressions
ends = [e.greaterThanOrEqual("c3", jvm.java.lang.Long(low)), e.lessThan("c3", jvm.java.lang.Long(high))]
scan = table.newScan().filter(getattr(e, "and")(*ends)) if filtered else table.newScan()
times = []
for _ in range(12):
    started = time.perf_counter()
    found = size(scan.planFiles())
    times.append(time.perf_counter() - started)
result = [min(times[4:]), found]
"""


class PreparedManifests(SnapshotProducer):
    """A snapshot of manifests that someone else wrote."""

    def __init__(self, table: Table, manifests: Sequence[ManifestFile]) -> None:
        super().__init__(table.io, "main", {})
        self._ready = tuple(msgspec.structs.replace(m, added_snapshot_id=self.snapshot_id) for m in manifests)

    def draft(self, base: TableMetadata, parent: Snapshot | None) -> Draft:
        """The manifests as they are."""
        return Draft(SnapshotOperation.APPEND, self._ready)


def bench_metadata(table: Table) -> None:
    (first,) = table.metadata.snapshots
    snapshots = tuple(
        msgspec.structs.replace(first, snapshot_id=first.snapshot_id - n, sequence_number=n + 1)
        for n in reversed(range(SNAPSHOTS))
    )
    log = tuple(SnapshotLogEntry(first.timestamp_ms, s.snapshot_id) for s in snapshots)
    data = render_metadata(
        msgspec.structs.replace(table.metadata, snapshots=snapshots, snapshot_log=log, last_sequence_number=SNAPSHOTS)
    )
    ours = times(20, lambda: render_metadata(parse_metadata(data, "bench")))
    theirs = times(5, lambda: TableMetadataUtil.parse_raw(data.decode()).model_dump_json())
    report(f"parse and write metadata with {SNAPSHOTS:,} snapshots", ours, theirs)


def bench_write(table: Table, theirs: Any, directory: str) -> None:
    entries = [added_entry(made_up_file(n, table.location)) for n in range(2000)]
    mine = times(5, lambda: render_manifest(entries, table.schema, table.spec))
    manifest = next(iter(theirs.current_snapshot().manifests(theirs.io)))
    records = manifest.fetch_manifest_entry(theirs.io) * (len(entries) // manifest.added_files_count)
    other = times(3, lambda: write_theirs(theirs, records, f"{directory}/out.avro"))
    report(f"write a manifest of {len(entries):,} entries", mine, other)


def write_theirs(theirs: Any, entries: Sequence[Any], path: str) -> PyManifestFile:
    output = theirs.io.new_output(path)
    with write_manifest(2, theirs.spec(), theirs.schema(), output, 1, "deflate") as writer:
        for entry in entries:
            writer.add(entry)
    return writer.to_manifest_file()


def bench_decode(table: Table, theirs: Any, writer: str) -> None:
    manifests = load_manifest_list(table.io, table.current_snapshot)
    files = [table.io.read(m.manifest_path) for m in manifests]
    mine = times(5, lambda: read_manifests_columns((data, str(n)) for n, data in enumerate(files)))
    records = theirs.current_snapshot().manifests(theirs.io)
    other = times(2, lambda: [m.fetch_manifest_entry(theirs.io) for m in records])
    report(f"decode {len(files)} manifests written by {writer}, {FILES:,} entries", mine, other)


def bench_plan(table: Table, theirs: Any, java: OfficialRuntime, writer: str) -> None:
    for text, of in ((None, "all files"), (FILTER, "a metrics filter")):
        mine = times(7, lambda text=text: len(table.scan(text).plan().files), MANIFESTS.clear)
        scan = theirs.scan(text) if text else theirs.scan()
        other = times(2, lambda scan=scan: list(scan.plan_files()), clear_manifest_cache)
        found = len(table.scan(text).plan().files)
        assert found == len(list(scan.plan_files()))
        warm, java_found = java.python(JAVA_PLAN, name=f"lake.{table.name}", low=LOW, high=HIGH, filtered=bool(text))
        assert found == java_found
        case = f"plan {FILES:,} files in {IN_MANIFESTS} manifests written by {writer}, {of}"
        report(case, mine, other)
        report(case, mine, [warm], "Java")


def as_pyiceberg_writes(table: Table, theirs: Any, copy: Table, directory: str) -> None:
    """The same files in manifests that PyIceberg writes: one block for each entry."""
    ours = load_manifest_list(table.io, table.current_snapshot)
    ready = []
    for number, (manifest, record) in enumerate(zip(ours, theirs.current_snapshot().manifests(theirs.io), strict=True)):
        path = f"{directory}/py-{number}.avro"
        written = write_theirs(theirs, record.fetch_manifest_entry(theirs.io), path)
        ready.append(
            msgspec.structs.replace(
                manifest,
                manifest_path=f"file://{path}",
                manifest_length=written.manifest_length,
                sequence_number=None,
                min_sequence_number=None,
            )
        )
    copy.commit(PreparedManifests(copy, ready))


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        bergline.connect(f"sqlite:///{directory}/catalog.db", create=True) as lake,
    ):
        lake.create_namespace("db")
        table = table_of(lake, "db.ours", IN_MANIFESTS, FILES)
        bench_metadata(table)
        catalog = SqlCatalog("lake", uri=f"sqlite:///{directory}/catalog.db", warehouse=f"file://{directory}/warehouse")
        theirs = catalog.load_table("db.ours")
        bench_write(table, theirs, directory)
        copy = lake.create_table("db.copy", SCHEMA, partition_by=["region"])
        as_pyiceberg_writes(table, theirs, copy, directory)
        their_copy = catalog.load_table("db.copy")
        with OfficialRuntime(Path(directory, "java.log")) as java:
            java.use_catalog(Path(directory, "catalog.db"), Path(directory, "warehouse"), "lake")
            for ours, other, writer in ((table, theirs, "bergline"), (copy, their_copy, "PyIceberg")):
                bench_decode(ours, other, writer)
                bench_plan(ours, other, java, writer)
        catalog.close()


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
