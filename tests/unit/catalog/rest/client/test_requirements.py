"""Requirements that are sent with a change."""

import pytest

from bergline.catalog.catalog import LoadedTable, TableChange
from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.updates import RemoveSnapshotRef, RemoveSnapshots, Update
from bergline.testing.catalog_suite import added_id, append, now_ms, table_metadata
from support.servers.scripted_rest_server import Reply, RestScript, load_answer

pytestmark = pytest.mark.long


ORDERS = TableName(("db",), "orders")


TABLE = "/v1/namespaces/db/tables/orders"


LOAD, COMMIT = f"GET {TABLE}", f"POST {TABLE}"


@pytest.fixture
def base() -> LoadedTable:
    return LoadedTable(ORDERS, table_metadata("file:///lake/orders"), "file:///lake/orders/metadata/0.metadata.json")


def after(base: LoadedTable, *updates: Update, number: int = 1) -> LoadedTable:
    """The table after updates, at a new pointer."""
    metadata = apply_updates(base.metadata, updates, base_location=base.metadata_location, now_ms=now_ms())
    return LoadedTable(base.name, metadata, f"file:///lake/orders/metadata/{number}.metadata.json")


def shown(table: LoadedTable) -> Reply:
    return Reply(body=load_answer(table))


def test_removal_names_all_refs_so_that_none_is_lost(
    server: RestScript, catalog: RestCatalog, base: LoadedTable
) -> None:
    first = append(base, "dev")
    grown = after(base, *first.updates)
    server.on(COMMIT, shown(after(grown, RemoveSnapshotRef("dev"), RemoveSnapshots((added_id(first),)))))
    catalog.commit((TableChange(grown, (), (RemoveSnapshotRef("dev"), RemoveSnapshots((added_id(first),)))),))
    sent = server.sent(COMMIT)[0].content["requirements"]
    assert {"type": "assert-ref-snapshot-id", "ref": "dev", "snapshot-id": added_id(first)} in sent
    assert len(sent) == 2


def test_retention_is_required_only_of_a_server_that_knows_it(base: LoadedTable) -> None:
    grown = after(base, *append(base, "dev").updates)
    change = TableChange(grown, (), (RemoveSnapshotRef("dev"),))
    for overrides, number in (({}, 0), ({"bergline.assert-ref-retention": "true"}, 1)):
        with RestScript(overrides=overrides) as server:
            catalog = RestCatalog(server.uri, {})
            server.on(COMMIT, shown(after(grown, *change.updates)))
            catalog.commit((change,))
            sent = server.sent(COMMIT)[0].content["requirements"]
            assert sent.count({"type": "bergline.assert-ref-retention", "ref": "dev"}) == number
            assert len(sent) == 2 + number
            catalog.close()
