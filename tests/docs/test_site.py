"""The documentation as a site: every page is in it, links lead somewhere, and pages load nothing from other hosts."""

import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from support.paths import ROOT

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does: a page outside the navigation or a dead link is an error."""
    directory = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(directory)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "--quiet --strict" in (ROOT / "Makefile").read_text()
    return directory


def test_every_page_is_in_the_site(site: Path) -> None:
    pages = {p.relative_to(DOCS).with_suffix("") for p in DOCS.rglob("*.md")}
    names = {page.with_name("index") if page.name == "README" else page for page in pages}
    assert len(names) > 40
    assert {name for name in names if not (site / f"{name}.html").exists()} == set()


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md"))


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    loaded = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)="?((?:https?:)?//[^"\s>]+)""")
    found = {match for page in site.rglob("*.html") for match in loaded.findall(page.read_text())}
    assert found == set()


def test_every_picture_is_shown_and_the_tool_takes_it() -> None:
    tool = (ROOT / "tools" / "pictures.py").read_text()
    shown = {name for page in DOCS.rglob("*.md") for name in re.findall(r"images/([\w-]+)\.png\)", page.read_text())}
    assert shown == {p.stem for p in (DOCS / "images").glob("*.png")}
    assert {name for name in shown if f'"{name}"' not in tool} == set()


@pytest.mark.server
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium on this machine")
def test_pictures_can_be_taken_of_the_pages_as_they_are_now(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "pictures.py"), "--to", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    taken, kept = ({p.name: size(p) for p in place.glob("*.png")} for place in (tmp_path, DOCS / "images"))
    assert taken.keys() == kept.keys()
    console = [name for name in kept if name.startswith("console-")]
    assert [taken[name] for name in console] == [kept[name] for name in console]


def size(picture: Path) -> tuple[int, int]:
    """Width and height, from the head of a PNG."""
    return struct.unpack(">II", picture.read_bytes()[16:24])
