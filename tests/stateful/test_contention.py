"""Eight processes on one table: every acknowledged change is there once, and none fails at default settings."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import bergline
from bergline import Table
from support.models.table_invariants import check_nothing_is_missing, metadata_files_beside_the_line, pointer_line
from support.processes.writer_jobs import CHANGES, PARTS, TABLE, TWIN, Journal, Step, change_rows
from support.processes.writers import Writers

WRITERS, EACH = 8, 18
KILLS = 12
Took = Callable[[object], None]


@pytest.fixture
def table(shared: dict[str, Any]) -> Iterator[Table]:
    """The table that all write to, with one change in it."""
    with bergline.connect(**shared, create=True) as lake:
        lake.create_namespace("db")
        yield lake.create_table(TABLE, CHANGES).append(change_rows(-1))


def plans(step: Callable[[int, int], tuple[str, str]], each: Callable[[int], int] = lambda _: EACH) -> list[list[Step]]:
    """For each writer its steps, as `step(writer, number)` says: what to do, and to which ref."""
    return [
        [
            Step(kind=kind, ref=ref, change=writer * 1000 + number)
            for number in range(each(writer))
            for kind, ref in [step(writer, number)]
        ]
        for writer in range(WRITERS)
    ]


def changes(table: Table, ref: str) -> Counter[int]:
    """How many rows of each change are there."""
    return Counter(table.scan(ref=ref).to_arrow()["change"].to_pylist())


def once(steps: Iterable[Step]) -> Counter[int]:
    """Each of these changes once, and the first."""
    return Counter({s["change"]: PARTS for s in steps} | {-1: PARTS})


def check_line(table: Table, journal: Journal) -> None:
    """One commit for each change; nothing missing, nothing left over."""
    assert not journal.errors
    assert len(journal.steps("done", "append", "tag")) == WRITERS * EACH
    line = pointer_line(table)
    assert len(line) == 2 + WRITERS * EACH
    assert len(table.metadata.snapshots) == 1 + len(journal.steps("done", "append"))
    assert not metadata_files_beside_the_line(table, line)
    check_nothing_is_missing(table)


def test_appends_to_main(writers: Writers, shared: dict[str, Any], tmp_path: Path, table: Table, took: Took) -> None:
    journal = writers.run(shared, tmp_path / "journals", plans(lambda *_: ("append", "main")))
    took(journal)
    table.refresh()
    check_line(table, journal)
    assert changes(table, "main") == once(journal.steps("done", "append"))
    lists = [f for f in table.io.list(table.location) if "/snap-" in f]
    manifests = [f for f in table.io.list(table.location) if f.endswith("-m0.avro")]
    assert len(lists) == len(manifests) == 1 + WRITERS * EACH


@pytest.mark.parametrize("shared", ["version files"], indirect=True)
def test_appends_where_the_next_file_is_the_swap(
    writers: Writers, shared: dict[str, Any], tmp_path: Path, table: Table, took: Took
) -> None:
    journal = writers.run(shared, tmp_path / "journals", plans(lambda *_: ("append", "main")))
    took(journal)
    table.refresh()
    check_line(table, journal)
    assert changes(table, "main") == once(journal.steps("done", "append"))


def test_appends_each_to_its_own_branch(
    writers: Writers, shared: dict[str, Any], tmp_path: Path, table: Table, took: Took
) -> None:
    journal = writers.run(shared, tmp_path / "journals", plans(lambda writer, _: ("append", f"w{writer}")))
    took(journal)
    table.refresh()
    check_line(table, journal)
    for writer in range(WRITERS):
        own = [s for s in journal.steps("done", "append") if s["ref"] == f"w{writer}"]
        assert changes(table, f"w{writer}") == once(own)
    assert changes(table, "main") == once([])


def test_tags(writers: Writers, shared: dict[str, Any], tmp_path: Path, table: Table, took: Took) -> None:
    journal = writers.run(shared, tmp_path / "journals", plans(lambda writer, number: ("tag", f"w{writer}.{number}")))
    took(journal)
    table.refresh()
    check_line(table, journal)
    assert set(table.refs) == {"main", *(s["ref"] for s in journal.steps("done", "tag"))}


def test_branches_of_two_tables_are_published_as_one(
    writers: Writers, shared: dict[str, Any], tmp_path: Path, table: Table, took: Took
) -> None:
    """Three writers publish, two append to one of the tables, none gets in the way of the others."""
    with bergline.connect(**shared, create=True) as lake:
        twin = lake.create_table(TWIN, CHANGES).append(change_rows(-1))
        asked = plans(
            lambda writer, number: ("publish", f"etl-{writer}.{number}") if writer < 3 else ("append", "main"),
            lambda writer: (3, 3, 3, 5, 5)[writer] if writer < 5 else 0,
        )
        journal = writers.run(shared, tmp_path / "journals", asked)
        took(journal)
        assert not journal.errors
        assert len(journal.steps("done", "publish", "append")) == 19
        assert changes(table.refresh(), "main") == once(journal.steps("done", "publish", "append"))
        assert changes(twin.refresh(), "main") == once(journal.steps("done", "publish"))
        assert set(table.refs) == set(twin.refs) == {"main"}
        for each in (table, twin):
            check_nothing_is_missing(each, merged=True)


def mixed(writer: int, number: int) -> tuple[str, str]:
    """Most of the writers do everything, the last two keep the table small."""
    if writer == WRITERS - 1:
        return "expire", "main"
    if writer == WRITERS - 2:
        return ("compact", "rewrite manifests")[number % 4 == 3], "main"
    kinds = [
        ("append", "main"),
        ("append", f"w{writer}"),
        ("append", f"w{writer}"),
        ("delete", f"w{writer}"),
        ("transaction", "main"),
        ("tag", f"w{writer}.{number}"),
        ("property", f"w{writer}.{number}"),
        ("column", f"w{writer}_{number}"),
        ("overwrite", f"whole{writer}"),
    ]
    return kinds[number % len(kinds)]


@pytest.mark.parametrize("kills", [0, KILLS])
def test_everything_at_once(
    writers: Writers, shared: dict[str, Any], tmp_path: Path, table: Table, took: Took, kills: int
) -> None:
    with bergline.connect(**shared, create=True) as lake:
        lake.create_table(TWIN, CHANGES).append(change_rows(-1))
        # to keep a table small takes less time than to make it large
        asked = plans(mixed, lambda writer: EACH if writer < WRITERS - 2 else 2 * EACH)
        journal = writers.run(shared, tmp_path / "journals", asked, kills=kills)
        took(journal)
        assert not journal.errors
        assert not [n.step for n in journal.notes if n.what == "conflict"]
        twin = lake.load_table(TWIN)
        for each in (table.refresh(), twin):
            pointer_line(each)
            check_nothing_is_missing(each)
        check_rows(table, twin, journal)
        check_names(table, journal)


def check_rows(table: Table, twin: Table, journal: Journal) -> None:
    """What was done is there once; what was only begun is there whole or not at all; nothing else is."""
    deleted = {s["change"] - 1 for s in journal.steps("begin", "delete")}
    for branch in ["main", *(f"w{writer}" for writer in range(WRITERS - 2))]:
        done = once(s for s in journal.steps("done", "append", "transaction") if s["ref"] == branch)
        begun = once(s for s in journal.steps("begin", "append", "transaction") if s["ref"] in {branch, "main"})
        found = changes(table, branch)
        assert Counter({c: n for c, n in done.items() if c not in deleted}) <= found <= begun
        assert found.keys().isdisjoint(s["change"] - 1 for s in journal.steps("done", "delete") if s["ref"] == branch)
        assert set(found.values()) == {PARTS}
    in_both = {s["change"] for s in journal.steps("begin", "transaction")} & changes(table, "main").keys()
    assert changes(twin, "main") == Counter(dict.fromkeys([-1, *in_both], PARTS))
    for writer in range(WRITERS - 2):
        done = [s["change"] for s in journal.steps("done", "overwrite") if s["ref"] == f"whole{writer}"]
        begun = [s["change"] for s in journal.steps("begin", "overwrite") if s["ref"] == f"whole{writer}"]
        if done:
            (whole,) = changes(table, f"whole{writer}").items()
            assert whole in [(change, PARTS) for change in begun if change >= max(done)]


def check_names(table: Table, journal: Journal) -> None:
    """Tags, properties and columns: those that were done are there, and none that was not begun."""
    tags = {name for name in table.refs if not table.refs[name].is_branch}
    properties = {key for key in table.properties if key.startswith("w") and key[1].isdigit()}
    columns = {field.name for field in table.schema.fields} - set(CHANGES.names)
    for kind, found in ("tag", tags), ("property", properties), ("column", columns):
        assert {s["ref"] for s in journal.steps("done", kind)} <= found
        assert found <= {s["ref"] for s in journal.steps("begin", kind)}
