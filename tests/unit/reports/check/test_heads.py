"""What must hold among the files of a snapshot."""

from pathlib import Path

import msgspec

from bergline.format.manifest.manifest import ManifestContent
from support.fixtures.add_deletes import add_deletes, deletion_vectors
from support.fixtures.damaged_tables import (
    change_entries,
    change_first,
    change_list,
    check,
    checked_finding,
    data_files,
    head,
    manifests_of,
    new_table,
    open_lake,
)


def test_data_file_that_is_read_twice_is_found(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
    new, old = manifests_of(head(table))
    path = data_files(table)[-1].file_path

    def with_the_other(entries: list) -> list:
        again = msgspec.structs.replace(entries[0].data_file, file_path=path)
        return [msgspec.structs.replace(entries[0], data_file=again), *entries[1:]]

    change_entries(table, new, with_the_other)
    change_entries(table, old, with_the_other)
    finding = checked_finding(tmp_path, "file-listed-twice")
    assert (finding.place, finding.refs) == (path, ("main",))


def test_rows_with_the_same_id_are_found(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake, version=3)
    change_first(table, head(table), first_row_id=0)
    codes = [finding.code for finding in check(tmp_path).findings]
    assert "row-ids-overlap" in codes


def test_second_deletion_vector_of_a_data_file_is_found(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake, version=3)
        path = data_files(table)[0].file_path
        for position in (0, 1):
            add_deletes(table, *deletion_vectors(table, {path: [position]}))
    finding = checked_finding(tmp_path, "deletion-vectors")
    assert (finding.place, "2 deletion vectors" in finding.message) == (path, True)


def test_deletion_vector_that_is_older_than_its_data_is_found(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake, version=3)
        newest = next(p.file for p in table.scan().plan().files if p.file.first_row_id == 3)
        add_deletes(table, *deletion_vectors(table, {newest.file_path: [0]}))
    change_list(
        table,
        head(table),
        lambda found: [
            msgspec.structs.replace(m, sequence_number=1, min_sequence_number=1)
            if m.content is ManifestContent.DELETES
            else m
            for m in found
        ],
    )
    assert "not applied" in checked_finding(tmp_path, "deletion-vectors").message
