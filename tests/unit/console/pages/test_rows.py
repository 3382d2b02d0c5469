"""Rows of any ref, some of them; what is wrong is said where it is wrong."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.console.page import Source
from bergline.console.pages.rows import rows_page


def values(source: Source, **query: str) -> dict[str, Any]:
    return rows_page(source, {"name": "db.orders", **query}).values


def ids(found: dict[str, Any]) -> list[int]:
    return sorted(row[0] for row in found["rows"])


def test_rows_are_those_of_the_ref_or_snapshot(source: Source, story: Table) -> None:
    assert ids(values(source)) == [1, 2, 3]
    assert ids(values(source, ref="v1")) == [1, 2]
    assert ids(values(source, ref="audit")) == [1, 2, 3, 4]
    assert ids(values(source, snapshot=str(story.refs["fork"].snapshot_id))) == [1, 2, 5]
    assert values(source)["refs"] == ["main", "audit", "fork", "v1"]


def test_filter_and_limit_bound_the_rows(source: Source, story: Table) -> None:
    assert ids(values(source, filter="id > 1 AND region = 'eu'")) == [2, 3]
    found = values(source, limit="2")
    assert (len(found["rows"]), found["more"]) == (2, True)
    assert values(source, limit="3")["more"] is False


@pytest.mark.parametrize("wrong", ["id >", "nothing = 1", "id = 'x'"])
def test_wrong_filter_is_said_beside_it_with_the_columns_there(source: Source, story: Table, wrong: str) -> None:
    found = values(source, filter=wrong)
    assert found["filter_problem"]["message"]
    assert (found["problem"], found["rows"]) == (None, [])
    assert [c["name"] for c in found["columns"]] == ["id", "region"]


@pytest.mark.parametrize(
    "query", [{"ref": "nothing"}, {"snapshot": "x"}, {"snapshot": "7"}, {"limit": "501"}, {"limit": "0"}]
)
def test_wrong_place_or_limit_is_a_problem_of_the_page(source: Source, story: Table, query: dict[str, str]) -> None:
    found = values(source, **query)
    assert found["problem"]["message"]
    assert found["rows"] == []


def test_lost_data_file_is_named_in_place_of_the_rows(source: Source, story: Table, tmp_path: Path) -> None:
    for file in (tmp_path / "warehouse").rglob("*.parquet"):
        file.unlink()
    found = values(source)
    assert ".parquet" in found["problem"]["message"]
    assert found["columns"]


def test_empty_table_has_columns_and_no_rows(source: Source, lake: Lake) -> None:
    lake.create_table("db.orders", pa.schema([("id", pa.int64())]))
    found = values(source)
    assert (found["rows"], found["problem"], found["files"]) == ([], None, 0)
