"""What is sent again, and how long after."""

from email.utils import formatdate

import pytest

from bergline.catalog.catalog import Committed, Conflicted, LoadedTable, TableChange, Unknown
from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.catalog.rest.protocol.final_refusal import REFUSED_KEY_HEADER
from bergline.errors import StorageError, UnavailableError
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.updates import SetProperties, Update
from bergline.testing.catalog_suite import append, now_ms, table_metadata
from support.servers.scripted_rest_server import NO_ANSWER, Reply, Request, RestScript, load_answer, refused

ORDERS = TableName(("db",), "orders")
LOAD = "GET /v1/namespaces/db/tables/orders"
COMMIT = "POST /v1/namespaces/db/tables/orders"
LOADED = LoadedTable(ORDERS, table_metadata("file:///lake/orders"), "file:///lake/orders/metadata/0.metadata.json")
pytestmark = pytest.mark.long
TABLE = "/v1/namespaces/db/tables/orders"
KEYS = {"idempotency-key-lifetime": "PT30M"}


@pytest.mark.parametrize("broken", [NO_ANSWER, Reply(500), Reply(502), Reply(503), Reply(504), Reply(429), Reply(524)])
def test_reading_is_tried_again(server: RestScript, catalog: RestCatalog, waits: list[float], broken: Reply) -> None:
    server.on(LOAD, broken, broken, broken, Reply(body=load_answer(LOADED)))
    assert catalog.load_table(ORDERS).name == ORDERS
    assert len(waits) == 3
    server.on(LOAD, broken)
    with pytest.raises((UnavailableError, StorageError)):
        catalog.load_table(ORDERS)


@pytest.mark.parametrize(("asked", "least", "most"), [("3", 3, 3), (formatdate(2e9), 30, 30), ("soon", 0, 1)])
def test_server_says_how_long_to_wait(
    server: RestScript, catalog: RestCatalog, waits: list[float], asked: str, least: float, most: float
) -> None:
    server.on(LOAD, Reply(503, headers={"Retry-After": asked}), Reply(body=load_answer(LOADED)))
    catalog.load_table(ORDERS)
    assert least <= waits[0] <= most


@pytest.fixture
def base() -> LoadedTable:
    return LoadedTable(ORDERS, table_metadata("file:///lake/orders"), "file:///lake/orders/metadata/0.metadata.json")


def after(base: LoadedTable, *updates: Update, number: int = 1) -> LoadedTable:
    """The table after updates, at a new pointer."""
    metadata = apply_updates(base.metadata, updates, base_location=base.metadata_location, now_ms=now_ms())
    return LoadedTable(base.name, metadata, f"file:///lake/orders/metadata/{number}.metadata.json")


def shown(table: LoadedTable) -> Reply:
    return Reply(body=load_answer(table))


def test_key_makes_every_change_repeatable(base: LoadedTable, waits: list[float]) -> None:
    change = TableChange(base, (), (SetProperties({"a": "1"}),))
    with RestScript(**{"idempotency-key-lifetime": "PT30M"}) as server:
        catalog = RestCatalog(server.uri, {}, sleep=waits.append)
        server.on(COMMIT, NO_ANSWER, Reply(500), Reply(503), shown(after(base, *change.updates)))
        assert isinstance(catalog.commit((change,)), Committed)
        keys = [r.headers["Idempotency-Key"] for r in server.sent(COMMIT)]
        assert len(keys) == 4
        assert len(set(keys)) == 1
        assert (keys[0][14], keys[0][19] in "89ab") == ("7", True)
        server.on(COMMIT, shown(after(base, *change.updates)))
        catalog.commit((change,))
        assert server.sent(COMMIT)[-1].headers["Idempotency-Key"] != keys[0]
        server.on(LOAD, shown(base))
        catalog.load_table(base.name)
        assert "Idempotency-Key" not in server.sent(LOAD)[0].headers
        catalog.close()


@pytest.mark.parametrize("later", [Reply(429), Reply(401), Reply(403), Reply(301), Reply(413)])
def test_later_try_that_is_not_let_in_says_nothing_of_the_one_before(
    later: Reply, base: LoadedTable, waits: list[float]
) -> None:
    """The first may have landed: taken for a refusal, its files would be deleted."""
    change = append(base)
    with RestScript(**KEYS) as server:
        catalog = RestCatalog(server.uri, {"token": "t"}, sleep=waits.append)
        server.on(COMMIT, NO_ANSWER, later)
        server.on(LOAD, later)
        assert isinstance(catalog.commit((change,)), Unknown)
        server.on(COMMIT, NO_ANSWER, later)
        server.on(LOAD, shown(after(base, *change.updates)))
        assert isinstance(catalog.commit((change,)), Committed)
        catalog.close()


@pytest.mark.parametrize(
    "later",
    [
        refused(409, "CommitFailedException"),
        refused(400, "BadRequestException"),
        refused(404, "NoSuchTableException"),
        refused(429, "TooManyRequestsException"),
        Reply(404, b"<html>"),
        Reply(406),
        Reply(503),
    ],
)
def test_refusal_of_a_later_try_with_the_same_key_tells_nothing_of_the_first(later: Reply, base: LoadedTable) -> None:
    change = append(base)
    with RestScript(**KEYS) as server:
        catalog = RestCatalog(server.uri, {}, sleep=lambda _: None)
        server.on(COMMIT, NO_ANSWER, later)
        server.on(LOAD, shown(after(base, *change.updates)))
        assert isinstance(catalog.commit((change,)), Committed)
        assert len({r.headers["Idempotency-Key"] for r in server.sent(COMMIT)}) == 1
        server.on(COMMIT, NO_ANSWER, later)
        server.on(LOAD, NO_ANSWER)
        assert isinstance(catalog.commit((change,)), Unknown)
        server.on(COMMIT, NO_ANSWER, later)
        server.on(LOAD, shown(base))
        twice = TableChange(base, (), (SetProperties({"a": "1"}),))
        assert isinstance(catalog.commit((twice,)), Unknown)
        catalog.close()


def test_refusal_that_was_recorded_for_the_key_tells_of_the_first_try_too(base: LoadedTable) -> None:
    """Whatever the table looks like: another client may have done the same."""
    change = TableChange(base, (), (SetProperties({"a": "1"}),))

    def final(request: Request, key: str | None = None) -> Reply:
        refusal = refused(409, "CommitFailedException")
        return refusal._replace(headers={REFUSED_KEY_HEADER: key or request.headers["Idempotency-Key"]})

    with RestScript(**KEYS) as server:
        catalog = RestCatalog(server.uri, {}, sleep=lambda _: None)
        server.on(LOAD, shown(after(base, *change.updates)))
        server.on(COMMIT, NO_ANSWER, final)
        assert isinstance(catalog.commit((change,)), Conflicted)
        server.on(COMMIT, *[NO_ANSWER] * 6, final)
        assert isinstance(catalog.commit((change,)), Conflicted)
        server.on(COMMIT, NO_ANSWER, lambda request: final(request, "another"))
        assert isinstance(catalog.commit((change,)), Committed)
        assert len({r.headers["Idempotency-Key"] for r in server.sent(COMMIT)}) == 3
        catalog.close()


def test_key_is_not_used_any_longer_than_the_server_knows_it(base: LoadedTable, waits: list[float]) -> None:
    change = append(base)
    late = Reply(503, headers={"Retry-After": "7"})
    for lifetime, times in (("PT5S", 2), ("PT1M", 4), ("P1DT0.5S", 4)):
        with RestScript(**{"idempotency-key-lifetime": lifetime}) as server:
            catalog = RestCatalog(server.uri, {}, sleep=waits.append)
            server.on(COMMIT, NO_ANSWER, late)
            server.on(LOAD, shown(after(base, *change.updates)))
            assert isinstance(catalog.commit((change,)), Committed)
            assert len(server.sent(COMMIT)) == times
            catalog.close()


@pytest.mark.parametrize("lifetime", ["", "soon", "PT0S", None])
def test_keys_of_no_lifetime_are_not_sent(base: LoadedTable, lifetime: str | None) -> None:
    with RestScript(**{"idempotency-key-lifetime": lifetime}) as server:
        catalog = RestCatalog(server.uri, {})
        server.on(COMMIT, refused(409, "CommitFailedException"))
        catalog.commit((append(base),))
        assert "Idempotency-Key" not in server.sent(COMMIT)[0].headers
        catalog.close()


def test_server_that_advertises_no_keys_gets_none(server: RestScript, catalog: RestCatalog, base: LoadedTable) -> None:
    server.on(COMMIT, refused(409, "CommitFailedException"))
    catalog.commit((append(base),))
    assert "Idempotency-Key" not in server.sent(COMMIT)[0].headers


@pytest.mark.parametrize(
    "put_off",
    [refused(429, "TooManyRequestsException"), refused(503, "ServiceUnavailableException", **{"Retry-After": "7"})],
)
def test_commit_that_was_put_off_is_sent_again(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, put_off: Reply, waits: list[float]
) -> None:
    change = append(base)
    server.on(COMMIT, put_off, shown(after(base, *change.updates)))
    assert isinstance(catalog.commit((change,)), Committed)
    assert waits == [7.0] or put_off.status == 429


def test_commit_that_is_always_put_off_changed_nothing(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(COMMIT, refused(429, "TooManyRequestsException"))
    server.on(LOAD, shown(base))
    with pytest.raises(UnavailableError, match="asks to retry later"):
        catalog.commit((append(base),))


@pytest.mark.parametrize(
    "put_off", [Reply(429, headers={"Retry-After": "7"}), Reply(503, headers={"Retry-After": "7"})]
)
def test_commit_that_somebody_put_off_is_looked_for_after_the_time_asked_for(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, put_off: Reply, waits: list[float]
) -> None:
    change = append(base)
    server.on(COMMIT, put_off, shown(after(base, *change.updates)))
    server.on(LOAD, shown(base))
    assert isinstance(catalog.commit((change,)), Committed)
    assert waits == [7.0]
    server.on(COMMIT, put_off)
    assert isinstance(catalog.commit((change,)), Unknown)


def test_server_that_is_not_there_changed_nothing(base: LoadedTable, waits: list[float]) -> None:
    with RestScript() as server:
        server.on("GET /v1/config", Reply(body={}, headers={"Connection": "close"}))
        catalog = RestCatalog(server.uri, {}, sleep=waits.append)
    with pytest.raises(UnavailableError, match="cannot reach http://127"):
        catalog.commit((append(base),))
