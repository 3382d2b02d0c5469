"""The entry point of the `bergline` script: says what to install if a dependency is missing."""

import sys

try:
    from bergline.cli.main import main
except ModuleNotFoundError as error:
    if error.name not in {"rich", "typer"}:
        raise

    def main() -> None:
        """Report the missing dependency."""
        sys.exit("bergline: the command line needs more parts: pip install 'bergline[cli]'")


__all__ = ["main"]
