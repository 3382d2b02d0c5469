"""Rows in Parquet, CSV and JSON-lines files."""

import os
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


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "id,name\n1,a\n2,b\n3,c,d\n", "Expected 2 columns, got 3: 3,c,d at line 4"),
        ("a.csv", 'id,name\n1,"two\nlines"\nx,c\n', "conversion error to int64: invalid value 'x' at line 4"),
        ("a.csv", 'id,name\n1,a\n2,"b\n3,c\n', "expected a closing quote, found the end of the file at line 3"),
        ("a.csv", "", "Empty CSV file"),
        ("a.jsonl", '{"id": 1}\n\n{"id": "x"}\n', r"Column\(/id\) changed from number to string at line 3"),
        ("a.jsonl", '{"id": 1}\n{"id": 2,\n', "Missing a name for object member at line 2"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    with pytest.raises(InvalidInputError, match=rf"^cannot read `{file}` as {name[2:]}: .*{said}(\nhint: .*)?$"):
        list(rows_of_files([file], None, schema))


def test_quotes_in_values_and_values_over_lines_are_read_wherever_a_block_ends(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('id,size\n1,5"\n' + '2,"a\n""b"""\n' * 800_000)
    batches = list(rows_of_files([file], None, pa.schema([("id", pa.int64()), ("size", pa.string())])))
    assert len(batches) > 1
    assert sum(batch.num_rows for batch in batches) == 800_001
    assert batches[0]["size"].to_pylist()[:2] == ['5"', 'a\n"b"']


def test_directory_and_pipe_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InvalidInputError, match="expected a file, found a pipe or device"):
        schema_of_files([tmp_path / "pipe.csv"], None)
    with pytest.raises(InvalidInputError, match="expected a file, found a directory"):
        schema_of_files([tmp_path], FileFormat.CSV)
