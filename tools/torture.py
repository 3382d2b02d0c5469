"""The stateful tests again and again, each time whole, larger and with another seed, until the time is up.

The first round is small, so that every test has run once whatever the time; each next one is up to twice as large, as
far as it fits. Ends with the first round in which anything fails, and says how to run it again.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FIRST_SIZE = 20
LARGEST_SIZE = 1000
LONGEST_TEST_S = 3600


class Round(NamedTuple):
    """What a round of all tests gave: names of tests, which some share, and how long it took."""

    passed: list[str]
    skipped: list[str]
    failed: list[str]
    code: int
    seconds: float


def main() -> int:
    """Run, and say what ran; 0 if everything did and nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30, help="for how long; one round is always made")
    parser.add_argument("--examples", type=int, help="one round of this size instead")
    parser.add_argument("--seed", type=int, help="the seed of the first round, to see it again")
    parser.add_argument("--tests", default="tests/stateful", help="the tests to run")
    given = parser.parse_args()
    started, seed = time.monotonic(), given.seed if given.seed is not None else random.SystemRandom().randrange(10**6)
    size, rounds = given.examples or FIRST_SIZE, []
    while True:
        say(f"round {len(rounds) + 1}: {size} examples, seed {seed}")
        done = run_all(given.tests, size, seed)
        rounds.append(done)
        say(
            f"round {len(rounds)}: {len(done.passed)} passed, {len(done.failed)} failed, {len(done.skipped)} skipped "
            f"in {done.seconds / 60:.1f} minutes"
        )
        if done.code:
            again = f"BERGLINE_EXAMPLES={size} BERGLINE_SEED={seed} .venv/bin/python -m pytest --hypothesis-seed={seed}"
            say(
                "failed, with this to see it again:",
                f"  {again} {given.tests}",
                *(f"  {n}" for n in sorted(done.failed)),
            )
            return done.code
        left = given.minutes * 60 - (time.monotonic() - started)
        size = min(LARGEST_SIZE, int(size * min(2, left / done.seconds)))
        seed += 1
        if given.examples or size < FIRST_SIZE:
            return ending(rounds, (time.monotonic() - started) / 60)


def run_all(tests: str, size: int, seed: int) -> Round:
    """All tests once, in a process of their own."""
    with tempfile.TemporaryDirectory(prefix="bergline-torture-") as directory:
        report = Path(directory) / "report.xml"
        limits = ["-p", "no:cacheprovider", f"--timeout={LONGEST_TEST_S}"]
        command = [sys.executable, "-m", "pytest", tests, "-q", *limits, f"--hypothesis-seed={seed}"]
        started = time.monotonic()
        done = subprocess.run(  # noqa: S603  (our own tests)
            [*command, f"--junitxml={report}"],
            cwd=ROOT,
            env={**os.environ, "BERGLINE_EXAMPLES": str(size), "BERGLINE_SEED": str(seed)},
            check=False,
        )
        seconds = time.monotonic() - started
        cases = list(ET.parse(report).iter("testcase")) if report.exists() else []  # noqa: S314  (our own file)
    named: dict[str, list[str]] = {"passed": [], "skipped": [], "failed": []}
    for case in cases:
        ended = next((kind for kind in ("failure", "error", "skipped") if case.find(kind) is not None), "passed")
        name = f"{case.get('classname')}::{case.get('name')}"
        named["failed" if ended in {"failure", "error"} else ended].append(name)
    return Round(**named, code=done.returncode, seconds=seconds)


def ending(rounds: list[Round], minutes: float) -> int:
    """The last words: whether every test ran, and how often."""
    passed = {name for done in rounds for name in done.passed}
    never = {name for done in rounds for name in done.skipped} - passed
    say(f"{len(rounds)} rounds of {len(rounds[0].passed)} tests in {minutes:.1f} minutes, nothing failed")
    if never or not passed:
        say("not whole, these never ran; they say above what they lack:", *(f"  {name}" for name in sorted(never)))
        return 1
    return 0


def say(*lines: str) -> None:
    """Tell at once, between what the tests tell."""
    sys.stdout.write("".join(f"torture: {line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
