"""A model of writers that commit to one table: ways to commit, latencies of stores, and where the limits are.

Discrete events, seeded, nothing but the standard library. Every figure of docs/concepts/scale.md is of this program:
without options it prints the page's tables, with `--write` it puts them and the plots into the page.
"""

import argparse
import heapq
import html
import math
import random
import re
import sys
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "concepts" / "scale.md"
IMAGES = ROOT / "docs" / "images"
P99 = 2.326  # standard deviations

Steps = Generator["float | Turn", None, None]
"""What a process does: it waits for so many seconds, or for its turn."""


class Latency(NamedTuple):
    """A lognormal distribution by its median and its 99th percentile, in milliseconds."""

    median_ms: float
    most_ms: float

    def draw(self, dice: random.Random) -> float:
        """Seconds."""
        sigma = math.log(self.most_ms / self.median_ms) / P99
        return self.median_ms / 1000 * math.exp(sigma * dice.gauss(0, 1))


class Store(NamedTuple):
    """Where files are, and where the pointer is."""

    put: Latency
    get: Latency
    swap: Latency
    megabytes_a_second: float


STORES = {
    "local disk and SQLite": Store(Latency(0.4, 3), Latency(0.1, 1), Latency(1, 5), 500),
    "S3 Express and PostgreSQL": Store(Latency(6, 25), Latency(4, 15), Latency(3, 12), 80),
    "S3 and PostgreSQL": Store(Latency(28, 120), Latency(15, 70), Latency(3, 12), 80),
    "S3 alone": Store(Latency(28, 120), Latency(15, 70), Latency(32, 140), 80),
}
"""The last one has its pointers in objects, swapped by conditional puts."""


@dataclass(frozen=True)
class Lake:
    """What a run is of."""

    way: str
    writers: int
    store: Store = STORES["S3 and PostgreSQL"]
    snapshots: int = 500
    """In the table, and so in every metadata file."""
    gzip: bool = True
    replicas: int = 1
    group: int = 64
    """The most commits in one group."""
    at_once: int = 32
    """Of how many commits in a group the server reads and writes manifest lists at the same time."""
    cpu_ms: float = 2.0
    """Processor time of a commit in a server; one replica does one thing at a time."""
    group_cpu_ms: float = 2.0
    """What comes to that for each group, or for each commit that is alone."""
    backoff_ms: float = 100.0
    """Of clients that lost: doubled each time, up to a minute."""
    slow_s: float = 0.0
    """How long one more writer, which compacts, takes from loading the table to its swap; 0 if there is none."""
    slow_turn: bool = False
    """Whether the others grant it a turn."""
    is_prepared: bool = False
    """Whether writers have written all their files before they begin."""
    seconds: float = 120.0
    seed: int = 1

    @property
    def metadata_bytes(self) -> float:
        """The size of a metadata file."""
        return (2000 + 600 * self.snapshots) / (8 if self.gzip else 1)

    @property
    def encoding_s(self) -> float:
        """Processor time to make one."""
        return (0.3 + self.snapshots * (0.0016 if self.gzip else 0.0004)) / 1000


class Turn:
    """One at a time, first come, first served; one that somebody has already is a way to wait for an answer."""

    def __init__(self, *, is_taken: bool = False) -> None:
        self.is_taken = is_taken
        self.waiting: deque[Steps] = deque()


class Clock:
    """Runs processes in the order of their times."""

    def __init__(self) -> None:
        self.now = 0.0
        self._count = 0
        self._heap: list[tuple[float, int, Steps]] = []

    def start(self, steps: Steps, after: float = 0.0) -> None:
        """Let a process go on after so many seconds."""
        self._count += 1
        heapq.heappush(self._heap, (self.now + after, self._count, steps))

    def release(self, turn: Turn) -> None:
        """Let the next one have its turn."""
        if turn.waiting:
            self.start(turn.waiting.popleft())
        else:
            turn.is_taken = False

    def run(self, end: float) -> None:
        """Until a time."""
        while self._heap and self._heap[0][0] <= end:
            self.now, _, steps = heapq.heappop(self._heap)
            wanted = next(steps, None)
            while isinstance(wanted, Turn) and not wanted.is_taken:
                wanted.is_taken = True
                wanted = next(steps, None)
            if isinstance(wanted, Turn):
                wanted.waiting.append(steps)
            elif wanted is not None:
                self.start(steps, wanted)
        self.now = end


@dataclass(frozen=True)
class Request:
    """A commit that a server was asked for, and the client that waits."""

    base: int
    answer: Turn


@dataclass
class Figures:
    """What came of a run."""

    commits: int = 0
    conflicts: int = 0
    """Commits that were told to try again."""
    wasted: int = 0
    """Files that nothing refers to."""
    times: list[float] = field(default_factory=list)
    slow_s: float = math.inf
    """Until the compaction succeeded."""
    seconds: float = 1.0

    @property
    def rate(self) -> float:
        """Commits a second."""
        return self.commits / self.seconds

    def at(self, share: float) -> float:
        """The seconds that this share of the commits does not exceed."""
        times = sorted(self.times)
        return times[min(int(len(times) * share), len(times) - 1)] if times else math.inf


class Simulation:
    """One table, its writers, and what serves them."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.store = lake.store
        self.dice = random.Random(lake.seed)  # noqa: S311  (no secrets)
        self.clock = Clock()
        self.version = 0
        self.cpus = [Turn() for _ in range(lake.replicas)]
        self.locks = [Turn() for _ in range(lake.replicas)]
        self.queues: list[deque[Request]] = [deque() for _ in range(lake.replicas)]
        self.turns = Turn()
        self.warm_up = lake.seconds / 4
        self.figures = Figures(seconds=lake.seconds - self.warm_up)
        self.begun: dict[int, float] = {}
        self.swaps = 0
        """Of a server that were tried: a metadata file each."""

    def run(self) -> Figures:
        """The figures after the warm-up; commits that have not ended count with the time that they took so far."""
        for writer in range(self.lake.writers):
            self.clock.start(self.writer(writer), self.dice.random() * 0.2)
        if self.lake.slow_s:
            self.clock.start(self.slow_writer())
        self.clock.run(self.lake.seconds)
        self.begun.pop(-1, None)
        self.figures.times += [self.lake.seconds - began for began in self.begun.values()]
        return self.figures

    def writer(self, number: int) -> Steps:
        """Writes a data file and its manifest, commits, and begins again."""
        commit = {"swap": self.swapping, "server": self.asking, "turns": self.taking_turns}.get(
            self.lake.way, self.leaving_it
        )
        while True:
            yield 0.0 if self.lake.is_prepared else self.put() + self.put()
            self.begun[number] = began = self.clock.now
            yield from commit(number % self.lake.replicas)
            del self.begun[number]
            if self.clock.now > self.warm_up:
                self.figures.commits += 1
                self.figures.times.append(self.clock.now - began)

    def swapping(self, _: int) -> Steps:
        """Clients of a plain catalog: they write everything themselves; who loses the swap begins again, later."""
        attempt = 0
        while True:
            base = self.version
            yield self.get(self.lake.metadata_bytes) + self.put() + self.put(self.lake.metadata_bytes)
            yield self.store.swap.draw(self.dice)
            if self.version == base:
                self.version += 1
                return
            self.lost(files=2)
            yield self.backoff(attempt)
            attempt += 1

    def asking(self, replica: int) -> Steps:
        """Clients of a server that answers 409 to what is stale, before it writes anything."""
        attempt = 0
        while True:
            base = self.version
            yield self.put()
            yield self.locks[replica]
            yield from self.use_cpu(replica, self.lake.cpu_ms / 1000)
            if self.version == base:
                yield from self.use_cpu(replica, self.lake.group_cpu_ms / 1000 + self.lake.encoding_s)
                yield self.put(self.lake.metadata_bytes) + self.store.swap.draw(self.dice)
            if self.version == base:
                self.version += 1
                self.clock.release(self.locks[replica])
                return
            self.clock.release(self.locks[replica])
            self.lost(files=1)
            yield self.backoff(attempt)
            attempt += 1

    def taking_turns(self, _: int) -> Steps:
        """Processes without a server that commit one after the other, each on what the one before left."""
        yield self.turns
        yield 2 * self.store.swap.draw(self.dice)  # the turn is taken, and given back, in the database
        yield self.get(self.lake.metadata_bytes) + self.put() + self.put(self.lake.metadata_bytes)
        yield self.store.swap.draw(self.dice)
        self.version += 1
        self.clock.release(self.turns)

    def leaving_it(self, replica: int) -> Steps:
        """Clients of a server that puts what is stale on the head by itself: one by one, or in groups."""
        request = Request(-1 if self.lake.is_prepared else self.version, Turn(is_taken=True))
        yield 0.0 if self.lake.is_prepared else self.put()
        self.queues[replica].append(request)
        self.clock.start(self.serving(replica))
        yield request.answer

    def serving(self, replica: int) -> Steps:
        """One commit, or all that wait, with one metadata file and one swap."""
        yield self.locks[replica]
        most = self.lake.group if self.lake.way == "group" else 1
        members = [self.queues[replica].popleft() for _ in range(min(most, len(self.queues[replica])))]
        while members:
            base = self.version
            own_ms = len(members) * self.lake.cpu_ms + self.lake.group_cpu_ms
            yield from self.use_cpu(replica, own_ms / 1000 + self.lake.encoding_s)
            stale = len(members) - (members[0].base == base)
            lists = [self.get() + self.get() + self.put() for _ in range(stale)]
            waves = [lists[n : n + self.lake.at_once] for n in range(0, stale, self.lake.at_once)]
            yield sum(map(max, waves)) + self.put(self.lake.metadata_bytes)
            yield self.store.swap.draw(self.dice)
            self.swaps += 1
            self.waste(stale)
            if self.version == base:
                self.version += len(members)
                break
            self.waste(1)  # another replica was first: once more, on what it left
            yield self.get(self.lake.metadata_bytes)
        for request in members:
            self.clock.release(request.answer)
        self.clock.release(self.locks[replica])

    def slow_writer(self) -> Steps:
        """A compaction: the head must stay while it commits, by chance or because it has the turn."""
        self.begun[-1] = self.clock.now
        turn = self.turns if self.lake.way in {"swap", "turns"} else self.locks[0]
        while True:
            base = self.version
            if self.lake.slow_turn:
                yield turn
                base = self.version
            yield self.lake.slow_s
            if self.lake.slow_turn:
                self.clock.release(turn)
            if self.version == base:
                self.version += 1
                self.figures.slow_s = self.clock.now - self.begun.pop(-1)
                return

    def use_cpu(self, replica: int, seconds: float) -> Steps:
        """A replica computes for one request at a time."""
        yield self.cpus[replica]
        yield seconds
        self.clock.release(self.cpus[replica])

    def lost(self, files: int) -> None:
        """A commit must be tried again by its client."""
        if self.clock.now > self.warm_up:
            self.figures.conflicts += 1
        self.waste(files)

    def waste(self, files: int) -> None:
        """Files were written in vain."""
        if self.clock.now > self.warm_up:
            self.figures.wasted += files

    def backoff(self, attempt: int) -> float:
        """As Java waits: exponentially, with a tenth of chance."""
        return float(min(self.lake.backoff_ms * 2**attempt, 60_000) / 1000 * (1 + 0.1 * self.dice.random()))

    def put(self, size: float = 2000) -> float:
        """Seconds to write a file."""
        return self.store.put.draw(self.dice) + size / 1e6 / self.store.megabytes_a_second

    def get(self, size: float = 2000) -> float:
        """Seconds to read a file."""
        return self.store.get.draw(self.dice) + size / 1e6 / self.store.megabytes_a_second


WAYS = {
    "swap": "clients swap the pointer and retry",
    "server": "a server that answers 409",
    "turns": "turns, without a server",
    "rebase": "a server that rebases",
    "group": "group commit",
}
WRITERS = (1, 8, 64, 250, 1000)
COLORS = ("#c05621", "#b7791f", "#718096", "#2f855a", "#2f7ed8")


def writers_table() -> tuple[str, dict[str, list[Figures]]]:
    """Every way to commit with more and more writers."""
    found = {way: [Simulation(Lake(way, writers)).run() for writers in WRITERS] for way in WAYS}
    lines = ["| | writers | commits | p50 | p99 | conflicts a commit | files in vain a commit |", rule(7)]
    for way, figures in found.items():
        for writers, one in zip(WRITERS, figures, strict=True):
            cells = (shown_rate(one.rate), *map(shown_time, (one.at(0.5), one.at(0.99))))
            shares = (f"{count / max(one.commits, 1):.1f}" for count in (one.conflicts, one.wasted))
            lines.append(f"| {WAYS[way]} | {writers:,} | {' | '.join((*cells, *shares))} |")
    return "\n".join(lines), found


def limits_table() -> str:
    """Group commit by 1,000 writers, with one thing changed at a time."""
    usual = Lake("group", 1000)
    cases = {
        "as above": usual,
        "groups of up to 10": replace(usual, group=10),
        "groups of up to 256": replace(usual, group=256),
        "manifest lists one after the other": replace(usual, at_once=1),
        "manifest lists of all 64 at once": replace(usual, at_once=64),
        "half the processor time of a commit": replace(usual, cpu_ms=usual.cpu_ms / 2),
        "2 replicas": replace(usual, replicas=2),
        "4 replicas": replace(usual, replicas=4),
        "20,000 snapshots": replace(usual, snapshots=20_000),
        "20,000 snapshots, metadata not compressed": replace(usual, snapshots=20_000, gzip=False),
        **{name: replace(usual, store=store) for name, store in STORES.items() if store != usual.store},
    }
    lines = ["| changed | commits | p50 | p99 | metadata files | of each |", rule(6)]
    for name, lake in cases.items():
        run = Simulation(lake)
        one = run.run()
        rate = shown_rate(one.rate)
        times = map(shown_time, (one.at(0.5), one.at(0.99)))
        megabytes = lake.metadata_bytes / 1e6
        lines.append(
            f"| {name} | {rate} | {' | '.join(times)} | {run.swaps / lake.seconds:.1f}/s | {megabytes:.2g} MB |"
        )
    return "\n".join(lines)


def turns_table() -> str:
    """A compaction among writers that never pause, with a turn and without."""
    lines = [
        "| writers | until the compaction is in, without a turn | with one | p99 of the others, without | with one |"
    ]
    lines.append(rule(5))
    for writers in (1, 8, 64):
        lake = Lake("group", writers, slow_s=1.0)
        runs = [Simulation(replace(lake, slow_turn=turn)).run() for turn in (False, True)]
        ends = ("never" if one.slow_s == math.inf else shown_time(one.slow_s) for one in runs)
        lines.append(f"| {writers} | {' | '.join((*ends, *(shown_time(one.at(1.0)) for one in runs)))} |")
    return "\n".join(lines)


def rule(columns: int) -> str:
    """The line below the head of a table."""
    return "|" + "---|" * columns


def shown_rate(rate: float) -> str:
    """Commits a second."""
    return f"{rate:,.0f}/s" if rate >= 9.95 else f"{rate:.1f}/s"  # noqa: PLR2004  (where it would be rounded to two digits)


def shown_time(seconds: float) -> str:
    """A time in a unit that fits it."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def plot(title: str, unit: str, lines: dict[str, list[float]]) -> str:
    """A line for each way over the number of writers, both on logarithmic scales."""
    width, height, left, right, top, bottom = 760, 380, 70, 500, 44, 330
    values = [value for line in lines.values() for value in line]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def x(writers: float) -> float:
        return left + math.log10(writers) / math.log10(WRITERS[-1]) * (right - left)

    def y(value: float) -> float:
        return bottom - (math.log10(value) - low) / (high - low) * (bottom - top)

    drawn = [text(16, 24, title, weight="bold")]
    for power in range(low, high + 1):
        at = y(10**power)
        drawn.append(f'<line x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}" stroke="#d5dae0"/>')
        drawn.append(text(left - 8, at + 4, f"{10**power:,g} {unit}".strip(), anchor="end"))
    drawn += [text(x(writers), bottom + 20, f"{writers:,}", anchor="middle") for writers in WRITERS]
    drawn.append(text((left + right) / 2, bottom + 40, "writers of one table", anchor="middle"))
    labels: list[float] = []
    for (way, line), color in sorted(zip(lines.items(), COLORS, strict=True), key=lambda pair: -pair[0][1][-1]):
        points = " ".join(f"{x(w):.1f},{y(value):.1f}" for w, value in zip(WRITERS, line, strict=True))
        drawn.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        labels.append(max([y(line[-1]), *(at + 16 for at in labels)]))
        drawn.append(text(right + 10, labels[-1] + 4, WAYS[way], color=color))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f' font-family="sans-serif" font-size="12" fill="#1f2933" role="img"><title>{html.escape(title)}</title>'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    )
    return "\n".join([head, *drawn, "</svg>", ""])


def text(x: float, y: float, says: str, *, anchor: str = "start", weight: str = "normal", color: str = "") -> str:
    """A line of text."""
    fill = f' fill="{color}"' if color else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}"'
    return f"<text {place}{fill}>{html.escape(says)}</text>"


class Parts(NamedTuple):
    """What of the page is made here: tables by name, and plots by file name."""

    tables: dict[str, str]
    plots: dict[str, str]


def parts() -> Parts:
    """Run everything."""
    writers, found = writers_table()
    rates = {way: [one.rate for one in figures] for way, figures in found.items()}
    waits = {way: [one.at(0.99) for one in figures] for way, figures in found.items()}
    return Parts(
        {"writers": writers, "limits": limits_table(), "turns": turns_table()},
        {
            "scale-commits.svg": plot("Commits a second to one table, on S3 and PostgreSQL (simulated)", "", rates),
            "scale-p99.svg": plot("How long 99 % of the commits take at most (simulated)", "s", waits),
        },
    )


def with_tables(page: str, tables: dict[str, str]) -> str:
    """The page with its tables replaced; each stands behind its mark, between empty lines."""
    for name, table in tables.items():
        mark = f"<!-- scale: {name} -->\n\n"
        page = re.sub(rf"{mark}(?:\|.*\n)*\n?", f"{mark}{table}\n\n", page)
    return page


def main() -> int:
    """Print the tables, or write the page."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--write", action="store_true", help="write tables and plots into the documentation")
    given, made = arguments.parse_args(), parts()
    if given.write:
        PAGE.write_text(with_tables(PAGE.read_text(), made.tables))
        for name, drawn in made.plots.items():
            (IMAGES / name).write_text(drawn)
        return 0
    for name, table in made.tables.items():
        sys.stdout.write(f"{name}\n\n{table}\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
