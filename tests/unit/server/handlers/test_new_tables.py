"""New tables as requests describe them."""

import pyarrow as pa
import pytest

from bergline.errors import UnsupportedError
from bergline.lake.lake import Lake
from bergline.server.context.context import ServerContext
from support.servers.asgi_client import SCHEMA, AsgiClient

ORDERS = "/v1/namespaces/db/tables/orders"


@pytest.fixture(autouse=True)
def _db(client: AsgiClient) -> None:
    client.namespace("db")


def test_table_is_created_as_asked(client: AsgiClient) -> None:
    made = client.table(
        properties={"owner": "ann"},
        **{
            "partition-spec": {"fields": [{"name": "d", "transform": "day", "source-id": 2}]},
            "write-order": {
                "order-id": 1,
                "fields": [{"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-last"}],
            },
        },
    ).json
    metadata = made["metadata"]
    assert metadata["properties"]["owner"] == "ann"
    assert metadata["partition-specs"][0]["fields"][0]["field-id"] == 1000
    assert metadata["default-sort-order-id"] == 1
    loaded = client("GET", ORDERS)
    assert loaded.json == made
    assert loaded.headers["content-type"] == "application/json"
    assert client("GET", "/v1/namespaces/db/tables").json["identifiers"] == [{"namespace": ["db"], "name": "orders"}]


@pytest.mark.parametrize("stage", [True, False])
@pytest.mark.parametrize("key", ["write.metadata.path", "write.data.path", "write.object-storage.path"])
def test_new_table_writes_nowhere_else(client: AsgiClient, key: str, stage: bool) -> None:
    for place, status in (("/etc/x", 403), ("s3://other/x", 403), ("beside/it", 400)):
        body = {"name": "x", "schema": SCHEMA, "stage-create": stage, "properties": {key: place}}
        assert client("POST", "/v1/namespaces/db/tables", body).status == status


def test_struct_without_fields_is_accepted_and_not_written(client: AsgiClient, context: ServerContext) -> None:
    inner = {"id": 2, "name": "s", "type": {"type": "struct", "fields": []}, "required": False}
    schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}, inner]}
    made = client("POST", "/v1/namespaces/db/tables", {"name": "t", "schema": schema})
    assert made.status == 200, made
    assert made.json["metadata"]["schemas"][0]["fields"][1]["type"] == {"type": "struct", "fields": []}
    table = Lake(context.catalog, "lake").load_table("db.t")
    rows = pa.table({"id": [1]})
    with pytest.raises(UnsupportedError, match="which Parquet has no form for, found in column `s`"):
        table.append(rows)
    assert table.scan().to_arrow().num_rows == 0
    with table.update_schema() as change:
        change.add_column("s.x", "int")
    table.append(rows)
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "s": None}]
