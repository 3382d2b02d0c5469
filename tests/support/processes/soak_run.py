"""Replicas of `bergline serve` on one PostgreSQL under load, while replicas and PostgreSQL are killed again and again.

Clients of several kinds change rows of one hot table and of tables of their own, each in a process, and write down
what they were told. In the end all of it must be so: nothing acknowledged is lost, nothing refused is there, nothing is
there twice, every file can be read, and audit rows and events are those of the commits. Prints how long commits took,
and how long after each kill the first one succeeded.
"""

import argparse
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

import bergline
from support.models.soak_ledger import LedgerReader, SoakChange, SoakOutcome, check_lake
from support.paths import PROCESSES, python_path
from support.processes.soak_client import KINDS, PROCESS_OF_KIND, ROWS, UNSERVED, SoakPlan
from support.servers.replicas import ReplicaSet

PROPERTIES = {
    "commit.retry.num-retries": "100",
    "commit.retry.min-wait-ms": "10",
    "write.delete.mode": "merge-on-read",
    "write.metadata.compression-codec": "gzip",
    "write.metadata.previous-versions-max": "100000",
}
WARM_UP_S = 20.0
PAUSED_S = 1.5
"""Epochs in which the server puts late appends of every client on the head."""
STEADY_S = (1.0, 3.0)
LONGEST_RECOVERY_S = 60.0
PAUSE_S = 0.05
EPOCH_S = 20.0


class Kill(NamedTuple):
    """What was killed, when, and how long after that a change that began after it was acknowledged."""

    what: str
    at: float
    back_s: float
    """Until what was killed had been started again."""
    first_s: float | None
    all_s: float | None
    """Until every client had such a success."""


class Killer:
    """Kills one thing after the other, brings it back, and goes on once clients are served again."""

    def __init__(self, replicas: ReplicaSet, reader: LedgerReader, clients: int, seed: int) -> None:
        self._replicas = replicas
        self._reader = reader
        self._clients = clients
        self._dice = seeded(seed)
        self._ways: list[tuple[str, Callable[[], None]]] = [
            ("replica, SIGKILL", self._kill_replica),
            ("replica, SIGTERM", self._terminate_replica),
            ("replica, paused", self._pause_replica),
            ("PostgreSQL, paused", self._pause_postgres),
            ("PostgreSQL, immediate stop", self._stop_postgres),
            ("PostgreSQL, SIGKILL of a backend", replicas.postgres.kill_backend),
            ("PostgreSQL, SIGKILL of the postmaster", self._kill_postgres),
        ]
        self._next: list[tuple[str, Callable[[], None]]] = []

    def run(self, end: float) -> list[Kill]:
        """Kill until the time is over, once all clients are at work; every way comes once before one comes again."""
        begin = time.monotonic()
        while len(self._successes(0.0)) < self._clients and time.monotonic() < begin + WARM_UP_S:
            time.sleep(PAUSE_S)
        kills = []
        while time.monotonic() < end:
            self._next = self._next or self._dice.sample(self._ways, len(self._ways))
            what, kill = self._next.pop()
            at = time.monotonic()
            kill()
            kills.append((what, at, time.monotonic() - at))
            self._wait_for_success(at)
            time.sleep(self._dice.uniform(*STEADY_S))
        return [Kill(what, at, back_s, *self._recovery(at)) for what, at, back_s in kills]

    def _wait_for_success(self, since: float) -> None:
        end = time.monotonic() + LONGEST_RECOVERY_S
        while not self._successes(since) and time.monotonic() < end:
            time.sleep(PAUSE_S)

    def _recovery(self, since: float) -> tuple[float | None, float | None]:
        found = sorted(ended - since for ended in self._successes(since).values())
        return (found[0] if found else None), (found[-1] if len(found) == self._clients else None)

    def _successes(self, since: float) -> dict[str, float]:
        """When each client had the first success of a change that began after a moment."""
        self._reader.read_on()
        found: dict[str, float] = {}
        for change in self._reader.since(since):
            if change.outcome is SoakOutcome.DONE:
                found.setdefault(change.client, change.ended)
        return found

    def _kill_replica(self) -> None:
        server = self._dice.choice(self._replicas.servers)
        server.kill()
        self._replicas.restart(server)

    def _terminate_replica(self) -> None:
        server = self._dice.choice(self._replicas.servers)
        server.terminate()
        self._replicas.restart(server)

    def _pause_replica(self) -> None:
        self._dice.choice(self._replicas.servers).pause(PAUSED_S)

    def _pause_postgres(self) -> None:
        self._replicas.postgres.pause(PAUSED_S)

    def _stop_postgres(self) -> None:
        self._replicas.postgres.stop_at_once()
        self._replicas.postgres.start()

    def _kill_postgres(self) -> None:
        self._replicas.postgres.kill()
        self._replicas.postgres.start()


class Soaked(NamedTuple):
    """What came of a run."""

    changes: list[SoakChange]
    kills: list[Kill]
    wrong: list[str]


def soak(directory: Path, seconds: float, replicas: int, clients: int, seed: int) -> Soaked:
    """Run the load and the kills, then look at everything."""
    ledgers = directory / "ledgers"
    ledgers.mkdir()
    kinds = tuple(KINDS[number % len(KINDS)] for number in range(clients))
    with ReplicaSet(directory, replicas) as served:
        uris = tuple(server.uri for server in served.servers)
        plan = SoakPlan(served.uri, uris, served.postgres.uri, str(directory), kinds, seconds, EPOCH_S, seed)
        make_tables(plan)
        reader = LedgerReader(ledgers)
        with running_clients(plan, directory) as processes:
            begin = plan.begin_when_ready()
            kills = Killer(served, reader, clients, seed).run(begin + seconds)
            plan.end()
            wrong = [f"clients {n} ended with {code}" for n, code in enumerate(map(wait, processes)) if code]
        reader.read_on()
        for server in served.servers:
            server.terminate()
        with bergline.connect(served.postgres.uri, warehouse=str(directory / "warehouse")) as lake:
            wrong += check_lake(lake, reader.changes, plan.tables(), unserved=UNSERVED)
    return Soaked(reader.changes, kills, wrong)


def make_tables(plan: SoakPlan) -> None:
    """The tables of all epochs."""
    with bergline.connect(plan.balancer) as lake:
        lake.create_namespace("soak")
        for name in plan.tables():
            lake.create_table(name, ROWS, properties=PROPERTIES)


@contextmanager
def running_clients(plan: SoakPlan, directory: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The clients, as threads of a few processes."""
    path = directory / "plan.json"
    path.write_bytes(msgspec.json.encode(plan))
    processes = []
    try:
        for name in sorted(set(map(PROCESS_OF_KIND.get, plan.kinds))):
            with (directory / f"clients-{name}.txt").open("wb") as log:
                command = [sys.executable, str(PROCESSES / "soak_client.py"), str(path), name]
                processes.append(
                    subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": python_path()})
                )
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def wait(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a client that is about to end."""
    return process.wait(180)


def report(soaked: Soaked) -> Iterator[str]:
    """What came of it, in lines."""
    by_client: dict[str, list[SoakChange]] = defaultdict(list)
    for change in soaked.changes:
        by_client[change.client.partition("-")[0]].append(change)
    yield "| client | done | refused | unknown | p50 | p99 | longest |"
    yield "|---|---|---|---|---|---|---|"
    for kind, changes in [*sorted(by_client.items()), ("all", soaked.changes)]:
        told = Counter(change.outcome for change in changes)
        times = sorted(c.ended - c.began for c in changes if c.outcome is SoakOutcome.DONE) or [0.0]
        shown = (f"{part * 1000:,.0f} ms" for part in (at(times, 0.5), at(times, 0.99), times[-1]))
        counts = (f"{told[outcome]:,}" for outcome in SoakOutcome)
        yield f"| {kind} | {' | '.join([*counts, *shown])} |"
    yield ""
    columns = ("started again after", "first success after", "all clients after")
    yield f"| killed | times | {' | '.join(f'{column}, median | longest' for column in columns)} |"
    yield "|---|---|---|---|---|---|---|---|"
    by_way: dict[str, list[Kill]] = defaultdict(list)
    for kill in soaked.kills:
        by_way[kill.what].append(kill)
    for what, kills in [*sorted(by_way.items()), ("all", soaked.kills)]:
        backs = sorted(k.back_s for k in kills) or [float("nan")]
        firsts = sorted(k.first_s for k in kills if k.first_s is not None) or [float("nan")]
        alls = sorted(k.all_s for k in kills if k.all_s is not None) or [float("nan")]
        parts = (
            "-" if math.isnan(part) else f"{part:.2f} s"
            for times in (backs, firsts, alls)
            for part in (at(times, 0.5), times[-1])
        )
        yield f"| {what} | {len(kills)} | {' | '.join(parts)} |"


def seeded(seed: int) -> random.Random:
    """Chances that come again."""
    return random.Random(seed)  # noqa: S311  (no secrets)


def at(times: Sequence[float], share: float) -> float:
    """The time that this share of them does not exceed."""
    return times[min(int(len(times) * share), len(times) - 1)]


def late(kills: Sequence[Kill], most_s: float) -> list[str]:
    """Kills after which it took too long until a change succeeded, or none did before the next one."""
    return [
        f"after {kill.what} the first success took {'for ever' if kill.first_s is None else f'{kill.first_s:.1f} s'}"
        for kill in kills
        if kill.first_s is None or kill.first_s > most_s
    ]


def say(*lines: str) -> None:
    """Tell at once."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="for how long")
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--clients", type=int, default=2 * len(KINDS), help="in turn of every kind")
    parser.add_argument("--recovery", type=float, default=5, help="seconds in which a change succeeds after every kill")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    given = parser.parse_args()
    say(f"soak: {given.minutes:g} minutes, {given.replicas} replicas, {given.clients} clients, seed {given.seed}")
    directory = Path(tempfile.mkdtemp(prefix="bergline-soak-"))
    soaked = soak(directory, given.minutes * 60, given.replicas, given.clients, given.seed)
    say(*report(soaked))
    wrong = [*soaked.wrong, *late(soaked.kills, given.recovery)]
    if wrong:
        say(*(f"wrong: {line}" for line in wrong), f"everything is kept in {directory}")
        return 1
    shutil.rmtree(directory, ignore_errors=True)
    say(f"soak: {len(soaked.kills)} kills, {len(soaked.changes):,} changes, nothing lost, nothing doubled")
    return 0


if __name__ == "__main__":
    sys.exit(main())
