"""Runs the benchmarks and writes one report: bench/report.md, and its plot, docs/images/bench.svg.

A figure is the relative speed: the median time of the peer by that of bergline, 1 = equal, higher is better. Its spread
goes from the lower quartile to the upper one of both sides, put together at their worst and at their best; one round
has none. Where the sides took turns, the figure is the median of the turns, and its spread goes from the least to the
greatest. `--quick` runs the short ones with small sizes, and the report says so, as it does what else the machine did.
"""

import argparse
import datetime as dt
import html
import importlib.metadata
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from results import RESULTS, Figure, Measured, load, relative_speed

HERE = Path(__file__).parent
REPORT = HERE / "report.md"
PLOT = HERE.parent / "docs" / "images" / "bench.svg"
BENCHES = {
    "bench_format": "metadata and planning",
    "bench_tables": "small tables",
    "bench_commit": "commits",
    "bench_refs": "branches and tags, several processes",
    "bench_spark": "Spark",
    "bench_rows": "rows that change on Spark",
    "bench_tpcds": "TPC-DS",
    "bench_server": "REST server",
    "bench_scale": "hot tables and large lakes",
    "bench_fairness": "many writers of one table",
}
"""All of them, in the order of the report."""
QUICK = {"bench_tables": [], "bench_refs": ["100"]}
"""Those of a quick run, with arguments for small sizes."""
PACKAGES = ("pyiceberg", "pyspark", "pyarrow", "polars")
PLOTTED = 6
"""Of each benchmark at most so many cases are in the plot, from its slowest to its fastest."""


Scale = Callable[[float], float]


class Setting(NamedTuple):
    """Where and with what it was measured."""

    day: str
    machine: str
    versions: str
    quick: bool

    @property
    def remark(self) -> str:
        """What the reader must know of the sizes."""
        return "a quick run with small sizes" if self.quick else "a full run"


def figure(measured: Measured) -> Figure:
    """How fast bergline is beside the peer."""
    if measured.in_turns:
        return relative_speed(measured.ours, measured.theirs)
    (our_low, ours, our_high), (their_low, theirs, their_high) = map(quartiles, (measured.ours, measured.theirs))
    return Figure(theirs / ours, their_low / our_high, their_high / our_low)


def quartiles(times: Sequence[float]) -> tuple[float, float, float]:
    """The lower quartile, the median and the upper quartile."""
    if len(times) == 1:
        return times[0], times[0], times[0]
    low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
    return low, middle, high


def setting(*, quick: bool) -> Setting:
    """This machine, now."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        cpu = next(iter(models), cpu)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load_average = f"load {os.getloadavg()[0]:.1f} before it ran"
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("bergline", *PACKAGES)]
    return Setting(
        dt.datetime.now(dt.UTC).date().isoformat(),
        f"{os.cpu_count()} cores ({cpu}), {memory:.0f} GiB, {platform.system()}, {load_average}",
        ", ".join([f"Python {platform.python_version()}", *versions]),
        quick,
    )


def render_report(found: Sequence[Measured], where: Setting) -> str:
    """The report as a page."""
    lines = [
        "# Benchmark report",
        "",
        f"Written by `bench/report.py` on {where.day}: {where.remark}. Relative speed: 1 = equal, higher is better;",
        "the median of the rounds, and in brackets how far the quartiles of both sides spread it; where the sides took",
        "turns, the least and the greatest of those.",
        "What each case is: [benchmarks](../docs/benchmarks.md).",
        "",
        f"- {where.machine}",
        f"- {where.versions}",
        "",
        f"![Relative speed of bergline beside its peers](../docs/images/{PLOT.name})",
    ]
    for bench, cases in grouped(found):
        lines += ["", f"## {BENCHES.get(bench, bench)} (`bench/{bench}.py`)", ""]
        lines += ["| case | beside | rounds | bergline | the other | relative speed |", "|---|---|---|---|---|---|"]
        for one in cases:
            speed, low, high = figure(one)
            spread = "" if low == high else f" ({low:.2g}–{high:.2g})"  # noqa: RUF001  (a range)
            ours, theirs = (shown_time(statistics.median(times)) for times in (one.ours, one.theirs))
            cells = (one.case.replace("|", "\\|"), one.peer, f"{len(one.ours)}, {len(one.theirs)}", ours, theirs)
            lines.append(f"| {' | '.join(cells)} | {speed:.3g}{spread} |")
    return "\n".join(lines) + "\n"


def shown_time(seconds: float) -> str:
    """A time in a unit that fits it."""
    return f"{seconds:,.2f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def grouped(found: Iterable[Measured]) -> list[tuple[str, list[Measured]]]:
    """The cases of each benchmark, in the order of the report."""
    order = list(BENCHES)
    in_order = sorted(found, key=lambda one: (order.index(one.bench) if one.bench in order else len(order), one.bench))
    return [(bench, list(cases)) for bench, cases in groupby(in_order, key=lambda one: one.bench)]


def chosen(cases: Sequence[Measured]) -> list[Measured]:
    """A few of many cases: by rank from the slowest to the fastest, so that neither end is left out."""
    ranked = sorted(cases, key=lambda one: figure(one).speed)
    if len(ranked) <= PLOTTED:
        return ranked
    return [ranked[round(n * (len(ranked) - 1) / (PLOTTED - 1))] for n in range(PLOTTED)]


WIDTH, LEFT, RIGHT, ROW, TOP = 960, 470, 870, 22, 64
OURS, OTHER, INK, FAINT = "#2f7ed8", "#c05621", "#1f2933", "#d5dae0"


def render_plot(found: Sequence[Measured], where: Setting) -> str:
    """The plot: a bar from 1 for each case, on a logarithmic scale, with its spread."""
    groups = [(bench, chosen(cases)) for bench, cases in grouped(found)]
    figures = [figure(one) for _, cases in groups for one in cases]
    least = math.floor(math.log10(min([0.5, *(f.low for f in figures)])))
    most = math.ceil(math.log10(max([10, *(f.high for f in figures)])))

    def x(speed: float) -> float:
        return LEFT + (math.log10(speed) - least) / (most - least) * (RIGHT - LEFT)

    y = TOP
    parts: list[str] = []
    for bench, cases in groups:
        y += ROW
        parts.append(text(16, y, BENCHES.get(bench, bench), "bold"))
        for one in cases:
            y += ROW
            parts += bar(one, figure(one), x, y)
    height = y + 40
    ticks = [10.0**power for power in range(least, most + 1)]
    lines = [
        f'<line x1="{x(at):.1f}" x2="{x(at):.1f}" y1="{TOP}" y2="{y + 8}" stroke="{INK if at == 1 else FAINT}"/>'
        f'<text x="{x(at):.1f}" y="{y + 24}" text-anchor="middle">{at:g}</text>'
        for at in ticks
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        f' font-family="sans-serif" font-size="12" fill="{INK}" role="img">'
        "<title>Relative speed of bergline beside its peers</title>"
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    )
    title = text(16, 24, "Relative speed of bergline beside its peers: 1 = equal, higher is better", "bold")
    said = text(16, 42, f"{where.day}, {where.remark}; {where.machine}")
    versions = text(16, 58, where.versions)
    return "\n".join([head, title, said, versions, *lines, *parts, "</svg>", ""])


def bar(one: Measured, speed: Figure, x: Scale, y: int) -> list[str]:
    """A case: its name, a bar from 1 to its speed, a line for the spread, and the figure."""
    begin, end = sorted((x(1), x(speed.speed)))
    color = OURS if speed.speed >= 1 else OTHER
    box = f'x="{begin:.1f}" y="{y - 11}" width="{max(end - begin, 1):.1f}" height="14"'
    drawn = [
        text(28, y, shortened(f"{one.case}, beside {one.peer}")),
        f'<rect {box} fill="{color}" opacity="0.75"/>',
        text(round(max(end, x(speed.high)) + 6), y, f"{speed.speed:.3g}"),
    ]
    if speed.low != speed.high:
        path = f"M{x(speed.low):.1f} {y - 4}H{x(speed.high):.1f}"
        drawn.append(f'<path d="{path}" stroke="{INK}" stroke-width="1.5" fill="none"/>')
    return drawn


def shortened(case: str) -> str:
    """A case that fits beside the bars."""
    return case if len(case) <= 72 else f"{case[:71]}…"


def text(x: int, y: int, says: str, weight: str = "normal") -> str:
    """A line of text."""
    return f'<text x="{x}" y="{y}" font-weight="{weight}">{html.escape(says)}</text>'


def run(results: Path, *, quick: bool) -> list[str]:
    """Run the benchmarks; the names of those that failed."""
    failed = []
    wanted = QUICK if quick else {name: [] for name in BENCHES}
    for name, arguments in wanted.items():
        print(f"-- {name}", file=sys.stderr, flush=True)
        command = [sys.executable, str(HERE / f"{name}.py"), *arguments]
        done = subprocess.run(command, env={**os.environ, RESULTS: str(results)}, check=False)  # noqa: S603
        if done.returncode:
            failed.append(name)
    return failed


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="only the short ones, with small sizes")
    quick = arguments.parse_args().quick
    where = setting(quick=quick)
    with tempfile.TemporaryDirectory() as directory:
        results = Path(directory, "results.jsonl")
        results.touch()
        failed = run(results, quick=quick)
        found = load(results)
    if found:
        REPORT.write_text(render_report(found, where))
        PLOT.parent.mkdir(exist_ok=True)
        PLOT.write_text(render_plot(found, where))
        print(f"the report is in {REPORT}, its plot in {PLOT}", file=sys.stderr)
    if failed:
        print(f"failed, and not in the report: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
