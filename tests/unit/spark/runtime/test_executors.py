import os
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

import bergline
from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.errors import UnsupportedError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, STRING, ListType, NestedField
from bergline.spark.runtime.executors import NEEDED, NEEDED_FOR_OBJECTS, Found, check_packages, package_archive
from support.fixtures.other_formats import avro_file, orc_file
from support.servers.spark_cluster import executor_python

pytestmark = pytest.mark.long

TASKS = ("writes.task", "rows.task", "reads.arrow", "reads.deletes", "runtime.arrow_rows")
"""The modules whose functions run on executors."""


READ_FILES = """
import sys
from bergline.format.manifest.manifest import DataFile
from bergline.io.local import LocalFileIO
from bergline.datafiles.formats.data_input import open_data_file
for path in sys.argv[1:]:
    with open_data_file(LocalFileIO(), DataFile(path, path.rpartition(".")[2].upper(), (), 2, 1)) as file:
        print([batch.to_pylist() for _, batch in file.batches(["id", "words"])])
"""


def run_as_executor(directory: Path, code: str, *arguments: str) -> str:
    """What a program prints that has our package as it is sent, and the packages that executors need."""
    spark = (Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip")
    found = subprocess.run(
        [executor_python(directory, NEEDED), "-c", code, *arguments],
        env={"PYTHONPATH": os.pathsep.join(map(str, [package_archive(), *spark]))},
        capture_output=True,
        check=True,
        text=True,
    )
    return found.stdout


def test_tasks_import_nothing_but_what_executors_need(tmp_path: Path) -> None:
    code = f"import sys, {', '.join(f'bergline.spark.{module}' for module in TASKS)}; print(*sys.modules)"
    modules = run_as_executor(tmp_path, code).split()
    assert "bergline.datafiles.write.writer" in modules
    assert not {"polars", "sqlalchemy", "sqlglot", "pandas", "obstore", "bergline.lake.lake"}.intersection(modules)


def test_files_of_every_format_are_read_with_what_executors_need(tmp_path: Path) -> None:
    words = ListType(3, STRING, False)
    schema = Schema(fields=(NestedField(1, "id", True, LONG), NestedField(2, "words", False, words)))
    rows = pa.Table.from_pylist([{"id": 1, "words": ["a", None]}, {"id": 2, "words": None}], arrow_schema(schema))
    pq.write_table(rows, tmp_path / "f.parquet")
    (tmp_path / "f.orc").write_bytes(orc_file(schema, rows))
    (tmp_path / "f.avro").write_bytes(avro_file(schema, rows))
    paths = [str(tmp_path / f"f.{end}") for end in ("parquet", "orc", "avro")]
    assert run_as_executor(tmp_path / "executor", READ_FILES, *paths) == f"{[rows.to_pylist()]}\n" * 3


def test_archive_holds_every_module() -> None:
    source = Path(bergline.__file__).parent
    with zipfile.ZipFile(package_archive()) as archive:
        sent = {name: archive.read(name) for name in archive.namelist()}
    assert sent == {f"bergline/{file.relative_to(source)}": file.read_bytes() for file in source.rglob("*.py")}
    assert package_archive().name == f"bergline-{bergline.__version__}.zip"


def test_needed_versions_are_those_of_the_project() -> None:
    pyproject = Path(__file__).parents[4] / "pyproject.toml"
    project = tomllib.loads(pyproject.read_text())["project"]
    asked = {*project["dependencies"], *project["optional-dependencies"]["s3"]}
    assert {f"{name}>={least}" for name, least in NEEDED_FOR_OBJECTS.items()} <= asked


@pytest.mark.parametrize(("has", "text"), [(None, "none"), ("15.0.2", "15.0.2"), ("9", "9")])
def test_package_that_is_missing_or_old_is_named_with_its_place(has: str | None, text: str) -> None:
    fine = Found("one", "/usr/bin/python3", {"pyarrow": "21.0.0"})
    lacking = Found("two", "/opt/python", {"pyarrow": has})
    with pytest.raises(UnsupportedError) as caught:
        check_packages([fine, lacking], {"pyarrow": "21"})
    assert str(caught.value) == (
        f"expected pyarrow 21 or newer on Spark's executors, found {text} for /opt/python on two"
    )


def test_versions_that_are_enough_or_unknown_pass() -> None:
    for has in ("21", "21.0.1", "100.0.0.dev1", ""):
        check_packages([Found("one", "python", {"pyarrow": has})], {"pyarrow": "21"})
