"""A proxy lets a change arrive, or not, or late, and answers anything: what is told is right or unknown.

Between the client and a real `bergline serve`, for every operation. In CI every status for appends and every kind of
answer for everything else; with many examples (`make torture`) every status for every operation, and with very many
every status with every body.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pytest

from bergline import Lake
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.errors import BerglineError, CommitUnknownError, NotFoundError
from bergline.table.commits.retry import Timing
from support.models.table_invariants import Entries, check_nothing_is_missing
from support.proxies.response_proxy import AnsweringProxy, Arrival, Fate, Told
from support.servers.bergline_server import BerglineServer

pytestmark = pytest.mark.server

EXAMPLES = int(os.environ.get("BERGLINE_EXAMPLES", "0"))
WHOLE, EVERYTHING = EXAMPLES >= 1000, EXAMPLES >= 5000
COLUMNS = pa.schema([("id", pa.int64())])
STATUSES = range(200, 600)
PAGE = b"<html><body>default backend - 404</body></html>"
ROUNDS = 8  # with one table: its history stays short


def error_body(status: int) -> bytes:
    return json.dumps({"error": {"message": "as the test asked", "type": "SomeException", "code": status}}).encode()


def own(status: int, body: str, arrives: Arrival = "now") -> Fate:
    bodies = {"page": PAGE, "empty": b"", "error": error_body(status), "json": b"{}"}
    headers = (("Location", "http://127.0.0.1:9/"),) if 300 <= status < 400 else ()
    return Fate(arrives, "own", status, bodies[body], headers)


ARRIVALS: tuple[Arrival, ...] = ("now", "never")
BROKEN: tuple[Told, ...] = ("half", "nothing", "reset")


def every_answer(turn: int) -> Iterator[tuple[Fate, ...]]:
    """Every status, for changes that arrive and that do not, once and for ever; bodies by turns, or all of them."""
    for status in STATUSES:
        for number, (body, arrives) in enumerate((b, a) for b in ("page", "empty", "error") for a in ARRIVALS):
            if EVERYTHING or (status + turn) % 6 == number:
                fate = own(status, body, arrives)
                yield (fate,) if (status // 6) % 2 else (fate, Fate(told="server"))


def each_kind() -> Iterator[tuple[Fate, ...]]:
    """An answer of each kind, for a change that arrives, that does not, and that arrives when all is over."""
    through, lost = Fate(told="server"), Fate("now", "nothing")
    yield (Fate("now", "half"),)
    yield (Fate("now", "reset"), through)
    yield (Fate("never", "nothing"), through)
    yield (Fate("later", "nothing"), through)
    yield (Fate("later", "nothing"),)
    yield (own(504, "page", "later"), own(409, "error", "never"))
    yield (lost, own(404, "page", "never"))  # an ingress without its backend, after a lost answer
    yield (lost, own(406, "empty", "never"))
    yield (own(503, "error"), own(400, "error", "never"))
    for status, body in ((200, "page"), (204, "empty"), (307, "page"), (404, "page"), (404, "error"), (409, "error")):
        yield (own(status, body, "now"),)
        yield (own(status, body, "never"),)
    yield (own(429, "error"),)
    yield (own(530, "empty"),)


def further_kinds() -> Iterator[tuple[Fate, ...]]:
    """More of the same."""
    through = Fate(told="server")
    for told in BROKEN:
        yield (Fate("now", told), through)
        yield (Fate("now", told),)
        yield (Fate("never", told), through)
    yield (Fate("now", "nothing"), own(409, "error", "never"))
    for status, body in (
        *((s, "page") for s in (301, 409, 429, 501, 520)),
        *((s, "empty") for s in (200, 304, 307, 406)),
        *((s, "error") for s in (400, 401, 403, 429, 500, 503)),
        (200, "json"),
    ):
        for arrives in ARRIVALS:
            yield (own(status, body, arrives),)


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": list(numbers)}, schema=COLUMNS)


class Case(NamedTuple):
    """An operation: what must be there before, what is done, and how often it shows afterwards."""

    prepare: Callable[[Lake, str, int], object]
    act: Callable[[Lake, str, int], object]
    times: Callable[[Lake, str, int], int]
    is_seen: bool = False
    """Whether it is done as soon as it shows: then it is not unknown, unless a refusal says otherwise."""


def has_row(lake: Lake, table: str, number: int) -> int:
    return int(lake.load_table(table).scan().to_arrow()["id"].to_pylist().count(number))


def is_there(lake: Lake, table: str) -> bool:
    try:
        lake.load_table(table)
    except NotFoundError:
        return False
    return True


def diverged(lake: Lake, table: str, number: int) -> None:
    loaded = lake.load_table(table)
    loaded.refs.create_branch(f"dev{number}")
    loaded.append(rows(number), branch=f"dev{number}")
    loaded.append(rows(-number))


def ahead(lake: Lake, table: str, number: int) -> None:
    loaded = lake.load_table(table)
    loaded.refs.create_branch(f"dev{number}")
    loaded.append(rows(number), branch=f"dev{number}")


def two_tables(lake: Lake, table: str, number: int) -> None:
    with lake.transaction() as transaction:
        for name in (table, f"{table}_other"):
            transaction.load_table(name).append(rows(number))


def times_in_two(lake: Lake, table: str, number: int) -> int:
    first, second = (has_row(lake, name, number) for name in (table, f"{table}_other"))
    assert first == second, "one of two tables was changed"
    return first


def published(lake: Lake, table: str, number: int) -> int:
    times, branch = has_row(lake, table, number), f"dev{number}" in lake.load_table(table).refs
    assert bool(times) != branch
    return times


def made(lake: Lake, table: str, number: int) -> None:
    lake.create_table(f"{table}_{number}", COLUMNS).append(rows(number))


def created(lake: Lake, table: str, number: int) -> None:
    with lake.stage_table(f"{table}_{number}", COLUMNS) as staged:
        staged.append(rows(number))


def renamed(lake: Lake, table: str, number: int) -> int:
    old, new = is_there(lake, f"{table}_{number}"), is_there(lake, f"{table}_{number}_moved")
    assert old != new
    return int(new)


def nothing(*_: object) -> None:
    """Nothing need be there before."""


OPERATIONS = {
    "append": Case(nothing, lambda lake, t, n: lake.load_table(t).append(rows(n)), has_row),
    "append to a new branch": Case(
        nothing,
        lambda lake, t, n: lake.load_table(t).append(rows(n), branch=f"b{n}"),
        lambda lake, t, n: f"b{n}" in lake.load_table(t).refs,
    ),
    "overwrite": Case(
        lambda lake, t, n: lake.load_table(t).append(rows(-n, -n)),
        lambda lake, t, n: lake.load_table(t).overwrite(rows(n), f"id = {-n}"),
        lambda lake, t, n: has_row(lake, t, n) if has_row(lake, t, -n) == (0 if has_row(lake, t, n) else 2) else 99,
    ),
    "merge": Case(diverged, lambda lake, t, n: lake.load_table(t).refs.merge(f"dev{n}", into="main"), has_row),
    "publish": Case(diverged, lambda lake, t, n: lake.publish(f"dev{n}", tables=[t], merge=True), published),
    "publish forward": Case(ahead, lambda lake, t, n: lake.publish(f"dev{n}", tables=[t], tag=f"v{n}"), published),
    "transaction": Case(nothing, two_tables, times_in_two),
    "create": Case(nothing, created, lambda lake, t, n: is_there(lake, f"{t}_{n}") and has_row(lake, f"{t}_{n}", n)),
    "rename": Case(made, lambda lake, t, n: lake.rename_table(f"{t}_{n}", f"{t}_{n}_moved"), renamed),
    "drop": Case(
        made, lambda lake, t, n: lake.drop_table(f"{t}_{n}"), lambda lake, t, n: not is_there(lake, f"{t}_{n}"), True
    ),
    "purge": Case(
        made, lambda lake, t, n: lake.purge_table(f"{t}_{n}"), lambda lake, t, n: not is_there(lake, f"{t}_{n}"), True
    ),
    "create a branch": Case(
        nothing,
        lambda lake, t, n: lake.load_table(t).refs.create_branch(f"b{n}"),
        lambda lake, t, n: f"b{n}" in lake.load_table(t).refs,
    ),
    "drop a branch": Case(
        lambda lake, t, n: lake.load_table(t).refs.create_branch(f"b{n}"),
        lambda lake, t, n: lake.load_table(t).refs.drop_branch(f"b{n}"),
        lambda lake, t, n: f"b{n}" not in lake.load_table(t).refs,
    ),
    "fast-forward": Case(ahead, lambda lake, t, n: lake.load_table(t).refs.fast_forward("main", to=f"dev{n}"), has_row),
}


class Stage:
    """A server, a lake that talks to it, and one that talks through the proxy and does not wait."""

    def __init__(self, server: BerglineServer, proxy: AnsweringProxy) -> None:
        self.proxy = proxy
        self.lake = _lake(server.uri)
        self._number = 0
        self._known: dict[str, Entries] = {}
        self.ends: dict[str, int] = {"done": 0, "unknown": 0, "refused": 0}

    def check_ends(self, case: Case, answers: Sequence[tuple[Fate, ...]], *, keys: bool) -> None:
        """Every answer once, on tables of a few rounds each."""
        self.proxy.keys = keys
        with _lake(self.proxy.uri) as client:
            for place, fates in enumerate(answers):
                if place % ROUNDS == 0:
                    table = self._table()
                self._number += 1
                self._one(case, client, table, fates)
        for name in self.lake.list_tables("db"):  # a purge looks at all of them
            self.lake.drop_table(name)

    def _table(self) -> str:
        name = f"db.t{self._number}"
        for each in (name, f"{name}_other"):
            self.lake.create_table(each, COLUMNS).append(rows(0))
        return name

    def _one(self, case: Case, client: Lake, table: str, fates: tuple[Fate, ...]) -> None:
        number = self._number
        case.prepare(self.lake, table, number)
        self.proxy.meet(fates)
        try:
            case.act(client, table, number)
            end = "done"
        except CommitUnknownError:
            end = "unknown"
        except BerglineError as error:
            end = f"refused by {type(error).__name__}: {error}"
        finally:
            changes = self.proxy.changes
            self.proxy.meet(())
        self.ends[end.split()[0]] += 1
        is_refused = any(fate.body == error_body(fate.status) for fate in fates)
        try:
            if case.is_seen and end == "unknown" and not is_refused:
                assert not case.times(self.lake, table, number), "it shows, and is called unknown"
            self._check(case, table, end)
            if self.proxy.release():
                self._check(case, table, end)
        except (AssertionError, BerglineError) as error:
            pytest.fail(f"told {end!r} after {fates}: {type(error).__name__}: {error}")
        assert changes < 60, f"sent {changes} times: {fates}"

    def _check(self, case: Case, table: str, end: str) -> None:
        """The effect is there once if it was said so, and not if it was refused; everything can be read."""
        times = int(case.times(self.lake, table, self._number))
        assert times in {"d": {1}, "r": {0}, "u": {0, 1}}[end[0]], f"it is there {times} times"
        own = f"{table}_{self._number}"
        two = {f"{table}_other"} if case.times is times_in_two else set()
        for name in {table, own, f"{own}_moved", *two} & {str(n) for n in self.lake.list_tables("db")}:
            loaded = self.lake.load_table(name)
            check_nothing_is_missing(loaded, self._known, merged=True)
            for ref in {"main", f"b{self._number}", f"dev{self._number}"} & {*loaded.refs}:
                loaded.scan(ref=ref).to_arrow()


def _lake(uri: str) -> Lake:
    catalog = RestCatalog(uri, {}, sleep=lambda _: None)
    return Lake(catalog, "lake", timing=Timing(sleep=lambda _: None))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with (
        BerglineServer(tmp_path_factory.mktemp("answers")) as server,
        AnsweringProxy(server.uri) as proxy,
    ):
        made = Stage(server, proxy)
        made.lake.create_namespace("db")
        yield made
        made.lake.close()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_kind_of_answer_ends_right_or_unknown(stage: Stage, operation: str) -> None:
    """With idempotency keys and without, by turns where not everything is tried."""
    answers = list(each_kind())
    if WHOLE or operation == "append":
        answers = [a for a in (*answers, *further_kinds()) for _ in (True, False)]
    stage.check_ends(OPERATIONS[operation], answers[::2], keys=True)
    stage.check_ends(OPERATIONS[operation], answers[1::2], keys=False)


@pytest.mark.parametrize("operation", OPERATIONS if WHOLE else ["append"])
def test_every_status_ends_right_or_unknown(stage: Stage, operation: str) -> None:
    answers = list(every_answer(list(OPERATIONS).index(operation)))
    assert {fates[0].status for fates in answers} == set(STATUSES)
    before = dict(stage.ends)
    stage.check_ends(OPERATIONS[operation], answers, keys=False)
    assert all(stage.ends[end] > before[end] for end in stage.ends)
