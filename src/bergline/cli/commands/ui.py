"""`bergline ui`: the console for any lake, in a browser on this machine."""

import sys
import webbrowser
from typing import Annotated

import typer

from bergline.cli.opening import LakeOptions, with_lake
from bergline.errors import UnsupportedError
from bergline.extras import install_hint

try:
    from bergline.server.console.local import show_lake
except ModuleNotFoundError as error:
    if error.name not in {"httptools", "jinja2", "starlette", "uvicorn"}:
        raise
    _IS_INSTALLED = False
else:
    _IS_INSTALLED = True

app = typer.Typer()


@app.command()
@with_lake
def ui(
    options: LakeOptions,
    *,
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 8182,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address without opening a browser.")
    ] = False,
) -> None:
    """Show a lake in the browser: graph, rows, differences and actions, for this machine alone."""
    if not _IS_INSTALLED:
        raise UnsupportedError("cannot show pages without the server's parts", hints=[install_hint("server")])
    with options.open() as lake:
        show_lake(lake, port, say=_say, started=lambda url: None if no_browser else _open(url))


def _open(url: str) -> None:
    try:
        webbrowser.open(url)
    except webbrowser.Error as error:
        _say(f"no browser could be opened: {error}")


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
