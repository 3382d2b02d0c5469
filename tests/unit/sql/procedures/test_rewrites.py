"""`rewrite_data_files` and `rewrite_position_delete_files`: the official columns and arguments."""

from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError
from support.fixtures.add_deletes import add_deletes, position_deletes
from support.fixtures.rows import ORDERS, ids, order_rows
from support.fixtures.sql_statements import run_text


def call(lake: Lake, text: str) -> dict[str, Any]:
    found = run_text(lake, f"CALL system.{text}")
    assert found is not None
    assert not any(field.nullable for field in found.schema)
    (row,) = found.to_pylist()
    return row


@pytest.fixture
def small(lake: Lake) -> Table:
    """Six small files."""
    table = lake.create_table("db.t", ORDERS, properties={"format-version": "2"})
    for order in range(6):
        table.append(order_rows(order, order + 10))
    return table


def test_data_files_are_rewritten_by_icebergs_rules(lake: Lake, small: Table) -> None:
    size = sum(p.file.file_size_in_bytes for p in small.scan().plan().files)
    assert call(lake, "rewrite_data_files('db.t', 'binpack')") == {
        "rewritten_data_files_count": 6,
        "added_data_files_count": 1,
        "rewritten_bytes_count": size,
        "failed_data_files_count": 0,
        "removed_delete_files_count": 0,
    }
    assert set(call(lake, "rewrite_data_files('lake.db.t')").values()) == {0}
    types = [pa.int32(), pa.int32(), pa.int64(), pa.int32(), pa.int32()]
    found = run_text(lake, "CALL system.rewrite_data_files('db.t')")
    assert found is not None
    assert [f.type for f in found.schema] == types
    assert len(ids(small.refresh().scan().to_arrow())) == 12


def test_all_arguments_count(lake: Lake, small: Table) -> None:
    small.refs.create_branch("dev", at="main")
    done = call(
        lake,
        "rewrite_data_files(table => 'db.t', strategy => 'sort', sort_order => 'id DESC', "
        "options => map('rewrite-all', 'true'), where => 'id < 3', branch => 'dev')",
    )
    assert (done["rewritten_data_files_count"], done["added_data_files_count"]) == (3, 1)
    small.refresh()
    assert len(list(small.scan(ref="dev").plan().files)) == 4
    assert len(list(small.scan().plan().files)) == 6


def test_a_branch_may_be_part_of_the_name(lake: Lake, small: Table) -> None:
    small.refs.create_branch("dev", at="main")
    assert call(lake, "rewrite_data_files('db.t.branch_dev')")["rewritten_data_files_count"] == 6
    assert len(list(small.refresh().scan().plan().files)) == 6
    assert call(lake, "rewrite_data_files('db.t.branch_main', branch => 'main')")["rewritten_data_files_count"] == 6
    with pytest.raises(InvalidInputError, match="expected one branch, found `dev` in the table's name and `main`"):
        call(lake, "rewrite_data_files('db.t.branch_dev', branch => 'main')")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ("'db.t.files'", InvalidInputError, "expected a table or a branch of one, found `db.t.files`"),
        ("'db.t.tag_x'", InvalidInputError, "expected a table or a branch of one"),
        ("'db.t.branch_nope'", NotFoundError, "no branch `nope`"),
        ("'db.t', strategy => 'zip'", InvalidInputError, "expected the strategy binpack or sort"),
        ("'db.t', options => map('x', '1')", NotFoundError, "no option `x`"),
        ("'db.t', options => map('rewrite-all', 'yes')", InvalidInputError, "expected true or false"),
        ("'db.t', where => 'nope = 1'", NotFoundError, "nope"),
        ("'db.t', where => 'id ='", InvalidInputError, "cannot read the filter `id =`"),
        ("'db.t', sort_order => 'nope'", NotFoundError, "no column `nope`"),
    ],
)
def test_bad_arguments_change_nothing(
    lake: Lake, small: Table, arguments: str, error: type[Exception], message: str
) -> None:
    small.refs.create_tag("x", at="main")
    before = small.metadata_location
    with pytest.raises(error, match=message):
        call(lake, f"rewrite_data_files({arguments})")
    assert small.refresh().metadata_location == before


def test_position_delete_files_are_joined(lake: Lake, small: Table) -> None:
    planned = next(p for p in small.scan().plan().files if p.file.record_count)
    for position in (0, 1):
        add_deletes(small, position_deletes(small, {planned.file.file_path: [position]}))
    assert set(call(lake, "rewrite_position_delete_files('db.t')").values()) == {0}
    done = call(lake, "rewrite_position_delete_files('db.t', map('rewrite-all', 'true'), 'id > 0')")
    assert list(done) == [
        "rewritten_delete_files_count",
        "added_delete_files_count",
        "rewritten_bytes_count",
        "added_bytes_count",
    ]
    assert (done["rewritten_delete_files_count"], done["added_delete_files_count"]) == (2, 1)
    assert len(ids(small.refresh().scan().to_arrow())) == 10
    with pytest.raises(InvalidInputError, match="expected a table, found"):
        call(lake, "rewrite_position_delete_files('db.t.branch_main')")
