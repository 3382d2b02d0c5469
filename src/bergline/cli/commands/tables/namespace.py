"""`bergline namespace`."""

from functools import partial
from typing import Annotated

import typer

from bergline.cli.arguments import NamespaceArgument, complete_namespace
from bergline.cli.opening import LakeOptions, settings_of, with_lake
from bergline.cli.output.plans import Yes, confirm
from bergline.cli.output.problems import end_with_problems
from bergline.cli.output.rows import AsJson, print_json, print_lines, print_table
from bergline.reports.problem import Problem, attempt

app = typer.Typer(help="The namespaces of a lake.", no_args_is_help=True)


@app.command("list")
@with_lake
def list_namespaces(
    options: LakeOptions,
    *,
    below: Annotated[
        str | None, typer.Option(help="Only namespaces below this one.", autocompletion=complete_namespace)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List namespaces at every level with their properties."""
    problems: list[Problem] = []
    with options.open() as lake:
        found = {
            name: attempt(problems, f"the properties of namespace `{name}`", partial(lake.namespace_properties, name))
            for name in lake.list_namespaces(below)
        }
    if as_json:
        print_json([{"namespace": name, "properties": properties} for name, properties in found.items()])
    else:
        print_table(
            ["namespace", "properties"],
            [[name, ", ".join(f"{key}={value}" for key, value in (of or {}).items())] for name, of in found.items()],
        )
    end_with_problems(problems)


@app.command()
@with_lake
def create(
    options: LakeOptions,
    namespace: NamespaceArgument,
    *,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A property of the namespace; may be repeated."),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Leave an existing namespace as it is.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create a namespace."""
    properties = settings_of(settings, "--set")
    with options.open() as lake:
        lake.create_namespace(namespace, properties, if_not_exists=if_not_exists)
        now = lake.namespace_properties(namespace)
    if as_json:
        print_json({"namespace": namespace, "properties": now})
    else:
        print_lines([f"created namespace `{namespace}`"])


@app.command()
@with_lake
def drop(options: LakeOptions, namespace: NamespaceArgument, *, yes: Yes = False, as_json: AsJson = False) -> None:
    """Drop an empty namespace."""
    with options.open() as lake:
        lake.namespace_properties(namespace)  # a missing namespace is an error before asking for confirmation
        confirm(f"drop namespace `{namespace}`, which must be empty", yes)
        lake.drop_namespace(namespace)
    if as_json:
        print_json({"namespace": namespace, "dropped": True})
    else:
        print_lines([f"dropped namespace `{namespace}`"])
