"""Hot tables and large lakes: many writers of one table, millions of files, long histories, a million tables.

Each part is a module `scale_<part>.py` with a function `cases(small)`, which yields its figures one after the other;
all are printed as one table. A part that fails is named at the end, and the others are still measured.
"""

import argparse
import importlib
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from results import Scaled, record

HERE = Path(__file__).parent
PARTS = tuple(sorted(path.stem.removeprefix("scale_") for path in HERE.glob("scale_*.py")))
SECONDS = {"s": 1.0, "ms": 0.001}
HEAD = "| part | case | bergline | the other | relative |\n|---|---|---|---|---|"


def cases_of(part: str) -> Callable[[bool], Iterable[Scaled]]:
    """The function of a part's module that measures."""
    found: Callable[[bool], Iterable[Scaled]] = importlib.import_module(f"scale_{part}").cases
    return found


def rows(parts: Iterable[str], failed: list[str], *, small: bool) -> Iterator[str]:
    """A row of the table as soon as its figure is there; parts that fail are added to `failed`."""
    for part in parts:
        try:
            for one in cases_of(part)(small):
                keep(one)
                yield row(part, one)
        except Exception:  # noqa: BLE001  (the other parts are worth having)
            traceback.print_exc()
            failed.append(part)


def row(part: str, one: Scaled) -> str:
    """A figure, that of the other side, and how many times better."""
    other = "" if one.theirs is None else f"{shown(one.theirs, one.unit)} ({one.peer})"
    relative = "" if one.speed is None else f"{one.speed:.3g}"
    return f"| {part} | {one.case} | {shown(one.ours, one.unit)} | {other} | {relative} |"


def shown(value: float, unit: str) -> str:
    """Three digits and the unit; `/s` stands without a space."""
    number = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{number}{unit}" if unit.startswith("/") else f"{number} {unit}"


def keep(one: Scaled) -> None:
    """For the report, which compares seconds: those of one of something where a rate was measured."""
    if one.theirs is None:
        return
    if one.unit.endswith("/s"):
        record(one.case, [1 / one.ours], [1 / one.theirs], one.peer)
    elif one.unit in SECONDS:
        record(one.case, [one.ours * SECONDS[one.unit]], [one.theirs * SECONDS[one.unit]], one.peer)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    arguments.add_argument("--only", choices=PARTS, action="append", help="only this part; may be repeated")
    given = arguments.parse_args()
    failed: list[str] = []
    print(HEAD)
    for line in rows(given.only or PARTS, failed, small=given.quick):
        print(line, flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
