"""Pages name only modules that exist, and show the layers that import-linter checks."""

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import grimp
import pytest

from bergline.catalog.rest.protocol.endpoints import FETCH_PLANNING_RESULT
from bergline.errors import UnsupportedError
from bergline.format.schema.schema import Schema
from bergline.governance.endpoints import ENDPOINTS
from bergline.sql.statements.registry import HEADS
from bergline.table.evolution.properties import check_properties
from support.paths import ROOT

PACKAGE = ROOT / "src" / "bergline"
TOP = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES = [*TOP, *sorted((ROOT / "docs").rglob("*.md"))]
_PATH = re.compile(r"`([\w./*-]+(?:\.py|/))`|`((?:bench|demo|docs|src|tests|tools)/[\w./*-]+)`")
_DOTTED = re.compile(r"`(bergline(?:\.\w+)+)`")


@pytest.fixture(scope="module")
def layers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("layers", ROOT / "tools" / "layers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def exists(path: str) -> bool:
    """Whether a path, from the root or from the package, is there; `*` stands for any text."""
    return any(any(base.glob(path.rstrip("/"))) for base in (ROOT, PACKAGE))


def is_name(dotted: str) -> bool:
    """Whether the longest part of a dotted name that is a package or module has the rest, if it is one word, in it."""
    parts = dotted.split(".")[1:]
    place = PACKAGE
    while parts and (place / parts[0]).is_dir():
        place /= parts.pop(0)
    module = place / f"{parts[0]}.py" if parts and (place / f"{parts[0]}.py").exists() else place / "__init__.py"
    rest = parts[1:] if parts and module.stem == parts[0] else parts
    return not rest or (len(rest) == 1 and re.search(rf"\b{rest[0]}\b", module.read_text()) is not None)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_paths_of_modules_exist(page: Path) -> None:
    named = {path or other for path, other in _PATH.findall(page.read_text())}
    source = {path for path in named if not path.endswith("/") or (PACKAGE / path.split("/")[0]).exists()}
    assert {path for path in source if not exists(path)} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_dotted_names_exist(page: Path) -> None:
    named = {name for name in _DOTTED.findall(page.read_text()) if re.match(r"bergline\.[a-z_]+\b", name)}
    properties = {
        "bergline.pipeline",
        "bergline.step",
        "bergline.demo",
        "bergline.removed",
        "bergline.toml",
    }  # in tables and summaries
    found = {name for name in named - properties if not name.startswith("bergline.maintain.")}  # those of a policy
    assert {name for name in found if not is_name(name)} == set()


def test_layers_are_those_that_are_checked(layers: ModuleType) -> None:
    assert layers.current() == layers.render(), f"run {layers.COMMAND}"


def test_architecture_is_short() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().split()) <= 1800


def test_contributing_says_what_every_folder_of_tests_is_for() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("| folder |")[2].partition("\n\n")[0]
    named = {path.split("/")[1] for path in re.findall(r"`(tests/\w+)", table)}
    assert named == {p.name for p in (ROOT / "tests").iterdir() if p.is_dir() and p.name != "__pycache__"} - {"support"}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_targets_of_make_exist(page: Path) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"(?:`|^    )make ([a-z-]+)", page.read_text(), re.MULTILINE)) <= set(targets)


def test_index_names_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    install = (ROOT / "docs" / "README.md").read_text().partition("| extra |")[2].partition("\n\n")[0]
    assert {*project["optional-dependencies"]} - {"dev"} <= set(re.findall(r"`([a-z0-9]+)`", install))


@pytest.mark.parametrize("name", ["orc", "avro"])
def test_pages_say_which_formats_are_read_and_written(name: str) -> None:
    assert (PACKAGE / "datafiles" / "formats" / f"{name}.py").exists()
    with pytest.raises(UnsupportedError, match="only that is written"):
        check_properties({"write.format.default": name}, Schema(()))
    (tables,) = re.findall(r"^\| Tables \|.*\| (.*) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert tables == "writing ORC and Avro"


def test_no_two_folders_import_each_other() -> None:
    graph = grimp.build_graph("bergline", cache_dir=None)
    folders = {m for m in graph.modules if graph.find_children(m)}
    folder = {m: m if m in folders else m.rpartition(".")[0] for m in graph.modules}
    pairs = {(folder[m], folder[n]) for m in graph.modules for n in graph.find_modules_directly_imported_by(m)}
    beside = {(a, b) for a, b in pairs if not f"{a}.".startswith(f"{b}.") and not f"{b}.".startswith(f"{a}.")}
    assert {(a, b) for a, b in beside if (b, a) in beside} == set()


@pytest.mark.parametrize(
    ("page", "denied", "is_there"),
    [
        ("README.md", "asynchronous planning |", FETCH_PLANNING_RESULT in ENDPOINTS),
        ("docs/reference/specification.md", "no SQL for views", "CREATE VIEW" in HEADS),
    ],
)
def test_pages_deny_nothing_that_is_there(page: str, denied: str, is_there: bool) -> None:
    assert (is_there, denied in (ROOT / page).read_text()) == (True, False)
