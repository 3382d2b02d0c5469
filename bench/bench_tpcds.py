"""The queries of TPC-DS on small tables: PySpark with bergline, on plain Parquet files and with the official runtime.

Each side runs in fresh processes of its own with the same settings, by turns; a figure is the median of the rounds.
`--small` takes the first five queries alone, which shows only that everything works.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import bergline
from bench_spark import official_jars, run_side
from results import record

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support" / "fixtures"))
from tpcds_data import tpcds_queries, tpcds_tables

SIDE = Path(__file__).with_name("tpcds_side.py")
SHOWN = FEW = 5


def make_tables(directory: Path) -> None:
    """The same rows in a lake and in Parquet files."""
    with bergline.connect(f"sqlite:///{directory}/catalog.db", create=True) as lake:
        lake.create_namespace("db")
        for name, rows in tpcds_tables().items():
            lake.create_table(f"db.{name}", rows.schema).append(rows)
            (directory / "parquet" / name).mkdir(parents=True)
            pq.write_table(rows, directory / "parquet" / name / "rows.parquet")


def median_seconds(rounds: list[dict[str, Any]], names: list[str]) -> float:
    return statistics.median(sum(one["seconds"][name] for name in names) for one in rounds)


def print_figures(found: dict[str, list[dict[str, Any]]], names: list[str]) -> None:
    parquet = median_seconds(found["parquet"], names)
    print(f"| {len(names)} queries of TPC-DS | total | to Parquet |\n|---|---|---|")
    for side, rounds in found.items():
        total = median_seconds(rounds, names)
        print(f"| {side} | {total:.1f} s | {total / parquet:.2f} |")
    ours, *peers = ([sum(one["seconds"][n] for n in names) for one in rounds] for rounds in found.values())
    for peer, theirs in zip(list(found)[1:], peers, strict=True):
        record(f"{len(names)} queries of TPC-DS", ours, theirs, peer)
    slowest = sorted(
        names, key=lambda n: median_seconds(found["parquet"], [n]) / median_seconds(found["bergline"], [n])
    )
    for name in slowest[:SHOWN]:
        each = (f"{side} {median_seconds(rounds, [name]):.2f} s" for side, rounds in found.items())
        print(f"furthest behind Parquet: {name}, {', '.join(each)}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="the first five queries, which shows that it works")
    parser.add_argument("--queries", type=int, default=None, help="how many of them (all)")
    parser.add_argument("--rounds", type=int, default=1, help="processes of each side (1)")
    given = parser.parse_args()
    queries = tpcds_queries()
    if queries is None:
        print("no queries of TPC-DS: make gets them, with Maven", file=sys.stderr)
        return
    names = list(queries)[: FEW if given.small else given.queries]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        make_tables(directory)
        sides = {"bergline": "bergline", "parquet": "parquet", "official runtime": official_jars(directory)}
        found: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
        for number in range(given.rounds):
            for side in sides if number % 2 == 0 else reversed(sides):
                mark = f"{side.split(' ', maxsplit=1)[0]}_{number}"
                found[side].append(run_side(sides[side], directory, names, mark, SIDE))
                print(f"round {number + 1} of {given.rounds}: {side} done", file=sys.stderr)
    for rounds in zip(*found.values(), strict=True):
        for one in names:
            assert len({tuple(side["answers"][one]) for side in rounds}) == 1, one
    print_figures(found, names)


if __name__ == "__main__":
    main()
