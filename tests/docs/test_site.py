"""The documentation as a site: every page is in it, links lead somewhere, and pages load nothing from other hosts."""

import http.client
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import pytest
from bergline_server import BerglineServer
from support_path import ROOT

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
@pytest.mark.skipif(not (ROOT / "src/bergline/console/web").exists(), reason="the console is not here yet")
def test_pages_of_the_pictures_are_there(tmp_path: Path) -> None:
    lake = tmp_path / "quickstart"
    subprocess.run([f"{sys.prefix}/bin/bergline", "quickstart", str(lake)], check=True, capture_output=True)
    with BerglineServer(lake) as server:
        connection = http.client.HTTPConnection(urlsplit(server.uri).netloc, timeout=30)
        for picture in pictures().CONSOLE.values():
            connection.request("GET", picture.path)
            response = connection.getresponse()
            body = response.read().decode()
            assert (response.status, "<html" in body) == (200, True), picture
            assert "shop" in body
        connection.close()


def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "tools" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
