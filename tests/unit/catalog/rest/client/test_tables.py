"""Tables of a REST catalog by name."""

import pytest

from bergline.catalog.catalog import LoadedTable, UnprovenDropError
from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    CommitUnknownError,
    FormatError,
    RefusedError,
    UnsupportedError,
)
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import SetProperties, Update
from bergline.io.object_store import ObjectStoreFileIO
from bergline.testing.catalog_suite import now_ms, table_metadata
from support.servers.scripted_rest_server import NO_ANSWER, Reply, RestScript, load_answer, refused

pytestmark = pytest.mark.long


ORDERS = TableName(("db",), "orders")


TABLE = "/v1/namespaces/db/tables/orders"


LOAD = f"GET {TABLE}"
REGISTER = "POST /v1/namespaces/db/register"
GONE = refused(404, "NoSuchTableException")
DROP = f"DELETE {TABLE}"


def loaded(location: str = "file:///lake/orders", number: int = 0) -> LoadedTable:
    return LoadedTable(ORDERS, table_metadata(location), f"{location}/metadata/{number}.metadata.json")


def test_table_that_did_not_change_is_not_sent_again(server: RestScript, catalog: RestCatalog) -> None:
    table = loaded()
    server.on(LOAD, Reply(body=load_answer(table), headers={"ETag": '"one"'}), Reply(304))
    first = catalog.load_table(ORDERS)
    assert catalog.load_table(ORDERS) is first
    assert [r.headers.get("If-None-Match") for r in server.sent(LOAD)] == [None, '"one"']


def test_metadata_that_is_known_is_not_parsed_again(server: RestScript, catalog: RestCatalog) -> None:
    server.on(LOAD, Reply(body=load_answer(loaded())))
    assert catalog.load_table(ORDERS).metadata is catalog.load_table(ORDERS).metadata
    server.on(LOAD, Reply(body=load_answer(loaded(number=1))))
    assert catalog.load_table(ORDERS).metadata_location.endswith("/1.metadata.json")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"{}",
        b'{"metadata": {}}',
        b'{"metadata-location": "x", "metadata": {"format-version": 9}}',
        b"[" * 100_000,
        b'{"metadata": 1, "metadata-location": "\xff"}',
    ],
)
def test_answer_that_is_no_table_is_a_format_error(server: RestScript, catalog: RestCatalog, body: bytes) -> None:
    server.on(LOAD, Reply(body=body))
    with pytest.raises((FormatError, UnsupportedError)):
        catalog.load_table(ORDERS)


def vended(key: str, **more: str) -> dict[str, str]:
    return {"s3.access-key-id": key, "s3.secret-access-key": "x", "s3.region": "r", **more}


def settings(catalog: RestCatalog, location: str) -> dict[str, str]:
    """The properties that count for a location."""
    storage = catalog.io.storage_for(location)
    assert isinstance(storage, ObjectStoreFileIO)
    return storage._properties


def test_new_table_has_the_credentials_that_come_with_its_load(server: RestScript, catalog: RestCatalog) -> None:
    created = load_answer(loaded("s3://b/orders"))
    credentials = [{"prefix": "s3://b/orders", "config": vended("its")}]
    server.on(f"POST {TABLE}", Reply(body=created))
    server.on(LOAD, Reply(body={**created, "storage-credentials": credentials}))
    catalog.create_table(ORDERS, loaded("s3://b/orders").metadata)
    assert settings(catalog, "s3://b/orders/data/x")["s3.access-key-id"] == "its"


@pytest.fixture
def base() -> LoadedTable:
    return LoadedTable(ORDERS, table_metadata("file:///lake/orders"), "file:///lake/orders/metadata/0.metadata.json")


def after(base: LoadedTable, *updates: Update, number: int = 1) -> LoadedTable:
    """The table after updates, at a new pointer."""
    metadata = apply_updates(base.metadata, updates, base_location=base.metadata_location, now_ms=now_ms())
    return LoadedTable(base.name, metadata, f"file:///lake/orders/metadata/{number}.metadata.json")


def shown(table: LoadedTable) -> Reply:
    return Reply(body=load_answer(table))


def creating(metadata: TableMetadata) -> Reply:
    return shown(LoadedTable(ORDERS, metadata, f"file:///lake/orders/metadata/0-{metadata.table_uuid}.metadata.json"))


def test_drop_whose_answer_is_lost_is_done_when_the_table_is_gone(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(f"DELETE {TABLE}", NO_ANSWER)
    server.on(LOAD, refused(404, "NoSuchTableException"))
    catalog.drop_table(ORDERS)
    assert server.sent(f"DELETE {TABLE}")[0].query == {"purgeRequested": "false"}
    for answer in (shown(base), refused(401, "NotAuthorizedException")):
        server.on(LOAD, answer)
        with pytest.raises(CommitUnknownError, match="was dropped"):
            catalog.drop_table(ORDERS)
    server.on(LOAD, shown(base), refused(404, "NoSuchTableException"))
    with pytest.raises(UnprovenDropError, match="was dropped or renamed"):  # who deletes files next looks for it
        catalog.drop_table(ORDERS, base.metadata_location)


@pytest.mark.parametrize(
    "answer", [Reply(200, b"<html>"), Reply(204), Reply(200), Reply(200, {}), Reply(302), Reply(404)]
)
def test_table_is_dropped_only_when_it_is_gone(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, answer: Reply
) -> None:
    server.on(DROP, answer)
    server.on(LOAD, shown(base), GONE)
    catalog.drop_table(ORDERS)
    server.on(LOAD, shown(base))
    with pytest.raises(CommitUnknownError, match="was dropped"):
        catalog.drop_table(ORDERS)
    server.on(LOAD, shown(base), Reply(404, b"<html>"))
    if answer.data or answer.status != 204:
        return
    catalog.drop_table(ORDERS)  # as the protocol says, and nobody can look


def test_table_of_the_same_name_that_came_since_does_not_hide_a_drop(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(DROP, Reply(204))
    server.on(LOAD, shown(base), creating(table_metadata("file:///lake/orders")))
    catalog.drop_table(ORDERS)
    assert [f"{r.method} {r.path}" for r in server.requests[-3:]] == [LOAD, DROP, LOAD]


@pytest.mark.parametrize("status", [400, 403, 404, 409])
def test_refused_drop_of_a_table_that_is_gone_since_is_unknown(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, status: int
) -> None:
    server.on(DROP, refused(status, "SomeException"))
    server.on(LOAD, shown(base), GONE)
    with pytest.raises(CommitUnknownError, match="was dropped"):
        catalog.drop_table(ORDERS)
    server.on(LOAD, shown(base))
    with pytest.raises(BerglineError) as caught:
        catalog.drop_table(ORDERS)
    assert not isinstance(caught.value, CommitUnknownError)
    server.on(LOAD, GONE)
    with pytest.raises(BerglineError) as caught:
        catalog.drop_table(ORDERS)
    assert not isinstance(caught.value, CommitUnknownError)


@pytest.mark.parametrize(
    ("answer", "look"),
    [
        (Reply(204), Reply(404, b"<html>")),
        (Reply(204), NO_ANSWER),
        (Reply(204), None),
        (Reply(200), None),
        (Reply(200, b"<html>"), None),
        (refused(404, "NoSuchTableException"), GONE),  # another dropped it, and may want its files
    ],
)
def test_files_of_a_purged_table_stay_until_the_server_has_it_no_more(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, answer: Reply, look: Reply | None
) -> None:
    server.on(DROP, answer)
    server.on(LOAD, shown(base), look or shown(base))
    with pytest.raises(CommitUnknownError, match="was dropped") as caught:
        catalog.drop_table(ORDERS, base.metadata_location)
    assert not isinstance(caught.value, UnprovenDropError)
    server.on(DROP, Reply(204))
    server.on(LOAD, shown(base), GONE)
    catalog.drop_table(ORDERS, base.metadata_location)


@pytest.mark.parametrize("answer", [Reply(200, b"<html>"), Reply(204), Reply(301), refused(403, "ForbiddenException")])
def test_rename_is_judged_by_where_the_table_is(
    server: RestScript, catalog: RestCatalog, base: LoadedTable, answer: Reply
) -> None:
    new = TableName(("db",), "moved")
    server.on("POST /v1/tables/rename", answer)
    server.on(LOAD, shown(base), GONE)
    server.on("GET /v1/namespaces/db/tables/moved", shown(base))
    if answer.status == 403:
        with pytest.raises(CommitUnknownError, match="was renamed"):
            catalog.rename_table(ORDERS, new)
    else:
        catalog.rename_table(ORDERS, new)
    server.on(LOAD, shown(base))
    server.on("GET /v1/namespaces/db/tables/moved", GONE)
    with pytest.raises(RefusedError if answer.status == 403 else CommitUnknownError):
        catalog.rename_table(ORDERS, new)


def test_rename_whose_answer_is_lost_is_done_when_the_table_has_the_new_name(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    new = TableName(("db",), "moved")
    server.on("POST /v1/tables/rename", NO_ANSWER)
    server.on(LOAD, shown(base), refused(404, "NoSuchTableException"))
    server.on("GET /v1/namespaces/db/tables/moved", shown(base))
    catalog.rename_table(ORDERS, new)
    server.on(LOAD, shown(base))
    with pytest.raises(CommitUnknownError, match=r"was renamed to `db\.moved`"):
        catalog.rename_table(ORDERS, new)


def test_registered_table_is_known_by_its_metadata_file_after_a_lost_answer(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    """Also when others committed to it since; another table of that name is not taken for it."""
    gone, since = refused(404, "NoSuchTableException"), after(base, SetProperties({"a": "1"}))
    server.on(REGISTER, NO_ANSWER)
    for now in (base, since):
        server.on(LOAD, gone, shown(now))
        assert catalog.register_table(ORDERS, base.metadata_location).metadata_location == now.metadata_location
    server.on(LOAD, gone, shown(since))
    with pytest.raises(AlreadyExistsError, match=r"`db\.orders` exists already"):
        catalog.register_table(ORDERS, "file:///lake/orders/metadata/other.metadata.json")


def test_register_that_nothing_shows_of_is_unknown_and_sent_once(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    server.on(REGISTER, NO_ANSWER)
    server.on(LOAD, refused(404, "NoSuchTableException"))
    with pytest.raises(CommitUnknownError, match="was registered"):
        catalog.register_table(ORDERS, base.metadata_location)
    assert len(server.sent(REGISTER)) == 1


def test_unregister_whose_answer_is_lost_is_unknown(server: RestScript, catalog: RestCatalog) -> None:
    """Where the metadata was only the answer tells."""
    server.on(f"POST {TABLE}/unregister", NO_ANSWER)
    server.on(LOAD, refused(404, "NoSuchTableException"))
    with pytest.raises(CommitUnknownError, match="was unregistered"):
        catalog.unregister_table(ORDERS)
