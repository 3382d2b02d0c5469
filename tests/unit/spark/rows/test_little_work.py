"""What is little work: few files, of few bytes together with the delete files that apply to them."""

import pytest

from bergline.format.manifest.manifest import DataFile
from bergline.scan.plan import PlannedFile
from bergline.spark.rows.little_work import MOST_BYTES, MOST_FILES, is_little


def planned(size: int, *deletes: DataFile) -> PlannedFile:
    return PlannedFile(DataFile("a", "PARQUET", (), 1, size), 1, deletes)


def delete(name: str, size: int) -> DataFile:
    return DataFile(name, "PARQUET", (), 1, size)


@pytest.mark.parametrize(
    ("files", "little"),
    [
        ([], True),
        ([planned(MOST_BYTES)], True),
        ([planned(MOST_BYTES), planned(1)], False),
        ([planned(1)] * MOST_FILES, True),
        ([planned(1)] * (MOST_FILES + 1), False),
        ([planned(1, delete("d", MOST_BYTES - 2)), planned(1, delete("d", MOST_BYTES - 2))], True),
        ([planned(1, delete("d", MOST_BYTES - 1)), planned(1, delete("e", 1))], False),
    ],
)
def test_little_is_few_files_of_few_bytes(files: list[PlannedFile], little: bool) -> None:
    assert is_little(files) == little
