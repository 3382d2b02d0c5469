"""Rows in Parquet, CSV and JSON-lines files."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline.cli.row_files import FileFormat, file_format, rows_of_files, schema_of_files
from bergline.errors import InvalidInputError


def test_format_is_given_or_by_suffix() -> None:
    assert file_format(Path("a.NDJSON")) is FileFormat.JSONL
    assert file_format(Path("a.csv"), FileFormat.JSONL) is FileFormat.JSONL
    with pytest.raises(InvalidInputError, match=r"expected a file with one of \.parquet, "):
        file_format(Path("a"))


def test_columns_of_several_files_are_joined(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,at,nothing\n1,2026-01-31,\n")
    (tmp_path / "b.jsonl").write_text('{"id": 2, "tags": ["x"]}\n')
    found = schema_of_files([tmp_path / "a.csv", tmp_path / "b.jsonl"], None)
    assert found.names == ["id", "at", "nothing", "tags"]
    assert found.types == [pa.int64(), pa.date32(), pa.string(), pa.list_(pa.string())]
    pq.write_table(pa.table({"id": ["x"]}), tmp_path / "c.parquet")
    with pytest.raises(InvalidInputError, match=r"cannot create one table of these files: .*id"):
        schema_of_files([tmp_path / "a.csv", tmp_path / "c.parquet"], None)


def test_texts_are_read_as_the_types_of_the_table(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("amount", pa.decimal128(9, 2)), ("flag", pa.bool_())])
    (tmp_path / "a.csv").write_text('id,amount,flag\n007,1.5,TRUE\n"",,false\n,,\n')
    (batch,) = rows_of_files([tmp_path / "a.csv"], None, schema)
    assert batch.schema.types == schema.types
    assert batch["id"].to_pylist() == ["007", "", None]
    assert batch["flag"].to_pylist() == [True, False, None]
