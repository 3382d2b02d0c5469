"""The streams of the process: closed by the caller, full, or in an encoding that does not have all texts."""

import os
import sys

from bergline.errors import BerglineError, StorageError, UnsupportedError


def open_closed_streams() -> None:
    """Have something to read from and to write to where the caller closed a stream: nothing."""
    for number, mode in ((0, "r"), (1, "w"), (2, "w")):
        name = ("stdin", "stdout", "stderr")[number]
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123  (for the whole process)


def drop_output() -> None:
    """Forget what stdout could not take, so that the interpreter does not try again at its end."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, number)
    os.close(nothing)


def output_error(error: OSError | UnicodeEncodeError) -> BerglineError:
    """What to tell of an error of the operating system that no command expects: it is most likely about the output."""
    if isinstance(error, UnicodeEncodeError):
        text = error.object[error.start : error.end][:1]
        return UnsupportedError(
            f"cannot write {text!a} in the encoding `{error.encoding}` of the output",
            hints=["set PYTHONUTF8=1, or a locale with UTF-8"],
        )
    place = f" at `{error.filename}`" if error.filename else ""
    return StorageError(f"the operating system refused{place}: {error.strerror or error}")
