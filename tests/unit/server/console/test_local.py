"""The console of `bergline ui`."""

import http.client
import time
from collections.abc import Mapping

import pyarrow as pa
import pytest

import bergline
from bergline import Lake
from bergline.catalog.identifiers import TableName
from bergline.console.actions.form import Answers
from bergline.console.actions.registry import ACTIONS
from bergline.errors import RefusedError
from bergline.server.console.local import LocalLake
from bergline.server.context.context import ServerContext
from support.servers.console_stories import SECRET, shown
from support.servers.server_on_socket import on_socket


@pytest.mark.parametrize("name", ["localhost:8182", "127.0.0.1:8182", "[::1]:8182", "x.localhost"])
def test_names_of_this_machine_are_accepted(lake: Lake, name: str) -> None:
    LocalLake(lake, SECRET).check_origin({"host": name})


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"host": "192.168.1.7:8182"}, {}, {"host": ""}])
def test_other_names_are_refused_against_dns_rebinding(lake: Lake, headers: dict[str, str]) -> None:
    with pytest.raises(RefusedError, match="loopback address as the host"):
        LocalLake(lake, SECRET).check_origin(headers)


def test_page_of_another_site_is_refused(lake: Lake) -> None:
    with pytest.raises(RefusedError, match="page of another site"):
        LocalLake(lake, SECRET).check_origin({"host": "localhost:8182", "origin": "http://evil.example"})


def test_whoever_has_the_secret_comes_in(lake: Lake) -> None:
    host = LocalLake(lake, SECRET)
    assert host.caller(SECRET, "").name
    for other in (None, "", "S" * 43, f"{SECRET}x", "\ud800"):
        with pytest.raises(RefusedError, match="expected the secret of this console"):
            host.caller(other, "")
    name = TableName(("db",), "t")
    assert host.change("ann", "merge", name, lambda: 7) == 7


def test_ticket_stands_for_the_secret_once(lake: Lake) -> None:
    host = LocalLake(lake, SECRET)
    ticket = host.new_ticket()
    assert [host.token_for(ticket), host.token_for(ticket), host.token_for("")] == [SECRET, None, None]
    assert [host.token_for(SECRET), host.token_for(SECRET)] == [SECRET, SECRET]
    with pytest.raises(RefusedError):
        host.caller(host.new_ticket(), "")


def asked(address: str, path: str, method: str = "GET", **headers: str) -> tuple[int, str, Mapping[str, str]]:
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    found = response.status, response.read().decode(), dict(response.getheaders())
    connection.close()
    return found


def test_browser_is_let_in_by_the_whole_address_and_stays_in(lake: Lake) -> None:
    with shown(lake) as address:
        port = address.rpartition(":")[2]
        for path in ("/", "/lake.json", "/audit", "/table/rows.json", f"/?token={SECRET[:-1]}", "/?token="):
            status, text, _ = asked(address, path)
            assert status == 403
            assert "open the whole address that `bergline ui` printed" in text
        assert asked(address, "/table/actions/merge", "POST")[0] == 403
        assert asked(address, f"/?token={SECRET}", "HEAD")[0] == 403
        assert asked(address, "/static/console.css")[0] == 200
        status, _, headers = asked(address, f"/audit?token={SECRET}&page=2+%26+3")
        assert (status, headers["location"]) == (303, "/audit?page=2+%26+3")
        cookie, _, rules = headers["set-cookie"].partition("; ")
        assert (cookie, rules) == (
            f"bergline-token-{port}={SECRET}",
            "Path=/; HttpOnly; SameSite=Strict; Max-Age=43200",
        )
        assert asked(address, "/audit", cookie=cookie)[0] == 200
        assert asked(address, "/lake.json", authorization=f"Bearer {SECRET}")[0] == 200
        assert asked(address, f"//evil.example/?token={SECRET}")[2]["location"] == "/"
        status, _, headers = asked(address, f"/?token={SECRET}", host="evil.example")
        assert (status, "set-cookie" in headers and SECRET in headers["set-cookie"]) == (403, False)


def test_actions_go_through_another_servers_catalog(context: ServerContext) -> None:
    with on_socket(context) as port, bergline.connect(f"http://127.0.0.1:{port}") as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
        table.append(pa.table({"id": [1]})).append(pa.table({"id": [2]}))
        now_ms = time.time_ns() // 1_000_000 + 1000
        for key, given in (("create-tag", {"new": "v1"}), ("expire", {"older_than": "1 ms", "retain_last": "1"})):
            review = ACTIONS[key].review(table.refresh(), Answers(ACTIONS[key].fields, given), now_ms)
            assert LocalLake(lake, SECRET).change("ann", key, table.name, review.do)
        assert [len(table.refresh().metadata.snapshots), *table.refs] == [1, "main", "v1"]
        entries = context.records.audit()
        assert [e.operation for e in entries][-2:] == ["commit_table", "commit_table"]
