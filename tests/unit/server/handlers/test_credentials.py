"""Credentials in the responses for tables."""

import json
from pathlib import Path

import pytest

from bergline.governance.grants.file_actions import FileActions
from bergline.server.opening import VendingConfig, open_server
from support.servers.asgi_client import AsgiClient

ROLE = "arn:aws:iam::123456789012:role/tables"
WISH = {"X-Iceberg-Access-Delegation": "vended-credentials"}
PROPERTIES = {"s3.access-key-id": "server-key", "s3.secret-access-key": "server-secret", "s3.region": "eu-west-1"}


def test_tables_on_disk_need_no_keys(tmp_path: Path) -> None:
    context = open_server(f"sqlite:///{tmp_path}/lake/catalog.db", properties=PROPERTIES, vend=VendingConfig())
    with AsgiClient(context) as client:
        client.namespace("db")
        client.table()
        for _ in range(2):
            response = client("GET", "/v1/namespaces/db/tables/orders", headers=WISH)
            assert "storage-credentials" not in response.json
        assert client("GET", "/v1/namespaces/db/tables/orders/credentials").json == {"storage-credentials": []}
    context.catalog.close()


@pytest.mark.usefixtures("sts")
def test_answers_with_keys_that_expire_say_where_to_renew_them(tmp_path: Path) -> None:
    context = open_server(f"sqlite:///{tmp_path}/lake/catalog.db", properties=PROPERTIES, vend=VendingConfig(ROLE))
    assert context.credentials.vending
    keys = context.credentials.vending.credentials(["s3://b/w/t"], FileActions.DELETE, principal="ann")
    end = context.loads.suffix_with_credentials(keys, "v1/namespaces/db/tables/t/credentials")
    response = json.loads(context.loads.with_suffix(b'{"metadata":{},"config":{}}', end))
    assert response["config"]["client.refresh-credentials-endpoint"] == "v1/namespaces/db/tables/t/credentials"
    assert response["config"]["s3.session-token"] == response["storage-credentials"][0]["config"]["s3.session-token"]
    context.catalog.close()
