"""What the server and its workers send each other."""

import msgspec

from bergline.io.fileio import FileIO

STOP = b"stop"
DONE, REFUSED, STOPPED, FAILED = b"d", b"r", b"s", b"f"
"""The first byte of what a worker sends: a response follows, an error of ours, or nothing."""
OUT_OF_MEMORY = 77
"""The exit status of a worker that took more memory than it may."""


class WorkerSetup(msgspec.Struct, frozen=True):
    """What a worker gets first."""

    io: FileIO
    """The server's own, with its credentials and its fence."""
    most_memory: int
    """In bytes."""


class PlanStopped(Exception):  # noqa: N818  (nothing went wrong)
    """Nobody waits for the plan any more."""
