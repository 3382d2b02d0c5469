"""`bergline quickstart`."""

import json
import shlex
from pathlib import Path

from support.processes.command_line import run_here


def test_what_it_says_to_try_works(tmp_path: Path) -> None:
    done = run_here("quickstart", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    home = tmp_path / found["directory"]
    for line in found["try"]:
        _, *arguments = shlex.split(line)
        if arguments[0] != "sql":  # which starts Spark
            done = run_here(*arguments, cwd=home)
            assert (done.returncode, done.stderr) == (0, ""), line
            assert done.stdout
    graph = run_here("log", "shop.orders", "--graph", cwd=home).stdout
    for text in ("(main, experiment)", "(audit)", "tag: monday", "tag: tuesday", "|/"):
        assert text in graph


def test_a_story_is_told_once(tmp_path: Path) -> None:
    done = run_here("quickstart", "shop", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.splitlines()[:2] == ["  cd shop", "  bergline log shop.orders --graph"]
    assert "`audit` was merged" in done.stderr
    before = sorted(tmp_path.rglob("*"))
    done = run_here("quickstart", "shop", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: expected a new or empty directory, found `shop` with files in it")
    assert sorted(tmp_path.rglob("*")) == before
