"""`bergline grant`."""

from typing import Annotated

import typer

from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.rows import AsJson, print_json, print_lines
from bergline.governance.grants.grant import parse_grants

app = typer.Typer()


@app.command()
@with_lake
def grant(
    options: LakeOptions,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="WORDS",
            help="PRIVILEGES on catalog|namespace|table|view NAME \\[ref PATTERN] to WHO. They are list, read, "
            "write, create, drop, manage-refs, publish and administer, with commas between them; WHO is alice, "
            "group:analysts or role:etl.",
        ),
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Grant privileges, e.g. `bergline grant read,write on table db.orders to alice`."""
    grants = parse_grants(words)
    with options.open() as lake:
        lake.access.apply(grant=grants)
    if as_json:
        print_json({"granted": [str(one) for one in grants]})
    else:
        print_lines([f"granted {one}" for one in grants])
