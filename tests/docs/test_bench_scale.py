"""`bench_scale`: the figures of all parts as one table."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from support.paths import ROOT

GOOD = """
from results import Scaled

def cases(small):
    yield Scaled("appends to one table", "/s", 300.0, 50.0, "reference")
    yield Scaled("a plan", "ms", 4.0 if small else 400.0, 8.0, "Java")
    yield Scaled("memory", "MiB", 120.0, 240.0, "Java")
    yield Scaled("alone", "s", 2.0)
"""
BAD = """
def cases(small):
    yield from ()
    raise RuntimeError("no server")
"""


@pytest.fixture
def bench_scale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModuleType]:
    """The program with two parts of our own."""
    (tmp_path / "scale_made_up.py").write_text(GOOD)
    (tmp_path / "scale_broken.py").write_text(BAD)
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("bench_scale")
    for part in ("made_up", "broken"):
        sys.modules.pop(f"scale_{part}", None)


def test_every_part_has_cases(bench_scale: ModuleType) -> None:
    assert all(callable(bench_scale.cases_of(part)) for part in bench_scale.PARTS)


def test_rates_are_better_when_higher_and_times_when_lower(bench_scale: ModuleType) -> None:
    failed: list[str] = []
    assert list(bench_scale.rows(["made_up"], failed, small=True)) == [
        "| made_up | appends to one table | 300/s | 50/s (reference) | 6 |",
        "| made_up | a plan | 4 ms | 8 ms (Java) | 2 |",
        "| made_up | memory | 120 MiB | 240 MiB (Java) | 2 |",
        "| made_up | alone | 2 s |  |  |",
    ]
    assert failed == []


def test_a_part_that_fails_is_named_and_the_others_are_measured(bench_scale: ModuleType) -> None:
    failed: list[str] = []
    rows = list(bench_scale.rows(["broken", "made_up"], failed, small=False))
    assert len(rows) == 4
    assert failed == ["broken"]


def test_the_report_gets_times_and_rates_beside_a_peer_as_seconds(
    bench_scale: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept = tmp_path / "results.jsonl"
    monkeypatch.setenv("BERGLINE_BENCH_RESULTS", str(kept))
    list(bench_scale.rows(["made_up"], [], small=True))
    found = importlib.import_module("results").load(kept)
    assert [(one.case, one.ours, one.theirs) for one in found] == [
        ("appends to one table", (1 / 300,), (1 / 50,)),
        ("a plan", (0.004,), (0.008,)),
    ]
