"""The demo runs twice, its output is what the docs show, and the peers read its table."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bergline
from support.fixtures.rows import ORDERS, ids
from support.paths import DEMO, PIPELINE_DEMO, ROOT
from support.servers.peers import OfficialRuntime, needs_java, pyiceberg_catalog

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]  # each of the programs starts a Spark of its own, twice

EXPECTED = {"main": 119_982, "staging": 119_980, "2026-q1-final": 119_980}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The demo's directory and output, after it ran twice; its tests share a process with those on an engine."""
    needs_java()
    directory = tmp_path_factory.mktemp("demo")
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(DEMO)],
            cwd=directory,
            capture_output=True,
            text=True,
            check=False,
            env={k: v for k, v in os.environ.items() if k != "BERGLINE_DEMO_LAKE"},
        )
        assert done.returncode == 0, done.stderr[-3000:]
    return directory / "lake", done.stdout


def masked(text: str) -> list[str]:
    """Lines without what differs from run to run: snapshot ids (numbered as they come) and random names."""
    seen: dict[str, str] = {}
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "<uuid>", text)
    text = re.sub(r"\d{12,}", lambda m: seen.setdefault(m[0], f"<id{len(seen)}>"), text)
    text = re.sub(r"id=\d+, customer=.*", "<one of the failing rows>", text)
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines() if line.strip()]


def stages(text: str) -> dict[str, list[str]]:
    return {block.split(".")[0]: masked(f"== {block}") for block in text.split("\n== ")[1:]}


@pytest.mark.engine
def test_docs_show_the_demos_own_output(demo: tuple[Path, str]) -> None:
    real = stages(demo[1])
    assert len(real) == 10
    for path in sorted((ROOT / "docs").rglob("*.md")):
        for block in re.findall(r"<!-- demo -->\n```text\n(.*?)```", path.read_text(), re.DOTALL):
            (number,) = stages(f"\n{block}")
            assert stages(f"\n{block}")[number] == real[number], path


def test_concepts_and_guide_use_the_demos_output() -> None:
    simulated = ROOT / "docs" / "concepts" / "scale.md"
    concepts = [p for p in simulated.parent.glob("*.md") if p != simulated]
    pages = [*concepts, ROOT / "docs" / "guides" / "write-audit-publish.md"]
    assert len(pages) == 4
    assert all("<!-- demo -->" in p.read_text() for p in pages)


@pytest.mark.engine
def test_pyiceberg_reads_main_branch_and_tag_of_the_demo(demo: tuple[Path, str]) -> None:
    lake = demo[0]
    catalog = pyiceberg_catalog(lake / "catalog.db", lake / "warehouse", "lake")
    table = catalog.load_table("db.orders")
    with bergline.connect(f"sqlite:///{lake}/catalog.db") as ours:
        mine = ours.load_table("db.orders")
        assert {n: r.snapshot_id for n, r in table.metadata.refs.items()} == {
            n: r.snapshot_id for n, r in mine.metadata.refs.items()
        }
        for name, ref in table.metadata.refs.items():
            rows = table.scan(snapshot_id=ref.snapshot_id).to_arrow()
            assert rows.num_rows == EXPECTED[name]
            expected = mine.scan(ref=name).to_arrow()
            assert ids(rows) == ids(expected)
            assert rows.sort_by("id").to_pylist() == expected.sort_by("id").to_pylist()
    catalog.close()


@pytest.mark.official
def test_official_runtime_reads_main_branch_and_tag_of_the_demo(
    demo: tuple[Path, str], official_runtime: OfficialRuntime
) -> None:
    lake = demo[0]
    official_runtime.use_catalog(lake / "catalog.db", lake / "warehouse", "lake")
    checksum = "count(*), sum(id), sum(amount), count(DISTINCT customer), min(ordered_at), max(ordered_at)"
    with bergline.connect(f"sqlite:///{lake}/catalog.db") as ours:
        mine = ours.load_table("db.orders")
        for name, count in EXPECTED.items():
            (theirs,) = official_runtime.sql(f"SELECT {checksum} FROM db.orders VERSION AS OF '{name}'")
            rows = mine.scan(ref=name).to_arrow()
            assert theirs[0] == count
            assert theirs[1] == sum(rows.column("id").to_pylist())
            assert theirs[2] == str(sum(rows.column("amount").to_pylist()))
            assert theirs[3] == len(set(rows.column("customer").to_pylist()))


def test_demo_leaves_a_table_that_is_not_its_own_alone(tmp_path: Path) -> None:
    with bergline.connect(f"sqlite:///{tmp_path}/lake/catalog.db", create=True) as lake:
        lake.create_namespace("db")
        mine = lake.create_table("db.orders", ORDERS)
    done = subprocess.run([sys.executable, str(DEMO)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "that the demo did not make" in done.stderr
    assert Path(mine.metadata_location.removeprefix("file://")).exists()


def test_guide_to_pipelines_shows_what_make_demo_says_also_the_second_time(tmp_path: Path) -> None:
    needs_java()
    (shown,) = re.findall(r"```text\n(.*?)```", (ROOT / "docs/guides/pipeline.md").read_text(), re.DOTALL)
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(PIPELINE_DEMO)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={k: v for k, v in os.environ.items() if k != "BERGLINE_DEMO_LAKE"},
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert masked(done.stdout) == masked(shown)
        said = ["starting Spark", "done in", ".venv/bin/bergline log"]
        assert [line for line in done.stderr.splitlines() if line and not any(words in line for words in said)] == []
        assert (tmp_path / "lake" / "spark.log").exists()
    assert "demo/pipeline.py" in (ROOT / "Makefile").read_text()
