"""Credentials that a server hands out."""

import pytest

from bergline.errors import InvalidInputError, RefusedError
from bergline.governance.grants.file_actions import FileActions
from bergline.server.credentials.vending import StaticVending, prefixes_of, requests_credentials, requests_signing

PROPERTIES = {"s3.access-key-id": "server-key", "s3.secret-access-key": "server-secret", "s3.region": "eu-west-1"}


@pytest.mark.parametrize(
    ("places", "prefixes"),
    [
        (["s3://b/w/t"], ("s3://b/w/t/",)),
        (["s3://b/w/t/", "s3://b/w/t/data"], ("s3://b/w/t/",)),
        (["s3://b/w/t", "s3://b/w/t2"], ("s3://b/",)),
        (["s3://b/w/t", "s3a://b/x", "s3://c/data"], ("s3://b/w/t/", "s3a://b/x/", "s3://c/data/")),
        ([], ()),
    ],
)
def test_each_bucket_has_one_prefix(places: list[str], prefixes: tuple[str, ...]) -> None:
    assert prefixes_of(places) == prefixes


@pytest.mark.parametrize(
    ("header", "asks"),
    [
        (None, False),
        ("", False),
        ("remote-signing", False),
        ("vended-credentials", True),
        ("a, Vended-Credentials", True),
    ],
)
def test_keys_are_for_those_who_ask(header: str | None, asks: bool) -> None:
    assert requests_credentials({} if header is None else {"x-iceberg-access-delegation": header}) is asks


def test_signatures_are_for_those_who_ask() -> None:
    assert requests_signing({"x-iceberg-access-delegation": "vended-credentials,Remote-Signing"})
    assert not requests_signing({"x-iceberg-access-delegation": "vended-credentials"})
    assert not requests_signing({})


@pytest.mark.parametrize("actions", [FileActions.READ, FileActions.WRITE, FileActions.DELETE])
def test_only_who_may_do_everything_gets_the_keys_of_the_server(actions: FileActions) -> None:
    vending = StaticVending(PROPERTIES)
    assert vending.cached_credentials(["s3://b/t"], actions, principal="ann") is None
    with pytest.raises(RefusedError, match="a caller who does not administer the catalog") as raised:
        vending.credentials(["s3://b/t"], actions, principal="ann")
    assert "server-secret" not in f"{raised.value}{raised.value.hints}"
    assert vending.credentials(["file:///t"], actions, principal="ann").credentials == ()
    assert vending.cached_credentials(["s3://b/t"], FileActions.EVERYTHING, principal="ann") is not None


def test_each_store_has_its_own_properties() -> None:
    vending = StaticVending({**PROPERTIES, "gcs.oauth2.token": "t", "adls.account-key": "k"})
    found = vending.credentials(
        ["s3://b/t", "gs://b/t", "abfss://c@a.dfs.core.windows.net/t", "file:///t"],
        FileActions.EVERYTHING,
        principal="ann",
    ).credentials
    assert [(c.prefix.partition(":")[0], sorted(c.config)) for c in found] == [
        ("s3", ["client.region", "s3.access-key-id", "s3.region", "s3.secret-access-key"]),
        ("gs", ["gcs.oauth2.token"]),
        ("abfss", ["adls.account-key"]),
    ]


def test_without_keys_none_are_handed_out() -> None:
    with pytest.raises(InvalidInputError, match="expected credentials"):
        StaticVending({"s3.region": "eu-west-1"})
