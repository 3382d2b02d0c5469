"""Where the `bergline` script starts: says what to install if the command line's parts are missing."""

import sys

try:
    from bergline.cli.main import main
except ModuleNotFoundError as error:
    if error.name not in {"rich", "typer"}:
        raise

    def main() -> None:
        """Say what is missing."""
        sys.exit("bergline: the command line needs more parts: pip install 'bergline[cli]'")


__all__ = ["main"]
