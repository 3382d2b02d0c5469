"""`bergline serve` beside Iceberg's reference REST server in one run, both on SQLite and local disk.

Loads of a small table, of one with 2,000 snapshots and of one that did not change; commits to tables of their own, to
one table's main and to branches of one table, and properties of one table; by 1, 8 and 64 clients; and commits to
another table beside a hot one. Then, on our server alone and in turns, loads and commits at `lake@staging` beside the
same on `main`. A commit that lost is tried again, and its time is until it succeeded; conflicts that
were answered are counted. Clients let the server put appends on the head, which the reference server cannot. The
reference server is the one that make gets for the tests.
"""

import argparse
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

import bergline
from rest_load import Connection, Load, beside, commits, loads, property_changes, run_clients
from results import record

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.servers.bergline_server import BerglineServer
from support.servers.java_rest_server import JavaRestServer

READERS, WRITERS = (1, 8, 32), (1, 8, 64)
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
ROWS = pa.table({"id": pa.array([1], pa.int64())})
TABLES = "/v1/namespaces/db/tables"
AT_BRANCH = "/v1/branch.staging/namespaces/db/tables"
TURNS = 5
Client = Callable[..., Awaitable[None]]


class Case(NamedTuple):
    """One line: what is asked, by how many."""

    name: str
    clients: int


class Sizes(NamedTuple):
    """How long or how often."""

    snapshots: int
    seconds: float
    each: int


def lines(uri: str, large: str, sizes: Sizes) -> Iterator[tuple[Case, Load]]:
    """All cases on one server, one after the other."""
    set_up(uri, large)
    unchanged = f"If-None-Match: {etag_of(uri, f'{TABLES}/large')}\r\n"
    for clients in READERS:
        for name, path, status, headers in (
            ("load a small table", "small", 200, ""),
            (f"load a table of {sizes.snapshots:,} snapshots", "large", 200, ""),
            ("load that table when it did not change (304)", "large", 304, unchanged),
        ):
            run_clients(uri, clients, loads(f"{TABLES}/{path}", sizes.seconds / 4, status, headers))  # warm
            yield (
                Case(name, clients),
                run_clients(uri, clients, loads(f"{TABLES}/{path}", sizes.seconds, status, headers)),
            )
    for clients in WRITERS:
        each = max(sizes.each // clients, 2)
        kinds = {
            "commit to tables of their own": (lambda n, c=clients: f"{TABLES}/own{c}_{n}", lambda _: "main"),
            "commit to one table": (lambda _, c=clients: f"{TABLES}/one{c}", lambda _: "main"),
            "commit to branches of one table": (lambda _, c=clients: f"{TABLES}/branches{c}", lambda n: f"b{n}"),
        }
        for name, (path_of, branch_of) in kinds.items():
            create(uri, sorted({path_of(n).rpartition("/")[2] for n in range(clients)}))
            yield Case(name, clients), run_clients(uri, clients, commits(path_of, branch_of, each))
        create(uri, [f"properties{clients}"])
        changing = property_changes(f"{TABLES}/properties{clients}", each)
        yield Case("set a property of one table", clients), run_clients(uri, clients, changing)
    create(uri, ["hot", "quiet"])
    quiet = beside(f"{TABLES}/hot", f"{TABLES}/quiet", sizes.each)
    yield Case("commit to a table beside a hot one", 1), run_clients(uri, 1 + WRITERS[1], quiet)


def lines_at_a_branch(uri: str, sizes: Sizes) -> Iterator[tuple[Case, list[Load], list[Load]]]:
    """Loads and commits on `main`, and at a branch of the lake, in turns."""
    large = f"a table of {sizes.snapshots:,} snapshots"
    seconds, each = sizes.seconds / TURNS, max(sizes.each // TURNS, 4)
    for clients in (1, 8):
        tags = {tables: f"If-None-Match: {etag_of(uri, f'{tables}/large')}\r\n" for tables in (TABLES, AT_BRANCH)}
        for name, path, status in (
            ("load a small table", "small", 200),
            (f"load {large}", "large", 200),
            (f"load {large} that did not change (304)", "large", 304),
        ):
            headers = tags if status == 304 else dict.fromkeys(tags, "")
            sides = [loads(f"{t}/{path}", seconds, status, headers[t]) for t in tags]
            yield Case(name, clients), *in_turns(uri, clients, *sides)
        create(uri, [f"{kind}{clients}" for kind in ("for_main", "for_branch")])
        for name, paths in (
            ("commit to a small table", ((TABLES, f"for_main{clients}"), (AT_BRANCH, f"for_branch{clients}"))),
            (f"commit to {large}", ((TABLES, "large"), (AT_BRANCH, "large"))),
        ):
            sides = [commits(lambda _, p=f"{t}/{p}": p, lambda _: "main", max(each // clients, 2)) for t, p in paths]
            yield Case(name, clients), *in_turns(uri, clients, *sides)


def in_turns(uri: str, clients: int, main: Client, branch: Client) -> tuple[list[Load], list[Load]]:
    """What clients of both kinds took, one after the other again and again; the first turn is to warm up."""
    turns = [[run_clients(uri, clients, side) for side in (main, branch)] for _ in range(TURNS + 1)]
    mains, branches = zip(*turns[1:], strict=True)
    return list(mains), list(branches)


def set_up(uri: str, large: str) -> None:
    async def client(connection: Connection, _: int, times: list[float]) -> None:
        times.append(0)
        await connection.ask("POST", "/v1/namespaces", {"namespace": ["db"]})
        body = {"name": "large", "metadata-location": large}
        answer = await connection.ask("POST", "/v1/namespaces/db/register", body)
        assert answer.status == 200, answer

    run_clients(uri, 1, client)
    create(uri, ["small"])


def create(uri: str, names: list[str]) -> None:
    async def client(connection: Connection, _: int, times: list[float]) -> None:
        times.append(0)
        for name in names:
            answer = await connection.ask("POST", TABLES, {"name": name, "schema": SCHEMA})
            assert answer.status == 200, answer

    run_clients(uri, 1, client)


def etag_of(uri: str, path: str) -> str:
    found = []

    async def client(connection: Connection, _: int, times: list[float]) -> None:
        times.append(0)
        answer = await connection.ask("GET", path)
        heads = dict(line.split(b": ", 1) for line in answer.head.split(b"\r\n")[1:] if line)
        found.append({k.lower(): v for k, v in heads.items()}[b"etag"].decode())

    run_clients(uri, 1, client)
    return found[0]


def large_table(directory: Path, snapshots: int) -> str:
    """The metadata file of a table with so many snapshots."""
    with bergline.connect(f"sqlite:///{directory}/made.db", warehouse=str(directory / "made"), create=True) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.large", ROWS.schema)
        for _ in range(snapshots):
            table.append(ROWS)
        table.refs.create_branch("staging")
        return table.refresh().metadata_location


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="in half a minute, to see that it works")
    sizes = Sizes(100, 0.5, 16) if arguments.parse_args().quick else Sizes(2000, 3.0, 400)
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as servers:
        directory = Path(temporary)
        for side in ("ours", "theirs"):
            (directory / side).mkdir()
        large = large_table(directory, sizes.snapshots)
        place = ("--warehouse", str(directory / "ours" / "warehouse"), "--allow-location", str(directory / "made"))
        ours = servers.enter_context(BerglineServer(directory / "ours", *place))
        theirs = servers.enter_context(JavaRestServer(directory / "theirs"))
        print("| case | clients | bergline | p50 | p99 | 409 | reference | p50 | p99 | 409 | relative speed |")
        print("|---|---|---|---|---|---|---|---|---|---|---|")
        both = lines(ours.uri, large, sizes), lines(theirs.uri, large, sizes)
        for (case, our), (_, their) in zip(*both, strict=True):
            print(
                f"| {case.name} | {case.clients} | {shown(our)} | {shown(their)} | {our.rate / their.rate:.1f} |",
                flush=True,
            )
            record(f"{case.name}, {case.clients} clients", [1 / our.rate], [1 / their.rate], "REST reference server")
        print_at_a_branch(ours.uri, sizes)


def print_at_a_branch(uri: str, sizes: Sizes) -> None:
    with bergline.connect(uri) as lake:
        lake.branches.create("staging")  # which all tables may join
    print("\n| case | clients | on `main` | p50 | p99 | 409 | at `lake@staging` | p50 | p99 | 409 | relative time |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for case, mains, branches in lines_at_a_branch(uri, sizes):
        took = sorted(main.rate / branch.rate for main, branch in zip(mains, branches, strict=True))
        main, branch = (sorted(loads)[TURNS // 2] for loads in (mains, branches))
        ratio = f"{took[TURNS // 2]:.2f} ({took[0]:.2f} to {took[-1]:.2f})"
        print(f"| {case.name} | {case.clients} | {shown(main)} | {shown(branch)} | {ratio} |", flush=True)


def shown(load: Load) -> str:
    return f"{load.rate:,.0f}/s | {load.half * 1000:.2f} ms | {load.most * 1000:.2f} ms | {load.conflicts}"


if __name__ == "__main__":
    main()
