"""Delete files: their columns, and the data file that they refer to."""

import pytest

from bergline.format.deletes.delete_files import FILE_PATH_ID, POSITION_DELETE_SCHEMA, only_data_file
from bergline.format.manifest.manifest import DataFile, FileContent


def delete_file(**fields: object) -> DataFile:
    return DataFile("d", "PARQUET", (), 1, 1, content=FileContent.POSITION_DELETES, **fields)  # type: ignore[arg-type]


def test_columns_have_the_reserved_ids() -> None:
    assert [(f.name, f.id) for f in POSITION_DELETE_SCHEMA.fields] == [("file_path", 2147483546), ("pos", 2147483545)]


def test_referenced_data_file_is_the_only_one() -> None:
    assert only_data_file(delete_file(referenced_data_file="a.parquet")) == "a.parquet"


def test_equal_bounds_of_the_path_name_the_only_data_file() -> None:
    bounds = {FILE_PATH_ID: b"a.parquet"}
    assert only_data_file(delete_file(lower_bounds=bounds, upper_bounds=bounds)) == "a.parquet"


@pytest.mark.parametrize(
    "bounds",
    [
        {},
        {"lower_bounds": {FILE_PATH_ID: b"a"}},
        {"lower_bounds": {FILE_PATH_ID: b"a"}, "upper_bounds": {FILE_PATH_ID: b"b"}},
    ],
)
def test_other_delete_files_may_refer_to_several(bounds: dict[str, dict[int, bytes]]) -> None:
    assert only_data_file(delete_file(**bounds)) is None
