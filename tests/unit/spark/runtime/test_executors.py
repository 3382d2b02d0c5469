import os
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pyspark
import pytest
from spark_cluster import executor_python

import bergline
from bergline.errors import UnsupportedError
from bergline.spark.runtime.executors import NEEDED, NEEDED_FOR_OBJECTS, Found, check_packages, package_archive

pytestmark = pytest.mark.long

TASKS = ("writes.task", "rows.task", "reads.arrow", "reads.deletes", "runtime.arrow_rows")
"""The modules whose functions run on executors."""


def test_tasks_import_nothing_but_what_executors_need(tmp_path: Path) -> None:
    spark = (Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip")
    code = f"import sys, {', '.join(f'bergline.spark.{module}' for module in TASKS)}; print(*sys.modules)"
    found = subprocess.run(
        [executor_python(tmp_path, NEEDED), "-c", code],
        env={"PYTHONPATH": os.pathsep.join(map(str, [package_archive(), *spark]))},
        capture_output=True,
        check=True,
        text=True,
    )
    modules = found.stdout.split()
    assert "bergline.parquet.write.writer" in modules
    assert not {"polars", "sqlalchemy", "sqlglot", "pandas", "obstore", "bergline.lake.lake"}.intersection(modules)


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
