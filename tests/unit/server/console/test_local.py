"""The console of `bergline ui`."""

import time

import pyarrow as pa
import pytest
from server_on_socket import on_socket

import bergline
from bergline import Lake
from bergline.catalog.identifiers import TableName
from bergline.console.actions.form import Answers
from bergline.console.actions.registry import ACTIONS
from bergline.errors import RefusedError
from bergline.server.console.local import LocalLake
from bergline.server.handlers.context import ServerContext


@pytest.mark.parametrize("name", ["localhost:8182", "127.0.0.1:8182", "[::1]:8182", "x.localhost"])
def test_names_of_this_machine_are_accepted(lake: Lake, name: str) -> None:
    LocalLake(lake).check_origin({"host": name})


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"host": "192.168.1.7:8182"}, {}, {"host": ""}])
def test_other_names_are_refused_against_dns_rebinding(lake: Lake, headers: dict[str, str]) -> None:
    with pytest.raises(RefusedError, match="loopback address as the host"):
        LocalLake(lake).check_origin(headers)


def test_page_of_another_site_is_refused(lake: Lake) -> None:
    with pytest.raises(RefusedError, match="page of another site"):
        LocalLake(lake).check_origin({"host": "localhost:8182", "origin": "http://evil.example"})


def test_whoever_started_it_needs_no_token(lake: Lake) -> None:
    host = LocalLake(lake)
    assert not host.needs_token
    assert host.caller(None)
    name = TableName(("db",), "t")
    assert host.change("ann", "merge", name, lambda: 7) == 7


def test_actions_go_through_another_servers_catalog(context: ServerContext) -> None:
    with on_socket(context) as port, bergline.connect(f"http://127.0.0.1:{port}") as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
        table.append(pa.table({"id": [1]})).append(pa.table({"id": [2]}))
        now_ms = time.time_ns() // 1_000_000 + 1000
        for key, given in (("create-tag", {"new": "v1"}), ("expire", {"older_than": "1 ms", "retain_last": "1"})):
            review = ACTIONS[key].review(table.refresh(), Answers(ACTIONS[key].fields, given), now_ms)
            assert LocalLake(lake).change("ann", key, table.name, review.do)
        assert [len(table.refresh().metadata.snapshots), *table.refs] == [1, "main", "v1"]
        entries = context.records.audit()
        assert [e.operation for e in entries][-2:] == ["commit_table", "commit_table"]
