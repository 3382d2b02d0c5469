"""`bergline`: the list of commands. A command's module is imported only when that command runs."""

import importlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import typer
import typer.core
import typer.main

from bergline import __version__
from bergline.cli.output.errors import FAILED, exit_code, show_error
from bergline.cli.output.streams import drop_output, open_closed_streams, output_error
from bergline.errors import BerglineError

_START, _LOOK, _CHANGE, _MAINTAIN, _SERVE = "Start", "Look", "Change", "Maintain", "Serve"

_COMPLETION = {"install_completion", "show_completion"}  # options of `bergline` itself


class ListedCommand(NamedTuple):
    """A command or group of commands: `app` of a module in `bergline.cli.commands`, with its line in the help."""

    module: str
    help: str
    panel: str


COMMANDS = {
    "quickstart": ListedCommand("tables.quickstart", "Create a small example lake: branches, a merge, a tag.", _START),
    "log": ListedCommand("tables.log", "Show snapshots as git shows commits, with --graph as lanes.", _LOOK),
    "refs": ListedCommand("references.refs", "List a table's branches and tags.", _LOOK),
    "branch": ListedCommand("references.branch", "Create, move, merge and compare the branches of a table.", _CHANGE),
    "tag": ListedCommand("references.tag", "Create, move and drop the tags of a table.", _CHANGE),
    "pr": ListedCommand("governance.pull_requests", "Pull requests: review branches, then publish them.", _CHANGE),
    "read": ListedCommand("tables.read", "Print rows at any branch, tag, snapshot or time.", _LOOK),
    "append": ListedCommand("tables.append", "Append the rows of Parquet, CSV or JSON-lines files.", _CHANGE),
    "namespace": ListedCommand("tables.namespace", "List, create and drop namespaces.", _CHANGE),
    "table": ListedCommand("tables.table", "List, show, create, register and drop tables.", _CHANGE),
    "view": ListedCommand("tables.view", "List, show, drop and restore views.", _CHANGE),
    "sql": ListedCommand("sql", "Run SQL: at a prompt, or statements from options, files or a pipe.", _LOOK),
    "check": ListedCommand(
        "maintenance.check", "Find damaged tables: what is wrong, and what would repair it.", _MAINTAIN
    ),
    "compact": ListedCommand("maintenance.compact", "Rewrite small files, and files with deletes.", _MAINTAIN),
    "expire": ListedCommand("maintenance.expire", "Remove old snapshots and the files that only they need.", _MAINTAIN),
    "orphans": ListedCommand("maintenance.orphans", "Find files that nothing needs, and delete them.", _MAINTAIN),
    "explain-expiry": ListedCommand(
        "maintenance.explain_expiry", "Show what expiry would remove and keep, and why.", _MAINTAIN
    ),
    "maintain": ListedCommand(
        "maintenance.maintain", "Compact, expire and clean up tables by their properties.", _MAINTAIN
    ),
    "accept-metadata": ListedCommand(
        "maintenance.accept_metadata", "Accept a table whose metadata file was replaced.", _MAINTAIN
    ),
    "backup": ListedCommand("maintenance.backup", "Write everything in a catalog's database to a file.", _MAINTAIN),
    "restore": ListedCommand(
        "maintenance.restore", "Restore a catalog from a backup, and check every pointer.", _MAINTAIN
    ),
    "doctor": ListedCommand("doctor", "Check Python, Java, Spark, catalog and warehouse: what is wrong?", _START),
    "serve": ListedCommand("serve", "Serve a lake to every engine: an Iceberg REST catalog.", _SERVE),
    "ui": ListedCommand("ui", "Show a lake in the browser: its graph, rows, differences and actions.", _SERVE),
    "rule": ListedCommand("references.rule", "List, set and remove the rules that protect branches and tags.", _CHANGE),
    "token": ListedCommand("token", "Create, rotate and revoke tokens for `bergline serve`.", _SERVE),
    "grant": ListedCommand(
        "governance.grant", "Grant privileges, as in `grant read on table db.orders to alice`.", _SERVE
    ),
    "revoke": ListedCommand("governance.revoke", "Revoke privileges.", _SERVE),
    "grants": ListedCommand("governance.grants", "List who holds which privilege.", _SERVE),
    "role": ListedCommand("governance.role", "Roles: named sets of principals and groups.", _SERVE),
    "owner": ListedCommand("governance.owner", "Show or change who owns a namespace, table or view.", _SERVE),
    "audit": ListedCommand("audit", "Show and export what was done through `bergline serve`.", _SERVE),
    "events": ListedCommand("governance.events", "Show what happened through `bergline serve`, in order.", _SERVE),
    "webhook": ListedCommand("governance.webhook", "Manage where `bergline serve` sends events.", _SERVE),
}


class CommandGroup(typer.core.TyperGroup):
    """The group of `COMMANDS`: its help needs only their lines; their modules are imported when they run."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, listed in COMMANDS.items():
            self.add_command(typer.core.TyperCommand(name, help=listed.help, rich_help_panel=listed.panel))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command itself, imported."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found if name is None else load_command(name), rest


def load_command(name: str) -> Any:
    """A command by its name, from its module."""
    module = importlib.import_module(f"bergline.cli.commands.{COMMANDS[name].module}")
    command = typer.main.get_command(module.app)
    command.name = name
    command.params = [option for option in command.params if option.name not in _COMPLETION]
    return command


app = typer.Typer(
    cls=CommandGroup,
    help="Inspect, change, maintain and serve the tables, branches and snapshots of a lake.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"bergline {__version__}\n")
        raise typer.Exit


@app.callback()
def bergline(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Inspect, change, maintain and serve the tables, branches and snapshots of a lake."""


def main() -> None:
    """Run the command line of this process."""
    open_closed_streams()
    run(sys.argv[1:])


def run(arguments: Sequence[str]) -> None:
    """Run a command line; errors are shown as one line with their hints, and the process ends with their exit code."""
    try:
        try:
            app(arguments, prog_name="bergline")
        finally:
            sys.stdout.flush()
    except BerglineError as error:
        show_error(error)
        sys.exit(exit_code(error))
    except (OSError, UnicodeEncodeError) as error:
        drop_output()
        if not isinstance(error, BrokenPipeError):
            show_error(output_error(error))
        sys.exit(FAILED)
