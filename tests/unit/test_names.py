"""The layout: one meaning for each public type name, a test file for most modules, folders of readable size."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "src/bergline"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name not in {"__init__.py", "__main__.py"})
MOST_MODULES_IN_A_FOLDER = 20
LEAST_SHARE_WITH_A_TEST_FILE = 0.85
TESTED_BESIDE_UNIT = {"cli", "server", "spark"}  # whose tests need a process, a server or a session
CAMEL_CASE = re.compile(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")
MAYBE_A_TYPE = re.compile(r"^(?:class\s+)?([A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*)\b", re.MULTILINE)


def test_a_public_class_name_means_one_thing() -> None:
    texts = {str(module.relative_to(PACKAGE)): module.read_text() for module in PACKAGE.rglob("*.py")}
    candidates = {module: set(MAYBE_A_TYPE.findall(text)) for module, text in texts.items()}
    modules_with = Counter(name for names in candidates.values() for name in names)
    places = defaultdict(list)
    for module, names in candidates.items():  # parsing all of them would take seconds
        if any(modules_with[name] > 1 for name in names):
            for name in public_types(ast.parse(texts[module])):
                places[name].append(module)
    assert len(modules_with) > len(texts)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("class Scan: ...\nclass _Hidden: ...", ["Scan"]),
        ("Outcome = Committed | Unknown", ["Outcome"]),
        ("Pairs: TypeAlias = list[int]", ["Pairs"]),
        ("SnapshotId = NewType('SnapshotId', int)", ["SnapshotId"]),
        ("_Row = dict[str, int]\nLIMIT = 3\nV1 = 1\nname = 2", []),
        ("def f():\n    class Inner: ...", []),
        ("if TYPE_CHECKING:\n    from a import B", []),
    ],
)
def test_public_types_of_a_module(text: str, names: list[str]) -> None:
    assert list(public_types(ast.parse(text))) == names
    assert set(names) <= set(MAYBE_A_TYPE.findall(text))


def test_most_modules_have_a_test_file_of_their_name() -> None:
    without = [str(module.relative_to(PACKAGE)) for module in MODULES if not has_test_file(module)]
    share = 1 - len(without) / len(MODULES)
    assert share >= LEAST_SHARE_WITH_A_TEST_FILE, f"{share:.1%} have one, not: {', '.join(without)}"


def test_folders_can_be_scanned() -> None:
    modules = Counter(str(module.parent.relative_to(PACKAGE)) for module in MODULES)
    assert {folder: count for folder, count in modules.items() if count > MOST_MODULES_IN_A_FOLDER} == {}


def public_types(module: ast.Module) -> Iterator[str]:
    for statement in module.body:
        match statement:
            case (
                ast.ClassDef(name=name)
                | ast.Assign(targets=[ast.Name(id=name)])
                | ast.AnnAssign(target=ast.Name(id=name))
            ) if CAMEL_CASE.fullmatch(name):
                yield name


def has_test_file(module: Path) -> bool:
    inside = module.relative_to(PACKAGE)
    folders = [TESTS / "unit" / inside.parent]
    if inside.parts[0] in TESTED_BESIDE_UNIT:
        folders.append(TESTS / inside.parent)
    return any((folder / f"test_{inside.name}").exists() for folder in folders)
