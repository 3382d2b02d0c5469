"""The entry point of the `bergline` script: says what to install if a dependency is missing."""

import sys

from bergline.extras import install_hint

try:
    from bergline.cli.main import main
except ModuleNotFoundError as error:
    if error.name not in {"rich", "typer"}:
        raise

    def main() -> None:
        """Report the missing dependency."""
        sys.exit(f"bergline: the command line needs more parts: {install_hint('cli')}")


except KeyboardInterrupt:  # interrupted before there is a command that could handle it
    sys.exit(130)

__all__ = ["main"]
