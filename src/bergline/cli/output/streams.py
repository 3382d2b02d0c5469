"""The standard streams, which may be closed, full, or in an encoding that lacks some characters."""

import os
import sys

from bergline.errors import BerglineError, StorageError, UnsupportedError


def open_closed_streams() -> None:
    """Replace standard streams that the caller has closed by the null device."""
    for number, mode in ((0, "r"), (1, "w"), (2, "w")):
        name = ("stdin", "stdout", "stderr")[number]
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123  (for the whole process)


def drop_output() -> None:
    """Discard what stdout could not take, so that the interpreter does not try again when it exits."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, number)
    os.close(nothing)


def output_error(error: OSError | UnicodeEncodeError) -> BerglineError:
    """The error to report for an unexpected OSError, which is most likely about the output."""
    if isinstance(error, UnicodeEncodeError):
        text = error.object[error.start : error.end][:1]
        return UnsupportedError(
            f"cannot write {text!a} in the encoding `{error.encoding}` of the output",
            hints=["set PYTHONUTF8=1, or a locale with UTF-8"],
        )
    place = f" at `{error.filename}`" if error.filename else ""
    return StorageError(f"the operating system refused{place}: {error.strerror or error}")
