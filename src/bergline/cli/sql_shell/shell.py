"""Statements one after the other, whatever runs them: errors are shown, and a prompt goes on."""

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
        """Run a statement, and say how many rows were printed if it has some."""
        ...


def run_shown(statements: Statements, text: str, *, timed: bool = False) -> bool:
    """Whether a statement succeeded; its error is shown."""
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
    """Say that a table has more rows than are shown."""
    sys.stdout.flush()
    sys.stderr.write(f"only the first {shown:,} rows are shown: --limit takes more\n")
