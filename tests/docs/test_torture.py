"""`make torture`: whole rounds until the time is up, and failures with their seed."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.paths import ROOT

TESTS = """
import os
import pytest

def test_reads_its_size():
    assert 0 < int(os.environ["BERGLINE_EXAMPLES"]) != {bad_size}

def test_lacks_nothing():
    if {lacks}:
        pytest.skip("no Go on this machine")
"""


def torture(directory: Path, *options: str, bad_size: int = 0, lacks: bool = False) -> tuple[int, list[str]]:
    """The exit code, and what the program itself says."""
    (directory / "test_small.py").write_text(TESTS.format(bad_size=bad_size, lacks=lacks))
    program = [sys.executable, str(ROOT / "tools" / "torture.py"), "--tests", str(directory), *options]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    said = [line.removeprefix("torture: ") for line in done.stdout.splitlines() if line.startswith("torture: ")]
    return done.returncode, said


def test_one_round_is_made_however_short_the_time(tmp_path: Path) -> None:
    code, said = torture(tmp_path, "--minutes", "0", "--seed", "5")
    assert code == 0
    assert said[0] == "round 1: 20 examples, seed 5"
    assert said[1].startswith("round 1: 2 passed, 0 failed, 0 skipped in ")
    assert said[2].startswith("1 rounds of 2 tests in ")


def test_rounds_grow_while_there_is_time(tmp_path: Path) -> None:
    code, said = torture(tmp_path, "--minutes", "60", "--seed", "5", bad_size=40)
    assert code == 1
    assert [line for line in said if "examples" in line] == [
        "round 1: 20 examples, seed 5",
        "round 2: 40 examples, seed 6",
    ]
    assert said[-2].split()[:2] == ["BERGLINE_EXAMPLES=40", "BERGLINE_SEED=6"]
    assert said[-2].endswith(f"--hypothesis-seed=6 {tmp_path}")
    assert said[-1].strip().endswith("::test_reads_its_size")


@pytest.mark.parametrize("lacks", [True, False])
def test_run_without_all_tests_is_no_success(tmp_path: Path, lacks: bool) -> None:
    code, said = torture(tmp_path, "--examples", "7", lacks=lacks)
    assert said[0].startswith("round 1: 7 examples")
    assert code == int(lacks)
    assert said[-1].endswith("::test_lacks_nothing") is lacks
