"""The brute-force reader that judges ours, judged itself: the official runtime reads the same hand-made tables."""

import datetime as dt
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st

from support.fixtures.handwritten_tables import HandwrittenTable
from support.fixtures.table_strategies import tables
from support.models import brute_force_reader
from support.servers.peers import OfficialError, OfficialRuntime

pytestmark = pytest.mark.official


def plain(value: Any) -> Any:
    """A value as the official runtime's rows have it after JSON."""
    if isinstance(value, dict):
        return [plain(v) for v in value.values()]
    if isinstance(value, list):
        return [plain(v) for v in value]
    return str(value) if isinstance(value, dt.date) else value


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_official_runtime_reads_the_same_rows(
    official_runtime: OfficialRuntime, tmp_path_factory: pytest.TempPathFactory, version: int
) -> None:
    directory = tmp_path_factory.mktemp("brute")
    official_runtime.use_catalog(directory / "catalog.db", directory / "warehouse", "lake")
    official_runtime.sql("CREATE NAMESPACE db")
    numbers = count()

    @given(st.data())
    @settings(
        max_examples=10,
        derandomize=True,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    def check(data: st.DataObject) -> None:
        # the runtime keeps delete files in memory by their paths: each table has a place of its own
        name = f"t{next(numbers)}"
        check_table(official_runtime, name, data.draw(tables(version, str(directory / name))))

    check()
    assert next(numbers) >= 10


def check_table(official: OfficialRuntime, name: str, handwritten: HandwrittenTable) -> None:
    location = handwritten.finish()
    for path, content in handwritten.files.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(content)
    official.sql(f"CALL system.register_table(table => 'db.{name}', metadata_file => '{location}')")
    reserved = ["_file", "_pos", *(["_row_id", "_last_updated_sequence_number"] if handwritten.version > 2 else [])]
    columns = [*(f["name"] for f in handwritten.schemas[-1]), *reserved]
    try:
        found = official.sql(f"SELECT {', '.join(columns)} FROM db.{name}")
    except OfficialError as error:
        # Java fills a missing column with its partition value, but does not widen it with the column
        if "java.lang.Integer cannot be cast to class java.lang.Long" in str(error):
            reject()
        raise
    expected = brute_force_reader.read_rows(lambda path: Path(path).read_bytes(), location)
    rows = [[plain(row[column]) for column in columns] for row in expected]
    assert Counter(repr(list(row)) for row in found) == Counter(map(repr, rows))
