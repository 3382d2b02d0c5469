"""A race of two real processes for one pointer: one swap wins, the loser replays its change and succeeds."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from bergline import Lake, Table
from bergline.scan.manifests import load_manifest_list
from support.fixtures.rows import ids, order_rows
from support.paths import PROCESSES, python_path

_PROGRAM = PROCESSES / "paused_writer_process.py"


class PausedWriter:
    """A process that stops before each swap."""

    def __init__(self, directory: Path, name: str, order_id: int) -> None:
        self._directory = directory
        self._name = name
        self._process = subprocess.Popen(
            [sys.executable, str(_PROGRAM), str(directory / "catalog.db"), name, str(order_id)],
            env={**os.environ, "PYTHONPATH": python_path()},
            stdout=subprocess.PIPE,
            text=True,
        )

    def wait_until_ready(self, swap: int) -> None:
        deadline = time.monotonic() + 60
        while not (self._directory / f"{self._name}.ready.{swap}").exists():
            assert self._process.poll() is None, "the writer ended early"
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def go(self, swap: int) -> None:
        (self._directory / f"{self._name}.go.{swap}").touch()

    def result(self) -> dict[str, object]:
        output, _ = self._process.communicate(timeout=60)
        assert self._process.returncode == 0
        return json.loads(output)


def metadata_files(orders: Table, pattern: str) -> set[str]:
    return {p.name for p in Path(orders.location.removeprefix("file://"), "metadata").glob(pattern)}


def version(location: object) -> int:
    return int(str(location).rsplit("/", 1)[-1].split("-")[0])


def test_two_jobs_from_one_pointer(tmp_path: Path, lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    start = orders.metadata_location
    manifests, lists = metadata_files(orders, "*-m0.avro"), metadata_files(orders, "snap-*.avro")

    # both jobs ask the catalog for the pointer, and write their data files, manifests and next metadata file
    job_a, job_b = PausedWriter(tmp_path, "A", 2), PausedWriter(tmp_path, "B", 3)
    for job in (job_a, job_b):
        job.wait_until_ready(1)
    assert lake.load_table("db.orders").metadata_location == start
    next_files = metadata_files(orders, f"{version(start) + 1:05d}-*.metadata.json")
    assert len(next_files) == 2
    both = metadata_files(orders, "*-m0.avro") - manifests
    assert len(both) == 2

    # job A's swap comes first
    job_a.go(1)
    won = job_a.result()
    assert won["swaps"] == 1
    assert lake.load_table("db.orders").metadata_location == won["pointer"]

    # job B is rejected: it reads the new state, reconciles, writes its next metadata file and swaps again
    job_b.go(1)
    job_b.wait_until_ready(2)
    assert lake.load_table("db.orders").metadata_location == won["pointer"]
    job_b.go(2)
    lost = job_b.result()

    table = lake.load_table("db.orders")
    assert lost["swaps"] == 2
    assert won["started_from"] == lost["started_from"] == start
    assert table.metadata_location == lost["pointer"]
    assert version(won["pointer"]) == version(start) + 1
    assert version(lost["pointer"]) == version(start) + 2
    assert [e.metadata_file for e in table.metadata.metadata_log[-2:]] == [start, won["pointer"]]

    # both appends are there, and the loser's manifest is the very file that it wrote first
    assert ids(table.scan().to_arrow()) == [1, 2, 3]
    assert metadata_files(orders, "*-m0.avro") - manifests == both
    head = table.current_snapshot
    assert head is not None
    loser_manifest, winner_manifest, _ = load_manifest_list(table.io, head)
    assert {_name(loser_manifest.manifest_path), _name(winner_manifest.manifest_path)} == both
    assert (loser_manifest.sequence_number, winner_manifest.sequence_number) == (3, 2)
    assert len(metadata_files(orders, "snap-*.avro") - lists) == 2
    assert _name(head.manifest_list).startswith(f"snap-{head.snapshot_id}-2-")


def _name(location: str) -> str:
    return location.rsplit("/", 1)[-1]
