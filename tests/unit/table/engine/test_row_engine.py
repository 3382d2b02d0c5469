"""What row engines give back, and what counts as one."""

import pytest

from bergline.errors import InvalidInputError
from bergline.format.manifest.manifest import DataFile
from bergline.table.engine.arrow_engine import ArrowRowEngine
from bergline.table.engine.row_engine import FileChanges, check_row_engine, joined_changes


def data_file(path: str) -> DataFile:
    return DataFile(path, "PARQUET", (), 1, 1)


def test_changes_of_parts_are_joined() -> None:
    one = FileChanges((data_file("a"),), frozenset({"x"}), deleted_rows=2)
    two = FileChanges(delete_files=(data_file("d"), data_file("d")), deleted_from=frozenset({"y"}), deleted_rows=3)
    joined = joined_changes([one, two])
    assert (joined.rewritten, joined.deleted_from, joined.deleted_rows) == ({"x"}, {"y"}, 5)
    assert joined.paths == ["a", "d"]  # a Puffin file holds several vectors
    assert joined_changes([]) == FileChanges()


def test_engines_are_known_by_what_they_do() -> None:
    engine = ArrowRowEngine()
    assert check_row_engine(engine) is engine
    assert check_row_engine(None) is None
    with pytest.raises(InvalidInputError, match="expected a row engine, found 'spark'") as caught:
        check_row_engine("spark")
    assert caught.value.hints == ("`bergline.spark.row_engine(spark)` is one that uses Spark's executors",)
