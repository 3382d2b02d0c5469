"""What benchmarks measure, in one form: a case, a peer, and the seconds of every round on both sides.

Each is printed as a line; `make bench` also has it written to a file, of which `report.py` makes the report.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

RESULTS = "BERGLINE_BENCH_RESULTS"
"""The variable that names the file, to which a line of JSON is added for each case."""


class Measured(msgspec.Struct, frozen=True):
    """One case beside one peer, in seconds; several rounds, or one."""

    bench: str
    case: str
    peer: str
    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    in_turns: bool = False
    """Whether the rounds of both belong together, one by one."""


class Figure(NamedTuple):
    """The relative speed of one case, and between what it varies."""

    speed: float
    low: float
    high: float


def times(rounds: int, run: Callable[[], Any], before: Callable[[], Any] = lambda: None) -> list[float]:
    """The seconds of each round; `before` is not counted."""
    found = []
    for _ in range(rounds):
        before()
        started = time.perf_counter()
        run()
        found.append(time.perf_counter() - started)
    return found


def report(case: str, ours: Sequence[float], theirs: Sequence[float], peer: str = "PyIceberg") -> None:
    """One line: the best times of both, and how many times faster bergline is."""
    mine, other = min(ours), min(theirs)
    print(f"{case:<66} bergline {mine * 1000:>9.2f} ms   {peer:<9} {other * 1000:>9.2f} ms   {other / mine:>6.1f} x")
    record(case, ours, theirs, peer)


def relative_speed(ours: Sequence[float], theirs: Sequence[float]) -> Figure:
    """How fast bergline is beside a peer, of rounds in turns: the median of all turns, the least and the greatest."""
    speeds = [other / mine for mine, other in zip(ours, theirs, strict=True)]
    return Figure(statistics.median(speeds), min(speeds), max(speeds))


def record(case: str, ours: Sequence[float], theirs: Sequence[float], peer: str, *, in_turns: bool = False) -> None:
    """Keep a case for the report, if there is to be one."""
    if path := os.environ.get(RESULTS):
        measured = Measured(Path(sys.argv[0]).stem, case, peer, tuple(ours), tuple(theirs), in_turns)
        with Path(path).open("ab") as file:
            file.write(msgspec.json.encode(measured) + b"\n")


def load(path: Path) -> list[Measured]:
    """What was kept."""
    return [msgspec.json.decode(line, type=Measured) for line in path.read_bytes().splitlines()]


class Scaled(msgspec.Struct, frozen=True):
    """One figure of a large or busy lake; a unit that ends in `/s` is better when higher, every other when lower."""

    case: str
    unit: str
    ours: float
    theirs: float | None = None
    peer: str = ""

    @property
    def speed(self) -> float | None:
        """How many times better than the peer, if there is one."""
        if self.theirs is None:
            return None
        return self.ours / self.theirs if self.unit.endswith("/s") else self.theirs / self.ours
