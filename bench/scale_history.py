"""The append of one small file to tables of 10, 2,000 and 20,000 snapshots.

In the library beside PyIceberg, by two writers in turns, and as commits through the server. All sizes take turns within
each round, and each figure is the median of its rounds. PyIceberg appends to the same tables afterwards, less often,
in a catalog of its own.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

import bergline
from bergline import Lake, Table
from rest_load import Connection, commits, run_clients
from results import Scaled

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.fixtures.long_histories import with_long_history
from support.servers.bergline_server import BerglineServer

SCHEMA = pa.schema([("id", pa.int64()), ("amount", pa.float64()), ("region", pa.string())])
ROWS = pa.table({"id": [1, 2, 3], "amount": [1.0, 2.0, 3.0], "region": ["a", "b", "c"]}, schema=SCHEMA)
FEW = 10
WARM = 3


class Sizes(NamedTuple):
    """How many snapshots, and how often."""

    histories: tuple[int, ...]
    rounds: int
    peer_rounds: int


class Took(NamedTuple):
    """The medians of some rounds, in milliseconds."""

    wall: float
    cpu: float


def cases(small: bool) -> Iterator[Scaled]:
    """Appends and commits by length of history."""
    sizes = Sizes((FEW, 200), 5, 2) if small else Sizes((FEW, 2000, 20_000), 41, 3)
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        locations = made_tables(directory, sizes.histories)
        ours = in_turns({n: table.append for n, table in opened(directory, "ours", locations).items()}, sizes.rounds)
        yield from beside_few("append", ours)
        yield from beside_few("append by two writers in turns", by_two(directory, locations, sizes.rounds))
        yield from beside_few("commit through the server", through_server(directory, locations, sizes.rounds))
        for n, peer in of_pyiceberg(directory, locations).items():
            theirs = in_turns({n: peer.append}, sizes.peer_rounds, warm=1)[n]
            yield Scaled(f"append at {n:,} snapshots", "ms", ours[n].wall, theirs.wall, "PyIceberg")
            yield Scaled(f"CPU of an append at {n:,} snapshots", "ms", ours[n].cpu, theirs.cpu, "PyIceberg")


def beside_few(case: str, took: dict[int, Took]) -> Iterator[Scaled]:
    """What long histories cost beside a short one."""
    for n in list(took)[1:]:
        yield Scaled(f"{case} at {n:,} snapshots", "ms", took[n].wall, took[FEW].wall, f"at {FEW}")


def made_tables(directory: Path, histories: Sequence[int]) -> dict[int, str]:
    """The metadata files of tables with these histories."""
    with connected(directory, "made") as lake:
        locations: dict[int, str] = {}
        for n in histories:
            table = lake.create_table(f"db.t{n}", SCHEMA)
            for _ in range(FEW):
                table.append(ROWS)
            locations[n] = with_long_history(lake, table, f"db.long{n}", n).metadata_location
        return locations


def connected(directory: Path, name: str) -> Lake:
    lake = bergline.connect(f"sqlite:///{directory}/{name}.db", warehouse=str(directory / "made"), create=True)
    if not lake.list_namespaces():
        lake.create_namespace("db")
    return lake


def opened(directory: Path, name: str, locations: dict[int, str]) -> dict[int, Table]:
    lake = connected(directory, name)
    return {n: lake.register_table(f"db.t{n}", location) for n, location in locations.items()}


def of_pyiceberg(directory: Path, locations: dict[int, str]) -> dict[int, "PeerTable"]:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{directory}/theirs.db", warehouse=(directory / "theirs").as_uri())
    catalog.create_namespace("db")
    return {n: PeerTable(catalog, f"db.t{n}", location) for n, location in locations.items()}


class PeerTable:
    """PyIceberg's table, with rows as it wants them."""

    def __init__(self, catalog: SqlCatalog, name: str, location: str) -> None:
        self._table = catalog.register_table(name, location)
        self._schema = self._table.schema().as_arrow()

    def append(self, rows: pa.Table) -> None:
        """Append rows."""
        self._table.append(rows.cast(self._schema))


def in_turns(appends: dict[int, Callable[[pa.Table], object]], rounds: int, warm: int = WARM) -> dict[int, Took]:
    """The time of an append to each table, one after the other in every round."""
    walls: dict[int, list[float]] = {n: [] for n in appends}
    cpus: dict[int, list[float]] = {n: [] for n in appends}
    for number in range(warm + rounds):
        for n, append in appends.items():
            wall, cpu = time.perf_counter(), time.process_time()
            append(ROWS)
            if number >= warm:
                walls[n].append(time.perf_counter() - wall)
                cpus[n].append(time.process_time() - cpu)
    return {n: Took(1000 * statistics.median(walls[n]), 1000 * statistics.median(cpus[n])) for n in appends}


def by_two(directory: Path, locations: dict[int, str], rounds: int) -> dict[int, Took]:
    """Appends of one of two writers, each of which finds that the other was there."""
    tables = opened(directory, "two", locations)
    with connected(directory, "two") as lake:
        others = {n: lake.load_table(f"db.t{n}") for n in tables}

        def turn(n: int) -> Callable[[pa.Table], object]:
            pair = [tables[n], others[n]]

            def append(rows: pa.Table) -> None:
                pair.reverse()
                pair[0].append(rows)

            return append

        return in_turns({n: turn(n) for n in tables}, rounds)


def through_server(directory: Path, locations: dict[int, str], rounds: int) -> dict[int, Took]:
    """Commits of a client that writes its own manifest list, as engines do."""
    (directory / "served").mkdir()
    place = ("--warehouse", str(directory / "served" / "warehouse"), "--allow-location", str(directory / "made"))
    walls: dict[int, list[float]] = {n: [] for n in locations}
    with BerglineServer(directory / "served", *place) as server:
        register(server.uri, locations)
        for number in range(WARM + rounds):
            for n in locations:
                path = f"/v1/namespaces/db/tables/t{n}"
                load = run_clients(server.uri, 1, commits(lambda _, p=path: p, lambda _: "main", 1))
                if number >= WARM:
                    walls[n].append(load.half)
    return {n: Took(1000 * statistics.median(walls[n]), 0.0) for n in locations}


def register(uri: str, locations: dict[int, str]) -> None:
    async def client(connection: Connection, _: int, times: list[float]) -> None:
        times.append(0)
        await connection.ask("POST", "/v1/namespaces", {"namespace": ["db"]})
        for n, location in locations.items():
            body = {"name": f"t{n}", "metadata-location": location}
            answer = await connection.ask("POST", "/v1/namespaces/db/register", body)
            assert answer.status == 200, answer

    run_clients(uri, 1, client)
