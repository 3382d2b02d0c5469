"""Counts what a statement costs the driver: round trips from Python to the JVM, and Spark jobs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import py4j.clientserver  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

_RELEASE = "m\nd"
"""Python forgot an object: when that is sent depends on the garbage collector."""


class Costs:
    """What was counted so far."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.jobs = 0

    @property
    def round_trips(self) -> int:
        """How many commands the JVM answered, from all threads, without those that release objects."""
        return len(self.commands)

    def __repr__(self) -> str:
        return f"{self.round_trips} round trips, {self.jobs} jobs"


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

    before = int(scheduler.numTotalJobs())
    connection.send_command = send_command
    try:
        yield costs
    finally:
        connection.send_command = original
        costs.jobs = int(scheduler.numTotalJobs()) - before


def costs_of(spark: SparkSession, *actions: Callable[[], object]) -> Costs:
    """What the last of some actions costs, after the others have been done: warm them up with the same first."""
    *others, last = actions
    for action in others:
        action()
    with counted(spark) as costs:
        last()
    return costs
