"""`bergline check`: exit code, text and JSON."""

import json
from pathlib import Path

from bergline import Lake, Table
from support.fixtures.damaged_tables import data_files, new_table, open_lake, path_of
from support.processes.command_line import Command, run_here


def check(directory: Path, *arguments: str) -> tuple[int, str, str]:
    done = run_here("check", *arguments, "--catalog", f"sqlite:///{directory}/catalog.db", cwd=directory)
    return done.returncode, done.stdout, done.stderr


def test_whole_tables(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        new_table(lake)
    code, out, err = check(tmp_path, "--deep")
    assert (code, err) == (0, "")
    assert out.startswith(
        "deep check of 1 table: none damaged\ndb.orders: no finding (2 snapshots, 2 manifests, 4 files"
    )


def test_damaged_table_is_found_and_the_others_are_checked_too(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        new_table(lake, "db.a")
        path = path_of(data_files(new_table(lake, "db.b"))[0].file_path)
    path.unlink()
    code, out, err = check(tmp_path)
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[:2] == ["check of 2 tables: 1 damaged", next(line for line in lines if line.startswith("db.a: no"))]
    assert "  error data-file-missing: the data file does not exist (needed by `main`)" in lines
    assert str(path) in out
    code, out, err = check(tmp_path, "--json", "--namespace", "db")
    found = json.loads(out)
    assert (code, found["ok"], [t["ok"] for t in found["tables"]]) == (1, False, [True, False])
    assert found["tables"][1]["findings"][0]["code"] == "data-file-missing"
    assert check(tmp_path, "db.a")[0] == 0


def test_table_that_does_not_exist(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        new_table(lake)
    code, out, err = check(tmp_path, "db.order")
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert "`db.order`" in err


def test_all_covers_views_and_the_trash(bl: Command, lake: Lake, orders: Table) -> None:
    lake.create_view("db.v", "SELECT 1 AS id", orders.schema)
    done = bl("check", "--all")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "check of 1 table and 2 others: none damaged")
    assert done.stdout.splitlines()[-2:] == ["view db.v: no finding", "catalog: no finding"]
    lake.catalog.io.delete([lake.load_view("db.v").metadata_location])
    done = bl("check", "--all", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"]) == (1, False)
    assert [other["ok"] for other in report["others"]] == [False, True]
    assert "expected --all alone" in bl("check", "--all", "db.orders").stderr
