"""A writer in a process of its own that stops before each swap until it is told to go on.

Usage: paused_writer_process.py DATABASE NAME ORDER_ID. Signals are files beside the database: NAME.ready.N from the
writer, NAME.go.N to it.
"""

import json
import sys
import time
from pathlib import Path

import bergline
from bergline import Lake
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.testing.faults import FaultyStore
from support.fixtures.rows import order_rows


def main(database: Path, name: str, order_id: int) -> None:
    swaps = 0

    def wait_for_go() -> None:
        nonlocal swaps
        swaps += 1
        (database.parent / f"{name}.ready.{swaps}").touch()
        deadline = time.monotonic() + 60
        while not (database.parent / f"{name}.go.{swaps}").exists():
            if time.monotonic() > deadline:
                raise TimeoutError(name)
            time.sleep(0.005)

    with bergline.connect(f"sqlite:///{database}") as lake:
        assert isinstance(lake.catalog, PointerCatalog)
        store = FaultyStore(lake.catalog.store, before_swap=wait_for_go)
        table = Lake(PointerCatalog(store, lake.catalog.io, "unused"), "lake").load_table("db.orders")
        started_from = table.metadata_location
        table.append(order_rows(order_id))
    sys.stdout.write(json.dumps({"swaps": swaps, "started_from": started_from, "pointer": table.metadata_location}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
