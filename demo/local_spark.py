"""A local Spark for the demos, quiet: its banners and warnings go to a file."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from bergline.errors import BerglineError


def start_spark(log: Path) -> SparkSession:
    """A local session; its JVM writes to a log."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with output_to(log):
        return (
            SparkSession.builder.master("local[2]")
            .appName("bergline-demo")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.log.level", "ERROR")
            .getOrCreate()
        )


def run(main: Callable[[], None], log: Path) -> None:
    """Run a demo; what goes wrong is said in a line with its hints, or with Spark's log."""
    try:
        main()
    except BerglineError as error:
        say(f"error: {error}")
        for hint in error.hints:
            say(f"hint: {hint}")
        sys.exit(1)
    except Exception:
        say(f"what Spark said is in {log}")
        raise


def say(line: str) -> None:
    """Talk goes to stderr."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def output_to(log: Path) -> Iterator[None]:
    """What processes that are started in the block write to stdout and stderr, for as long as they run, goes to a file.

    What Python itself writes in the block does too.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, saved in enumerate(kept, start=1):
            os.dup2(saved, number)
            os.close(saved)
