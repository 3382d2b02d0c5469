"""Statements one after the other, on any engine: errors are shown, and a prompt continues."""

import sys
import time
from enum import Enum
from typing import Protocol

from bergline.cli.output.errors import show_error

SHOWN_ROWS = 100


class OutputFormat(Enum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


class Statements(Protocol):
    """Runs statements and prints their rows."""

    def run(self, text: str) -> int | None:
        """Run a statement; returns how many rows were printed, if it has any."""
        ...


def run_shown(statements: Statements, text: str, *, timed: bool = False) -> bool:
    """Run a statement, showing its error; returns whether it succeeded."""
    start = time.monotonic()
    try:
        rows = statements.run(text)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return False
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001  (whatever a statement raises: the prompt goes on)
        show_error(error)
        return False
    if timed:
        found = "" if rows is None else f"{rows:,} row{'' if rows == 1 else 's'}, "
        sys.stderr.write(f"{found}{time.monotonic() - start:.1f} s\n")
    return True


def say_that_more_follow(shown: int) -> None:
    """Print that there are more rows than are shown."""
    sys.stdout.flush()
    sys.stderr.write(f"only the first {shown:,} rows are shown: --limit takes more\n")
