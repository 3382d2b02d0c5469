"""Clients of a soak, as threads of a process of their own: python soak_client.py PLAN PROCESS.

Each changes rows until the time is over, and writes down what it was told of each. A client knows that a change was
refused only where its library, or for raw requests the protocol, says so for certain.
"""

import http.client
import random
import sys
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
import pyarrow as pa

import bergline
from bergline.catalog.identifiers import parse_table_name
from bergline.catalog.rest.protocol.bodies import CommitTableRequest
from bergline.errors import BerglineError, CommitUnknownError
from bergline.format.encoding.wire import encode_json
from bergline.format.metadata.updates import Update
from bergline.table.commits.operation import CommitStamp
from bergline.table.operations.append import Append
from bergline.table.writes import write_data_files
from support.models.soak_ledger import SoakChange, SoakLedger, SoakOutcome

ROWS = pa.schema([("id", pa.int64())])
PROCESS_OF_KIND = {
    "keyed": "raw",
    "raw": "raw",
    "append": "bergline",
    "delta": "bergline",
    "library": "library",
    "pyiceberg": "pyiceberg",
}
KINDS = tuple(PROCESS_OF_KIND)
CERTAIN = {400, 404, 409, 422}
NOT_SENT = -1
OWN_TABLE_SHARE = 0.3
UNSERVED = "soak.unserved_"
FIRST_ROW_OF_NEXT = 10_000_000
PAUSE_S = 0.05
REQUEST_S = 60
START_S = 120
Needed = TypeVar("Needed")


class SoakPlan(msgspec.Struct, frozen=True):
    """What all clients need to know."""

    balancer: str
    replicas: tuple[str, ...]
    catalog: str
    """The database, for clients without a server."""
    directory: str
    kinds: tuple[str, ...]
    """The kind of each client, by number."""
    seconds: float
    epoch_s: float
    """Tables change so often, so that none gets too long a history."""
    seed: int

    def tables(self) -> list[str]:
        """All tables: for each epoch one that is hot, one of clients without a server, and one of each client's own."""
        epochs, numbers = range(self.epoch(self.seconds) + 1), range(len(self.kinds))
        return [name for e in epochs for name in (hot(e), unserved(e), *(own(n, e) for n in numbers))]

    def epoch(self, passed_s: float) -> int:
        """Whose tables are changed so long after the beginning; the last one lasts until all is over."""
        return int(min(passed_s, self.seconds) // self.epoch_s)

    @property
    def is_over(self) -> bool:
        """Whether clients are to stop."""
        return (Path(self.directory) / "over").exists()

    def end(self) -> None:
        """Let clients stop."""
        (Path(self.directory) / "over").touch()

    def ledger(self, number: int) -> Path:
        """Where a client writes down what it was told; it is there once the client is ready."""
        return Path(self.directory) / "ledgers" / f"{self.kinds[number]}-{number}.jsonl"

    def begin_when_ready(self) -> float:
        """Wait until all clients are ready, let them begin, and say when they did."""
        end = time.monotonic() + START_S
        while not all(self.ledger(number).exists() for number in range(len(self.kinds))):
            if time.monotonic() > end:
                raise TimeoutError("clients did not start")
            time.sleep(PAUSE_S)
        begin = time.monotonic()
        whole = Path(self.directory) / "begin.new"
        whole.write_text(repr(begin))
        whole.rename(Path(self.directory) / "begin")
        return begin

    def wait_for_begin(self) -> float:
        """When it begins, once that is known."""
        path = Path(self.directory) / "begin"
        while not path.exists():
            time.sleep(PAUSE_S)
        return float(path.read_text())


class Refused(Exception):  # noqa: N818  (an answer, not a failure)
    """The change was certainly not made."""


def hot(epoch: int) -> str:
    """The table that all clients change."""
    return f"soak.hot_{epoch}"


def unserved(epoch: int) -> str:
    """The table of all clients without a server, which leave no audit rows and events."""
    return f"{UNSERVED}{epoch}"


def own(number: int, epoch: int) -> str:
    """A table of one client."""
    return f"soak.own_{number}_{epoch}"


class SoakClient:
    """One client; a kind is a way to add a row."""

    def __init__(self, plan: SoakPlan, number: int) -> None:
        self.plan = plan
        self.number = number
        self.kind = plan.kinds[number]
        self.dice = random.Random(plan.seed * 1000 + number)  # noqa: S311  (no secrets)
        self.row = number * FIRST_ROW_OF_NEXT
        self.added: dict[str, list[int]] = {}

    def run(self) -> None:
        """Change rows until the time is over."""
        add = self.way()
        self.ledger = SoakLedger(self.plan.ledger(self.number))
        begin = self.plan.wait_for_begin()
        while not self.plan.is_over:
            epoch = self.plan.epoch(time.monotonic() - begin)
            table = own(self.number, epoch) if self.dice.random() < OWN_TABLE_SHARE else hot(epoch)
            if self.kind == "library":
                table = unserved(epoch)
            if self.kind == "delta" and self.added.get(table) and self.dice.random() < 0.5:
                row = self.added[table].pop(self.dice.randrange(len(self.added[table])))
                self.tell(table, row, self.delete, adds=False)
                continue
            self.row += 1
            if self.tell(table, self.row, add, adds=True) is SoakOutcome.DONE:
                self.added.setdefault(table, []).append(self.row)

    def way(self) -> Callable[[str, int], None]:
        """How a row is added."""
        if self.kind == "pyiceberg":
            return pyiceberg_append(self.plan.balancer)
        if self.kind == "library":
            self.lake = bergline.connect(self.plan.catalog, warehouse=f"{self.plan.directory}/warehouse")
        else:
            self.lake = bergline.connect(self.plan.balancer)
        return self.raw if PROCESS_OF_KIND[self.kind] == "raw" else self.append

    def tell(self, table: str, row: int, change: Callable[[str, int], None], *, adds: bool) -> SoakOutcome:
        """Make a change and write down what came of it."""
        began, why = time.monotonic(), ""
        try:
            change(table, row)
            outcome = SoakOutcome.DONE
        except Refused as refusal:
            outcome, why = SoakOutcome.REFUSED, str(refusal)
        except Exception as error:  # noqa: BLE001  (whatever it is, it may have happened)
            outcome, why = SoakOutcome.PERHAPS, f"{type(error).__name__}: {error}"
        ended = time.monotonic()
        self.ledger.add(SoakChange(f"{self.kind}-{self.number}", table, adds, row, began, ended, outcome, why[:300]))
        if outcome is not SoakOutcome.DONE:
            time.sleep(self.dice.uniform(PAUSE_S, 2 * PAUSE_S))
        return outcome

    def append(self, table: str, row: int) -> None:
        """Add a row by our library, with a server or without."""
        with_certain_errors(lambda: self.lake.load_table(table).append(rows(row)))

    def delete(self, table: str, row: int) -> None:
        """Delete a row through our own REST client."""
        with_certain_errors(lambda: self.lake.load_table(table).delete(f"id = {row}"))

    def raw(self, table: str, row: int) -> None:
        """Add a row by a request of our own, to a replica of our choice; with a key it is sent until it is certain."""
        base = self.before(lambda: self.lake.catalog.load_table(parse_table_name(table)))
        io = self.lake.catalog.io
        files = self.before(lambda: write_data_files(io, base.metadata, rows(row)))
        operation = Append(io, files, fast=True, discard_on_failure=True)
        stamp = CommitStamp(1, time.time_ns() // 1_000_000)
        change = self.before(lambda: operation.attempt(base.metadata, stamp))
        body = encode_json(CommitTableRequest[Update](change.requirements, change.updates, base.name))
        namespace, _, short = table.rpartition(".")
        status, said = self.post(f"/v1/namespaces/{namespace}/tables/{short}", body)
        if status == 200:
            return
        if status in {*CERTAIN, NOT_SENT}:
            operation.settled(None)
            raise Refused(f"{status} {said[:200]!r}")
        raise RuntimeError(f"{status} {said[:200]!r}")

    def before(self, read: Callable[[], Needed]) -> Needed:
        """What is needed before a change is sent: where that fails, nothing was."""
        try:
            return read()
        except BerglineError as error:
            raise Refused(str(error)) from error

    def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """The response; one that is not certain is asked for again, by the same key."""
        key = {"Idempotency-Key": str(uuid.UUID(int=self.dice.getrandbits(128), version=4))}
        headers = {"Content-Type": "application/json"} | (key if self.kind == "keyed" else {})
        end = time.monotonic() + REQUEST_S
        while True:
            try:
                status, said = self.send(path, body, headers)
            except ConnectionRefusedError as error:
                status, said = NOT_SENT, str(error).encode()
            except (OSError, http.client.HTTPException) as error:
                status, said = 0, f"{type(error).__name__}: {error}".encode()
            if self.kind != "keyed" or status == 200 or status in CERTAIN or time.monotonic() > end:
                return status, said
            time.sleep(PAUSE_S)

    def send(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """The response of one replica, whichever."""
        where = urlsplit(self.dice.choice(self.plan.replicas)).netloc
        connection = http.client.HTTPConnection(where, timeout=REQUEST_S)
        try:
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def rows(row: int) -> pa.Table:
    """The one row of a change."""
    return pa.table({"id": [row]}, schema=ROWS)


def with_certain_errors(change: Callable[[], None]) -> None:
    """Our own errors are certain but for the one that says that it is not."""
    try:
        change()
    except CommitUnknownError:
        raise
    except BerglineError as error:
        raise Refused(f"{type(error).__name__}: {error}") from error


def pyiceberg_append(uri: str) -> Callable[[str, int], None]:
    """PyIceberg's way; of its errors only a failed commit is certain."""
    from pyiceberg.catalog.rest import RestCatalog  # noqa: PLC0415  (other clients do without)
    from pyiceberg.exceptions import CommitFailedException  # noqa: PLC0415

    catalog = RestCatalog("soak", uri=uri)

    def append(table: str, row: int) -> None:
        try:
            loaded = catalog.load_table(table)
        except Exception as error:
            raise Refused(f"{type(error).__name__}: {error}") from error
        try:
            loaded.append(rows(row))
        except CommitFailedException as error:
            raise Refused(str(error)) from error

    return append


def main() -> None:
    plan_path, process = sys.argv[1:]
    plan = msgspec.json.decode(Path(plan_path).read_bytes(), type=SoakPlan)
    numbers = [number for number, kind in enumerate(plan.kinds) if PROCESS_OF_KIND[kind] == process]
    with ThreadPoolExecutor(len(numbers)) as pool:
        for done in [pool.submit(SoakClient(plan, number).run) for number in numbers]:
            done.result()


if __name__ == "__main__":
    main()
