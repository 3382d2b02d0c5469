"""`bergline append`."""

import json
from pathlib import Path

import pytest

from bergline import Table
from support.fixtures.rows import ids
from support.processes.command_line import Command


def test_rows_of_several_files_are_one_snapshot(bl: Command, tmp_path: Path, orders: Table) -> None:
    (tmp_path / "a.csv").write_text("region,id\neu,1\n,2\n")
    (tmp_path / "b.jsonl").write_text('{"id": 3, "amount": 1}\n{"id": 4, "region": "us"}\n')
    done = bl("append", "db.orders", "a.csv", "b.jsonl", "--branch", "staging", "--summary", "author=ann", "--json")
    assert (done.returncode, done.stderr) == (0, "branch `staging` did not exist and was created\n")
    table = orders.refresh()
    (snapshot,) = (s for s in table.metadata.snapshots if s.summary.get("author") == "ann")
    found = json.loads(done.stdout)
    assert (found["rows"], found["branch"], found["snapshot_id"]) == (4, "staging", str(snapshot.snapshot_id))
    assert ids(table.scan(ref="staging").to_arrow()) == [1, 2, 3, 4]
    assert table.scan().to_arrow().num_rows == 0
    assert table.scan("id = 2", ref="staging").to_arrow()["region"].to_pylist() == [None]


def test_format_is_given_where_the_suffix_does_not_say_it(bl: Command, tmp_path: Path, orders: Table) -> None:
    (tmp_path / "rows.txt").write_text("id\n7\n")
    assert bl("append", "db.orders", "rows.txt").returncode == 2
    done = bl("append", "db.orders", "rows.txt", "--format", "csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("appended 1 row in 1 data file of ")
    assert ids(orders.refresh().scan().to_arrow()) == [7]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("rows.csv", "id,amout\n1,2\n", "hint: did you mean `amount`?"),
        ("rows.csv", "id\none\n", "error: cannot read `rows.csv` as csv: "),
        ("rows.csv", "amount\n1\n", "error: expected the required column `id`"),
        ("rows.csv", "", "error: cannot read `rows.csv` as csv: "),
        ("rows.jsonl", "{", "error: cannot read `rows.jsonl` as jsonl: "),
        ("rows.parquet", "PAR1", "error: cannot read `rows.parquet` as parquet: "),
    ],
)
def test_file_that_does_not_fit_is_one_error_and_nothing_is_appended(
    bl: Command, tmp_path: Path, orders: Table, name: str, text: str, message: str
) -> None:
    (tmp_path / "good.csv").write_text("id\n1\n")
    (tmp_path / name).write_text(text)
    before = orders.metadata_location
    done = bl("append", "db.orders", "good.csv", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert orders.refresh().metadata_location == before
    assert list((tmp_path / "warehouse").rglob("*.parquet")) == []


def test_tag_takes_no_rows(bl: Command, tmp_path: Path, orders: Table) -> None:
    (tmp_path / "good.csv").write_text("id\n1\n")
    assert bl("append", "db.orders", "good.csv").returncode == 0
    orders.refresh().refs.create_tag("v1")
    done = bl("append", "db.orders", "good.csv", "--branch", "v1")
    assert (done.returncode, done.stdout) in {(1, ""), (2, "")}
    assert "`v1`" in done.stderr
