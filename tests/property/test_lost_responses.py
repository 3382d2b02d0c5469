"""A change that adds no snapshot, whose response is lost, among changes of others: the answer is right or unknown.

The server is real, and a proxy before it knows what it has answered. With idempotency keys the answer is always known;
without them it is known by the versions of the table since, if they can be read and each is one commit.
"""

import random
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import count
from typing import Literal, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from bergline.catalog.catalog import Committed, Conflicted, LoadedTable, Outcome, TableChange, Unknown
from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.requirements import all_requirements
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.errors import BerglineError
from bergline.format.metadata.applied_changes import may_be_step
from bergline.format.metadata.requirements import check_requirements
from bergline.testing.catalog_suite import append
from support.models.metadata_changes import METADATA_CHANGES, RELATED, UNDONE_BY, Updates, busy_table
from support.proxies.response_proxy import AnsweringProxy, Arrival, Fate
from support.servers.bergline_server import BerglineServer

pytestmark = pytest.mark.server

Known = Literal["keys", "versions", "few versions", "nothing"]
KNOWN: tuple[Known, ...] = ("keys", "versions", "few versions", "nothing")
APPEND = "append"
OTHERS = [APPEND, APPEND, *METADATA_CHANGES]
NEAR, EARLIER, UNDONE = 0.8, 0.3, 0.2
_NUMBERS = count()


class LostStory(msgspec.Struct, frozen=True):
    """A change whose response is lost, and what others do between its base and its arrival, and after that."""

    ours: str
    earlier: list[str]
    later: list[str]
    arrives: Arrival
    losses: int
    """How many responses are lost."""
    known: Known


@st.composite
def stories(draw: st.DrawFn) -> LostStory:
    """From a seed alone: Hypothesis' own stories have the same few values again and again, and little happens."""
    chance = random.Random(draw(st.integers(0, 2**64 - 1)))  # noqa: S311
    near = chance.choice(RELATED)
    ours = chance.choice(near if chance.random() < NEAR else [*METADATA_CHANGES])
    undone = chance.random() < UNDONE
    if undone:
        ours = chance.choice([*UNDONE_BY])

    def others(most: int) -> list[str]:
        return [chance.choice(near if chance.random() < NEAR else OTHERS) for _ in range(chance.randint(0, most))]

    arrives: tuple[Arrival, ...] = ("now", "now", "now", "never", "later")
    return LostStory(
        ours,
        earlier=others(2) if chance.random() < EARLIER else [],
        later=[UNDONE_BY[ours], *others(1)] if undone else others(3),
        arrives=chance.choice(arrives),
        losses=chance.choice((1, 1, 2, 6)),
        known=chance.choice(KNOWN),
    )


class LostStage(NamedTuple):
    """A server, a client that talks to it, and by what it knows its changes, clients that talk through a proxy."""

    direct: RestCatalog
    proxy: AnsweringProxy
    clients: dict[Known, RestCatalog]
    place: str
    """Where the server puts tables."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LostStage]:
    directory = tmp_path_factory.mktemp("lost")
    with BerglineServer(directory) as server, AnsweringProxy(server.uri) as proxy, ExitStack() as closing:
        direct = RestCatalog(server.uri, {})
        closing.callback(direct.close)
        direct.create_namespace(("db",), {})
        clients: dict[Known, RestCatalog] = {}
        for known in KNOWN:
            proxy.keys, proxy.shows_kind = known == "keys", known in {"keys", "nothing"}
            clients[known] = RestCatalog(proxy.uri, {}, sleep=lambda _: None)
            closing.callback(clients[known].close)
        place = direct.default_location(TableName(("db",), "some"))
        yield LostStage(direct, proxy, clients, place.removesuffix("/some"))


class OtherClient:
    """Makes changes of its own, and notes every state of the table that it has seen."""

    def __init__(self, catalog: RestCatalog, base: LoadedTable) -> None:
        self._catalog = catalog
        self._name = base.name
        self.states = [base]

    def make(self, kinds: list[str]) -> None:
        """Make changes, if they are possible."""
        for kind in kinds:
            now = self.look()
            try:
                change = append(now) if kind == APPEND else TableChange(now, (), METADATA_CHANGES[kind](now.metadata))
                self._catalog.commit((change,))
            except (BerglineError, LookupError):
                continue

    def look(self) -> LoadedTable:
        """The table now."""
        self.states.append(self._catalog.load_table(self._name))
        return self.states[-1]

    def have_shown(self, updates: Updates) -> bool:
        """Whether there was a state in which the updates changed nothing: then it does not matter whose they were."""
        return any(may_be_step(s.metadata, s.metadata, (), updates) for s in self.states)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stories())
def test_lost_response_is_settled_rightly_or_unknown(stage: LostStage, story: LostStory) -> None:
    proxy, client = stage.proxy, stage.clients[story.known]
    name = TableName(("db",), f"t{next(_NUMBERS)}")
    versions = {"write.metadata.previous-versions-max": "1"} if story.known == "few versions" else {}
    base = client.create_table(name, busy_table(f"{stage.place}/{name.name}", **versions))
    other = OtherClient(stage.direct, base)
    try:
        change = TableChange(base, (), METADATA_CHANGES[story.ours](base.metadata))
    except LookupError:
        return
    other.make(story.earlier)
    first = "never" if story.arrives == "later" and story.known != "keys" else story.arrives
    lost = [Fate(first, "nothing"), *[Fate("now", "nothing")] * (story.losses - 1)]
    proxy.meet([*lost, Fate(told="server")], then=lambda: other.make(story.later))
    outcome: Outcome | None = None
    with suppress(BerglineError):
        outcome = client.commit((change,))
    proxy.release()
    now, made = other.look(), [status for status in proxy.statuses if status < 300]
    proxy.meet(())
    event(f"{story.known}: {type(outcome).__name__} of one that was {'' if made else 'not '}made")
    match outcome:
        case Conflicted() | None:
            assert not made, outcome
        case Committed():
            assert made or (story.known != "keys" and other.have_shown(change.updates))
        case Unknown():
            assert story.known != "keys", outcome
            if story.known == "versions":
                assert not made, outcome
                check_requirements(now.metadata, all_requirements(change), str(name))
    assert len(made) <= 1 or story.known == "keys", "made twice"
