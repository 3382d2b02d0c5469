"""Crash injection: a process that dies between any two steps, without cleaning up."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from bergline.io.fileio import FileIO, ListedFile, OutputFile


class Crash(BaseException):
    """The process died; not an Exception, so that no error handling catches it."""


class Steps:
    """Counts the steps of a process; from step `crash_at` on, every step raises Crash."""

    def __init__(self, crash_at: int | None = None) -> None:
        self.crash_at = crash_at
        self.taken = 0

    def take(self) -> None:
        """Take one more step."""
        self.taken += 1
        if self.crash_at is not None and self.taken >= self.crash_at:
            raise Crash


class CrashingFileIO:
    """Wraps a FileIO, with a step before and after each write and before each read."""

    def __init__(self, io: FileIO, steps: Steps) -> None:
        self._io = io
        self._steps = steps
        self._outputs: list[OutputFile] = []

    def end(self) -> None:
        """Close open files, as the system does for a dead process."""
        for output in self._outputs:
            with contextlib.suppress(OSError):
                output.stream().close()
        self._outputs.clear()

    def read(self, location: str, most: int | None = None) -> bytes:
        self._steps.take()
        return self._io.read(location, most)

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        self._steps.take()
        return self._io.read_range(location, offset, length)

    def open_input(self, location: str) -> BinaryIO:
        self._steps.take()
        return self._io.open_input(location)

    def create(self, location: str, data: bytes) -> None:
        self._steps.take()
        self._io.create(location, data)
        self._steps.take()

    def create_output(self, location: str) -> OutputFile:
        self._steps.take()
        self._outputs.append(self._io.create_output(location))
        return _CrashingOutput(self._outputs[-1], self._steps)

    def exists(self, location: str) -> bool:
        self._steps.take()
        return self._io.exists(location)

    def delete(self, locations: Iterable[str]) -> list[str]:
        """Delete one by one: a crash may happen in between."""
        failed: list[str] = []
        for location in locations:
            self._steps.take()
            failed += self._io.delete([location])
        self._steps.take()
        return failed

    def list(self, prefix: str) -> list[str]:
        self._steps.take()
        return self._io.list(prefix)

    def list_files(self, prefix: str) -> Iterator[ListedFile]:
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
