"""Crashes between any two steps: a process that ends there, and does nothing any more, not even clean up."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from bergline.io.fileio import FileIO, ListedFile, OutputFile


class Crash(BaseException):
    """The process ended; nothing that catches errors may catch it."""


class Steps:
    """Counts what a process does; from the step `crash_at` on it is dead, and every further step raises Crash."""

    def __init__(self, crash_at: int | None = None) -> None:
        self.crash_at = crash_at
        self.taken = 0

    def take(self) -> None:
        """One more step."""
        self.taken += 1
        if self.crash_at is not None and self.taken >= self.crash_at:
            raise Crash


class CrashingFileIO:
    """A FileIO around another, with a step before and after each change of a file and before each look at one."""

    def __init__(self, io: FileIO, steps: Steps) -> None:
        self._io = io
        self._steps = steps
        self._outputs: list[OutputFile] = []

    def end(self) -> None:
        """What the system does for a process that has ended: close the files that it had open."""
        for output in self._outputs:
            with contextlib.suppress(OSError):
                output.stream().close()
        self._outputs.clear()

    def read(self, location: str, most: int | None = None) -> bytes:
        """The whole object."""
        self._steps.take()
        return self._io.read(location, most)

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """A part of the object."""
        self._steps.take()
        return self._io.read_range(location, offset, length)

    def open_input(self, location: str) -> BinaryIO:
        """A stream over the object."""
        self._steps.take()
        return self._io.open_input(location)

    def create(self, location: str, data: bytes) -> None:
        """Create the object."""
        self._steps.take()
        self._io.create(location, data)
        self._steps.take()

    def create_output(self, location: str) -> OutputFile:
        """A new object written in pieces."""
        self._steps.take()
        self._outputs.append(self._io.create_output(location))
        return _CrashingOutput(self._outputs[-1], self._steps)

    def exists(self, location: str) -> bool:
        """Whether there is an object."""
        self._steps.take()
        return self._io.exists(location)

    def delete(self, locations: Iterable[str]) -> list[str]:
        """Delete one object after the other: a crash may come between two of them."""
        failed: list[str] = []
        for location in locations:
            self._steps.take()
            failed += self._io.delete([location])
        self._steps.take()
        return failed

    def list(self, prefix: str) -> list[str]:
        """Objects below a prefix."""
        self._steps.take()
        return self._io.list(prefix)

    def list_files(self, prefix: str) -> Iterator[ListedFile]:
        """Objects below a prefix with size and time."""
        self._steps.take()
        return self._io.list_files(prefix)


class _CrashingOutput:
    def __init__(self, output: OutputFile, steps: Steps) -> None:
        self._output = output
        self._steps = steps

    def stream(self) -> BinaryIO:
        return self._output.stream()

    def close(self) -> int:
        self._steps.take()
        length = self._output.close()
        self._steps.take()
        return length

    def abort(self) -> None:
        self._steps.take()
        self._output.abort()
