"""Credentials that a server hands out."""

import json
from pathlib import Path

import pytest
from asked import Asking
from glue_server import GlueServer

from bergline.errors import InvalidInputError, RefusedError, UnavailableError
from bergline.server.opening import Vend, open_served
from bergline.server.start import serve
from bergline.server.vending import StaticVending, asks_for_keys, prefixes_of
from bergline.server.vending_sts import StsVending, policy

ROLE = "arn:aws:iam::123456789012:role/tables"
WISH = {"X-Iceberg-Access-Delegation": "vended-credentials"}
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
    assert asks_for_keys({} if header is None else {"x-iceberg-access-delegation": header}) is asks


def test_each_store_has_its_own_properties() -> None:
    vending = StaticVending({**PROPERTIES, "gcs.oauth2.token": "t", "adls.account-key": "k"})
    found = vending.keys(["s3://b/t", "gs://b/t", "abfss://c@a.dfs.core.windows.net/t", "file:///t"]).credentials
    assert [(c.prefix.partition(":")[0], sorted(c.config)) for c in found] == [
        ("s3", ["client.region", "s3.access-key-id", "s3.region", "s3.secret-access-key"]),
        ("gs", ["gcs.oauth2.token"]),
        ("abfss", ["adls.account-key"]),
    ]


def test_without_keys_none_are_handed_out() -> None:
    with pytest.raises(InvalidInputError, match="expected keys"):
        StaticVending({"s3.region": "eu-west-1"})


def test_policy_names_the_directory_and_no_pattern() -> None:
    objects, listing, place = policy(["s3://b/w/od*d?$/"])["Statement"]
    assert objects["Resource"] == ["arn:aws:s3:::b/w/od${*}d${?}${$}/*"]
    assert "s3:DeleteObject" in objects["Action"]
    assert listing["Resource"] == ["arn:aws:s3:::b"]
    assert listing["Condition"] == {"StringLike": {"s3:prefix": ["w/od${*}d${?}${$}/*"]}}
    assert place["Action"] == ["s3:GetBucketLocation"]
    assert "Condition" not in policy(["s3://b/"])["Statement"][1]


def test_keys_are_not_handed_out_to_other_machines_without_tokens(tmp_path: Path) -> None:
    served = open_served(f"sqlite:///{tmp_path}/lake/catalog.db", properties=PROPERTIES, vend=Vend())
    with pytest.raises(RefusedError, match="hand out credentials on"):
        serve(served, "0.0.0.0", 0, anonymous=True, say=print)  # noqa: S104
    served.catalog.close()


def test_tables_on_disk_need_no_keys(tmp_path: Path) -> None:
    served = open_served(f"sqlite:///{tmp_path}/lake/catalog.db", properties=PROPERTIES, vend=Vend())
    with Asking(served) as ask:
        ask.namespace("db")
        ask.table()
        for _ in range(2):
            told = ask("GET", "/v1/namespaces/db/tables/orders", headers=WISH)
            assert "storage-credentials" not in told.json
        assert ask("GET", "/v1/namespaces/db/tables/orders/credentials").json == {"storage-credentials": []}
    served.catalog.close()


@pytest.fixture
def sts(glue_server: GlueServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS STS, which moto has too."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{glue_server.port}")


@pytest.mark.usefixtures("sts")
def test_keys_of_a_role_live_for_a_time_and_are_given_again_for_half_of_it() -> None:
    now = [0]
    vending = StsVending(PROPERTIES, ROLE, 900, clock_ms=lambda: now[0])
    places = ["s3://b/w/t"]
    assert vending.known_keys(places) is None
    first = vending.keys(places)
    assert first.expires_ms
    (credential,) = first.credentials
    config = credential.config
    assert credential.prefix == "s3://b/w/t/"
    assert config["s3.session-token-expires-at-ms"] == str(first.expires_ms)
    assert config["s3.access-key-id"] != PROPERTIES["s3.access-key-id"]
    assert config["s3.session-token"]
    assert config["client.region"] == "eu-west-1"
    assert "server-secret" not in json.dumps(config)
    now[0] = first.expires_ms - 500_000
    assert vending.keys(places) is vending.known_keys(places) is first
    assert vending.keys(["s3://b/w/other"]).credentials != first.credentials
    now[0] = first.expires_ms - 400_000
    assert vending.known_keys(places) is None
    second = vending.keys(places)
    assert second.mark != first.mark
    assert vending.keys(["file:///t"]).credentials == ()


@pytest.mark.usefixtures("sts")
def test_answers_with_keys_that_expire_say_where_to_renew_them(tmp_path: Path) -> None:
    served = open_served(f"sqlite:///{tmp_path}/lake/catalog.db", properties=PROPERTIES, vend=Vend(ROLE))
    assert served.vending
    keys = served.vending.keys(["s3://b/w/t"])
    end = served.loads.end_with_keys(keys, "v1/namespaces/db/tables/t/credentials")
    told = json.loads(served.loads.with_end(b'{"metadata":{},"config":{}}', end))
    assert told["config"]["client.refresh-credentials-endpoint"] == "v1/namespaces/db/tables/t/credentials"
    assert told["config"]["s3.session-token"] == told["storage-credentials"][0]["config"]["s3.session-token"]
    served.catalog.close()


def test_a_role_that_cannot_be_assumed_is_said_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(UnavailableError, match="AWS STS says EndpointConnectionError") as raised:
        StsVending(PROPERTIES, ROLE, 900).keys(["s3://b/t"])
    assert "server-secret" not in str(raised.value)
    with pytest.raises(InvalidInputError, match="15 minutes to 12 hours"):
        StsVending(PROPERTIES, ROLE, 60)
