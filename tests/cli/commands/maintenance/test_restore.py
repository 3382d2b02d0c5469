"""`bergline backup` and `bergline restore`."""

import json
from pathlib import Path

import pytest

from bergline import Lake, Table, connect
from support.processes.command_line import Command


@pytest.fixture
def file(tmp_path: Path, bl: Command, orders: Table) -> Path:
    """A backup of a lake with one table."""
    orders.append([{"id": 1}])
    path = tmp_path / "lake.backup"
    done = bl("backup", str(path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"backed up catalog `lake` with 1 pointer to {path}, ")
    return path


@pytest.fixture
def other(tmp_path: Path) -> str:
    """A catalog that does not exist yet."""
    return f"sqlite:///{tmp_path}/other/catalog.db"


def test_backup_is_restored_into_a_new_database(bl: Command, file: Path, other: str) -> None:
    done = bl("restore", str(file), "--catalog", other)
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.splitlines()
    assert first.startswith("restored catalog `lake` as of ")
    assert last == "1 pointer checked: none broken, none of a table that moved on"
    with connect(other) as lake:
        assert lake.load_table("db.orders").scan().to_arrow()["id"].to_pylist() == [1]


def test_table_that_moved_on_is_told_and_brought_forward(bl: Command, file: Path, orders: Table, other: str) -> None:
    orders.append([{"id": 2}])
    done = bl("restore", str(file), "--check-only", "--json", "--catalog", other)
    found = json.loads(done.stdout)
    assert (done.returncode, found["restored"], found["moved_on"][0]["newest"]) == (0, False, orders.metadata_location)
    assert not Path(other.removeprefix("sqlite:///")).exists()
    done = bl("restore", str(file), "--newest", "--catalog", other)
    assert done.returncode == 0, done.stderr
    assert "1 table brought forward to the newest metadata file" in done.stdout
    with connect(other) as lake:
        assert lake.load_table("db.orders").scan().to_arrow().num_rows == 2


def test_pointer_that_leads_nowhere_ends_with_1(bl: Command, file: Path, lake: Lake, orders: Table, other: str) -> None:
    lake.catalog.io.delete([orders.metadata_location])
    done = bl("restore", str(file), "--catalog", other)
    assert done.returncode == 1
    assert f"table `db.orders`: the metadata file does not exist: {orders.metadata_location}" in done.stdout


def test_catalog_that_has_rows_is_replaced_after_a_plan(bl: Command, file: Path, lake: Lake) -> None:
    lake.create_namespace("later")
    done = bl("restore", str(file))
    assert done.returncode != 0
    assert "expected an empty catalog to restore into, found rows of `lake`" in done.stderr
    done = bl("restore", str(file), "--replace")
    assert "no terminal to ask at" in done.stderr
    assert lake.namespace_exists("later")
    done = bl("restore", str(file), "--replace", "--yes")
    assert done.returncode == 0
    assert done.stderr.startswith("remove catalog `lake` of ")
    assert not lake.namespace_exists("later")


@pytest.mark.parametrize("what", ["token", "approval"])
def test_access_that_is_valid_again_is_told(
    bl: Command, file: Path, lake: Lake, orders: Table, tmp_path: Path, other: str, what: str
) -> None:
    if what == "token":
        assert bl("token", "create", "ann").returncode == 0
    else:
        lake.reviews.approve("db.orders", orders.refs["main"].snapshot_id)
    later = tmp_path / "later.backup"
    assert bl("backup", str(later)).returncode == 0
    assert "valid again" in bl("restore", str(later), "--catalog", other).stderr
    assert "valid again" not in bl("restore", str(file), "--replace", "--yes").stderr


def test_damaged_file_creates_nothing(bl: Command, file: Path, other: str) -> None:
    file.write_bytes(file.read_bytes()[:-9])
    done = bl("restore", str(file), "--catalog", other)
    assert done.returncode != 0
    assert "it is damaged" in done.stderr
    assert not Path(other.removeprefix("sqlite:///")).exists()


def test_backup_is_of_a_database(bl: Command, tmp_path: Path) -> None:
    done = bl("backup", "f", "--catalog", "http://127.0.0.1:1")
    assert "expected a catalog's database, found the address of a server" in done.stderr
    (tmp_path / "files").mkdir()
    done = bl("backup", "f", "--catalog", f"file://{tmp_path}/files")
    assert "expected a catalog in SQLite or PostgreSQL, found another" in done.stderr
