"""Delete files for data files elsewhere: the same positions under other paths."""

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError
from bergline.format.deletes.delete_files import FILE_PATH_ID, POS_ID, POSITION_DELETE_SCHEMA
from bergline.format.deletes.puffin import parse_puffin
from bergline.format.manifest.manifest import DataFile
from bergline.scan.manifests import live_entries, load_manifest_list
from bergline.table.relocation.delete_files import moved_file, names_paths, rewritten_content
from bergline.table.relocation.path_prefix import PathPrefix
from support.fixtures.other_formats import avro_file, orc_file
from support.fixtures.rows import ORDERS, order_rows


def deleted(lake: Lake, version: str) -> tuple[Table, DataFile, PathPrefix]:
    properties = {"format-version": version, "write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.t", ORDERS, properties=properties).append(order_rows(1, 2, 3)).delete("id = 2")
    assert table.current_snapshot
    entries = live_entries(table.io, load_manifest_list(table.io, table.current_snapshot), table.metadata)
    (file,) = [e.data_file for e in entries if names_paths(e.data_file)]
    return table, file, PathPrefix(table.location, "s3://b/ü", "/staging")


def test_position_deletes_name_the_new_paths(lake: Lake) -> None:
    table, file, prefix = deleted(lake, "2")
    rows = pq.read_table(pa.BufferReader(rewritten_content(table.io, file, prefix)))
    (data,) = [planned.file.file_path for planned in table.scan().plan().files]
    assert rows.to_pylist() == [{"file_path": prefix.moved(data), "pos": 1}]
    assert rows.schema.field("file_path").metadata[b"PARQUET:field_id"] == str(FILE_PATH_ID).encode()
    moved = moved_file(file, prefix, 77)
    assert (moved.file_path, moved.file_size_in_bytes) == (prefix.moved(file.file_path), 77)
    assert moved.lower_bounds is not None
    assert moved.lower_bounds[FILE_PATH_ID] == prefix.moved(data).encode()


@pytest.mark.parametrize("file_format", ["ORC", "AVRO"])
def test_position_deletes_of_other_formats_become_parquet(lake: Lake, file_format: str) -> None:
    table, file, prefix = deleted(lake, "2")
    path = f"{table.location}/data/deletes.{file_format.lower()}"
    rows = pa.table({"file_path": [f"{table.location}/data/a"], "pos": [7]})
    table.io.create(path, (orc_file if file_format == "ORC" else avro_file)(POSITION_DELETE_SCHEMA, rows))
    other = msgspec.structs.replace(file, file_path=path, file_format=file_format)
    found = pq.read_table(pa.BufferReader(rewritten_content(table.io, other, prefix)))
    assert found.to_pylist() == [{"file_path": f"{prefix.target}/data/a", "pos": 7}]
    assert found.schema.field("pos").metadata[b"PARQUET:field_id"] == str(POS_ID).encode()
    assert moved_file(other, prefix, 77).file_format == "PARQUET"


def test_vectors_stay_where_they_are_in_the_file(lake: Lake) -> None:
    table, file, prefix = deleted(lake, "3")
    before, after = table.io.read(file.file_path), rewritten_content(table.io, file, prefix)
    old, new = parse_puffin(before, "x"), parse_puffin(after, "x")
    assert [(b.offset, b.length) for b in old.blobs] == [(b.offset, b.length) for b in new.blobs]
    moved = moved_file(file, prefix, len(after))
    assert new.blobs[0].properties["referenced-data-file"] == moved.referenced_data_file
    assert moved.content_offset is not None
    end = moved.content_offset + (moved.content_size_in_bytes or 0)
    assert before[moved.content_offset : end] == after[moved.content_offset : end]


def test_bounds_that_were_cut_off_are_left_out(lake: Lake) -> None:
    _, file, prefix = deleted(lake, "2")
    cut = msgspec.structs.replace(file, lower_bounds={FILE_PATH_ID: b"file:", POS_ID: b"1"}, upper_bounds=None)
    assert moved_file(cut, prefix, None).lower_bounds == {POS_ID: b"1"}


def test_paths_elsewhere_are_refused(lake: Lake, tmp_path: Path) -> None:
    table, file, _ = deleted(lake, "2")
    with pytest.raises(
        InvalidInputError, match=r"expected paths of data files below /nowhere, found others in .*parquet"
    ):
        rewritten_content(table.io, file, PathPrefix("/nowhere", "/x", "/staging"))
