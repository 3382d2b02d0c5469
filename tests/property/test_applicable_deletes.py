"""Deletes of a part of a plan: those of the whole plan, and only what certainly does not apply is left out."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st

import bergline
from bergline import Table
from bergline.expressions.bound_filter import bind_filter
from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.format.deletes.delete_files import FILE_PATH_ID
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.scan.plan import PlannedFile
from bergline.scan.plan_parts import PlanParts
from support.fixtures.add_deletes import add_deletes

PARTITIONS: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("region", [("eu",), ("us",), (None,), ("",)]),
    ("day", [(0,), (7,), (None,)]),
    ("weight", [(0.5,), (float("nan"),), (-0.0,), (0.0,), (None,)]),
    ("price", [(Decimal("1.50"),), (Decimal("-2.00"),), (None,)]),
]
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("region", pa.string()),
        ("day", pa.date32()),
        ("weight", pa.float64()),
        ("price", pa.decimal128(9, 2)),
    ]
)
PATHS = 40


NOWHERE = len(PARTITIONS)
"""The number of the spec without fields."""
KINDS = ["data", "positions", "referenced", "one path", "paths", "equality"]


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, list[dict[str, Any]]]]:
    """Commits, each with a spec: data files in every partition of one and without any, then all kinds of files."""
    first = draw(st.integers(0, NOWHERE - 1))
    values = {first: PARTITIONS[first][1], NOWHERE: [()]}
    paths = st.tuples(st.integers(0, PATHS), st.integers(0, PATHS))
    commits = [
        (spec, [{"kind": "data", "partition": partition, "paths": (0, 0)} for partition in values[spec]])
        for spec in values
    ]
    for _ in range(draw(st.integers(1, 5))):
        spec, kind = draw(st.sampled_from([first, first, NOWHERE])), draw(st.sampled_from(KINDS))
        one = st.fixed_dictionaries({"partition": st.sampled_from(values[spec]), "paths": paths})
        commits.append((spec, [{"kind": kind, **drawn} for drawn in draw(st.lists(one, min_size=1, max_size=3))]))
    return commits


def made(table: Table, spec_id: int, number: int, wanted: dict[str, Any], known: list[DataFile]) -> DataFile | None:
    """A file of a kind; None if it would refer to a data file that is not there."""
    path, partition = f"memory:/d/{number:03d}", wanted["partition"]
    content, more = FileContent.POSITION_DELETES, {}
    bounds = [f"memory:/d/{n:03d}".encode() for n in sorted(wanted["paths"])]
    of_partition = [f for f in known if (f.spec_id, repr(f.partition)) == (spec_id, repr(partition))]
    match wanted["kind"]:
        case "data":
            content = FileContent.DATA
        case "equality":
            content, more = FileContent.EQUALITY_DELETES, {"equality_ids": (1,)}
        case "paths":
            more = {"lower_bounds": {FILE_PATH_ID: bounds[0]}, "upper_bounds": {FILE_PATH_ID: bounds[1]}}
            if bounds[0] == bounds[1]:
                return None
        case "referenced" | "one path" as kind:
            if not of_partition:
                return None
            about = of_partition[wanted["paths"][0] % len(of_partition)].file_path
            more = {"referenced_data_file": about}
            if kind == "one path":
                more = {f"{side}_bounds": {FILE_PATH_ID: about.encode()} for side in ("lower", "upper")}
    return DataFile(path, "PARQUET", partition, 10, 100, content=content, spec_id=spec_id, **more)


def rules_out(delete: DataFile, planned: PlannedFile) -> bool:
    """Whether the bounds of a position delete file leave a data file out."""
    if delete.content is not FileContent.POSITION_DELETES or not delete.lower_bounds or not delete.upper_bounds:
        return False
    path = planned.file.file_path.encode()
    return not delete.lower_bounds[FILE_PATH_ID] <= path <= delete.upper_bounds[FILE_PATH_ID]


@settings(max_examples=60)
@given(histories(), st.integers(1, 3))
def test_parts_of_a_plan_have_the_deletes_of_the_whole(commits: list[Any], length: int) -> None:
    with bergline.connect("memory:") as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", COLUMNS, partition_by=[PARTITIONS[0][0]])
        spec_ids = [table.spec.spec_id]
        for before, (column, _) in zip([name for name, _ in PARTITIONS], [*PARTITIONS[1:], (None, [])], strict=True):
            with table.update_spec() as change:
                change.remove_field(before)
                if column is not None:
                    change.add_field(column)
            spec_ids.append(table.spec.spec_id)
        known: list[DataFile] = []
        for place, (spec, wanted) in enumerate(commits):
            added = [made(table, spec_ids[spec], place * 8 + n, one, known) for n, one in enumerate(wanted)]
            some = [file for file in added if file is not None]
            if some:
                add_deletes(table, *some)
                known += [file for file in some if file.content is FileContent.DATA]
        check_parts(table, length)


def check_parts(table: Table, length: int) -> None:
    whole = {p.file.file_path: p for p in table.scan().plan().files}
    head = table.current_snapshot
    assert head
    row_filter = bind_filter(ALWAYS_TRUE, table.schema)
    parts = PlanParts(
        table.io, table.metadata, snapshot_id=head.snapshot_id, schema=table.schema, row_filter=row_filter
    )
    planned = parts.files(0, len(parts))
    found = [p for start in range(0, len(planned), length) for p in parts.with_deletes(planned.window(start, length))]
    assert sorted(p.file.file_path for p in found) == sorted(whole)
    for part in found:
        all_deletes = {d.file_path: d for d in whole[part.file.file_path].deletes}
        ours = {d.file_path for d in part.deletes}
        assert ours <= all_deletes.keys()
        missing = [d for path, d in all_deletes.items() if path not in ours]
        assert all(rules_out(delete, part) for delete in missing)
        event("deletes apply" if ours else "none applies")
