"""Names that a caller may not know are left out of errors."""

import pytest

from bergline.catalog.identifiers import TableName
from support.servers.asgi_client import SCHEMA, AsgiClient
from support.servers.granted_server import GrantedServer


@pytest.fixture(autouse=True)
def _db(client: AsgiClient) -> None:
    client.namespace("db")


def test_refused_purge_names_the_other_table_only_to_who_may_see_it(
    granted: GrantedServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    granted.grant("create", "namespace db", "ann")
    mine = granted("ann", "POST", "/v1/namespaces/db/tables", {"name": "mine", "schema": SCHEMA}).json
    register = {"name": "secret", "metadata-location": mine["metadata-location"]}
    granted("root", "POST", "/v1/namespaces", {"namespace": ["other"]})
    assert granted("root", "POST", "/v1/namespaces/other/register", register).status == 200
    purge = "DELETE", "/v1/namespaces/db/tables/mine"
    hidden = granted("ann", *purge, query={"purgeRequested": "true"})
    assert hidden.error == (403, "ForbiddenException")
    assert hidden.message.startswith("cannot purge table `db.mine`: another table uses the same files; drop it")
    assert "`other.secret` uses the same files" in caplog.text
    assert "`other.secret` uses" in granted("root", *purge, query={"purgeRequested": "true"}).message
    granted.grant("read", "table other.secret", "ann")
    assert "`other.secret` uses" in granted("ann", *purge, query={"purgeRequested": "true"}).message
    assert granted("ann", "GET", "/v1/namespaces/db/tables/mine").status == 200


def test_refused_purge_says_nothing_of_a_table_that_cannot_be_read(granted: GrantedServer) -> None:
    granted.grant("create", "namespace db", "ann")
    mine = granted("ann", "POST", "/v1/namespaces/db/tables", {"name": "mine", "schema": SCHEMA}).json
    broken = f"{mine['metadata']['location']}/metadata/broken.metadata.json"
    granted.context.catalog.store.swap(TableName(("db",), "secret"), None, broken)
    refused = granted("ann", "DELETE", "/v1/namespaces/db/tables/mine", query={"purgeRequested": "true"})
    assert refused.status == 403
    assert "what another table or view uses cannot be read" in refused.message
    assert "secret" not in refused.message
    assert "broken" not in refused.message
