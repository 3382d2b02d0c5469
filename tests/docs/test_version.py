"""Versions are the same wherever they stand: the project's own, and those of others that pages name."""

import re
import tomllib

import pytest

import bergline
from support.paths import ROOT

PAGES = " ".join(p.read_text() for p in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))).replace("\n", " ")


def test_package_and_changelog_have_the_version_of_the_project() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    releases = re.findall(r"^## (\d\S*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert (bergline.__version__, releases[0]) == (version, version)


@pytest.mark.parametrize(
    ("name", "place", "pattern"),
    [
        ("PyIceberg", "requirements-dev.lock", r"^pyiceberg==(.+)$"),
        ("DuckDB", "requirements-dev.lock", r"^duckdb==(.+)$"),
        ("official Spark runtime", "tests/support/processes/official_runtime_process.py", r"runtime-[^:]+:([\d.]+)"),
        ("Trino", "tools/trino/pom.xml", r"<version>(\d+)</version>"),
    ],
)
def test_pages_name_the_versions_of_others_that_are_tested(name: str, place: str, pattern: str) -> None:
    tested = re.findall(pattern, (ROOT / place).read_text(), re.MULTILINE)
    named = set(re.findall(rf"\b{name} (\d+(?:\.\d+)*)", PAGES))
    assert named
    assert {version for version in named if not any(f"{found}.".startswith(f"{version}.") for found in tested)} == set()


def test_readme_names_the_oldest_and_newest_pyspark_that_are_tested() -> None:
    oldest, newest = (
        re.findall(rf"^SPARK_{which} := (\d+\.\d+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[0]
        for which in ("OLDEST", "NEWEST")
    )
    assert f"PySpark {oldest} to {newest}," in (ROOT / "README.md").read_text()
