"""Tasks of Spark's Python workers: what they import costs their successors nothing, and hides nothing from them."""

import gc
import importlib
import importlib.util
import os
import sys
import zipfile
import zipimport
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bergline.spark.runtime.arrow_tasks import map_in_arrow, read_when_changed

TASKS = 8


def _module(archive: Path, **sources: str) -> Path:
    with zipfile.ZipFile(archive, "w") as file:
        for name, source in sources.items():
            file.writestr(f"{name}.py", source)
    return archive


def _workers(spark: SparkSession) -> list[Any]:
    """What tasks of ours find when they forget what is in archives, as PySpark does before each task."""

    def find(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        assert sum(batch.num_rows for batch in batches) == 1
        module: Any = zipimport
        read, archives = module._read_directory, []
        module._read_directory = lambda archive: archives.append(archive) or read(archive)
        try:
            importlib.invalidate_caches()
            importlib.util.find_spec("no_module_of_this_name")  # newer versions of Python read only now
        finally:
            module._read_directory = read
        known = {f.archive for f in sys.path_importer_cache.values() if isinstance(f, zipimport.zipimporter)}
        found = {"worker": os.getpid(), "archives": sorted(known), "read": archives, "frozen": gc.get_freeze_count()}
        yield pa.RecordBatch.from_pylist([found], schema=_FOUND)

    return map_in_arrow(
        spark.range(0, TASKS, 1, TASKS),
        find,
        "worker bigint, archives array<string>, read array<string>, frozen bigint",
    ).collect()


_FOUND = pa.schema(
    {"worker": pa.int64(), "archives": pa.list_(pa.string()), "read": pa.list_(pa.string()), "frozen": pa.int64()}
)


@pytest.mark.spark
def test_workers_neither_read_archives_again_nor_look_for_garbage_in_them(spark: SparkSession) -> None:
    found = _workers(spark)
    assert len(found) == TASKS
    for each in found:
        assert [Path(archive).name for archive in each.archives if "pyspark" in archive]
        assert not each.read
        assert each.frozen > 10_000  # PySpark and pyarrow


@pytest.mark.spark
def test_archives_that_are_added_later_are_found_by_functions_of_users(spark: SparkSession, tmp_path: Path) -> None:
    ours = {each.worker for each in _workers(spark)}
    spark.sparkContext.addPyFile(str(_module(tmp_path / "added_later.zip", added_later="VALUE = 7")))

    @F.udf("string", useArrow=False)
    def find(_: int) -> str:
        import added_later  # type: ignore[import-not-found]  # noqa: PLC0415  (only tasks have it)

        return f"{os.getpid()} {added_later.VALUE}"

    found = [row.found.split() for row in spark.range(0, TASKS, 1, TASKS).select(find("id").alias("found")).collect()]
    assert {value for _, value in found} == {"7"}
    assert ours & {int(worker) for worker, _ in found}
    again = _workers(spark)
    assert [each for each in again if any(Path(archive).name == "added_later.zip" for archive in each.archives)]
    assert not [archive for each in again for archive in each.read]


def test_archive_that_is_replaced_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = _module(tmp_path / "a.zip", found_at_first="")
    monkeypatch.syspath_prepend(str(archive))
    assert importlib.util.find_spec("found_at_first")
    finder = sys.path_importer_cache[str(archive)]
    assert isinstance(finder, zipimport.zipimporter)
    read_when_changed(finder)
    _module(archive, found_afterwards="")
    assert not importlib.util.find_spec("found_afterwards")
    importlib.invalidate_caches()
    assert importlib.util.find_spec("found_afterwards")
    archive.unlink()
    importlib.invalidate_caches()
    assert not importlib.util.find_spec("found_afterwards")
