"""Expiry beside Java's: the same snapshots, refs, files, specs and schemas are left."""

import datetime as dt
import os
import random
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.datafiles.file.arrow_schema import schema_from_arrow
from bergline.errors import RefusedError
from bergline.format.metadata.json import render_metadata
from bergline.format.metadata.new_table import new_metadata
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import SnapshotLogEntry, TableMetadata
from bergline.format.partition.spec import UNPARTITIONED
from bergline.table.expiry.retention import ExpiryRequest, decide_expiry
from support.fixtures.add_deletes import add_deletes, equality_deletes
from support.fixtures.rows import ORDERS, ids, order_rows
from support.servers.peers import OfficialRuntime

pytestmark = pytest.mark.official
Official = Callable[[str], list[tuple[Any, ...]]]

CASES = max(100, int(os.environ.get("BERGLINE_EXAMPLES", "0")))
HOUR = 3_600_000
FUTURE = dt.datetime(2099, 1, 1, tzinfo=dt.UTC)
EXPIRE = """
import json
iceberg = jvm.org.apache.iceberg
files = iceberg.inmemory.InMemoryFileIO()
catalog = iceberg.inmemory.InMemoryCatalog()
catalog.initialize("random", {})
name = iceberg.catalog.TableIdentifier.parse
catalog.createNamespace(name("db.t").namespace())
result = []
for number, (document, wish) in enumerate(cases):
    location = "memory://expiry/%s/%d.metadata.json" % (run, number)
    files.addFile(location, document.encode())
    table = catalog.registerTable(name("db.t%d" % number), location)
    try:
        expiry = table.expireSnapshots().cleanExpiredFiles(False)
        if wish["older_than"] is not None:
            expiry.expireOlderThan(wish["older_than"])
        if wish["retain_last"] is not None:
            expiry.retainLast(wish["retain_last"])
        for snapshot_id in wish["ids"]:
            expiry.expireSnapshotId(snapshot_id)
        expiry.commit()
        left = json.loads(iceberg.TableMetadataParser.toJson(table.operations().current()))
        result.append([sorted(s["snapshot-id"] for s in left.get("snapshots", [])), left.get("refs", {})])
    except Exception as error:
        result.append(str(getattr(error, "java_exception", error))[:300])
"""


def random_retention(chance: random.Random, kind: SnapshotRefType) -> dict[str, int]:
    """Ages are half hours off, so that it does not matter which of the two looks at its clock first."""
    wanted: dict[str, int] = {}
    if chance.random() < 0.3:
        wanted["max_ref_age_ms"] = chance.randrange(200) * HOUR + HOUR // 2
    if kind is SnapshotRefType.BRANCH and chance.random() < 0.4:
        wanted["max_snapshot_age_ms"] = chance.randrange(200) * HOUR + HOUR // 2
    if kind is SnapshotRefType.BRANCH and chance.random() < 0.4:
        wanted["min_snapshots_to_keep"] = chance.randrange(1, 5)
    return wanted


def random_table(chance: random.Random, now_ms: int) -> TableMetadata:
    """Some lines of history, with holes and clocks that went back, and refs with all kinds of retention."""
    count = chance.randrange(14)
    snapshots: list[Snapshot] = []
    for number in range(1, count + 1):
        parents = [None, number + 500, *range(1, number)]
        line = [number - 1] * 6 if number > 1 else [None]
        age = chance.randrange(240) if chance.random() < 0.2 else (count - number) * chance.randrange(5, 30)
        snapshots.append(
            Snapshot(
                snapshot_id=number,
                parent_snapshot_id=chance.choice([chance.choice(parents), *line]),
                timestamp_ms=now_ms - age * HOUR,
                sequence_number=number,
                summary={"operation": "append"},
                manifest_list=f"memory://lists/{number}",
            )
        )
    refs: dict[str, SnapshotRef] = {}
    if snapshots:
        for name in ("main", "dev", "été/x", "v1", "v2"):
            kind = SnapshotRefType.BRANCH if name in {"main", "dev", "été/x"} else SnapshotRefType.TAG
            if chance.random() < (0.9 if name == "main" else 0.5):
                head = count if name == "main" and chance.random() < 0.7 else chance.randrange(1, count + 1)
                refs[name] = SnapshotRef(head, kind, **random_retention(chance, kind))
    properties = {}
    for key, value in (
        ("history.expire.max-snapshot-age-ms", chance.randrange(200) * HOUR + HOUR // 2),
        ("history.expire.min-snapshots-to-keep", chance.randrange(1, 5)),
        ("history.expire.max-ref-age-ms", chance.randrange(200) * HOUR + HOUR // 2),
    ):
        if chance.random() < 0.2:
            properties[key] = str(value)
    empty = new_metadata(
        schema=schema_from_arrow(ORDERS),
        spec=UNPARTITIONED,
        location="memory://expiry",
        properties=properties,
        table_uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1",
        now_ms=now_ms,
    )
    return msgspec.structs.replace(
        empty,
        snapshots=tuple(snapshots),
        refs=refs,
        current_snapshot_id=refs["main"].snapshot_id if "main" in refs else None,
        last_sequence_number=count,
        snapshot_log=(SnapshotLogEntry(now_ms, refs["main"].snapshot_id),) if "main" in refs else (),
    )


def random_wish(chance: random.Random, metadata: TableMetadata, now_ms: int) -> ExpiryRequest:
    older_than = now_ms - chance.randrange(-20, 200) * HOUR - HOUR // 2 if chance.random() < 0.5 else None
    named: list[int] = []
    if chance.random() < 0.3:
        named = chance.sample(range(1, len(metadata.snapshots) + 3), k=min(2, len(metadata.snapshots) + 2))
    return ExpiryRequest(older_than, chance.randrange(1, 6) if chance.random() < 0.4 else None, frozenset(named))


def expired_here(metadata: TableMetadata, wish: ExpiryRequest, now_ms: int) -> Any:
    try:
        decision = decide_expiry(metadata, wish, now_ms)
    except RefusedError:
        return "refused"
    left = metadata.snapshots_by_id.keys() - set(decision.removed_snapshots)
    refs = {name: ref for name, ref in metadata.refs.items() if name not in decision.removed_refs}
    return [sorted(left), msgspec.to_builtins(refs)]


def test_random_ref_graphs_keep_the_same_snapshots_and_refs(official_runtime: OfficialRuntime) -> None:
    chance = random.Random(20261115)  # noqa: S311  (no secrets here)
    now_ms = time.time_ns() // 1_000_000
    tables = [random_table(chance, now_ms) for _ in range(CASES)]
    wishes = [random_wish(chance, table, now_ms) for table in tables]
    cases = [
        (
            render_metadata(table).decode(),
            {"older_than": wish.older_than_ms, "retain_last": wish.retain_last, "ids": sorted(wish.snapshot_ids)},
        )
        for table, wish in zip(tables, wishes, strict=True)
    ]
    theirs = official_runtime.python(EXPIRE, cases=cases, run=str(now_ms))
    refusals = 0
    for table, wish, their in zip(tables, wishes, theirs, strict=True):
        refused = isinstance(their, str)
        refusals += refused
        assert not refused or "Still referenced by refs" in their, (their, table.refs, wish)
        ours = expired_here(table, wish, now_ms)
        assert ours == ("refused" if refused else their), (table.refs, table.properties, table.snapshots, wish)
    assert 0 < refusals < CASES / 3


def evolved(lake: Lake, name: str) -> Table:
    """Five schemas and four specs, of which snapshots that stay use some."""
    table = lake.create_table(f"db.{name}", ORDERS, partition_by=["region"]).append(order_rows(1))
    for number in range(3):
        with table.update_schema() as schema:
            schema.add_column(f"note{number}", "string")
        with table.update_spec() as spec:
            spec.add_field(f"bucket({number + 2}, id)")
        if number != 1:
            table.append(order_rows(number + 2))
    table.refs.create_tag("then")
    with table.update_schema() as schema:
        schema.rename_column("note0", "remark")
    return table.overwrite(order_rows(9)).overwrite(order_rows(10))


@pytest.mark.parametrize("drop_tag", [False, True])
def test_the_same_specs_and_schemas_are_cleaned_away(lake: Lake, official: Official, drop_tag: bool) -> None:
    left = {}
    for name in ("ours", "theirs"):
        table = evolved(lake, name)
        if drop_tag:
            table.refs.drop_tag("then")
        if name == "ours":
            table.expire(older_than=FUTURE, clean_metadata=True)
        else:
            official(
                f"CALL system.expire_snapshots(table => 'db.{name}', older_than => TIMESTAMP '2099-01-01', "
                "clean_expired_metadata => true)"
            )
        now = lake.load_table(f"db.{name}").metadata
        left[name] = len(now.snapshots), sorted(now.specs_by_id), sorted(s.schema_id or 0 for s in now.schemas)
    assert left["ours"] == left["theirs"]
    assert left["ours"][1:] == (([3], [4]) if drop_tag else ([0, 1, 3], [3, 4]))


def test_java_reads_and_writes_a_table_that_was_cleaned(lake: Lake, official: Official) -> None:
    table = evolved(lake, "cleaned")
    (planned,) = table.scan().plan().files
    add_deletes(table, equality_deletes(table, pa.table({"id": [11]}), [1], planned.file.partition))
    table.expire(older_than=FUTURE, clean_metadata=True)
    official("INSERT INTO db.cleaned VALUES (20, 1.0, 'eu', 'a', 'b', 'c')")
    assert sorted(official("SELECT id FROM db.cleaned")) == [(10,), (20,)]
    assert sorted(official("SELECT id FROM db.cleaned VERSION AS OF 'then'")) == [(1,), (2,), (4,)]
    assert ids(table.refresh().scan().to_arrow()) == [10, 20]


@pytest.mark.parametrize("version", ["2", "3"])
def test_the_same_files_are_left(lake: Lake, official: Official, version: str) -> None:
    left, counts = {}, {}
    for name in ("ours", "theirs"):
        properties = {"format-version": version, "write.delete.mode": "merge-on-read"}
        table = lake.create_table(f"db.{name}", ORDERS, properties=properties)
        table.append(order_rows(1, 2, 3)).append(order_rows(4, 5)).delete("id = 2").delete("id = 4")
        table.refs.create_tag("with-deletes")
        table.append(order_rows(6), branch="dev").append(order_rows(7))
        table.refs.merge("dev", into="main")
        table.overwrite(order_rows(8), branch="dev").compact()
        table.delete("id = 1")
        counts[name] = {s.snapshot_id: n for n, s in enumerate(table.metadata.snapshots)}
        plan = table.plan_expiry(older_than=FUTURE)
        if name == "ours":
            table.expire(older_than=FUTURE)
        else:
            official(f"CALL system.expire_snapshots(table => 'db.{name}', older_than => TIMESTAMP '2099-01-01')")
        there = set(table.io.list(table.location))
        assert not there.intersection(f.location for f in plan.files)
        kinds = [location.rsplit(".", 1)[-1] for location in there if not location.endswith((".metadata.json", ".crc"))]
        now = lake.load_table(f"db.{name}")
        left[name] = (
            {kind: kinds.count(kind) for kind in kinds},
            [counts[name][s.snapshot_id] for s in now.metadata.snapshots],
            {ref: ids(now.scan(ref=ref).to_arrow()) for ref in now.refs},
        )
    assert left["ours"] == left["theirs"]
