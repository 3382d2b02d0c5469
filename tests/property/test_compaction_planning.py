"""Compaction planned on a few manifests at a time: the groups that follow from all files at once, in their order."""

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec
import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st

import bergline
from bergline import Lake, Table
from bergline.datafiles.write.write_spec import write_spec
from bergline.format.deletes.delete_files import FILE_PATH_ID, only_data_file
from bergline.format.manifest.columns import METRICS
from bergline.format.manifest.manifest import DataFile, FileContent, ManifestEntry, partition_key
from bergline.scan.manifest_cache import forget_files
from bergline.scan.manifests import live_entries, load_manifest_list
from bergline.scan.plan import PlannedFile
from bergline.table.engine.file_groups import SizeRules, in_job_order, packed, trimmed
from bergline.table.operations.compaction import CompactionRequest, plan_compaction
from bergline.table.operations.dangling_deletes import dangling_deletes
from bergline.table.operations.rewrite_options import RewriteOptions
from bergline.table.scans.scan import to_predicate
from support.fixtures.add_deletes import add_deletes

COLUMNS = pa.schema([("id", pa.int64()), ("region", pa.string()), ("weight", pa.float64())])
PARTITIONS: list[list[tuple[Any, ...]]] = [[("eu",), ("us",), (None,)], [(0.5,), (math.nan,), (-0.0,), (0.0,)], [()]]
FILTERS = [None, "region = 'eu'", "id < 30", "weight > 0"]
KINDS = ["data", "data", "positions", "referenced", "one path", "vector", "equality"]
TARGET = 100

wanted_files = st.tuples(st.integers(0, 3), st.sampled_from([10, 30, 80, 100, 100, 300]), st.integers(0, 9))
specs = st.integers(0, len(PARTITIONS) - 1)
commits = st.tuples(
    st.lists(st.tuples(specs, st.just("data"), st.lists(wanted_files, min_size=4)), min_size=1, max_size=3),
    st.lists(st.tuples(specs, st.sampled_from(KINDS), st.lists(wanted_files, min_size=1)), max_size=8),
).map(lambda parts: [*parts[0], *parts[1]])
options = st.builds(
    RewriteOptions,
    target_file_size_bytes=st.just(TARGET),
    min_input_files=st.integers(1, 3),
    rewrite_all=st.sampled_from([False, False, False, True]),
    max_file_group_size_bytes=st.sampled_from([60, 250, 10**9]),
    max_file_group_input_files=st.sampled_from([None, 2]),
    rewrite_job_order=st.sampled_from(["none", "bytes-asc", "bytes-desc", "files-asc", "files-desc"]),
    delete_file_threshold=st.sampled_from([None, None, 0, 1, 2, 3]),
    delete_ratio_threshold=st.sampled_from([0.3, 0.1, 1.0]),
    max_files_to_rewrite=st.sampled_from([None, None, 1, 4]),
    output_spec_id=st.sampled_from([None, 0, 2]),
)


@settings(max_examples=100)
@given(commits, options, st.booleans(), st.sampled_from(FILTERS), st.integers(0, 4), st.booleans())
def test_groups_are_those_of_all_files(
    history: list[Any], wanted: RewriteOptions, only_fewer: bool, text: str | None, skipped: int, cached: bool
) -> None:
    with bergline.connect("memory:") as lake:
        table = made(lake, history)
        head = table.current_snapshot
        assert head is not None
        files = table.scan(text).plan()
        skip = {planned.file.file_path for planned in list(files.files)[-skipped:]} if skipped else set()
        request = CompactionRequest(to_predicate(text), options=wanted, only_fewer=only_fewer)
        rules = wanted.sizes(write_spec(table.metadata).target_file_size, only_fewer=only_fewer)
        if not cached:
            forget_files()
        plan = plan_compaction(table.io, table.metadata, head, request, skip)
        current = None if wanted.output_spec_id is None else table.spec.spec_id
        left = (p for p in files.files if p.file.file_path not in skip)
        expected = [[bare(p) for p in group] for group in reference(left, rules, wanted, current)]
        layouts = [layout for n in range(len(plan)) for layout in plan.layouts(n, n + 1)]
        assert repr([list(layout.files) for layout in layouts]) == repr(expected)  # (NaN is not NaN)
        assert repr(plan.layouts(0, len(plan))) == repr(layouts)
        assert sorted(plan.files.paths) == sorted(p.file.file_path for group in expected for p in group)
        assert plan.read == msgspec.structs.replace(files, files=())
        event("several groups" if len(expected) > 1 else "a group" if expected else "no group")
        event(f"deletes apply: {any(p.deletes for p in files.files)}")


@settings(max_examples=100)
@given(commits, st.sets(st.integers(0, 20)), st.booleans(), st.booleans())
def test_dangling_deletes_are_those_that_apply_to_no_file(
    history: list[Any], places: set[int], numbered: bool, cached: bool
) -> None:
    with bergline.connect("memory:") as lake:
        table = made(lake, history)
        head = table.current_snapshot
        assert head is not None
        live = list(live_entries(table.io, load_manifest_list(table.io, head), table.metadata))
        data = [entry for entry in live if entry.data_file.content is FileContent.DATA]
        gone = [entry.data_file for place, entry in enumerate(data) if place in places]
        number = head.sequence_number + (not numbered)
        if not cached:
            forget_files()
        found = dangling_deletes(table.io, table.metadata, head, gone, number)
        left = [(e.data_file, e.sequence_number or 0) for e in data if e.data_file not in gone]
        deletes = [entry for entry in live if entry.data_file.content is not FileContent.DATA]
        expected = [e.data_file for e in deletes if is_dangling(e, left, [(f, number) for f in gone])]
        assert sorted(map(repr, found)) == sorted(map(repr, expected))
        event(f"dangling: {bool(expected)}, others: {len(expected) < len(deletes)}")


def is_dangling(entry: ManifestEntry, left: list[tuple[DataFile, int]], new: list[tuple[DataFile, int]]) -> bool:
    """No file is one that a delete may apply to: by path, or by partition and number."""
    delete, number = entry.data_file, entry.sequence_number or 0
    if delete.content is FileContent.POSITION_DELETES:
        path = only_data_file(delete)
        if path is not None:
            return all(file.file_path != path for file, _ in left)
        return all(partition_key(file) != partition_key(delete) or number < own for file, own in left)
    everywhere = delete.spec_id == len(PARTITIONS) - 1
    near = [own for file, own in (*left, *new) if everywhere or partition_key(file) == partition_key(delete)]
    return all(number <= own for own in near)


def reference(
    files: Iterable[PlannedFile], rules: SizeRules, wanted: RewriteOptions, current: int | None
) -> list[list[PlannedFile]]:
    """By partition, then by size."""
    partitions: dict[Any, list[PlannedFile]] = defaultdict(list)
    for planned in files:
        is_other = current is not None and planned.file.spec_id != current
        partitions[None if is_other else partition_key(planned.file)].append(planned)

    def has_many(planned: PlannedFile) -> bool:
        if not planned.deletes:
            return False
        if wanted.delete_file_threshold is not None and len(planned.deletes) >= wanted.delete_file_threshold:
            return True
        rows = planned.file.record_count
        known = sum(d.record_count for d in planned.position_deletes if only_data_file(d) is not None)
        return rows > 0 and min(known, rows) / rows >= wanted.delete_ratio_threshold

    groups = [
        group
        for some in partitions.values()
        for group in packed(
            [p for p in some if rules.rewrite_all or rules.is_off(size(p)) or has_many(p)],
            size,
            rules.largest_group,
            most_items=rules.most_group_files,
        )
        if rules.rewrite_all or rules.is_worth_it([size(p) for p in group]) or any(map(has_many, group))
    ]
    return in_job_order(trimmed(groups, wanted.max_files_to_rewrite), size, wanted.rewrite_job_order)


def size(planned: PlannedFile) -> int:
    return planned.file.file_size_in_bytes


def bare(planned: PlannedFile) -> PlannedFile:
    file = msgspec.structs.replace(planned.file, **dict.fromkeys(METRICS))
    return msgspec.structs.replace(planned, file=file)


def made(lake: Lake, history: list[Any]) -> Table:
    """A table of three partition specs, with data and delete files of all kinds that exist in manifests only."""
    lake.create_namespace("db")
    table = lake.create_table("db.t", COLUMNS, partition_by=["region"], properties={"format-version": "3"})
    with table.update_spec() as change:
        change.remove_field("region").add_field("weight")
    with table.update_spec() as change:
        change.remove_field("weight")
    known: list[DataFile] = []
    with_vector: set[str] = set()
    for commit, (spec_id, kind, wanted) in enumerate(history):
        added = []
        for n, (place, bytes_, number) in enumerate(wanted):
            path = f"memory:/d/{commit:02d}-{n:02d}"
            partition = PARTITIONS[spec_id][place % len(PARTITIONS[spec_id])]
            about = [f for f in known if f.spec_id == spec_id and f.file_path not in with_vector]
            file = DataFile(path, "PARQUET", partition, 1 + number, bytes_, spec_id=spec_id)
            if kind == "data":
                bounds = {1: (10 * number).to_bytes(8, "little")}
                added.append(msgspec.structs.replace(file, lower_bounds=bounds, upper_bounds=bounds))
            elif kind == "equality":
                added.append(delete(file, equality_ids=(1,), content=FileContent.EQUALITY_DELETES))
            elif kind == "positions":
                added.append(delete(file))
            elif about:
                target = about[number % len(about)]
                added.append(about_one(file, kind, target))
                with_vector |= {target.file_path} if kind == "vector" else set()
        if added:
            add_deletes(table, *added)
            known += [file for file in added if file.content is FileContent.DATA]
    return table


def delete(file: DataFile, **more: Any) -> DataFile:
    return msgspec.structs.replace(file, **{"content": FileContent.POSITION_DELETES, **more})


def about_one(file: DataFile, kind: str, target: DataFile) -> DataFile:
    path = target.file_path
    match kind:
        case "vector":
            place = {"file_format": "PUFFIN", "content_offset": 4, "content_size_in_bytes": 40}
            return delete(file, partition=target.partition, referenced_data_file=path, **place)
        case "one path":
            bounds = {FILE_PATH_ID: path.encode()}
            return delete(file, partition=target.partition, lower_bounds=bounds, upper_bounds=bounds)
    return delete(file, partition=target.partition, referenced_data_file=path)
