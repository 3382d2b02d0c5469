"""The console of `bergline ui`."""

import pytest

from bergline import Lake
from bergline.catalog.identifiers import TableName
from bergline.errors import RefusedError
from bergline.server.console.local import LocalLake


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
