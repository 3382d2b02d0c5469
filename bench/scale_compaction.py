"""Many files: compaction planned by this process, with the memory it takes, beside all files as objects.

The files exist in manifests only, and in a thousand partitions: those of none, of one or of all are too small. Every
figure is of a process of its own.
"""

import argparse
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

import bergline
from bergline import Table
from bergline.table.operations.compaction import CompactionPlan, CompactionRequest, plan_compaction
from bergline.table.operations.rewrite_options import RewriteOptions
from made_up_manifests import many_files
from results import Scaled
from scale_planning import Peak

FEW, SOME = 100_000, 1_000_000
IN_MANIFEST = 10_000
REGIONS = [f"p{number:03d}" for number in range(1000)]
TABLES = {"none": ("nothing", ()), "one": ("one partition in 1,000", REGIONS[500:501]), "all": ("all", REGIONS)}
"""What is to be compacted, and the partitions with small files."""
COMMITS = 10


def cases(small: bool) -> Iterator[Scaled]:
    """Seconds and memory for tables where nothing, one partition and all is to be compacted."""
    files = FEW if small else SOME
    with tempfile.TemporaryDirectory() as directory:
        uri, warehouse = f"sqlite:///{directory}/catalog.db", f"{directory}/warehouse"
        lake = bergline.connect(uri, warehouse=warehouse, create=True)
        lake.create_namespace("db")
        for name, (_, regions) in TABLES.items():
            many_files(lake, f"db.{name}", files, files // IN_MANIFEST, regions=REGIONS, small=regions)
        many_files(lake, "db.deletes", files, files // IN_MANIFEST, files, regions=REGIONS)
        lake.close()
        held = alone(hold_all, uri, warehouse, "one")
        for name, (what, _) in TABLES.items():
            yield from figures(f"{what} of {files:,} files", alone(plan, uri, warehouse, name), held)
        yield from figures(
            f"nothing of {files:,} files with a delete file each", alone(plan, uri, warehouse, "deletes")
        )
        given = alone(hand_over, uri, warehouse, "all")
        yield from figures(f"all of {files:,} files, handed over for {COMMITS} commits", given)


def figures(case: str, ours: tuple[float, float], theirs: tuple[float, float] | None = None) -> Iterator[Scaled]:
    """Seconds and megabytes of one case."""
    for unit, mine, other in zip(("s", "MB"), ours, theirs or (None, None), strict=True):
        yield Scaled(f"plan compaction of {case}", unit, mine, other, "" if other is None else "all as objects")


def alone(work: Callable[[Table], object], uri: str, warehouse: str, name: str) -> tuple[float, float]:
    """Seconds and megabytes of some work in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
        return processes.submit(measured, work, uri, warehouse, name).result()


def measured(work: Callable[[Table], object], uri: str, warehouse: str, name: str) -> tuple[float, float]:
    """Seconds, and by how much this process grew at the most."""
    table = bergline.connect(uri, warehouse=warehouse).load_table(f"db.{name}")
    with Peak(os.getpid()) as peak:
        kept = work(table)
    del kept
    return peak.seconds, peak.growth


def plan(table: Table) -> CompactionPlan:
    """The groups."""
    head = table.current_snapshot
    assert head is not None
    options = RewriteOptions(output_spec_id=table.spec.spec_id)
    return plan_compaction(table.io, table.metadata, head, CompactionRequest(options=options))


def hand_over(table: Table) -> None:
    """The groups, and the files of a part of them at a time."""
    planned = plan(table)
    each = -(-len(planned) // COMMITS)
    for start in range(0, len(planned), each):
        planned.layouts(start, start + each)


def hold_all(table: Table) -> object:
    """Every file of the table, as an object."""
    return list(table.scan().plan().files)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true")
    for one in cases(arguments.parse_args().quick):
        print(one)
