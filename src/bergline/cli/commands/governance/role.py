"""`bergline role`: named sets of principals and groups."""

from typing import Annotated

import typer

from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.plans import Yes, confirm
from bergline.cli.output.rows import AsJson, print_json, print_lines, print_table

app = typer.Typer(help="Roles: named sets of principals and groups, to grant privileges to.", no_args_is_help=True)

Members = Annotated[list[str], typer.Argument(metavar="MEMBER...", help="alice or group:analysts.")]
RoleName = Annotated[str, typer.Argument(metavar="ROLE", help="The name of the role.")]


@app.command("list")
@with_lake
def list_roles(options: LakeOptions, *, as_json: AsJson = False) -> None:
    """List the roles with their members."""
    with options.open() as lake:
        found = lake.access.roles()
    if as_json:
        print_json([{"role": role.name, "members": [str(member) for member in role.members]} for role in found])
    else:
        print_table(["role", "members"], [[role.name, ", ".join(map(str, role.members))] for role in found])


@app.command()
@with_lake
def create(
    options: LakeOptions,
    role: RoleName,
    members: Annotated[
        list[str] | None, typer.Argument(metavar="[MEMBER]...", help="Its first members: alice or group:analysts.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Create a role."""
    with options.open() as lake:
        lake.access.create_role(role, members or ())
    _say(role, f"created role `{role}`", as_json=as_json)


@app.command()
@with_lake
def drop(options: LakeOptions, role: RoleName, *, yes: Yes = False, as_json: AsJson = False) -> None:
    """Drop a role, with all grants to it."""
    with options.open() as lake:
        confirm(f"drop role `{role}` with all grants to it", yes)
        lake.access.drop_role(role)
    _say(role, f"dropped role `{role}`", as_json=as_json)


@app.command()
@with_lake
def add(options: LakeOptions, role: RoleName, members: Members, *, as_json: AsJson = False) -> None:
    """Add principals and groups to a role."""
    with options.open() as lake:
        lake.access.add_to_role(role, *members)
    _say(role, f"added {', '.join(members)} to role `{role}`", as_json=as_json)


@app.command()
@with_lake
def remove(options: LakeOptions, role: RoleName, members: Members, *, as_json: AsJson = False) -> None:
    """Remove principals and groups from a role."""
    with options.open() as lake:
        lake.access.remove_from_role(role, *members)
    _say(role, f"removed {', '.join(members)} from role `{role}`", as_json=as_json)


def _say(role: str, line: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"role": role, "done": line})
    else:
        print_lines([line])
