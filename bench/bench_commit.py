"""Small appends beside PyIceberg in one run: to a table of few snapshots, and to one of many.

Both append to the same state: a table that bergline wrote, registered once in a catalog of each; once more with as many
manifests as snapshots, as PyIceberg itself would leave it. Prints both times (best of the rounds), and what many
snapshots cost bergline next to few.
"""

import argparse
import tempfile
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

import bergline
from bergline import Lake
from results import report, times

SCHEMA = pa.schema([("id", pa.int64()), ("amount", pa.float64()), ("region", pa.string())])
ROWS = pa.table({"id": [1, 2, 3], "amount": [1.0, 2.0, 3.0], "region": ["a", "b", "c"]}, schema=SCHEMA)
FEW, MANY = 10, 2000
ROUNDS = 15


UNMERGED = {"commit.manifest-merge.enabled": "false"}


def written_table(lake: Lake, name: str, snapshots: int, properties: dict[str, str]) -> str:
    """The metadata file of a table with so many appends behind it."""
    table = lake.create_table(f"db.{name}", SCHEMA, properties=properties)
    for _ in range(snapshots):
        table.append(ROWS)
    return table.metadata_location


def bench_appends(directory: str, metadata_location: str, name: str, case: str) -> float:
    """One line for both, each in a catalog of its own; returns bergline's time."""
    with bergline.connect(f"sqlite:///{directory}/ours_{name}.db", create=True) as lake:
        lake.create_namespace("db")
        table = lake.register_table(f"db.{name}", metadata_location)
        ours = times(ROUNDS, lambda: table.append(ROWS))
    uri = f"sqlite:///{directory}/theirs_{name}.db"
    catalog = SqlCatalog("lake", uri=uri, warehouse=Path(directory, "theirs").as_uri())
    catalog.create_namespace("db")
    peer = catalog.register_table(f"db.{name}", metadata_location)
    rows = ROWS.cast(peer.schema().as_arrow())
    theirs = times(ROUNDS, lambda: peer.append(rows))
    report(case, ours, theirs)
    return min(ours)


def main() -> None:
    cases = [
        ("few", FEW, {}, f"append 3 rows to a table of {FEW} snapshots"),
        ("many", MANY, {}, f"append 3 rows to a table of {MANY:,} snapshots"),
        ("unmerged", MANY, UNMERGED, f"append 3 rows at {MANY:,} snapshots and as many manifests"),
    ]
    with (
        tempfile.TemporaryDirectory() as directory,
        bergline.connect(f"sqlite:///{directory}/catalog.db", create=True) as lake,
    ):
        lake.create_namespace("db")
        best = {}
        for name, snapshots, properties, case in cases:
            location = written_table(lake, name, snapshots, properties)
            best[name] = bench_appends(directory, location, name, case)
        print(f"bergline at {MANY:,} snapshots takes {best['many'] / best['few']:.2f} times what it takes at {FEW}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
