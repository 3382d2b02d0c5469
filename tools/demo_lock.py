"""Writes requirements-demo.lock: of requirements-dev.lock what `make demo` needs, so that it is set up first and fast.

Usage, in an environment made from requirements-dev.lock: python tools/demo_lock.py
"""

from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-demo.lock"
COMMAND = "python tools/demo_lock.py"
HEAD = f"# What make demo needs, in the versions of requirements-dev.lock. Made by: {COMMAND}\n"
BUILD = ("hatchling", "editables")
"""What installs this checkout itself."""


def render() -> str:
    """The lock as it should be."""
    needed = closure([Requirement("bergline[spark,cli]"), *map(Requirement, BUILD)])
    lines = (ROOT / "requirements-dev.lock").read_text().splitlines(keepends=True)
    return HEAD + "".join(line for line in lines if canonicalize_name(line.partition("==")[0]) in needed)


def closure(wanted: list[Requirement]) -> set[str]:
    """The packages that some need on this machine, with all that those need."""
    done: set[str] = set()
    while wanted:
        one = wanted.pop()
        if str(one) in done:
            continue
        done.add(str(one))
        done.add(canonicalize_name(one.name))
        extras = ("", *one.extras)
        needs = map(Requirement, requires(one.name) or ())
        wanted += [n for n in needs if n.marker is None or any(n.marker.evaluate({"extra": e}) for e in extras)]
    return done


if __name__ == "__main__":
    LOCK.write_text(render())
