"""`bergline grants`: who holds which privilege."""

from typing import Annotated

import typer

from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.rows import AsJson, print_json, print_table

app = typer.Typer()


@app.command()
@with_lake
def grants(
    options: LakeOptions,
    *,
    to: Annotated[str | None, typer.Option(help="Only grants to alice, group:analysts or role:etl.")] = None,
    on: Annotated[
        str | None, typer.Option(help="Only grants on this securable, e.g. 'table db.orders' or catalog.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List grants: all for an administrator; else your own, and those on what you administer."""
    with options.open() as lake:
        found = lake.access.grants(to=to, on=on)
    if as_json:
        print_json(
            [
                {
                    "privilege": grant.privilege.value,
                    "on": str(grant.securable.at(None)),
                    "ref": grant.securable.ref,
                    "to": str(grant.grantee),
                }
                for grant in found
            ]
        )
        return
    print_table(
        ["to", "privilege", "on", "ref"],
        [
            [str(grant.grantee), grant.privilege.value, str(grant.securable.at(None)), grant.securable.ref or ""]
            for grant in found
        ],
    )
