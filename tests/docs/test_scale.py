"""The page about scale has the figures and the plots of its simulation, which obeys its own laws."""

import importlib
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

from support.paths import ROOT

TOOLS = ROOT / "tools"


@pytest.fixture
def simulation(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("scale_simulation")


def test_the_page_has_the_figures_of_the_simulation(simulation: ModuleType) -> None:
    made, page = simulation.parts(), simulation.PAGE.read_text()
    again = "python tools/scale_simulation.py --write"
    assert page == simulation.with_tables(page, made.tables), again
    assert all(table in page for table in made.tables.values()), again
    for name, drawn in made.plots.items():
        assert drawn == (simulation.IMAGES / name).read_text(), again
        assert f"images/{name}" in page


def test_a_run_comes_again_with_its_seed_and_differs_with_another(simulation: ModuleType) -> None:
    one, same, other = (
        simulation.Simulation(simulation.Lake("swap", 8, seconds=20.0, seed=seed)).run() for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


@pytest.mark.parametrize("way", ["swap", "server", "turns", "rebase", "group"])
def test_every_version_is_one_commit(simulation: ModuleType, way: str) -> None:
    run = simulation.Simulation(
        simulation.Lake(way, 20, seconds=20.0, store=simulation.STORES["local disk and SQLite"], replicas=2)
    )
    run.warm_up = 0.0
    figures = run.run()
    assert 0 <= run.version - figures.commits <= 20  # of those that are in, some clients wait for the answer
    assert figures.commits > 100


def test_servers_that_rebase_answer_no_conflict(simulation: ModuleType) -> None:
    for way in ("rebase", "group"):
        assert simulation.Simulation(simulation.Lake(way, 50, seconds=20.0, replicas=2)).run().conflicts == 0


def test_plots_are_whole_and_name_every_way(simulation: ModuleType) -> None:
    for name in ("scale-commits.svg", "scale-p99.svg"):
        root = ET.parse(simulation.IMAGES / name).getroot()  # noqa: S314  (our own)
        said = {"".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")}
        assert set(simulation.WAYS.values()) <= said
