"""Counts what a statement costs: round trips from Python to the JVM, Spark jobs, files that the driver opens, syncs."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import py4j.clientserver  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from bergline.io.local import LocalFileIO

_RELEASE = "m\nd"
"""Python forgot an object: when that is sent depends on the garbage collector."""
_IN_PYTHON = "\nmapInArrow\n"


class Costs:
    """What was counted so far."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.jobs = 0
        self.opened: list[str] = []
        """Files that this process opened, of the table and its metadata."""
        self.syncs = 0
        """How often this process waited for a disk."""

    @property
    def round_trips(self) -> int:
        """How many commands the JVM answered, from all threads, without those that release objects."""
        return len(self.commands)

    @property
    def in_python(self) -> int:
        """How many plans had rows go through Python tasks."""
        return sum(_IN_PYTHON in command for command in self.commands)

    def __repr__(self) -> str:
        driver = f"{len(self.opened)} files opened, {self.syncs} syncs"
        return f"{self.round_trips} round trips, {self.jobs} jobs, {self.in_python} in Python, {driver}"


@contextmanager
def counted(spark: SparkSession) -> Iterator[Costs]:
    """Count what is done in the block; what a frame costs includes its action, if that is in the block too."""
    connection = py4j.clientserver.ClientServerConnection
    original = connection.send_command
    scheduler = spark._jsparkSession.sparkContext().dagScheduler()
    costs = Costs()

    def send_command(self: Any, command: str) -> Any:
        if not command.startswith(_RELEASE):
            costs.commands.append(command)
        return original(self, command)

    def open_input(io: LocalFileIO, location: str, open_: Callable[..., Any] = LocalFileIO.open_input) -> Any:
        costs.opened.append(location)
        return open_(io, location)

    def sync(descriptor: int, original: Callable[[int], None] = os.fsync) -> None:
        costs.syncs += 1
        original(descriptor)

    before = int(scheduler.numTotalJobs())
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(connection, "send_command", send_command))
        stack.enter_context(mock.patch.object(LocalFileIO, "open_input", open_input))
        stack.enter_context(mock.patch.object(os, "fsync", sync))
        yield costs
    costs.jobs = int(scheduler.numTotalJobs()) - before


def costs_of(spark: SparkSession, *actions: Callable[[], object]) -> Costs:
    """What the last of some actions costs, after the others have been done: warm them up with the same first."""
    *others, last = actions
    for action in others:
        action()
    with counted(spark) as costs:
        last()
    return costs
