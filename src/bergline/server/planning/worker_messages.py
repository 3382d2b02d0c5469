"""What the server and its workers send each other."""

from typing import Final

import msgspec

from bergline.io.fileio import FileIO

STOP = b"stop"
STARTED = b"started"
"""What a worker sends first, when it can work."""
DONE, REFUSED, STOPPED, FAILED = b"d", b"r", b"s", b"f"
"""The first byte of what a worker sends: a response follows, an error of ours, or nothing."""
OUT_OF_MEMORY = 77
"""The exit status of a worker that took more memory than it may."""


class Work(msgspec.Struct, frozen=True):
    """What a pool of workers is for, as errors say it."""

    doing: str
    many: str
    """Several of its jobs."""
    hints: tuple[str, ...]
    """What helps if one takes too long, or too much memory."""


PLANS: Final = Work(
    "plan the scan",
    "scans to plan",
    ("plan with a narrower filter", "let the client plan: scan-planning-mode=client"),
)
ROWS: Final = Work(
    "read the rows", "rows to read", ("read fewer rows, or with a narrower filter", "read them with an engine")
)


class WorkerSetup(msgspec.Struct, frozen=True):
    """What a worker gets first."""

    io: FileIO
    """The server's own, with its credentials and its fence."""
    most_memory: int
    """In bytes."""


class PlanStopped(Exception):  # noqa: N818  (nothing went wrong)
    """Nobody waits for the plan, or the rows, any more."""
