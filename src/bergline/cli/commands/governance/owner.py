"""`bergline owner`."""

from typing import Annotated

import typer

from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.rows import AsJson, print_json, print_lines
from bergline.governance.grants.securable import make_securable

app = typer.Typer()


@app.command()
@with_lake
def owner(
    options: LakeOptions,
    kind: Annotated[str, typer.Argument(metavar="namespace|table|view", help="What it is.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, e.g. db.orders.")],
    new: Annotated[
        str | None, typer.Argument(metavar="[OWNER]", help="The new owner: alice, group:analysts or role:etl.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show who owns a namespace, table or view, or transfer it to another owner."""
    of = make_securable(kind, name)
    with options.open() as lake:
        if new is not None:
            lake.access.set_owner(of, new)
        found = lake.access.owner(of)
    if as_json:
        print_json({"on": str(of), "owner": None if found is None else str(found)})
    else:
        print_lines([f"{of.described} has no owner" if found is None else f"{of.described} belongs to {found}"])
