"""The queries of TPC-DS on small tables: PySpark with bergline, on plain Parquet files and with the official runtime.

Each side runs in fresh processes of its own with the same settings, by turns; a figure is the median of the rounds.
`--quick` takes the first five queries alone, which shows only that everything works.
"""

import statistics
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

import bergline
from results import record
from sides import WORDS, Found, Turns, argument_parser

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.fixtures.tpcds_data import tpcds_queries, tpcds_tables

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


def totals(found: Found, side: str, names: list[str]) -> list[float]:
    """The seconds of some queries in each round."""
    return [sum(one["seconds"][name] for name in names) for one in found[side]]


def print_figures(found: Found, names: list[str]) -> None:
    medians = {side: statistics.median(totals(found, side, names)) for side in found}
    print(f"| {len(names)} queries of TPC-DS | total | to Parquet |\n|---|---|---|")
    for side, total in medians.items():
        print(f"| {WORDS[side]} | {total:.1f} s | {total / medians['parquet']:.2f} |")
    ours = totals(found, "bergline", names)
    for peer in ("parquet", "official"):
        record(f"{len(names)} queries of TPC-DS", ours, totals(found, peer, names), WORDS[peer], in_turns=True)
    of_query = {name: {side: statistics.median(totals(found, side, [name])) for side in found} for name in names}
    slowest = sorted(names, key=lambda name: of_query[name]["parquet"] / of_query[name]["bergline"])
    for name in slowest[:SHOWN]:
        each = (f"{side} {seconds:.2f} s" for side, seconds in of_query[name].items())
        print(f"furthest behind Parquet: {name}, {', '.join(each)}", file=sys.stderr)


def main() -> None:
    parser = argument_parser(__doc__, rounds=1)
    parser.add_argument("--queries", type=int, default=None, help="how many of them (all)")
    given = parser.parse_args()
    queries = tpcds_queries()
    if queries is None:
        print("no queries of TPC-DS: make gets them, with Maven", file=sys.stderr)
        return
    names = list(queries)[: FEW if given.quick else given.queries]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        make_tables(directory)
        print_figures(Turns(directory, SIDE, WORDS, given.rounds or 1).run("queries", names), names)


if __name__ == "__main__":
    main()
