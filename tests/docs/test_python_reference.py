"""The page of public names is the one that the code gives."""

import importlib.util
import re
from types import ModuleType

import pytest

import bergline
import bergline.spark
from support.paths import ROOT


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("python_reference", ROOT / "tools" / "python_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_is_current(generator: ModuleType) -> None:
    assert generator.PAGE.read_text() == generator.render(), f"run {generator.COMMAND}"


def test_page_has_every_exported_name(generator: ModuleType) -> None:
    page = generator.PAGE.read_text()
    exported = {*bergline.__all__, *bergline.spark.__all__}
    assert {
        name for name in exported if not re.search(rf"^(- `|## `(bergline\.spark\.)?){name}\b", page, re.MULTILINE)
    } == set()


def test_every_name_has_a_sentence(generator: ModuleType) -> None:
    lines = [line for line in generator.PAGE.read_text().splitlines() if line.lstrip().startswith("- `")]
    assert len(lines) > 150
    assert [line for line in lines if not re.search(r"`: \S", line)] == []
    assert [line for line in lines if " at 0x" in line] == []
