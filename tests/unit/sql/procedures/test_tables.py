"""`register_table` and `rewrite_manifests`: the official columns, the arguments, and which lake a call is about."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.errors import AlreadyExistsError, BerglineError, InvalidInputError, NotFoundError
from support.fixtures.rows import ORDERS, ids, order_rows
from support.fixtures.sql_statements import run_text


def run(lake: Lake, text: str, **others: Lake) -> pa.Table:
    found = run_text(lake, f"CALL {text}", **others)
    assert found is not None
    return found


def row(found: pa.Table) -> tuple[Any, ...]:
    (only,) = found.to_pylist()
    return tuple(only.values())


@pytest.fixture
def parts(lake: Lake) -> Table:
    """Two manifests of one spec, one of a second."""
    table = lake.create_table("db.parts", pa.schema([("id", pa.int64()), ("p", pa.int64())]), partition_by=["p", "id"])
    table.append(pa.table({"id": [1, 2], "p": [2, 1]})).append(pa.table({"id": [0], "p": [3]}))
    with table.update_spec() as spec:
        spec.remove_field("id")
    return table.append(pa.table({"id": [4], "p": [4]}))


def test_registered_table_says_what_it_has(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1, 2))
    found = run(lake, f"system.register_table('db.again', '{orders.metadata_location}')")
    assert found.schema == pa.schema(
        [(n, pa.int64()) for n in ("current_snapshot_id", "total_records_count", "total_data_files_count")]
    )
    assert orders.current_snapshot
    assert row(found) == (orders.current_snapshot.snapshot_id, 2, 1)
    assert ids(lake.load_table("db.again").scan().to_arrow()) == [1, 2]


def test_registered_table_without_rows_has_no_snapshot_to_tell_of(lake: Lake, orders: Table) -> None:
    found = run(lake, f"system.register_table(table => 'db.again', metadata_file => '{orders.metadata_location}')")
    assert row(found) == (None, None, None)


@pytest.mark.parametrize(
    ("name", "file", "error", "message"),
    [
        ("db.orders", "{location}", AlreadyExistsError, "`db.orders` exists already"),
        ("db.new", "file:///nowhere/1.metadata.json", NotFoundError, "/nowhere/1.metadata.json"),
        ("nope.new", "{location}", NotFoundError, "no table `nope.new`"),
        ("db.", "{location}", InvalidInputError, "expected a table name"),
        ("db.a b", "{location}", InvalidInputError, "expected the end"),
    ],
)
def test_what_cannot_be_registered_is_one_error(
    lake: Lake, orders: Table, name: str, file: str, error: type[BerglineError], message: str
) -> None:
    location = file.format(location=orders.metadata_location)
    with pytest.raises(error, match=message):
        run(lake, f"system.register_table('{name}', '{location}')")
    assert lake.list_tables("db") == ["db.orders"]


def test_manifests_of_the_current_spec_are_joined(lake: Lake, parts: Table) -> None:
    parts.append(pa.table({"id": [5], "p": [5]}))
    found = run(lake, "system.rewrite_manifests('db.parts')")
    assert found.schema == pa.schema(
        [pa.field(n, pa.int32(), nullable=False) for n in ("rewritten_manifests_count", "added_manifests_count")]
    )
    assert row(found) == (2, 1)
    assert parts.refresh().inspect("manifests").column("partition_spec_id").to_pylist().count(0) == 2
    assert row(run(lake, "system.rewrite_manifests('db.parts')")) == (0, 0)
    assert sorted(parts.refresh().scan().to_arrow().column("id").to_pylist()) == [0, 1, 2, 4, 5]


@pytest.mark.parametrize(("sort_by", "order"), [("", [2, 1, 0]), (", sort_by => array('id')", [0, 1, 2])])
def test_manifests_of_a_spec_are_sorted_by_its_fields(lake: Lake, parts: Table, sort_by: str, order: list[int]) -> None:
    found = run(lake, f"system.rewrite_manifests(table => 'db.parts', use_caching => true, spec_id => 0{sort_by})")
    assert row(found) == (2, 1)
    entries = parts.refresh().inspect("entries").to_pylist()
    of_spec = [e["data_file"]["partition"]["id"] for e in entries if e["data_file"]["spec_id"] == 0]
    assert of_spec == order


def test_table_without_snapshots_has_no_manifests_to_rewrite(lake: Lake, orders: Table) -> None:
    assert row(run(lake, "system.rewrite_manifests('db.orders')")) == (0, 0)
    assert not orders.refresh().metadata.snapshots


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("spec_id => 7", "no partition spec 7"),
        ("sort_by => array('ids'), spec_id => 0", "no partition field `ids` to sort by"),
        ("sort_by => array()", "expected partition fields in `sort_by`, found none"),
        ("sort_by => array(1)", "expected `array<string>` for argument `sort_by`"),
    ],
)
def test_rewriting_what_is_not_there_is_one_error(lake: Lake, parts: Table, arguments: str, message: str) -> None:
    before = parts.metadata_location
    with pytest.raises(BerglineError, match=message):
        run(lake, f"system.rewrite_manifests(table => 'db.parts', {arguments})")
    assert parts.refresh().metadata_location == before


def test_call_that_names_a_lake_is_about_tables_of_that_lake(lake: Lake, orders: Table, tmp_path: Path) -> None:
    orders.append(order_rows(1))
    with bergline.connect(f"sqlite:///{tmp_path}/other.db", warehouse=tmp_path / "other", create=True) as other:
        other.create_namespace("db")
        theirs = other.create_table("db.orders", ORDERS).append(order_rows(2))
        assert theirs.current_snapshot
        found = run(lake, "other.system.ancestors_of('db.orders')", other=other)
        assert found.column("snapshot_id").to_pylist() == [theirs.current_snapshot.snapshot_id]
        assert run(lake, "other.system.ancestors_of('other.db.orders')", other=other) == found
        with pytest.raises(NotFoundError, match=r"no table `lake\.db\.orders`"):
            run(lake, "other.system.ancestors_of('lake.db.orders')", other=other)


def test_table_path_is_rewritten_with_the_official_columns(lake: Lake, orders: Table, tmp_path: Path) -> None:
    orders.append(order_rows(1))
    staging = f"file://{tmp_path}/staging"
    found = run(
        lake, f"system.rewrite_table_path('db.orders', '{orders.location}', '/new', staging_location => '{staging}')"
    )
    assert found.schema == pa.schema(
        [
            ("latest_version", pa.string()),
            ("file_list_location", pa.string()),
            ("rewritten_manifest_file_paths_count", pa.int32()),
            ("rewritten_delete_file_paths_count", pa.int32()),
        ]
    )
    assert row(found) == (orders.metadata_location.rpartition("/")[2], f"{staging}/file-list", 1, 0)
    text = f"system.rewrite_table_path('db.orders', '{orders.location}', '/new', create_file_list => false)"
    assert row(run(lake, text))[1] == "N/A"
    with pytest.raises(NotFoundError, match="no metadata file `nope`"):
        run(lake, f"system.rewrite_table_path('db.orders', '{orders.location}', '/new', end_version => 'nope')")
