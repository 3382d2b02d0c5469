"""One who pushes, approves or publishes, in a process of its own: role, catalog, warehouse, name and rows in all."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import bergline
from bergline import Lake
from bergline.catalog.protection.caller import acting_as
from bergline.errors import ConflictError, NotFoundError, RefusedError
from support.fixtures.reviewing_lake import TABLES, guarded, ids, push

_PAUSE_S = 0.02  # for the others, where processors are few
_NOT_YET = (ConflictError, NotFoundError, RefusedError)


def push_all(lake: Lake, table: str, rows: int) -> None:
    """One row after the other."""
    for number in range(1, rows):
        push(lake, table, number)


def approve(lake: Lake, end: Path) -> None:
    """Approve what is there, with its check passed; every third time one has second thoughts."""
    turn = 0
    while not end.exists():
        try:
            for request in lake.pull_requests.list():
                overview = request.look()
                if "bob" in overview.approved_by:
                    continue
                turn += 1
                heads = {head.name: head.snapshot_id for head in overview.heads}
                request.report_check("nulls", "passed", heads=heads).approve(heads=heads)
                if turn % 3 == 0:
                    request.report_check("nulls", "failed", heads=heads).withdraw()
        except _NOT_YET:
            pass
        time.sleep(_PAUSE_S)


def publish(lake: Lake, end: Path, rows: int) -> None:
    """Publish until all rows are there, each time by a new pull request."""
    while any(len(ids(lake, table)) < rows for table in TABLES):
        try:
            found = lake.pull_requests.list()
            request = found[0] if found else lake.pull_requests.open("work")
            request.look()
            request.publish(keep_branch=True)
        except _NOT_YET:
            time.sleep(_PAUSE_S)
    end.touch()


def main(role: str, uri: str, warehouse: str, name: str, rows: int) -> None:
    """Do what the role says."""
    end = Path(warehouse) / "end"
    roles: dict[str, Callable[[Lake], None]] = {
        "bob": lambda lake: approve(lake, end),
        "ann": lambda lake: publish(lake, end, rows),
        **{table: lambda lake, table=table: push_all(lake, table, rows) for table in TABLES},
    }
    with bergline.connect(uri, warehouse=warehouse, name=name) as lake, acting_as(role):
        guarded(lake)
        roles[role](lake)


if __name__ == "__main__":
    main(*sys.argv[1:5], int(sys.argv[5]))
