"""Runs Flink, by the Python of its own environment: JSON requests on stdin, JSON answers on stdout, a line each."""

import json
import os
import sys

from pyflink.table import EnvironmentSettings, TableEnvironment


def run(flink: TableEnvironment, text: str) -> list:
    """The rows of a statement; one that writes has none, and is over when they are there."""
    result = flink.execute_sql(text)
    if text.startswith("INSERT"):
        result.wait()
        return []
    with result.collect() as rows:
        return [list(row) for row in rows]


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Java logs on standard output
    flink = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    flink.get_config().set("parallelism.default", "1").set("table.local-time-zone", "UTC")
    for line in sys.stdin:
        try:
            reply = {"rows": run(flink, json.loads(line))}
        except Exception as error:  # noqa: BLE001
            reply = {"error": str(error)}
        answers.write(json.dumps(reply, default=str) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
