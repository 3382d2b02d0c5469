"""Files that are gone, of another size, or with other rows than recorded."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline.format.manifest.manifest import ManifestContent
from support.fixtures.add_deletes import add_deletes, deletion_vectors, position_deletes
from support.fixtures.damaged_tables import (
    change_files,
    check,
    checked_finding,
    data_files,
    head,
    manifests_of,
    new_table,
    open_lake,
    path_of,
    rows,
)


def test_missing_data_file_is_found_with_the_snapshot_to_roll_back_to(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
        first = table.metadata.snapshots[0].snapshot_id
        path = path_of(next(f.file_path for f in data_files(table) if f.file_path not in _paths_at(table, first)))
        path.unlink()
        finding = checked_finding(tmp_path, "data-file-missing")
        assert path_of(finding.place) == path
        assert finding.refs == ("main",)
        assert f"roll `main` back to snapshot {first}" in finding.mend
        table.refs.rollback(to=first)
    left = checked_finding(tmp_path, "data-file-missing")  # an old snapshot alone needs it
    assert (left.refs, "or expire snapshot" in left.mend) == ((), True)


def _paths_at(table, snapshot_id: int) -> set[str]:  # noqa: ANN001
    return {planned.file.file_path for planned in table.scan(snapshot_id=snapshot_id).plan().files}


def test_missing_delete_file_is_found(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
        delete = position_deletes(table, {data_files(table)[0].file_path: [0]})
        add_deletes(table, delete)
    path_of(delete.file_path).unlink()
    assert checked_finding(tmp_path, "position-delete-file-missing").place == delete.file_path


def test_truncated_data_file_is_found_by_its_size(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        path = path_of(data_files(new_table(lake))[0].file_path)
    path.write_bytes(path.read_bytes()[:-1])
    checked_finding(tmp_path, "data-file-size")


def test_damage_inside_a_file_of_the_right_size_is_found_by_a_deep_check(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        path = path_of(data_files(new_table(lake))[0].file_path)
    path.write_bytes(bytes(path.stat().st_size))
    assert check(tmp_path).findings == ()
    checked_finding(tmp_path, "data-file-unreadable", deep=True)


def test_other_record_count_is_found_by_a_deep_check(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
    file = data_files(table)[0]
    path = path_of(file.file_path)
    pq.write_table(pa.concat_tables([rows(0), rows(1)]), path)
    (manifest,) = [m for m in manifests_of(head(table)) if m.sequence_number == 2]
    change_files(table, manifest, file_path=file.file_path, file_size_in_bytes=path.stat().st_size)
    assert "found 6" in checked_finding(tmp_path, "record-count", deep=True).message


def test_damaged_deletion_vector_is_found_by_a_deep_check(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake, version=3)
        (vector,) = deletion_vectors(table, {data_files(table)[0].file_path: [0]})
        add_deletes(table, vector)
    (manifest,) = [m for m in manifests_of(head(table)) if m.content is ManifestContent.DELETES]
    path = path_of(vector.file_path)
    whole = bytearray(path.read_bytes())
    whole[(vector.content_offset or 0) + 10] ^= 255
    path.write_bytes(whole)
    checked_finding(tmp_path, "position-delete-file-unreadable", deep=True)
    change_files(table, manifest, content_offset=None)
    checked_finding(tmp_path, "deletion-vector")


@pytest.mark.parametrize("kind", ["missing", "unreadable"])
def test_statistics_file_is_a_warning(tmp_path: Path, kind: str) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
        table.compute_statistics()
        path = path_of(table.refresh().metadata.statistics[0].statistics_path)
    if kind == "missing":
        path.unlink()
    else:
        path.write_bytes(bytes(path.stat().st_size))
    code = {"missing": "statistics-file-missing", "unreadable": "statistics-unreadable"}[kind]
    assert checked_finding(tmp_path, code).severity == "warning"
    assert check(tmp_path).ok


def test_missing_earlier_metadata_file_is_a_warning(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
    path_of(table.metadata.metadata_log[0].metadata_file).unlink()
    assert checked_finding(tmp_path, "earlier-metadata-file-missing").severity == "warning"


def test_files_outside_the_directory_of_the_table_are_looked_up(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake, commits=0, write_data_path=f"{tmp_path}/elsewhere")
        table.append(rows(0))
    path = path_of(data_files(table)[0].file_path)
    assert path.is_relative_to(tmp_path / "elsewhere")
    assert check(tmp_path).findings == ()
    path.unlink()
    checked_finding(tmp_path, "data-file-missing")
