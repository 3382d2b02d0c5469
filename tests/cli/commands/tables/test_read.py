"""`bergline read`."""

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline import Lake, Table
from support.fixtures.rows import order_rows
from support.processes.command_line import Command


def test_rows_at_any_state(bl: Command, orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_tag("v1")
    between = dt.datetime.now(dt.UTC).isoformat()
    orders.append(order_rows(2), branch="staging")
    orders.append(order_rows(3))
    first = str(orders.metadata.snapshots[0].snapshot_id)
    for state, found in ((None, {1, 3}), ("v1", {1}), ("staging", {1, 2}), (first, {1}), (between, {1})):
        at = [] if state is None else ["--at", state]
        done = bl("read", "db.orders", "--json", *at)
        assert (done.returncode, done.stderr) == (0, "")
        assert {json.loads(line)["id"] for line in done.stdout.splitlines()} == found


def test_where_columns_and_limit(bl: Command, orders: Table) -> None:
    orders.append(order_rows(*range(150)))
    done = bl("read", "db.orders")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 101)
    assert done.stderr == "only the first 100 rows are shown: --limit takes more\n"
    done = bl("read", "db.orders", "--where", "id >= 100", "--columns", "region, id", "--limit", "2", "--format", "csv")
    assert (done.returncode, done.stdout, done.stderr) == (0, "region,id\neu,100\neu,101\n", "")
    assert bl("read", "db.orders", "--limit", "0", "--format", "jsonl").stdout == ""
    assert len(bl("read", "db.orders", "--format", "csv").stdout.splitlines()) == 151


def test_values_of_all_kinds_are_printed(bl: Command, lake: Lake) -> None:
    rows = pa.table(
        {
            "text": pa.array(['a,"b"', "", None]),
            "number": pa.array([Decimal("1.50"), None, Decimal("-2.00")], pa.decimal128(9, 2)),
            "at": pa.array([dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC), None, None], pa.timestamp("us", "UTC")),
            "bytes": pa.array([b"\x00\xff", None, b""]),
            "list": pa.array([[1, 2], None, []], pa.list_(pa.int64())),
        }
    )
    lake.create_table("db.kinds", rows.schema).append(rows)
    done = bl("read", "db.kinds", "--format", "csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "text,number,at,bytes,list",
        '"a,""b""",1.50,2026-01-31 12:00:00.000000Z,00ff,"[1,2]"',
        '"",,,,',
        ',-2.00,,"",[]',
    ]
    first = json.loads(bl("read", "db.kinds", "--json").stdout.splitlines()[0])
    assert first == {
        "text": 'a,"b"',
        "number": "1.50",
        "at": "2026-01-31 12:00:00.000000Z",
        "bytes": "00ff",
        "list": [1, 2],
    }
    assert "NULL" in bl("read", "db.kinds").stdout


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_rows_written_to_a_file_can_be_appended_again(bl: Command, tmp_path: Path, orders: Table, form: str) -> None:
    orders.append(order_rows(1, 2))
    done = bl("read", "db.orders", "--output", f"rows.{form}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(path.name for path in tmp_path.glob("*rows*")) == [f"rows.{form}"]
    assert bl("append", "db.orders", f"rows.{form}").returncode == 0
    assert orders.refresh().scan().to_arrow().num_rows == 4
    done = bl("read", "db.orders", "-o", f"rows.{form}")
    assert (done.returncode, done.stderr) == (1, f"error: file `rows.{form}` exists already\n")
    if form == "parquet":
        assert pq.read_table(tmp_path / "rows.parquet").num_rows == 2


def test_rows_before_a_missing_file_are_shown(bl: Command, tmp_path: Path, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.append(order_rows(2))
    *_, last = (task.file.file_path for task in orders.scan().plan().files)
    Path(last.removeprefix("file://")).unlink()
    done = bl("read", "db.orders")
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) <= 2
    assert last in done.stderr
    done = bl("read", "db.orders", "-o", "rows.csv")
    assert (done.returncode, list(tmp_path.glob("*rows*"))) == (1, [])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--where", "nothing = 1"], 1, "error: no column `nothing`"),
        (["--where", "id ="], 2, "error: "),
        (["--columns", "id,amout"], 1, "did you mean `amount`?"),
        (["--format", "parquet"], 2, "error: expected --output with --format parquet, found none"),
        (["--format", "table", "-o", "x"], 2, "error: expected --format csv, jsonl or parquet with --output"),
        (["-o", "x.txt"], 2, "error: expected a file with one of .parquet"),
        (["-o", "nowhere/x.csv"], 1, "error: cannot write `nowhere/x.csv`: No such file or directory"),
        (["--at", "v9"], 1, "error: no branch or tag `v9`"),
    ],
)
def test_bad_input_is_one_error(bl: Command, orders: Table, arguments: list[str], code: int, message: str) -> None:
    orders.append(order_rows(1))
    done = bl("read", "db.orders", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
