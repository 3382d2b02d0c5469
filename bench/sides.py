"""Runs what is measured on Spark: every side in fresh processes with the same settings, by turns, in one run.

Beside bergline stand the official Iceberg Spark runtime and, for what they can do, plain Parquet files. All must give
the same answers. A time is the median of the rounds; a relative speed is the median of those of the turns, and in
brackets stand the least and the greatest.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import bergline
from bergline import Lake
from results import record, relative_speed

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.servers.peers import OfficialRuntime

WORDS = {"bergline": "bergline", "official": "official runtime", "parquet": "Parquet files"}
"""The sides, and what they are called."""

Sizes = dict[str, int]
Found = dict[str, list[dict[str, Any]]]
"""What the processes of each side found, in turns."""


class Part(NamedTuple):
    """What the cases of a part need: tables, and what one process needs, which has a mark of its own."""

    make_tables: Callable[[Lake, Sizes, Path], None] | None = None
    prepare: Callable[[Lake, str], None] | None = None


def run_parts(description: str | None, parts: Mapping[str, Part], script: Path, full: Sizes, quick: Sizes) -> None:
    """Run the parts that are asked for, and print a table of each."""
    options = argument_parser(description, rounds=3)
    options.add_argument("--only", choices=list(parts), action="append", help="only this part; may be repeated")
    options.add_argument("--size", action="append", default=[], metavar="NAME=N", help=f"instead of one of {full}")
    given = options.parse_args()
    changed = (said.split("=") for said in given.size)
    sizes = {**(quick if given.quick else full), **{name: int(size) for name, size in changed}}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with bergline.connect(f"sqlite:///{directory}/catalog.db", create=True) as lake:
            lake.create_namespace("db")
            turns = Turns(directory, script, WORDS, given.rounds or (1 if given.quick else 3))
            for asked in given.only or parts:
                part = parts[asked]
                if part.make_tables is not None:
                    part.make_tables(lake, sizes, directory)
                print_table(turns.run(asked, sizes, part.prepare and partial(part.prepare, lake)))


def argument_parser(description: str | None, rounds: int) -> argparse.ArgumentParser:
    """The options of all benchmarks on Spark."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--quick", action="store_true", help="small sizes and one round, which shows that it works")
    made.add_argument("--rounds", type=int, help=f"processes of each side ({rounds}; 1 with --quick)")
    return made


class Turns:
    """Fresh processes of the sides, by turns, on the tables in a directory."""

    def __init__(self, directory: Path, script: Path, sides: Iterable[str], rounds: int) -> None:
        self._directory = directory
        self._script = script
        self._sides = list(sides)
        self._rounds = rounds
        self._jars = official_jars(directory)

    def run(self, part: str, sizes: Any, prepare: Callable[[str], None] | None = None) -> Found:
        """All rounds of a part; `prepare` makes what a process needs, by its mark."""
        found: Found = {side: [] for side in self._sides}
        for number in range(self._rounds):
            for side in self._sides if number % 2 == 0 else reversed(self._sides):
                mark = f"{part}_{side}_{number}"
                if prepare is not None:
                    prepare(mark)
                found[side].append(self._run_side(part, side, sizes, mark))
                print(f"{part}, round {number + 1} of {self._rounds}: {side} done", file=sys.stderr)
        for ours, *others in zip(*found.values(), strict=True):
            for other in others:
                same = {case: ours["answers"][case] for case in other["answers"]}
                assert same == other["answers"], (same, other["answers"])
        return found

    def _run_side(self, part: str, side: str, sizes: Any, mark: str) -> dict[str, Any]:
        """One process: the seconds of each case, and the answers."""
        given = {"part": part, "side": side, "sizes": sizes, "mark": mark, "started": time.time()}
        given |= {"directory": str(self._directory), "jars": self._jars}
        log = self._directory / f"log-{mark}.txt"
        with log.open("w") as errors:
            command = [sys.executable, str(self._script), json.dumps(given)]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, check=False)  # noqa: S603
        if done.returncode != 0:
            sys.exit(f"{mark} failed: {log.read_text()[-3000:]}")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found


def official_jars(directory: Path) -> str:
    """Where the official runtime's jars are on this machine; brought here if they are not."""
    with OfficialRuntime(directory / "official.txt") as runtime:
        jars: str = runtime.python("result = spark.sparkContext.getConf().get('spark.jars')")
    return ",".join(jar for jar in jars.split(",") if "iceberg" in jar or "sqlite" in jar)


def make_parquet(lake: Lake, directory: Path, names: Iterable[str]) -> None:
    """The data files of tables once more (hard links), as directories that Spark reads without a table."""
    for name in names:
        for planned in lake.load_table(f"db.{name}").scan().plan().files:
            file = planned.file
            source = Path(file.file_path.removeprefix("file://"))
            folder = directory / "parquet" / name / (f"part={file.partition[0]}" if file.partition else "")
            folder.mkdir(parents=True, exist_ok=True)
            os.link(source, folder / source.name)


def print_table(found: Found) -> None:
    """The seconds of every side, and how fast bergline is beside each; a side need not have every case."""
    ours, *others = found
    heads = ["case", ours, *(head for other in others for head in (WORDS[other], "relative speed"))]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for case in found[ours][0]["seconds"]:
        seconds = {
            side: [one["seconds"][case] for one in rounds if case in one["seconds"]] for side, rounds in found.items()
        }
        cells = [case, f"{statistics.median(seconds[ours]):.2f} s"]
        for other in others:
            if not seconds[other]:
                cells += ["", ""]
                continue
            speed, low, high = relative_speed(seconds[ours], seconds[other])
            spread = f" ({low:.2g}–{high:.2g})" if low != high else ""  # noqa: RUF001  (a range)
            cells += [f"{statistics.median(seconds[other]):.2f} s", f"{speed:.2g}{spread}"]
            record(case, seconds[ours], seconds[other], WORDS[other], in_turns=True)
        print(f"| {' | '.join(cells)} |", flush=True)
