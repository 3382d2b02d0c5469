"""`bergline revoke`."""

from typing import Annotated

import typer

from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.rows import AsJson, print_json, print_lines
from bergline.governance.grants.grant import parse_grants

app = typer.Typer()


@app.command()
@with_lake
def revoke(
    options: LakeOptions,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="WORDS",
            help="The words of the grant, with `from` in place of `to`.",
        ),
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Revoke privileges, e.g. `bergline revoke write on table db.orders from alice`."""
    grants = parse_grants(words, revokes=True)
    with options.open() as lake:
        lake.access.apply(revoke=grants)
    if as_json:
        print_json({"revoked": [str(one) for one in grants]})
    else:
        print_lines([f"revoked the grant {one}" for one in grants])
