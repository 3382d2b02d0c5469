"""Changes between two snapshots of a random history, applied to the rows of the first, give the rows of the second."""

import math
from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import bergline
from bergline import Table
from bergline.datafiles.read.reader import read_plan
from bergline.format.manifest.manifest import partition_key
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.schema.schema import Schema
from bergline.scan.planner import plan_scan
from bergline.table.scans.changelog_scan import ChangelogRange
from support.fixtures.add_deletes import equality_deletes

ARROW = pa.schema([("k", pa.int64()), ("s", pa.string()), ("d", pa.float64())])
KEYS = st.sampled_from([None, 0, 1, 2])
# few values, so that equal rows are frequent
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": KEYS,
            "s": st.sampled_from([None, "a", "b"]),
            "d": st.sampled_from([None, 0.0, -0.0, math.nan]),
        }
    ),
    min_size=1,
    max_size=6,
)
FILTERS = st.sampled_from(["k = 0", "k = 1", "k IS NULL", "s = 'a'", "s = 'b' OR k = 2", "d = 0"])
STEPS = st.one_of(
    st.tuples(st.just("append"), ROWS),
    *[st.tuples(st.just("delete"), FILTERS)] * 4,  # also of rows in files that have deletes already
    st.tuples(st.just("overwrite"), ROWS, FILTERS),
    st.tuples(st.just("replace all"), ROWS),
    st.tuples(st.just("delete keys"), st.lists(KEYS, min_size=1, max_size=2)),
    st.just(("rewrite all",)),
    st.just(("compact",)),
    st.just(("rewrite manifests",)),
    st.just(("add column",)),
    st.just(("drop column",)),
)


@settings(max_examples=15)
@given(
    first=ROWS,
    steps=st.lists(STEPS, min_size=1, max_size=7),
    partition_by=st.sampled_from([[], ["k"], ["bucket(2, k)"]]),
    version=st.sampled_from(["1", "2", "3", "3"]),
    mode=st.sampled_from(["copy-on-write", "merge-on-read", "merge-on-read"]),
)
def test_changes_lead_from_each_snapshot_to_each_later_one(
    first: list[Any], steps: list[Any], partition_by: list[str], version: str, mode: str
) -> None:
    with bergline.connect("memory:") as lake:
        lake.create_namespace("db")
        properties = {
            "format-version": version,
            "write.delete.mode": mode,
            "commit.manifest.min-count-to-merge": "2",
            "write.parquet.row-group-size-bytes": "1",
        }
        table = lake.create_table("db.t", ARROW, partition_by=partition_by, properties=properties)
        for step in [("append", first), *steps]:
            apply(table, step)
        head = table.metadata.current_snapshot
        line = list(table.metadata.ancestors(head.snapshot_id))[::-1] if head else []
        for start in range(len(line)):
            check(table, line[start:])
            check(table, line[start : start + 2])
        check_whole_history(table, line)


def apply(table: Table, step: Any) -> None:
    names = {f.name for f in table.schema.fields}
    match step:
        case ("append", rows):
            table.append(arrow(table, rows))
        case ("delete", row_filter) if all(f"{n} " not in row_filter or n in names for n in ARROW.names):
            table.delete(row_filter)
        case ("overwrite", rows, row_filter) if all(f"{n} " not in row_filter or n in names for n in ARROW.names):
            table.overwrite(arrow(table, rows), row_filter)
        case ("replace all", rows):
            table.overwrite(arrow(table, rows))
        case ("rewrite all",):  # all rows are carried over
            table.overwrite(table.scan().to_arrow())
        case ("delete keys", keys) if table.metadata.format_version > 1:
            partitions = {partition_key(p.file): p.file.partition for p in table.scan().plan().files}.values()
            found = pa.table({"k": pa.array(keys, pa.int64())})
            deletes = [equality_deletes(table, found, [table.schema.names["k"].id], p) for p in partitions]
            if deletes:
                table.row_delta(deletes=deletes, isolation="none")
        case ("compact",):
            table.compact()
        case ("rewrite manifests",):
            table.rewrite_manifests()
        case ("add column",):
            with table.update_schema() as schema:
                schema.add_column(f"c{len(table.metadata.schemas)}", "long")
        case ("drop column",) if "d" in names:
            with table.update_schema() as schema:
                schema.drop_column("d")


def arrow(table: Table, rows: list[dict[str, Any]]) -> pa.Table:
    names = [f.name for f in table.schema.fields if f.name in ARROW.names]
    return pa.Table.from_pylist(rows, ARROW).select(names)


def check(table: Table, line: list[Snapshot]) -> None:
    """All ways to ask for the changes from the first of these snapshots to the last."""
    start, end = line[0].snapshot_id, line[-1].snapshot_id
    schema = table.changes(start, end, net_changes=False).schema
    own = [n for n in (f.name for f in schema.fields) if not n.startswith("_")]
    rows_schema = Schema(fields=tuple(f for f in schema.fields if f.name in own))
    before, after = (rows_of(table, snapshot_id, rows_schema) for snapshot_id in (start, end))
    made = [s.snapshot_id for s in line[1:] if s.operation != "replace"]
    changes = table.changes(start, end, net_changes=False).to_arrow().to_pylist()
    assert applied(before, changes, own, made) == after
    net = table.changes(start, end).to_arrow().to_pylist()
    assert applied(before, net, own, made) == after
    for row in net:  # nothing comes and goes
        opposite = dict(row, _change_type="DELETE" if row["_change_type"] == "INSERT" else "INSERT")
        assert text(opposite, [*own, "_change_type"]) not in {text(r, [*own, "_change_type"]) for r in net}
    both = table.changes(start, end)
    assert Counter(text(r, own) for r in both.added.to_pylist()) == after - before
    assert Counter(text(r, own) for r in both.removed.to_pylist()) == before - after
    if table.metadata.format_version == 3:
        images = table.changes(start, end, compute_updates=True).to_arrow().to_pylist()
        assert applied(before, images, own, made) == after
    if end == line[-1].snapshot_id == table.metadata.current_snapshot_id:
        raw = table.scan_changes(ChangelogRange(start_snapshot_id=start)).to_arrow().to_pylist()
        current = [f.name for f in table.schema.fields]
        assert applied(rows_of(table, start, table.schema), raw, current, made) == rows_of(table, end, table.schema)


def check_whole_history(table: Table, line: list[Snapshot]) -> None:
    own = [f.name for f in table.schema.fields]
    rows = table.scan_changes(ChangelogRange()).to_arrow().to_pylist()
    made = [s.snapshot_id for s in line if s.operation != "replace"]
    head = table.metadata.current_snapshot_id
    assert applied(Counter(), rows, own, made) == rows_of(table, head, table.schema)
    net = table.changes(None).to_arrow().to_pylist()
    assert all(row["_change_type"] == "INSERT" for row in net)
    assert applied(Counter(), net, own, made) == rows_of(table, head, table.schema)


def applied(before: Counter[str], changes: list[Any], own: list[str], made: list[int]) -> Counter[str]:
    """The rows after the changes of each snapshot in turn; what is deleted must be there."""
    rows = before.copy()
    assert all(made[c["_change_ordinal"]] == c["_commit_snapshot_id"] for c in changes)
    for ordinal in range(len(made)):
        some = [c for c in changes if c["_change_ordinal"] == ordinal]
        for words, count in ((("DELETE", "UPDATE_BEFORE"), -1), (("INSERT", "UPDATE_AFTER"), 1)):
            for change in some:
                if change["_change_type"] in words:
                    rows[text(change, own)] += count
        assert min(rows.values(), default=0) >= 0
    return +rows


def rows_of(table: Table, snapshot_id: int | None, schema: Schema) -> Counter[str]:
    plan = plan_scan(table.io, table.metadata, snapshot_id, table_schema=schema, columns=schema)
    names = [f.name for f in schema.fields]
    return Counter(text(row, names) for row in read_plan(table.io, plan).to_pylist())


def text(row: dict[str, Any], names: list[str]) -> str:
    return str([row[name] for name in names])
