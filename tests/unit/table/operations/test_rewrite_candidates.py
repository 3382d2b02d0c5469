"""Candidates of compaction: files that stay are not held, and what cannot be read is refused as in a scan."""

from typing import Any

import msgspec
import pytest

from bergline import Lake, Table
from bergline.errors import BerglineError
from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.format.deletes.delete_files import FILE_PATH_ID
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.table.operations.compaction import CompactionRequest, plan_compaction
from bergline.table.operations.rewrite_candidates import find_candidates
from bergline.table.operations.rewrite_options import RewriteOptions
from support.fixtures.add_deletes import add_deletes
from support.fixtures.rows import ORDERS

TARGET = 100
GOOD = DataFile("memory:/d/good", "PARQUET", ("eu",), 100, TARGET)
SMALL = DataFile("memory:/d/small", "PARQUET", ("eu",), 100, 1)
OPTIONS = RewriteOptions(target_file_size_bytes=TARGET)


def position_delete(number: int = 0, about: str | None = GOOD.file_path, **values: Any) -> DataFile:
    delete = DataFile(f"memory:/d/delete-{number}", "PARQUET", ("eu",), 1, 1, content=FileContent.POSITION_DELETES)
    return msgspec.structs.replace(delete, referenced_data_file=about, **values)


def equality_delete(**values: Any) -> DataFile:
    ids = {"equality_ids": (1,), **values}
    return position_delete(about=None, content=FileContent.EQUALITY_DELETES, **ids)


def vector(number: int = 0, **values: Any) -> DataFile:
    place = {"file_format": "PUFFIN", "content_offset": 4, "content_size_in_bytes": 40}
    return position_delete(number, **{**place, **values})


def table_of(lake: Lake, *commits: tuple[DataFile, ...]) -> Table:
    table = lake.create_table("db.t", ORDERS, partition_by=["region"], properties={"format-version": "3"})
    for files in commits:
        add_deletes(table, *files)
    return table


def candidates(table: Table, options: RewriteOptions = OPTIONS) -> list[str]:
    head, rules = table.current_snapshot, options.sizes(TARGET)
    assert head is not None
    _, files, _ = find_candidates(table.io, table.metadata, head, ALWAYS_TRUE, rules=rules, options=options)
    return files.paths


@pytest.mark.parametrize(
    ("deletes", "options", "is_candidate"),
    [
        ((), {}, False),
        ((position_delete(record_count=29),), {}, False),
        ((position_delete(record_count=30),), {}, True),
        ((position_delete(record_count=15), position_delete(1, record_count=15)), {}, True),
        ((vector(record_count=30),), {}, True),
        ((position_delete(about="memory:/d/other", record_count=100),), {}, False),
        ((position_delete(about=None, record_count=100),), {}, False),
        ((position_delete(about=None),), {"delete_file_threshold": 1}, True),
        ((position_delete(about=None, partition=("us",)),), {"delete_file_threshold": 1}, False),
        ((position_delete(), position_delete(1, about=None)), {"delete_file_threshold": 3}, False),
        ((position_delete(), position_delete(1, about=None)), {"delete_file_threshold": 2}, True),
        ((equality_delete(),), {"delete_file_threshold": 1}, True),
        ((), {"delete_file_threshold": 0}, False),
        ((), {"rewrite_all": True}, True),
    ],
)
def test_a_file_of_the_right_size_is_a_candidate_by_its_deletes(
    lake: Lake, deletes: tuple[DataFile, ...], options: dict[str, Any], is_candidate: bool
) -> None:
    table = table_of(lake, (GOOD, SMALL), *([deletes] if deletes else []))
    found = candidates(table, msgspec.structs.replace(OPTIONS, **options))
    assert found == ([GOOD.file_path] if is_candidate else []) + [SMALL.file_path]


def test_a_delete_refers_to_one_file_by_its_bounds_too(lake: Lake) -> None:
    bounds = {FILE_PATH_ID: GOOD.file_path.encode()}
    delete = position_delete(about=None, record_count=50, lower_bounds=bounds, upper_bounds=bounds)
    assert candidates(table_of(lake, (GOOD,), (delete,))) == [GOOD.file_path]


@pytest.mark.parametrize(
    "commits",
    [
        ((msgspec.structs.replace(GOOD, file_format="CSV"),),),
        ((msgspec.structs.replace(GOOD, key_metadata=b"k"),),),
        ((GOOD,), (position_delete(file_format="CSV"),)),
        ((GOOD,), (position_delete(key_metadata=b"k"),)),
        ((GOOD,), (position_delete(about=None, key_metadata=b"k"),)),
        ((GOOD,), (vector(), vector(1))),
        ((GOOD,), (vector(content_offset=None),)),
        ((GOOD,), (vector(partition=("us",)),)),
        ((GOOD,), (position_delete(partition=("us",)),)),
        ((vector(),), (GOOD,)),
        ((GOOD,), (equality_delete(equality_ids=(99,)),)),
    ],
)
def test_what_a_scan_refuses_is_refused_even_if_it_would_stay(lake: Lake, commits: Any) -> None:
    table = table_of(lake, (SMALL,), *commits)
    assert table.current_snapshot is not None
    with pytest.raises(BerglineError) as of_scan:
        table.scan().plan()
    with pytest.raises(type(of_scan.value)) as refused:
        plan_compaction(table.io, table.metadata, table.current_snapshot, CompactionRequest(options=OPTIONS))
    assert str(refused.value) == str(of_scan.value)
