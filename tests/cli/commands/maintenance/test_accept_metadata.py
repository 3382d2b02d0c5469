"""`bergline accept-metadata`."""

import json
from pathlib import Path

import pytest

from bergline import Lake, Table, connect
from bergline.errors import MetadataChangedError
from support.processes.command_line import Command


def test_a_file_that_was_exchanged_is_accepted_after_a_plan(
    bl: Command, lake: Lake, orders: Table, tmp_path: Path
) -> None:
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    orders.set_properties({"a": "old"})
    done = bl("accept-metadata", "db.orders")
    assert done.stdout == "the metadata file of table `db.orders` is the one that was written\n"
    file = Path(orders.metadata_location.removeprefix("file://"))
    file.write_bytes(file.read_bytes().replace(b'"old"', b'"new"'))
    with connect(catalog) as other, pytest.raises(MetadataChangedError, match=r"of table `db\.orders`"):
        other.load_table("db.orders")
    done = bl("accept-metadata", "db.orders")
    assert done.returncode != 0
    assert "accept the metadata file of table `db.orders`: found " in done.stderr
    assert "no terminal to ask at" in done.stderr
    done = bl("accept-metadata", "db.orders", "--yes", "--json")
    assert json.loads(done.stdout) == {
        "name": "db.orders",
        "kind": "table",
        "metadata_location": orders.metadata_location,
        "accepted": True,
    }
    with connect(catalog) as other:
        assert other.load_table("db.orders").properties["a"] == "new"
    (row,) = json.loads(bl("audit", "list", "--json").stdout)
    assert (row["operation"], row["resource"]) == ("accept-metadata", "table/db/orders")
    assert "no table or view `db.none`" in bl("accept-metadata", "db.none").stderr
    lake.close()
