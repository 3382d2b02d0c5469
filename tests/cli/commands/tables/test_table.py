"""`bergline table`: what tables there are, what is in them, and what changes them."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bergline
from bergline import Lake, Table
from bergline.catalog.catalog import DroppedTable
from bergline.catalog.sql.records import sql_store_of
from support.fixtures.rows import ORDERS, ids, order_rows
from support.processes.command_line import Command, Terminal, run_here
from support.servers.glue_server import GlueProxy


def local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def test_list_shows_rows_sizes_and_refs(bl: Command, orders: Table) -> None:
    orders.append(order_rows(1, 2)).refs.create_tag("v1")
    done = bl("table", "list")
    assert (done.returncode, done.stderr) == (0, "")
    header, line = (text.split() for text in done.stdout.splitlines())
    assert header == ["table", "rows", "size", "branches", "tags", "snapshots", "changed"]
    assert (line[:2], line[4:7]) == (["db.orders", "2"], ["1", "1", "1"])
    (found,) = json.loads(bl("table", "list", "--json", "--namespace", "db", "--search", "ord").stdout)
    assert (found["table"], found["rows"], found["tags"], found["problem"]) == ("db.orders", 2, 1, None)
    assert json.loads(bl("table", "list", "--json", "--search", "nothing").stdout) == []


@pytest.mark.parametrize("damage", [lambda file: file.unlink(), lambda file: file.write_text("[/red] {")])
def test_table_that_cannot_be_read_is_listed_beside_the_others(
    bl: Command, lake: Lake, orders: Table, damage: Callable[[Path], object]
) -> None:
    broken = lake.create_table("db.broken", ORDERS)
    damage(local(broken.metadata_location))
    done = bl("table", "list")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["table", "db.broken", "db.orders"]
    assert done.stderr.startswith("error: cannot show table `db.broken`: ")
    assert (done.returncode, broken.metadata_location in done.stderr, "Traceback" in done.stderr) == (1, True, False)
    done = bl("table", "show", "db.broken", "--json")
    assert (done.returncode, json.loads(done.stdout)["metadata_location"]) == (1, broken.metadata_location)
    assert "error: cannot show table `db.broken`" in done.stderr


def test_tables_of_a_database_and_of_glue_are_shown(tmp_path: Path, postgres: str, glue: GlueProxy) -> None:
    for uri, properties in ((postgres, {}), ("glue://", glue.properties)):
        warehouse = str(tmp_path / "wh")
        with bergline.connect(uri, warehouse=warehouse, properties=properties, create=True) as lake:
            lake.create_namespace("cli")
            orders = lake.create_table("cli.orders", ORDERS).append(order_rows(1))
        options = [text for key, value in properties.items() for text in ("--property", f"{key}={value}")]
        done = run_here("table", "show", "cli.orders", "--json", "--catalog", uri, *options, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout)["metadata_location"] == orders.metadata_location
        done = run_here("table", "list", "--catalog", uri, "--warehouse", warehouse, *options, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert "cli.orders" in done.stdout


def test_show_has_all_that_a_glance_needs(bl: Command, lake: Lake) -> None:
    table = lake.create_table("db.orders", ORDERS, partition_by=["bucket(4, id)"], properties={"owner": "ann"})
    table.append(order_rows(1))
    done = bl("table", "show", "db.orders")
    assert (done.returncode, done.stderr) == (0, "")
    for text in (table.metadata_location, "bucket(4, id)", "1 in 1 data files", "main ("):
        assert text in done.stdout
    columns = [line.split() for line in done.stdout.splitlines()]
    start = columns.index(["columns", "id", "long", "required"])
    assert columns[start + 1 : start + 3] == [["amount", "double"], ["region", "string"]]
    found = json.loads(bl("table", "show", "db.orders", "--json").stdout)
    assert (found["rows"], found["partitioned_by"], found["properties"]["owner"]) == (1, ["bucket(4, id)"], "ann")
    assert [(c["name"], c["type"]) for c in found["columns"]][:2] == [("id", "long"), ("amount", "double")]
    assert found["refs"][0]["snapshot_id"] == str(table.metadata.current_snapshot_id)


def test_snapshot_whose_files_are_gone_is_shown_as_far_as_it_can_be(bl: Command, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.append(order_rows(2, 3))
    (first, *_) = orders.inspect("manifests").column("path").to_pylist()
    local(first).unlink()
    for command in ("files", "partitions"):
        done = bl("table", command, "db.orders", "--json")
        assert done.returncode == 1
        assert sum(part["rows"] for part in json.loads(done.stdout)) in {1, 2}
        assert f"error: cannot show the files of manifest {first}" in done.stderr
    local(str(orders.current_snapshot.manifest_list)).unlink()  # type: ignore[union-attr]
    done = bl("table", "show", "db.orders")
    assert (done.returncode, "db.orders" in done.stdout) == (1, True)
    assert "error: cannot show the files of `main`" in done.stderr


def test_schema_is_that_of_the_state(bl: Command, orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_tag("v1")
    with orders.update_schema() as update:
        update.add_column("note", "string", doc="what they [said]")
    done = bl("table", "schema", "db.orders")
    assert (done.returncode, done.stderr) == (0, "")
    assert "what they [said]" in done.stdout
    names = [column["name"] for column in json.loads(bl("table", "schema", "db.orders", "--at", "v1", "--json").stdout)]
    assert names == ["id", "amount", "region"]
    done = bl("table", "schema", "db.orders", "--at", "v2")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: no branch or tag `v2`\n"


def test_files_and_partitions_of_a_state_are_listed(bl: Command, lake: Lake) -> None:
    table = lake.create_table("db.orders", ORDERS, partition_by=["region"])
    table.append(order_rows(1, 2)).refs.create_tag("v1")
    table.append(order_rows(3, region="us"))
    done = bl("table", "files", "db.orders", "--limit", "1")
    assert (done.returncode, done.stderr) == (0, "1 of 2 files are shown: --limit takes more\n")
    assert len(done.stdout.splitlines()) == 2
    assert "B  {" in done.stdout
    files = json.loads(bl("table", "files", "db.orders", "--at", "v1", "--json").stdout)
    assert [(file["record_count"], file["partition"]) for file in files] == [(2, {"region": "eu"})]
    parts = json.loads(bl("table", "partitions", "db.orders", "--json").stdout)
    assert [(part["partition"], part["rows"]) for part in parts] == [("region=eu", 2), ("region=us", 1)]
    assert bl("table", "partitions", "db.orders").stdout.splitlines()[-1].split()[:3] == ["total", "3", "2"]


def test_metadata_tables_are_shown_by_name(bl: Command, orders: Table) -> None:
    orders.append(order_rows(1))
    (snapshot,) = json.loads(bl("table", "inspect", "db.orders", "snapshots", "--json").stdout)
    assert snapshot["snapshot_id"] == str(orders.metadata.current_snapshot_id)
    done = bl("table", "inspect", "db.orders", "snapshot")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: no metadata table `snapshot`\nhint: did you mean `snapshots`")


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_table_is_created_with_the_rows_of_files(bl: Command, tmp_path: Path, lake: Lake, form: str) -> None:
    rows = order_rows(1, 2)
    file = tmp_path / f"orders.{form}"
    match form:
        case "parquet":
            pq.write_table(rows, file)
        case "csv":
            file.write_text("id,amount,region\n1,10.5,eu\n2,,\n")
        case _:
            file.write_text('{"id": 1, "amount": 10.5, "region": "eu"}\n{"id": 2, "amount": null, "region": null}\n')
    done = bl("table", "create", "db.new", str(file), "--partition-by", "id", "--set", "owner=ann")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("appended 2 rows in 2 data files of ")
    table = lake.load_table("db.new")
    assert ids(table.scan().to_arrow()) == [1, 2]
    assert (table.properties["owner"], len(table.metadata.snapshots), len(table.spec.fields)) == ("ann", 1, 1)
    assert [str(field.type) for field in table.schema.fields] == ["long", "double", "string"]


def test_table_that_cannot_be_created_with_its_rows_is_not_created(bl: Command, tmp_path: Path, lake: Lake) -> None:
    (tmp_path / "good.csv").write_text("id\n1\n")
    (tmp_path / "bad.csv").write_text("id\n" + "1234567890\n" * 900_000 + "x\n")
    done = bl("table", "create", "db.new", "good.csv", "bad.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: cannot read `bad.csv` as csv: ")
    assert done.stderr.count("\n") == 1
    assert not lake.table_exists("db.new")
    for arguments, code, said in (
        (["db.new", "god.csv"], 1, "error: no file `god.csv`\nhint: did you mean `good.csv`"),
        (["db.new", "notes.txt"], 2, "error: expected a file with one of .parquet, .csv, .jsonl, .ndjson, found"),
        (["d.new", "good.csv"], 1, "error: no namespace `d`"),
    ):
        done = bl("table", "create", *arguments)
        assert (done.returncode, done.stdout, done.stderr[: len(said)]) == (code, "", said)


def test_only_the_columns_of_files_are_taken(bl: Command, tmp_path: Path, lake: Lake) -> None:
    pq.write_table(order_rows(1).append_column("nothing", pa.nulls(1)), tmp_path / "o.parquet")
    done = bl("table", "create", "db.new", "o.parquet", "--only-columns")
    assert (done.returncode, done.stdout, done.stderr) == (0, "created table `db.new` with 4 columns\n", "")
    assert lake.load_table("db.new").current_snapshot is None


def test_properties_are_set_and_removed(bl: Command, orders: Table) -> None:
    done = bl("table", "properties", "db.orders", "--set", "a=1", "--set", "b=[2]")
    assert (done.returncode, done.stderr) == (0, "")
    assert "[2]" in done.stdout
    found = json.loads(bl("table", "properties", "db.orders", "--unset", "a", "--json").stdout)
    assert (found.get("a"), found["b"]) == (None, "[2]")
    done = bl("table", "properties", "db.orders", "--set", "a")
    assert (done.returncode, done.stderr) == (2, "error: expected --set key=value, found another text\n")


def test_rename_and_register(bl: Command, lake: Lake, orders: Table) -> None:
    assert bl("table", "rename", "db.orders", "db.old").stdout == "renamed table `db.orders` to `db.old`\n"
    location = lake.unregister_table("db.old")
    done = bl("table", "register", "db.again", location)
    assert (done.returncode, done.stdout, done.stderr) == (0, "registered table `db.again` with 0 rows\n", "")
    done = bl("table", "register", "db.again", location)
    assert (done.returncode, done.stdout) == (1, "")


def test_drop_shows_its_plan_and_asks(bl: Command, lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    done = bl("table", "drop", "db.orders")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("drop table `db.orders` with 1 row, ")
    assert "error: nothing was done: there is no terminal to ask at\nhint: --yes" in done.stderr
    done = bl("table", "drop", "db.orders", stdin=Terminal("n\n"))
    assert (done.returncode, done.stderr.endswith("nothing was done\n")) == (1, True)
    assert lake.table_exists("db.orders")
    done = bl("table", "drop", "db.orders", stdin=Terminal("y\n"))
    assert done.returncode == 0
    assert not lake.table_exists("db.orders")
    assert local(orders.metadata_location).exists()


def test_purge_deletes_files(bl: Command, orders: Table) -> None:
    orders.append(order_rows(1))
    done = bl("table", "drop", "db.orders", "--purge", "--yes", "--json")
    assert (done.returncode, json.loads(done.stdout)["failed_files"]) == (0, [])
    assert "nothing brings them back" in done.stderr
    assert not local(orders.metadata_location).exists()
    done = bl("table", "undrop", "db.orders", "--yes")
    assert (done.returncode, done.stdout) == (1, "")
    assert "error: no metadata of a dropped table `db.orders`" in done.stderr


def test_undrop_brings_a_table_back(bl: Command, lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1, 2)).refs.create_tag("v1")
    dropped = json.loads(bl("table", "drop", "db.orders", "--yes", "--json").stdout)
    done = bl("table", "undrop", "db.orders")
    assert (done.returncode, lake.table_exists("db.orders")) == (2, False)
    done = bl("table", "undrop", "db.orders", "--yes", "--json")
    assert (done.returncode, json.loads(done.stdout)["rows"]) == (0, 2)
    table = lake.load_table("db.orders")
    assert (table.metadata_location, list(table.refs)) == (dropped["metadata_location"], ["main", "v1"])
    done = bl("table", "undrop", "db.orders", "--yes")
    assert done.returncode == 1
    assert done.stderr.startswith("error: table `db.orders` exists: it is not dropped\n")
    done = bl("table", "undrop", "db.nothing", "--to", "db.orders")
    assert "table `db.orders` exists" in done.stderr


def test_undrop_of_a_table_whose_files_are_gone_registers_nothing(bl: Command, lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    (file,) = orders.inspect("files").column("file_path").to_pylist()
    location = lake.unregister_table("db.orders")
    local(file).unlink()
    for more in ([], ["--metadata", location]):
        done = bl("table", "undrop", "db.orders", "--yes", *more)
        assert (done.returncode, done.stdout) == (1, "")
        assert "files that it needs are gone: " in done.stderr
        assert file in done.stderr
    assert not lake.table_exists("db.orders")


def test_table_in_the_trash_of_a_server_is_listed_and_comes_back(bl: Command, lake: Lake, orders: Table) -> None:
    store = sql_store_of(lake.catalog)
    kept = DroppedTable(orders.name, orders.metadata_location, 1, 2, "ann", purges_files=True)
    lake.drop_table("db.orders")
    with store.database.changing() as connection:
        store.table_trash.add(connection, kept)
    done = bl("table", "dropped")
    assert done.returncode == 0
    assert "db.orders" in done.stdout
    assert "deleted after 1970-01-01T00:00:00+00:00" in done.stdout
    (listed,) = json.loads(bl("table", "dropped", "--json").stdout)
    assert (listed["name"], listed["principal"]) == ("db.orders", "ann")
    assert bl("table", "undrop", "db.orders").returncode == 0
    assert lake.table_exists("db.orders")
    assert json.loads(bl("table", "dropped", "--json").stdout) == []


def test_lake_without_a_bin_says_so(bl: Command, orders: Table) -> None:
    done = bl("table", "dropped")
    assert done.returncode == 0
    assert "no trash here" in done.stderr


def test_undrop_of_a_table_that_is_nowhere_names_the_trash_and_the_options(
    bl: Command, lake: Lake, orders: Table
) -> None:
    store = sql_store_of(lake.catalog)
    with store.database.changing() as connection:
        for number in range(2):
            store.table_trash.add(connection, DroppedTable(orders.name, "p", number, 2, "ann", purges_files=False))
    done = bl("table", "undrop", "db.order")
    assert "no metadata of a dropped table `db.order`; dropped: `db.orders`" in done.stderr
    assert "`--location DIRECTORY`" in done.stderr
    done = bl("table", "dropped", "--limit", "1")
    assert "there are more than 1 table in the trash" in done.stderr
    assert done.stdout.count("db.orders") == 1
