"""`bergline table`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import run
from glue_server import GlueProxy
from rows import ORDERS, order_rows

import bergline
from bergline import Lake, Table


@pytest.mark.parametrize("damage", [lambda file: file.unlink(), lambda file: file.write_text("[/red] {")])
def test_table_that_cannot_be_read_is_listed_beside_the_others(
    tmp_path: Path, lake: Lake, orders: Table, damage: Callable[[Path], object]
) -> None:
    broken = lake.create_table("db.broken", ORDERS)
    damage(Path(broken.metadata_location.removeprefix("file://")))
    done = run("table", "list", "--catalog", f"sqlite:///{tmp_path}/catalog.db", cwd=tmp_path)
    _, *rows = (line.split() for line in done.stdout.splitlines())
    assert rows == [["db.broken", broken.metadata_location], ["db.orders", orders.metadata_location]]
    assert done.stderr.startswith("error: table `db.broken`")
    assert done.stderr.count("`db.broken`") == 1
    assert broken.metadata_location in done.stderr
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)


def test_tables_of_a_database_and_of_glue_are_shown(tmp_path: Path, postgres: str, glue: GlueProxy) -> None:
    for uri, properties in ((postgres, {}), ("glue://", glue.properties)):
        warehouse = str(tmp_path / "wh")
        with bergline.connect(uri, warehouse=warehouse, properties=properties, create=True) as lake:
            lake.create_namespace("cli")
            orders = lake.create_table("cli.orders", ORDERS).append(order_rows(1))
        options = [text for key, value in properties.items() for text in ("--property", f"{key}={value}")]
        done = run("table", "list", "--json", "--catalog", uri, *options, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert {"table": "cli.orders", "pointer": orders.metadata_location} in json.loads(done.stdout)
        done = run("refs", "cli.orders", "--catalog", uri, "--warehouse", warehouse, *options, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
