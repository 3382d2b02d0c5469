"""The report of the benchmarks: figures with their spread, as a page and as a plot."""

import importlib
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

from support.paths import ROOT

BENCH = ROOT / "bench"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("report")


def measured(report: ModuleType, bench: str, case: str, ours: list[float], theirs: list[float]) -> object:
    return report.Measured(bench, case, "PyIceberg", tuple(ours), tuple(theirs))


def where(report: ModuleType) -> object:
    return report.Setting("2026-11-17", "2 cores <fast>", "Python 3.11", True)


def test_a_figure_is_of_medians_and_its_spread_of_quartiles(report: ModuleType) -> None:
    one = measured(report, "bench_refs", "a tag", [1.0, 2.0, 3.0], [4.0, 8.0, 12.0])
    assert report.figure(one) == (4.0, 6.0 / 2.5, 10.0 / 1.5)
    alone = measured(report, "bench_refs", "a tag", [2.0], [1.0])
    assert report.figure(alone) == (0.5, 0.5, 0.5)


def test_the_spread_of_turns_goes_from_the_least_to_the_greatest(report: ModuleType) -> None:
    turns = report.Measured("bench_spark", "append", "Parquet files", (1.0, 2.0, 4.0), (2.0, 2.0, 10.0), in_turns=True)
    assert report.figure(turns) == (2.0, 1.0, 2.5)


def test_the_page_has_every_case_and_says_that_it_was_quick(report: ModuleType) -> None:
    cases = [measured(report, "bench_refs", f"case {n} | x", [0.01 * n], [1.0]) for n in range(1, 30)]
    page = report.render_report(cases, where(report))
    assert len(re.findall(r"^\| case \d+ \\\| x \| PyIceberg \| 1, 1 \|", page, re.MULTILINE)) == 29
    assert "a quick run with small sizes" in page
    assert "2 cores <fast>" in page


def test_the_plot_shows_slowest_and_fastest_of_many_and_stays_inside(report: ModuleType) -> None:
    cases = [measured(report, "bench_refs", f"<case {n}>", [0.01, 0.02, 0.01 * n], [1.0, 1.1]) for n in range(1, 30)]
    cases += [measured(report, "bench_spark", "slower & slower", [4.0], [1.0])]
    root = ET.fromstring(report.render_plot(cases, where(report)))  # noqa: S314  (our own)
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    shown = [text for text in texts if "case" in text]
    assert len(shown) == report.PLOTTED
    assert any("<case 1>" in text for text in shown)
    assert any("slower & slower" in text for text in texts)
    width = int(root.get("width", ""))
    bars = [(float(r.get("x", "0")), float(r.get("width", "0"))) for r in root.iter(f"{SVG}rect")]
    assert all(x >= 0 and x + w <= width for x, w in bars)


def test_every_benchmark_is_in_the_report(report: ModuleType) -> None:
    assert set(report.BENCHES) == {path.stem for path in BENCH.glob("bench_*.py")}
    assert set(report.QUICK) <= set(report.BENCHES)


@pytest.mark.parametrize("program", ["report", *sorted(path.stem for path in BENCH.glob("bench_*.py"))])
def test_every_benchmark_says_how_to_run_it(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = BENCH / f"{program}.py"
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.setattr(sys, "argv", [str(path), "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: {path.name}")


@pytest.mark.parametrize("name", ["spark", "rows"])
def test_every_part_of_a_benchmark_on_spark_has_its_cases(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # which the side sets
    monkeypatch.syspath_prepend(str(BENCH))
    parts, side = (importlib.import_module(module) for module in (f"bench_{name}", f"{name}_side"))
    assert all(callable(getattr(side, part)) for part in parts.PARTS)


def test_benchmarks_keep_what_they_print(report: ModuleType, tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    done = subprocess.run(
        [sys.executable, str(BENCH / "bench_tables.py")],
        env={**os.environ, "BERGLINE_BENCH_RESULTS": str(results)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = report.load(results)
    assert [one.bench for one in found] == ["bench_tables"] * len(done.stdout.splitlines())
    assert all(one.case in done.stdout for one in found)
    assert len(found[0].ours) > 1


def test_the_report_and_the_plot_in_the_repository_belong_together() -> None:
    page, plot = (path.read_text() for path in (BENCH / "report.md", ROOT / "docs" / "images" / "bench.svg"))
    (day,) = re.findall(r"on (\d{4}-\d\d-\d\d): ", page)
    assert f">{day}, " in plot
    assert "docs/images/bench.svg" in (ROOT / "README.md").read_text()
