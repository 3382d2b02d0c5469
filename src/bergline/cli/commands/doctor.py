"""`bergline doctor`: the environment, the catalog and the warehouse."""

import sys

import msgspec
import typer

from bergline.cli.diagnosis import Diagnosis, Health, diagnose
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.rows import AsJson, print_json, print_lines

app = typer.Typer()
_MARKS = {Health.OK: "ok", Health.NOTE: "--", Health.WARNING: "??", Health.ERROR: "!!"}


@app.command()
@with_lake
def doctor(options: LakeOptions, *, as_json: AsJson = False) -> None:
    """Check Python, packages, Java, Spark, settings, catalog, credentials and warehouse: what is wrong, how to fix it.

    To find out whether the warehouse is writable, a small file is written there and deleted. The exit code is 1 if
    there is an error.
    """
    found: list[Diagnosis] = []
    for one in diagnose(options):
        found.append(one)
        if not as_json:
            print_lines([_line(one)])
            sys.stdout.flush()
    is_bad = any(one.health is Health.ERROR for one in found)
    if as_json:
        print_json({"ok": not is_bad, "checks": msgspec.to_builtins(found)})
    if is_bad:
        raise typer.Exit(1)


def _line(one: Diagnosis) -> str:
    mend = f"\n   {'':12}  to fix it: {one.mend}" if one.mend else ""
    return f"{_MARKS[one.health]} {one.subject:12}  {one.message}{mend}"
