"""What attempts cost: a manifest list each, and nothing else; afterwards the lists of those that lost are gone."""

from collections import Counter
from collections.abc import Callable

import pytest

from bergline import Lake, Table
from bergline.scan.manifests import load_manifest_list
from support.fixtures.competing_writers import rival_lake
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

CONFLICTS = 3
OPERATIONS: dict[str, tuple[Callable[[Table], object], list[int]]] = {
    "append": (lambda t: t.append(order_rows(9)), [1, 2, 3, 4, 9]),
    "fast append": (lambda t: t.append(order_rows(9), fast=True), [1, 2, 3, 4, 9]),
    "overwrite by filter": (lambda t: t.overwrite(order_rows(9), "id IN (2, 4)"), [1, 3, 9]),
    "delete": (lambda t: t.delete("id IN (2, 4)"), [1, 3]),
    "merge-on-read": (lambda t: t.delete("id IN (2, 4)"), [1, 3]),
    "replace partitions": (lambda t: t.overwrite_partitions(order_rows(9)), [4, 9]),
}


def kinds(files: set[str]) -> Counter[str]:
    """How many manifest lists, manifests and data or delete files there are."""
    found = Counter[str]()
    for file in files:
        name = file.rpartition("/")[2]
        if name.startswith("snap-"):
            found["list"] += 1
        elif name.endswith(".avro"):
            found["manifest"] += 1
        elif not name.endswith(".metadata.json"):
            found["data"] += 1
    return found


@pytest.mark.parametrize("version", ["1", "2", "3"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_attempt_writes_one_manifest_list_and_nothing_else(lake: Lake, name: str, version: str) -> None:
    properties = {
        "format-version": version,
        "write.delete.mode": "merge-on-read" if name == "merge-on-read" else "copy-on-write",
        "commit.manifest.min-count-to-merge": "2",
        "write.delete.isolation-level": "snapshot",
    }
    table = lake.create_table("db.t", ORDERS, partition_by=["region"], properties=properties)
    for rows in (order_rows(1), order_rows(2, 3), order_rows(4, region="us")):
        table.append(rows, fast=True)
    not_mine = set(table.io.list(table.location))
    attempts: list[Counter[str]] = []

    def other_writer() -> None:
        attempts.append(kinds(set(table.io.list(table.location)) - not_mine))
        if len(attempts) <= CONFLICTS:
            before = set(table.io.list(table.location))
            table.append(order_rows(100 + len(attempts), region="jp"), fast=True)
            not_mine.update(set(table.io.list(table.location)) - before)

    operate, expected = OPERATIONS[name]
    loser, _ = rival_lake(lake, before_swap=other_writer)
    operate(loser.load_table("db.t"))
    assert [a.pop("list") for a in attempts] == list(range(1, CONFLICTS + 2))
    assert attempts == [attempts[0]] * (CONFLICTS + 1)
    assert ids(table.refresh().scan("region <> 'jp'").to_arrow()) == expected
    named = {s.manifest_list for s in table.metadata.snapshots}
    manifests = {m.manifest_path for s in table.metadata.snapshots for m in load_manifest_list(table.io, s)}
    on_disk = {f for f in table.io.list(table.location) if f.endswith(".avro")}
    assert on_disk == named | manifests
